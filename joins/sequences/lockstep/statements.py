"""The chains of one table, and their programs as the loops read them."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any, NamedTuple

import numpy as np

from joins.memory.slots import Ints
from joins.sequences.lockstep.layout import Beginnings, Programs
from templates.chaincode import ChainProgram, Op, Slot, SlotKind
from templates.chaindecision import ChainDecision

__all__ = ["TableChain", "programs_of", "what_is_read"]


def what_is_read(decision: ChainDecision, program: ChainProgram) -> tuple[object, ...]:
    """Return what chains of one table have in common."""
    steps = tuple((link.is_repeated, link.elements) for link in decision.links)
    documents, grace_us = decision.documents, decision.grace_us
    return decision.strategy, steps, documents, grace_us, program.columns


class TableChain(NamedTuple):
    """A chain of the table; of its constants a text is told by its number."""

    decision: ChainDecision
    program: ChainProgram
    constants: Sequence[float]


def programs_of(
    statements: Sequence[TableChain], gone: Set[int], lateness_us: int
) -> tuple[Programs, Beginnings]:
    """Return the statements as the loops read them: those with one program have one code.

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
    slots_at, sorted_op, sorted_line, sorted_at = [0], [], [], [0]
    by_constant: list[int] = []
    sorted_constants: list[float] = []
    for i, program in enumerate(distinct):
        base = len(code)
        code += [_moved(line, base) for line in program.code]
        predicates[i] = np.array(program.predicates) + base
        slots += [_slot(each, base) for each in program.slots]
        slots_at.append(len(slots))
        own = [s for s, program_of in enumerate(of) if program_of == i and s not in gone]
        by = program.sorted_by
        sorted_op.append(int(Op.FALSE) if by is None or not own else int(by.op))
        sorted_line.append(0 if by is None else base + by.line)
        constants = [0.0 if by is None else statements[s].constants[by.constant] for s in own]
        order = np.argsort(constants, kind="stable").tolist()
        by_constant += [own[at] for at in order]
        sorted_constants += [constants[at] for at in order]
        sorted_at.append(len(by_constant))
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
            [ints(of), ints([e.within_us for e in decisions]), ints(retentions), windows, gaps]
        ),
    )
    return programs, Beginnings(
        ints(sorted_op),
        ints(sorted_line),
        ints(sorted_at),
        ints(by_constant),
        np.array(sorted_constants, np.float64),
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
