"""Tuples that are decided: rows of numbers, from the pairs in which they are found to rows."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from joins.memory.ordering import order_by
from joins.memory.slots import Ints
from joins.memory.times import Flags
from joins.sequences.served import Groups
from joins.sequences.steps import LOWEST, bars_before

__all__ = ["DecidedTuples"]


@dataclass(frozen=True, slots=True)
class DecidedTuples:
    """Decided tuples: the numbers of their contenders, their ends, and where they were decided.

    `right` is -1 in a tuple of one operand; `height` and `bar` say for which data it is (`steps`),
    `taken` for which values it is not, or for which alone it is, by the number of these
    (`takenvalues`); of pairs that are not chosen yet, for which data the right one is not.
    """

    decision: Ints
    left: Ints
    right: Ints
    end_us: Ints
    docid: Ints
    height: Ints
    bar: Ints
    taken: Ints

    @classmethod
    def none(cls) -> DecidedTuples:
        """Return no tuples."""
        return cls(*np.zeros((len(_COLUMNS), 0), np.int64))

    @classmethod
    def alone(cls, decision: Ints, left: Ints, end_us: Ints, docid: Ints) -> DecidedTuples:
        """Return tuples of one operand."""
        nothing = np.zeros(len(left), np.int64)
        bars = np.full(len(left), LOWEST)
        return cls(decision, left, nothing - 1, end_us, docid, nothing, bars, nothing)

    @classmethod
    def concat(cls, parts: list[DecidedTuples]) -> DecidedTuples:
        """Return the tuples of all parts."""
        parts = [each for each in parts if len(each)]
        if len(parts) < 2:
            return parts[0] if parts else cls.none()
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS))

    def __len__(self) -> int:
        return len(self.left)

    def some(self, chosen: Flags | Ints) -> DecidedTuples:
        """Return some of the tuples."""
        return DecidedTuples(*(getattr(self, name)[chosen] for name in _COLUMNS))

    def distinct(self) -> DecidedTuples:
        """Return each tuple once, though several rows may have made it: of these the highest."""
        order = order_by(self.left, self.right, self.taken, ~self.height)
        ordered = self.some(order)
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = (np.diff(ordered.left) != 0) | (np.diff(ordered.right) != 0)
        is_first[1:] |= np.diff(ordered.taken) != 0
        return ordered.some(is_first)

    def above(self, groups: Groups, bars: Ints) -> DecidedTuples:
        """Return, of each left and group, the pairs that are above all decided before.

        Decided before are those at a smaller document, and of these that end earlier; `bars` are
        what was decided in batches before.
        """
        if not len(self):
            return self
        order = order_by(self.left, *groups[::-1], self.docid, self.end_us)
        ordered = self.some(order)
        columns = ordered.left, *(each[order] for each in groups)
        lefts = _numbered(*columns)
        steps = _numbered(*columns, ordered.docid, ordered.end_us)
        bar = bars_before(lefts, steps, ordered.height, bars[order])
        is_above = ordered.height > bar
        return replace(ordered, bar=bar).some(is_above)


_COLUMNS = tuple(each.name for each in fields(DecidedTuples))


def _numbered(*columns: npt.NDArray[Any]) -> Ints:
    """Return numbers of ordered rows: one more where any column changes."""
    changes = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(changes)])
