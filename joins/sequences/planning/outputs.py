"""What classes hand on of decisions: the tuples that a rule holds of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from joins.memory.slots import Ints, ranges

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

    numbers: Ints
    decisions: Ints
    left: Ints
    right: Ints
    rules: Ints

    @classmethod
    def of(cls, handed_on: Sequence[ClassOutput]) -> ClassOutputs:
        """Return what classes hand on as columns."""
        rows = np.array(sorted(handed_on, key=lambda each: each.decision), np.int64)
        return cls(*rows.reshape(-1, len(ClassOutput._fields)).T)

    def of_decisions(self, decisions: Ints) -> tuple[Ints, Ints]:
        """Return, for each of some decisions, its classes: which of them it is, and the place."""
        low, high = (np.searchsorted(self.decisions, decisions, side) for side in ("left", "right"))
        return np.repeat(np.arange(len(decisions)), high - low), ranges(low, high - low)
