"""The chains of one table, and their programs as the loops read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from typing import Any, NamedTuple

import numpy as np

from joins.memory.slots import Ints
from joins.sequences.lockstep.layout import Beginnings, Programs
from templates.chaincode import ChainProgram, Op, Slot, SlotKind
from templates.chaindecision import ChainDecision

__all__ = ["TableChain", "programs_of", "what_is_read"]


def what_is_read(decision: ChainDecision, program: ChainProgram) -> tuple[object, ...]:
    """Return what chains of one table have in common: all but whose rows their elements are."""
    steps = tuple(
        (link.is_repeated, link.run, [(e.block, e.keys, len(e.data)) for e in link.elements])
        for link in decision.links
    )
    documents, grace_us = decision.documents, decision.grace_us
    return decision.strategy, steps, documents, grace_us, program.columns


class TableChain(NamedTuple):
    """A chain of the table, with the source of each step.

    Of its constants a text is told by its number.
    """

    decision: ChainDecision
    program: ChainProgram
    constants: Sequence[float]
    sources: Sequence[int]


def programs_of(
    statements: Sequence[TableChain], sources: int, gone: Set[int], lateness_us: int
) -> tuple[Programs, Beginnings]:
    """Return statements over so many sources as the loops read them: one code of each program.

    Nothing begins of the ones that are gone.
    """
    first = statements[0].decision
    steps = len(first.links)
    distinct = list(dict.fromkeys(each.program for each in statements))
    number = {program: i for i, program in enumerate(distinct)}
    of = [number[each.program] for each in statements]
    code: list[tuple[int, int, int]] = []
    predicates = np.zeros((len(distinct), steps, 3), np.int64)
    slots: list[tuple[int, int, int]] = []
    slots_at, begins = [0], []
    for i, program in enumerate(distinct):
        base = len(code)
        code += [_moved(line, base) for line in program.code]
        predicates[i] = np.array(program.predicates) + base
        slots += [_slot(each, base) for each in program.slots]
        slots_at.append(len(slots))
        by = program.sorted_by
        begins.append((int(Op.FALSE), 0) if by is None else (int(by.op), base + by.line))
    width = max((len(each.constants) for each in statements), default=0)
    constants_of = np.zeros((len(statements), max(width, 1)))
    for i, each in enumerate(statements):
        constants_of[i, : len(each.constants)] = each.constants
    decisions = [each.decision for each in statements]

    def ints(values: Any) -> Ints:
        return np.array(values, np.int64)

    windows = [[link.window_us for link in each.links] for each in decisions]
    gaps = [[link.gap_us for link in each.links] for each in decisions]
    retentions = [each.retention_us + lateness_us for each in decisions]
    programs = Programs(
        steps,
        sources,
        first.is_contiguous,
        first.is_partitioned,
        np.array([link.is_repeated for link in first.links]),
        ints(code),
        predicates,
        ints(slots_at),
        ints(slots).reshape(-1, 3),
        np.array([program.has_folds for program in distinct]),
        constants_of,
        np.column_stack(
            [
                ints(of),
                ints([e.within_us for e in decisions]),
                ints(retentions),
                windows,
                gaps,
                [each.sources for each in statements],
            ]
        ),
    )
    return programs, _beginnings(statements, sources, of, begins, gone)


def _beginnings(
    statements: Sequence[TableChain],
    sources: int,
    of: Sequence[int],
    begins: Sequence[tuple[int, int]],
    gone: Set[int],
) -> Beginnings:
    """Return the statements by the source of their first step, their programs and constants.

    `of` has the program of each, `begins` what the constants of each program are compared with.
    """
    ordered: list[tuple[int, int, float, int]] = []
    for number, each in enumerate(statements):
        if number not in gone:
            by = each.program.sorted_by
            constant = 0.0 if by is None else each.constants[by.constant]
            ordered.append((each.sources[0], of[number], constant, number))
    ordered.sort()
    groups = list(dict.fromkeys(each[:2] for each in ordered))
    of_groups = Counter(each[:2] for each in ordered)
    groups_at = np.searchsorted([source for source, _ in groups], np.arange(sources + 1))
    programs = [program for _, program in groups]
    return Beginnings(
        groups_at,
        np.array(programs, np.int64),
        np.array([begins[program][0] for program in programs], np.int64),
        np.array([begins[program][1] for program in programs], np.int64),
        np.cumsum([0, *(of_groups[group] for group in groups)]),
        np.array([number for *_, number in ordered], np.int64),
        np.array([constant for *_, constant, _ in ordered], np.float64),
    )


def _moved(line: tuple[int, int, int], base: int) -> tuple[int, int, int]:
    """Return a line of code whose jumps lead to the same lines behind `base` others."""
    op, a, b = line
    if Op.EQUAL <= op <= Op.AT_LEAST or op == Op.JUMP:
        return op, a + base, b
    return (op, a, b + base) if op in (Op.PREVIOUS_OR, Op.SLOT_OR) else line


def _slot(slot: Slot, base: int) -> tuple[int, int, int]:
    """Return a slot of a program whose code stands behind `base` other lines."""
    column = slot.column + base if slot.kind is SlotKind.FOLD else slot.column
    return slot.step, int(slot.kind), column
