"""Tuples as points: where their values are, and what else boxes test of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from broker.matching.boxes.columns import Doubles, Flags, Ints
from broker.matching.boxes.operands import Operands
from broker.matching.uncertain import Uncertain
from joins import TupleTable
from templates.box import Measured
from xscl.measures import number_of

__all__ = ["Points"]

Rows = Callable[[Iterable[int]], Iterator[tuple[Sequence[int], pa.RecordBatch]]]
"""Yields the rows of instances by number."""


@dataclass(frozen=True, slots=True)
class Points:
    """Tuples whose operands have no document in common, and the operands in columns.

    `left` and `right` are places in `operands`; a tuple of one block has its instance twice.
    `uncertain` are the documents behind them that may not be true.
    """

    tuples: TupleTable
    operands: Operands
    left: Ints
    right: Ints
    docids: Ints
    docids_min: Ints
    docids_max: Ints
    uncertain: Uncertain

    @classmethod
    def of(cls, tuples: TupleTable, rows: Rows, uncertain: Uncertain) -> Points:
        """Return the tuples that are points."""
        operands = Operands.of(rows(tuples.instances().tolist()))
        left = operands.at(tuples.left)
        right = np.where(tuples.right > 0, operands.at(tuples.right), left)
        is_apart = (tuples.right == 0) | ~operands.overlap(left, right)
        if not is_apart.all():
            kept = np.flatnonzero(is_apart)
            tuples, left, right = tuples.take(kept), left[kept], right[kept]
        of_left, of_right = (operands.column("docid")[each] for each in (left, right))
        docids = np.maximum(of_left, of_right)
        if tuples.decided is not None:
            docids = np.where(tuples.decided[:, 0] > 0, tuples.decided[:, 0], docids)
        oldest, newest = (operands.column(name) for name in ("docid_min", "docid_max"))
        docids_min = np.minimum(oldest[left], oldest[right])
        docids_max = np.maximum(newest[left], newest[right])
        return cls(tuples, operands, left, right, docids, docids_min, docids_max, uncertain)

    def __len__(self) -> int:
        return len(self.tuples)

    def take(self, rows: Ints) -> Points:
        """Return some of the tuples."""
        return Points(
            self.tuples.take(rows),
            self.operands,
            self.left[rows],
            self.right[rows],
            self.docids[rows],
            self.docids_min[rows],
            self.docids_max[rows],
            self.uncertain,
        )

    @property
    def classes(self) -> Ints:
        """The class of each tuple."""
        return self.tuples.classes

    @property
    def spans(self) -> Ints:
        """The smallest window that holds each tuple, in microseconds."""
        return self.tuples.spans

    @property
    def bars(self) -> Doubles:
        """What each tuple had to surmount, where that is asked."""
        return self.tuples.bars_or_zeros()

    def intervals(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return where the intervals of some tuples start, and where they end."""
        starts, ends = (self.operands.column(name) for name in ("start_us", "end_us"))
        left, right = self.left[rows], self.right[rows]
        last = np.maximum(ends[left], ends[right])
        if self.tuples.decided is not None:
            docids, _, _, decided = self.tuples.decided[rows].T
            last = np.where(docids > 0, decided, last)
        return np.minimum(starts[left], starts[right]), last

    def newest(self, rows: Ints) -> Ints:
        """Return the operand at whose position each of some tuples stands, unless decided."""
        docids, depths = (self.operands.column(name) for name in ("docid", "depth"))
        left, right = self.left[rows], self.right[rows]
        apart = docids[right] - docids[left]
        apart = np.where(apart == 0, depths[right] - depths[left], apart)
        is_right = apart > 0
        if len(tied := ((apart == 0) & (left != right)).nonzero()[0]):
            ids = self.operands.rows.column("match_id")
            both = (ids.take(pa.array(each[tied])).to_pylist() for each in (left, right))
            is_right[tied] = [one < other for one, other in zip(*both, strict=True)]
        return np.where(is_right, right, left)

    def standing(self, rows: Ints) -> tuple[Ints, Ints, Flags]:
        """Return depth and watermark of some tuples, and which were decided.

        One that was not stands where its newest operand does.
        """
        newest = self.newest(rows)
        depths, watermarks = (self.operands.column(n)[newest] for n in ("depth", "watermark_us"))
        if self.tuples.decided is None:
            return depths, watermarks, np.zeros(len(rows), np.bool_)
        decided = self.tuples.decided[rows]
        was_decided: Flags = decided[:, 0] > 0
        depths = np.where(was_decided, decided[:, 1], depths)
        return depths, np.where(was_decided, decided[:, 2], watermarks), was_decided

    def measured(self, number: Measured, rows: Ints) -> Doubles:
        """Return the doubles that stand for a measure in some tuples; see `Measured`."""
        lefts, rights = (
            self.values_at(rows, *np.array([place]).T) for place in (number.left, number.right)
        )
        both, inverse = np.unique(np.stack([lefts, rights]), axis=1, return_inverse=True)
        sets = [
            self.operands.sets(call, side)
            for call, side in zip((number.left_set, number.right_set), both, strict=True)
        ]
        found = [
            number_of(
                number.measure,
                number.operator,
                *(of[place] for of, place in zip(sets, pair, strict=True)),
            )
            for pair in both.T.tolist()
        ]
        return np.array(found, np.float64)[inverse.ravel()]

    def values_at(self, rows: Ints, sides: Ints, metas: Ints, positions: Ints) -> Ints:
        """Return where the values of some tuples at places (`Place`) are in the operands."""
        table = self.tuples
        nodes = table.starts[table.patterns[rows]] + np.maximum(metas, 0)
        nodes = np.minimum(nodes, max(0, len(table.flat_nodes) - 1))
        found = table.flat_nodes[nodes] if len(table.flat_nodes) else np.zeros_like(nodes)
        operands = np.where(sides == 0, self.left[rows], self.right[rows])
        places: Ints = self.operands.starts[operands] + np.where(metas >= 0, found, positions)
        return places
