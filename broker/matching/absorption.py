"""Documents as instances of the join: absorbed with their witnesses, and read back by number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker.documents.document import Document
from broker.matching.boxes.columns import Flags
from broker.matching.boxes.namedtexts import NamedTexts
from broker.matching.boxes.points import Points
from broker.matching.bulk import Bulk
from broker.matching.instances import WATERMARK_MIN_US, of_witnesses
from broker.matching.limits import MatchingLimits
from broker.matching.rendering.leaf import Leaf
from broker.matching.uncertain import Uncertain
from joins import DecidingProcessor, TupleTable, rows_in_sub_batches

__all__ = ["Absorption"]


class Absorption:
    """What a join has absorbed; `last_docid` and `watermark_us` (`W`) are those of all of it.

    Texts of documents are held where `reads_texts` says that they are asked for.
    """

    def __init__(
        self,
        processor: DecidingProcessor,
        limits: MatchingLimits,
        reads_texts: Callable[[], bool] = lambda: False,
    ) -> None:
        self.last_docid = 0
        self.watermark_us = WATERMARK_MIN_US
        self._processor = processor
        self._sub_batch_bytes = limits.join.memory.sub_batch_bytes
        self._bulk = Bulk(limits)
        self._uncertain = Uncertain(limits.published)
        self._texts = NamedTexts(reads_texts, limits.published)

    # -- absorbed ------------------------------------------------------------------------------

    def witnesses(
        self, witnesses: pa.Table, published: Sequence[Document] = ()
    ) -> list[tuple[int, str]]:
        """Make instances of witnesses; return the documents that could not be read.

        `published` are the documents that they are of, where queries have published them.
        """
        newest = pc.max(witnesses.column("docid")).as_py()
        self.last_docid = max(self.last_docid, newest or 0)
        failed = _where(_are_given(witnesses, "error"), witnesses, "docid", "error")
        self._advance(witnesses)
        self._learn_shapes(_where(_are_given(witnesses, "edges"), witnesses, "shape", "edges"))
        # A document in which no query finds anything takes part in no join.
        counts = pc.list_value_length(witnesses.column("nodes")).fill_null(0).to_numpy()
        found = _where(counts > 0, witnesses)
        if found.num_rows:
            self._remember(found, published)
        return list(zip(*(column.to_pylist() for column in failed.columns), strict=True))

    def _remember(self, found: pa.Table, published: Sequence[Document]) -> None:
        first = self._processor.next_instance
        newest_of = {each.match_id: each.docid_max for each in published}
        rows = of_witnesses(found, first, self._processor.shape_number, newest_of)
        self._note_uncertain(first, found, published)
        self.rows(rows_in_sub_batches(rows, self._sub_batch_bytes))

    def _note_uncertain(self, first: int, found: pa.Table, published: Sequence[Document]) -> None:
        """Note what is not certain of published documents, whose instances begin with `first`."""
        by_id = {each.match_id: each for each in published if each.confidence < 1}
        ids = found.column("match_id").to_pylist() if by_id else ()
        for number, match_id in enumerate(ids, first):
            if document := by_id.get(match_id):
                self._uncertain.note(number, document.confidence, document.end_us)

    def _advance(self, witnesses: pa.Table) -> None:
        """Let time pass with the documents from outside."""
        is_outside = witnesses.column("depth").to_numpy() == 0
        outside = _where(is_outside, witnesses, "docid", "watermark_us", "end_us")
        newest_us = pc.max(outside.column("end_us")).as_py()
        self.watermark_us = max(self.watermark_us, newest_us or WATERMARK_MIN_US)
        self._processor.advance(*(column.to_numpy() for column in outside.columns))

    def _learn_shapes(self, spelled: pa.Table) -> None:
        shapes, edges = spelled.columns
        new = {
            shape: [(e["var1"], e["var2"], e["node1"], e["node2"]) for e in edges[i].as_py()]
            for i, shape in enumerate(shapes.to_pylist())
            if self._processor.shape_number(shape) is None
        }
        self._processor.add_shapes(new)

    def rows(self, parts: Iterable[pa.Table]) -> None:
        """Have the join remember rows of `INSTANCE_SCHEMA`, without numbers."""
        for part in parts:
            self._bulk.note(self._processor.next_instance, part)
            self._texts.note(part)
            self._processor.absorb(part)

    @property
    def is_much(self) -> bool:
        """Whether what is remembered is so large that it may have to be read in sub-batches."""
        return self._bulk.is_much

    # -- read back -----------------------------------------------------------------------------

    def points(self, tuples: TupleTable) -> Points:
        """Return what boxes ask of tuples."""
        return Points.of(tuples, self._processor.rows, self._uncertain)

    def in_sub_batches(self, table: TupleTable) -> Iterator[TupleTable]:
        """Yield tuples in order, as many at once as may be read; mostly it is all of them."""

        def instances_of(row: int) -> tuple[int, int]:
            return int(table.left[row]), int(table.right[row])

        for rows in self._bulk.sub_batches(range(len(table)), instances_of):
            is_whole = len(rows) == len(table)
            yield table if is_whole else table.take(np.array(rows))

    def leaves(self, numbers: Iterable[int]) -> dict[int, Leaf]:
        """Return documents by number."""
        found: dict[int, Leaf] = {}
        for some, rows in self.rows_of(numbers):
            found.update(zip(some, Leaf.read(some, rows), strict=True))
        return found

    def rows_of(self, numbers: Iterable[int]) -> Iterator[tuple[Sequence[int], pa.RecordBatch]]:
        """Yield the rows of instances, some at a time."""
        for part in self._bulk.sub_batches(sorted(numbers), lambda number: (number,)):
            yield from self._processor.rows(part)

    def forget(self, horizon_us: int) -> None:
        """Forget what is noted of instances that end before a time, which nobody needs."""
        self._bulk.forget(horizon_us)
        self._uncertain.forget(horizon_us)
        self._texts.forget(horizon_us)


def _are_given(rows: pa.Table, name: str) -> Flags:
    flags: Flags = rows.column(name).is_valid().to_numpy()
    return flags


def _where(mask: Flags, rows: pa.Table, *names: str) -> pa.Table:
    """Return some columns, by default all, of the rows for which it holds; mostly all or none."""
    columns = rows.select(names) if names else rows
    if mask.all():
        return columns
    return columns.filter(pa.array(mask)) if mask.any() else columns.slice(0, 0)
