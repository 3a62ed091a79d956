"""Programs of chains as data: lines of code, what runs keep, and constants.

`chainprograms` makes them of conditions, and `joins.sequences.lockstep.loops` run them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

from templates.chainoperands import ChainOperand

__all__ = ["ChainProgram", "Line", "Op", "Slot", "SlotKind", "SortedBy"]

Line = tuple[int, int, int]
"""An operation, with a and b."""


class Op(IntEnum):
    """What a line of a program does.

    Behind a comparison that does not hold, and behind JUMP, comes line a; behind PREVIOUS_OR and
    SLOT_OR, where there is such a value, line b.
    """

    FALSE = 0
    TRUE = 1
    CONSTANT = 2
    CANDIDATE = 3
    PREVIOUS = 4
    PREVIOUS_OR = 5
    SLOT = 6
    OWN_SUM = 7
    OWN_EXTREME = 8
    OWN_AVERAGE = 9
    AVERAGE = 10
    FIRST = 11
    SIZE = 12
    START = 13
    END = 14
    DURATION = 15
    ADD = 16
    SUBTRACT = 17
    MULTIPLY = 18
    DIVIDE = 19
    REMAINDER = 20
    NEGATE = 21
    EQUAL = 22
    UNEQUAL = 23
    LESS = 24
    AT_MOST = 25
    GREATER = 26
    AT_LEAST = 27
    VALUE = 28
    SLOT_OR = 29
    JUMP = 30


class SlotKind(IntEnum):
    """What a run keeps of the elements of a step."""

    SUM = 0
    LEAST = 1
    GREATEST = 2
    FIRST = 3
    LAST = 4
    COUNT = 5
    FOLD = 6


@dataclass(frozen=True, slots=True)
class Slot:
    """What a run keeps of the elements of a step: see `SlotKind`.

    Of a value of FOLD `column` is the line with which begins what it is with an element.
    """

    step: int
    kind: SlotKind
    column: int


@dataclass(frozen=True, slots=True)
class SortedBy:
    """A comparison of what begins a run with a constant: `line` gives the value to compare."""

    op: Op
    line: int
    constant: int


@dataclass(frozen=True, slots=True)
class ChainProgram:
    """The conditions of a chain: what they run, and their constants, which are data.

    `columns` are for each step the operands of which its elements have numbers.  `predicates` are
    for each step the lines with which begins what is asked of its first element, of each, and of
    one that a run takes next (WHILE).
    """

    columns: tuple[tuple[ChainOperand, ...], ...]
    code: tuple[Line, ...]
    predicates: tuple[tuple[int, int, int], ...]
    slots: tuple[Slot, ...]
    sorted_by: SortedBy | None
    constants: tuple[float | str, ...] = field(compare=False)

    @property
    def has_folds(self) -> bool:
        """Whether runs keep values of FOLD."""
        return any(slot.kind is SlotKind.FOLD for slot in self.slots)
