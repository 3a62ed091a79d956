"""The newest documents of a spool as one text after another asks for them, parsed once.

Documents come in parts whose bounds do not move when new ones arrive: up to the next multiple of
`DOCUMENTS_AT_ONCE`.  So what is kept of them serves all texts until the oldest part is behind.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from broker.documents.spool import Spool
from broker.pipeline.limits import DEFAULT_PIPELINE_LIMITS
from broker.pipeline.lookback.backfill import retained_documents
from xpath_eval.catalog import EvaluationPlan
from xpath_eval.columns import DocumentColumns

__all__ = ["DOCUMENTS_AT_ONCE", "KeptDocuments", "aligned_documents"]

DOCUMENTS_AT_ONCE = 20_000
"""Documents that are joined at a time: with 1,000 a join of 50,000 takes twice as long, and a fifth
longer with 5,000."""

_BYTES_AT_ONCE = 16 << 20
"""Bytes of these, and of one document more."""

_WITNESSED_MAX = 150_000
"""Documents whose witnesses are kept: of the patterns in hand, and of two edits of them."""

_TEXT_BYTES_MAX = 128 << 20
"""Bytes of the texts that are kept: 50,000 items of feeds have 15 MB, articles of 2 KB 100 MB."""

_LIMITS = replace(
    DEFAULT_PIPELINE_LIMITS,
    looked_back_documents=DOCUMENTS_AT_ONCE,
    looked_back_bytes=_BYTES_AT_ONCE,
)


def aligned_documents(spool: Spool, first: int, last: int) -> Iterator[pa.RecordBatch]:
    """Yield the retained documents from one docid through another in parts that do not move."""
    while first <= last:
        through = min(last, first - first % DOCUMENTS_AT_ONCE + DOCUMENTS_AT_ONCE - 1)
        waiting: list[pa.RecordBatch] = []
        for batch in retained_documents(spool, first, through, _LIMITS):
            waiting.append(batch)
            if sum(each.nbytes for each in waiting) > _BYTES_AT_ONCE:
                yield _joined(waiting)
                waiting = []
        if waiting:
            yield _joined(waiting)
        first = through + 1


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    (joined,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return joined


class KeptDocuments:
    """Documents taken apart, and their witnesses by the plan that found them, of those asked last.

    While windows and conditions between blocks are edited, a text asks for the same witnesses;
    while its patterns are, for the same documents.
    """

    def __init__(self) -> None:
        self._columns: OrderedDict[tuple[int, int], DocumentColumns] = OrderedDict()
        self._witnesses: OrderedDict[tuple[str, int, int], pa.Table] = OrderedDict()
        self.text_bytes = 0
        self.witnessed = 0

    def evaluated(self, plan: EvaluationPlan, batch: pa.RecordBatch) -> pa.Table:
        """Return the witnesses of documents, found anew only where they are not kept."""
        place = (plan.version, *_range(batch))
        if place not in self._witnesses:
            self._witnesses[place] = self.apart(batch).evaluate(plan, batch)
            self.witnessed += batch.num_rows
        self._witnesses.move_to_end(place)
        while self.witnessed > _WITNESSED_MAX:
            (_, _, documents), _ = self._witnesses.popitem(last=False)
            self.witnessed -= documents
        return self._witnesses[place]

    def apart(self, batch: pa.RecordBatch) -> DocumentColumns:
        """Return documents taken apart, anew only where that is not kept."""
        place = _range(batch)
        found = self._columns.get(place)
        if found is None:
            found = self._columns[place] = DocumentColumns(batch)
            self.text_bytes += found.nbytes
        self._columns.move_to_end(place)
        while self.text_bytes > _TEXT_BYTES_MAX:
            _, gone = self._columns.popitem(last=False)
            self.text_bytes -= gone.nbytes
        return found


def _range(batch: pa.RecordBatch) -> tuple[int, int]:
    return batch.column("docid")[0].as_py(), batch.num_rows
