"""Runs that have one element more than others."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from joins.sequences.lockstep.layout import Programs, Scratch, TableElements
from joins.sequences.lockstep.loops.columns import (
    CHARGE,
    END,
    H_BEFORE,
    H_CHARGE,
    H_ELEMENT,
    H_FIRST,
    H_GONE_ON,
    H_LEFT,
    H_NEAR,
    H_NUMBER,
    H_OLDEST,
    H_SIZE,
    H_STATEMENT,
    H_STEP,
    H_UNTIL,
    NEVER,
    NUMBER,
    START,
)
from joins.sequences.lockstep.loops.conditions import TRUE, holds
from templates.chaincode import SlotKind
from templates.compiling import inlined

__all__ = ["write_found"]

Ints = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]

S_SUM, S_LEAST, S_GREATEST, S_FIRST, S_LAST, S_COUNT, S_FOLD = map(int, SlotKind)


@inlined
def _write_head(
    e: Ints, h: Ints, head: int, before: int, statement: int, step: int, element: int
) -> bool:
    """Write a run that has one element more than `before`, or begins (-1).

    Return whether the element is a further one of its step.
    """
    number, charge = e[element, NUMBER], e[element, CHARGE]
    h[head, H_STATEMENT], h[head, H_STEP] = statement, step
    h[head, H_ELEMENT], h[head, H_BEFORE] = element, before
    h[head, H_GONE_ON], h[head, H_NEAR], h[head, H_UNTIL] = 0, -1, NEVER
    if before < 0:
        h[head, H_FIRST], h[head, H_SIZE], h[head, H_LEFT] = element, 1, e[element, START]
        h[head, H_NUMBER], h[head, H_OLDEST], h[head, H_CHARGE] = number, number, charge
        return False
    is_further = h[before, H_STEP] == step
    h[head, H_FIRST] = h[before, H_FIRST]
    h[head, H_SIZE] = h[before, H_SIZE] + 1 if is_further else 1
    h[head, H_LEFT] = h[before, H_LEFT] if is_further else e[h[before, H_ELEMENT], END]
    h[head, H_NUMBER] = max(h[before, H_NUMBER], number)
    h[head, H_OLDEST] = min(h[before, H_OLDEST], number)
    known = h[before, H_CHARGE]
    h[head, H_CHARGE] = -1 if known < 0 or charge < 0 else known + charge
    return bool(is_further)


@inlined
def _keep(
    p: Programs,
    v: Doubles,
    slots: Doubles,
    head: int,
    before: int,
    program: int,
    step: int,
    element: int,
    is_further: bool,
) -> None:
    """Write what a run keeps of its elements, with one element more than the run before it."""
    first = p.slots_at[program]
    for slot in range(first, p.slots_at[program + 1]):
        own, kind, column = p.slots[slot, 0], p.slots[slot, 1], p.slots[slot, 2]
        at = slot - first
        known = slots[before, at] if before >= 0 else 0.0
        if own == step and kind != S_FOLD:
            value = v[element, column] if kind != S_COUNT else 1.0
            if not is_further:
                known = 0.0 + value if kind == S_SUM else value
            elif kind in (S_SUM, S_COUNT):
                known = known + value
            elif kind == S_LEAST:
                if value != value or value < known:
                    known = value
            elif kind == S_GREATEST:
                if value != value or value > known:
                    known = value
            elif kind == S_LAST:
                known = value
        slots[head, at] = known


@inlined
def _fold(
    p: Programs,
    t: TableElements,
    h: Ints,
    slots: Doubles,
    head: int,
    before: int,
    step: int,
    element: int,
    is_further: bool,
    stack: Doubles,
) -> None:
    """Write the values of FOLD of a run, with one element more than the run before it."""
    statement, e = h[head, H_STATEMENT], t.e
    program = p.statements[statement, 0]
    first = p.slots_at[program]
    last, size = -1, 0
    if before >= 0:
        last, size = h[before, H_ELEMENT], h[before, H_SIZE] if is_further else 0
    first_us, end_us = e[h[head, H_FIRST], START], e[element, END]
    for slot in range(first, p.slots_at[program + 1]):
        if p.slots[slot, 0] == step and p.slots[slot, 1] == S_FOLD:
            is_bound = holds(
                p, t.v, slots, p.slots[slot, 2], statement, before, element, last, size,
                first_us, end_us, stack,
            )  # fmt: skip
            slots[head, slot - first] = stack[0] if is_bound else math.nan


@inlined
def _goes_on(
    p: Programs,
    t: TableElements,
    h: Ints,
    slots: Doubles,
    head: int,
    statement: int,
    step: int,
    element: int,
    stack: Doubles,
) -> bool:
    """Return whether a run goes on with what it takes next: it ends where WHILE does not hold."""
    line, e = p.predicates[p.statements[statement, 0], step, 2], t.e
    if p.code[line, 0] == TRUE:
        return True
    last, size = h[head, H_ELEMENT], h[head, H_SIZE] if h[head, H_STEP] == step else 0
    first_us, end_us = e[h[head, H_FIRST], START], e[element, END]
    return bool(
        holds(p, t.v, slots, line, statement, head, element, last, size, first_us, end_us, stack)
    )


@inlined
def _is_taken(t: TableElements, h: Ints, head: int, is_last: bool, runs: Ints, heads: Ints) -> bool:
    """Return whether a run goes on: not where its newest document makes too many."""
    statement, number = h[head, H_STATEMENT], h[head, H_NUMBER]
    docid = t.numbers[number]
    if docid >= t.limits[statement]:
        return False
    heads[number] += 1
    runs[number] += is_last
    if (
        runs[number] <= t.runs_most
        and heads[number] <= t.heads_most
        and h[head, H_SIZE] <= t.elements_most
    ):
        return True
    t.limits[statement] = docid
    runs[number] = heads[number] = 0
    return False


@inlined
def write_found(
    p: Programs,
    t: TableElements,
    h: Ints,
    slots: Doubles,
    count: int,
    head: int,
    statement: int,
    found: int,
    following: int,
    s: Scratch,
) -> tuple[int, int]:
    """Write the runs that a head becomes with what it has found; return how many heads there are.

    Behind that comes the one that is looked at next: those that may go on come before `following`,
    each with the one behind it in place of the time until which it waits.
    """
    program = p.statements[statement, 0]
    for i in range(found):
        step, element = s.found[i, 0], s.found[i, 1]
        if not _goes_on(p, t, h, slots, head, statement, step, element, s.stack):
            continue
        is_further = _write_head(t.e, h, count, head, statement, step, element)
        _keep(p, t.v, slots, count, head, program, step, element, is_further)
        if p.have_folds[program]:
            _fold(p, t, h, slots, count, head, step, element, is_further, s.stack)
        is_last = step == p.steps - 1
        if _is_taken(t, h, count, is_last, s.runs, s.heads):
            if not is_last or p.repeated[step]:
                h[count, H_UNTIL] = following
                following = count
            count += 1
    return count, following
