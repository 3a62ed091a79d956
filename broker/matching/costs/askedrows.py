"""How many rows documents become where each is handed on once for each of the data.

What is asked of each (`docs/decided.md`) makes a row for each vector of data and document: of a
batch as many as it has documents times what they find.  So rows are counted before they are made,
and a batch with many is joined in parts.  To be counted, blocks are found by a join that has
their classes alone, and remembers nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker.documents.sub_batches import in_sub_batches
from broker.matching.absorption import Absorption
from broker.matching.blockrows import BlocksByData
from broker.matching.boxes.columns import Ints
from broker.matching.boxes.points import Points
from broker.matching.limits import MatchingLimits
from joins import DEFAULT_ENGINE, UNBOUNDED, DecidingProcessor, in_tables, make_processor
from joins.files.witnessfile import compacted

__all__ = ["AskedRows"]

_NODES = 4
"""A tuple of a block has so many nodes of its document, or more: its root, and what is tested."""

Count = Callable[[Points], Ints]
"""Returns of each tuple how many boxes have it."""


class AskedRows:
    """The rows of an engine's batches; `count` says who asks for a tuple of `blocks`."""

    def __init__(
        self, blocks: BlocksByData, count: Count, lateness_us: int, limits: MatchingLimits
    ) -> None:
        self._blocks = blocks
        self._count = count
        self._lateness_us = lateness_us
        self._limits = limits
        self._changes = 0

    def parts(self, witnesses: pa.Table) -> Iterator[pa.Table]:
        """Yield the witnesses of a batch in parts, each ended by the document with a row too many.

        Mostly it is all of them.
        """
        most = self._limits.asked_rows
        if not self._blocks.clauses or not self._may_be_more(witnesses, most):
            yield witnesses
            return
        rows = self._rows(witnesses)
        parts = [*in_sub_batches(range(len(rows)), rows.__getitem__, most)]
        for part in parts:
            is_kept = np.zeros(len(rows), np.bool_)
            is_kept[part] = True
            yield witnesses if is_kept.all() else compacted(witnesses, is_kept)

    def _may_be_more(self, witnesses: pa.Table, most: int) -> bool:
        """Return whether documents have so many nodes that there may be more rows."""
        nodes = pc.sum(pc.list_value_length(witnesses.column("nodes"))).as_py() or 0
        return len(self._blocks) * nodes > most * _NODES

    def _rows(self, witnesses: pa.Table) -> Ints:
        """Return the rows of each document."""
        if self._changes != self._blocks.changes:
            self._changes = self._blocks.changes
            self._follow()
        join, absorption = self._join, self._absorption
        join.begin_batch()
        absorption.witnesses(witnesses)
        rows = np.zeros(witnesses.num_rows, np.int64)
        docids = witnesses.column("docid").to_numpy()
        for stratum in join.strata:
            for table in in_tables(join.tuples(stratum), self._limits.tuples):
                for some in absorption.in_sub_batches(table):
                    own = replace(some, classes=self._numbers[some.classes])
                    points = absorption.points(own)
                    np.add.at(rows, np.searchsorted(docids, points.docids), self._count(points))
        join.evict(UNBOUNDED)
        absorption.forget(UNBOUNDED)
        return rows

    def _follow(self) -> None:
        """Have a join find the blocks that there are now."""
        limits = self._limits
        join = make_processor(DEFAULT_ENGINE, lateness_us=self._lateness_us, limits=limits.join)
        self._join = DecidingProcessor(join, self._lateness_us, limits.join.memory, limits.runs)
        self._absorption = Absorption(self._join, limits)
        numbers = {self._join.add(c.query_class, 0): n for n, c in self._blocks.clauses.items()}
        self._numbers = np.zeros(1 + max(numbers, default=0), np.int64)
        self._numbers[[*numbers]] = [*numbers.values()]
