"""Which elements begin a run of which statement."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from joins.sequences.lockstep.layout import DEEPEST, Beginnings, Programs, Runs, TableElements
from joins.sequences.lockstep.loops.columns import END, SOURCE, START
from joins.sequences.lockstep.loops.conditions import AT_MOST, EQUAL, FALSE, GREATER, LESS, holds
from templates.compiling import compiled, inlined

__all__ = ["begin"]

Ints = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]


@compiled
def begin(p: Programs, by: Beginnings, t: TableElements, r: Runs, entering: Ints) -> Ints:
    """Return pairs of a statement and an element with which a run of it begins.

    Most elements begin none.
    """
    found, count = np.empty((64, 2), np.int64), 0
    stack = np.empty(DEEPEST)
    e, v, slots = t.e, t.v, r.slots
    for i in range(len(entering)):
        element = entering[i]
        start_us, end_us, source = e[element, START], e[element, END], e[element, SOURCE]
        for group in range(by.groups_at[source], by.groups_at[source + 1]):
            low, high = by.sorted_at[group], by.sorted_at[group + 1]
            op, line = by.sorted_op[group], p.predicates[by.programs[group], 0, 1]
            if op != FALSE and holds(
                p, v, slots, by.sorted_line[group], by.by_constant[low], -1, element, -1, 0,
                start_us, end_us, stack,
            ):  # fmt: skip
                low, high = _asked_to_begin(op, stack[0], by.sorted_constants, low, high)
            for at in range(low, high):
                statement = by.by_constant[at]
                if end_us - start_us > p.statements[statement, 1]:
                    continue
                if holds(p, v, slots, line, statement, -1, element, -1, 0, start_us, end_us, stack):
                    if count == len(found):
                        grown = np.empty((2 * count, 2), np.int64)
                        grown[:count] = found
                        found = grown
                    found[count, 0], found[count, 1] = statement, element
                    count += 1
    return found[:count].copy()


@inlined
def _place(constants: Doubles, low: int, high: int, value: float, is_behind: bool) -> int:
    """Return the place of a value in sorted constants: before those that equal it, or behind."""
    while low < high:
        middle = (low + high) >> 1
        if constants[middle] < value or (is_behind and constants[middle] == value):
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def _asked_to_begin(
    op: int, value: float, constants: Doubles, first: int, last: int
) -> tuple[int, int]:
    """Return the places of the statements that may begin with an element that has a value.

    One comparison is of the value and a constant, and statements stand by their constants.
    """
    if value != value:
        return first, first
    least = _place(constants, first, last, value, False)
    above = _place(constants, least, last, value, True)
    if op == EQUAL:
        return least, above
    if op == LESS:
        return above, last
    if op == AT_MOST:
        return least, last
    return first, least if op == GREATER else above
