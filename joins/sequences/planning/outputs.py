"""What classes hand on of decisions: the tuples that a rule holds of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from joins.memory.slots import Ints, ranges
from joins.sequences.planning.readers import Begins

__all__ = ["ClassOutput", "ClassOutputs"]


class ClassOutput(NamedTuple):
    """What a class hands on of a decision: the rows of one or two seats that a rule holds of.

    `right` is -1 in a class of one operand.
    """

    query_class: int
    decision: int
    left: int
    right: int
    rule: int


@dataclass(frozen=True, slots=True)
class ClassOutputs:
    """What classes hand on, in columns, in the order of decisions."""

    begins: Begins
    numbers: Ints
    left: Ints
    right: Ints
    rules: Ints

    @classmethod
    def of(cls, handed_on: Sequence[ClassOutput]) -> ClassOutputs:
        """Return what classes hand on as columns."""
        rows = np.array(sorted(handed_on, key=lambda each: each.decision), np.int64)
        numbers, decisions, *others = rows.reshape(-1, len(ClassOutput._fields)).T
        return cls(Begins.of(decisions), numbers, *others)

    def of_decisions(self, decisions: Ints) -> tuple[Ints, Ints]:
        """Return, for each of some decisions, its classes: which of them it is, and the place."""
        first, counts = self.begins.of_numbers(decisions)
        return np.repeat(np.arange(len(decisions)), counts), ranges(first, counts)
