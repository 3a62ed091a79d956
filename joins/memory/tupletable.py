"""Tuples of query classes in columns: what every engine finds, and what follows the join reads.

A row is a tuple: its class, the instances of both sides, the smallest window that holds them, and
its **pattern**, which node of these instances each meta-variable is.  Many rows have one pattern,
so the nodes stand in a table of their own, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from joins.memory.durations import UNBOUNDED
from joins.memory.ordering import numbered
from joins.memory.slots import Ints, ranges

__all__ = ["ClassTuple", "TuplePosition", "TupleTable", "in_tables"]

NO_INSTANCE = 0
"""The right side of a tuple of one block; instances are numbered from 1."""


class TuplePosition(NamedTuple):
    """Where a decided tuple stands, and when it ends: its instances do not say."""

    docid: int
    depth: int
    watermark_us: int
    end_us: int


@dataclass(frozen=True, slots=True)
class ClassTuple:
    """One row of a class's R_outT: its instances, the smallest window that holds them, its nodes.

    `right` is None for a class of one operand.  `nodes` are numbered as in the witness shapes of
    the instances, one for each meta-variable.  `position` is that of a tuple that was decided.
    """

    query_class: int
    left: int
    right: int | None
    span_us: int
    nodes: tuple[int, ...]
    position: TuplePosition | None = None


@dataclass(frozen=True, slots=True)
class TupleTable:
    """Rows of R_outT, of any classes, in columns of int64.

    `right` is 0 in a row of a class of one block.  The nodes of row `i` are `flat_nodes[starts[p]]`
    and those behind it up to `flat_nodes[starts[p + 1]]`, with `p = patterns[i]`: as numbered in
    the witness shapes of its instances, one for each meta-variable.  `decided` has a row for
    each row: the fields of its `TuplePosition`, 0 as its docid where there is none.  `bars` are
    doubles, where data are held against bars, and `taken` spell the values for which a tuple is
    taken away (`docs/decided.md`).  `nbytes` are those of values that were made for the rows.
    """

    classes: Ints
    left: Ints
    right: Ints
    spans: Ints
    patterns: Ints
    starts: Ints
    flat_nodes: Ints
    decided: Ints | None = None
    bars: npt.NDArray[np.float64] | None = None
    taken: npt.NDArray[np.object_] | None = None
    nbytes: int = 0

    @classmethod
    def of(
        cls,
        classes: Ints,
        left: Ints,
        right: Ints,
        spans: Ints,
        patterns: Ints,
        nodes: Sequence[Sequence[int]],
    ) -> TupleTable:
        """Return rows whose patterns are given as lists of positions."""
        sizes = np.fromiter(map(len, nodes), np.int64, len(nodes))
        starts = np.concatenate([np.zeros(1, np.int64), sizes.cumsum()])
        flat = [position for each in nodes for position in each]
        flat_nodes = np.array(flat, np.int64)
        return cls(classes, left, right, spans, patterns, starts, flat_nodes)

    @classmethod
    def of_rows(cls, rows: Sequence[Sequence[int | None]]) -> TupleTable:
        """Return rows of (class, left, right or None, span, nodes ...), as SQL gives them."""
        patterns: dict[tuple[int, ...], int] = {}
        which = [patterns.setdefault(tuple(row[4:]), len(patterns)) for row in rows]  # type: ignore[arg-type]
        classes, left, right, spans = (
            np.array([row[i] or 0 for row in rows], np.int64) for i in range(4)
        )
        return cls.of(classes, left, right, spans, np.array(which, np.int64), list(patterns))

    @classmethod
    def of_tuples(cls, tuples: Sequence[ClassTuple], nbytes: int = 0) -> TupleTable:
        """Return tuples as rows."""
        rows = [(t.query_class, t.left, t.right, t.span_us, *t.nodes) for t in tuples]
        decided = [t.position or (0, 0, 0, 0) for t in tuples]
        table = cls.of_rows(rows)
        positions = np.array(decided, np.int64).reshape(-1, 4)
        return replace(table, decided=positions, nbytes=nbytes)

    @classmethod
    def concat(cls, parts: Sequence[TupleTable]) -> TupleTable:
        """Return the rows of all parts, one part after the other."""
        parts = [part for part in parts if len(part)] or parts[:1]
        if len(parts) == 1:
            return parts[0]
        counts = [len(part.starts) - 1 for part in parts]
        before = np.cumsum([0, *counts])
        shift = np.cumsum([0, *(len(part.flat_nodes) for part in parts)])
        nothing = np.zeros(0, np.int64)
        named = {
            name: np.concatenate([nothing, *(getattr(part, name) for part in parts)])
            for name in ("classes", "left", "right", "spans", "flat_nodes")
        }
        patterns = [part.patterns + start for part, start in zip(parts, before, strict=False)]
        starts = [part.starts[:-1] + start for part, start in zip(parts, shift, strict=False)]
        decided = None
        if any(part.decided is not None for part in parts):
            decided = np.concatenate([part.decided_or_zeros() for part in parts])
        bars = None
        if any(part.bars is not None for part in parts):
            bars = np.concatenate([part.bars_or_zeros() for part in parts])
        taken = None
        if any(part.taken is not None for part in parts):
            taken = np.concatenate([part.taken_or_none() for part in parts])
        return cls(
            patterns=np.concatenate([nothing, *patterns]),
            starts=np.concatenate([*starts, shift[-1:]]),
            decided=decided,
            bars=bars,
            taken=taken,
            nbytes=sum(part.nbytes for part in parts),
            **named,
        )

    def decided_or_zeros(self) -> Ints:
        """Return `decided`, as zeros where no tuple was."""
        if self.decided is None:
            return np.zeros((len(self), len(TuplePosition._fields)), np.int64)
        return self.decided

    def bars_or_zeros(self) -> npt.NDArray[np.float64]:
        """Return `bars`, as zeros where there are none."""
        return np.zeros(len(self)) if self.bars is None else self.bars

    def taken_or_none(self) -> npt.NDArray[np.object_]:
        """Return `taken`, as empty where nothing is."""
        return np.full(len(self), "", np.object_) if self.taken is None else self.taken

    def position(self, row: int) -> TuplePosition | None:
        """Return the position of a row that was decided."""
        if self.decided is None or not self.decided[row, 0]:
            return None
        return TuplePosition(*self.decided[row].tolist())

    def __len__(self) -> int:
        return len(self.classes)

    def take(self, rows: Ints) -> TupleTable:
        """Return some of the rows; patterns stay as they are."""
        return replace(
            self,
            classes=self.classes[rows],
            left=self.left[rows],
            right=self.right[rows],
            spans=self.spans[rows],
            patterns=self.patterns[rows],
            decided=None if self.decided is None else self.decided[rows],
            bars=None if self.bars is None else self.bars[rows],
            taken=None if self.taken is None else self.taken[rows],
        )

    def compact(self) -> TupleTable:
        """Return the rows with no patterns but theirs."""
        used, patterns = np.unique(self.patterns, return_inverse=True)
        sizes = self.starts[used + 1] - self.starts[used]
        flat_nodes = self.flat_nodes[ranges(self.starts[used], sizes)]
        starts = np.concatenate([np.zeros(1, np.int64), sizes.cumsum()])
        return replace(self, patterns=patterns, starts=starts, flat_nodes=flat_nodes)

    def slices(self, size: int) -> Iterator[TupleTable]:
        """Yield the rows in order, so many at a time."""
        if len(self) <= size:
            if len(self):
                yield self
            return
        for start in range(0, len(self), size):
            yield self.take(np.arange(start, min(start + size, len(self))))

    def nodes(self, row: int) -> tuple[int, ...]:
        """Return the positions of a row's nodes."""
        pattern = self.patterns[row]
        return tuple(self.flat_nodes[self.starts[pattern] : self.starts[pattern + 1]].tolist())

    def rows(self) -> Iterator[ClassTuple]:
        """Yield the rows one by one."""
        starts, flat = self.starts.tolist(), self.flat_nodes.tolist()
        columns = (self.classes, self.left, self.right, self.spans, self.patterns)
        found = zip(*map(np.ndarray.tolist, columns), strict=True)
        for row, (number, left, right, span, i) in enumerate(found):
            nodes = tuple(flat[starts[i] : starts[i + 1]])
            yield ClassTuple(number, left, right or None, span, nodes, self.position(row))

    def instances(self) -> Ints:
        """Return the instances of all rows in ascending order, each once."""
        both = np.concatenate([self.left, self.right])
        return numbered(both[both > NO_INSTANCE])[0]


def in_tables(
    tables: Iterable[TupleTable], size: int, nbytes: int = UNBOUNDED
) -> Iterator[TupleTable]:
    """Yield the rows of tables in order, in tables of about so many rows, and bytes made for them.

    Each is yielded before more than these are made.
    """
    part: list[TupleTable] = []
    rows = made = 0
    for table in tables:
        part.append(table)
        rows += len(table)
        made += table.nbytes
        if rows >= size or made >= nbytes:
            yield from TupleTable.concat(part).slices(size)
            part, rows, made = [], 0, 0
    if part:
        yield from TupleTable.concat(part).slices(size)
