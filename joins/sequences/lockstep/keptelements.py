"""The elements of a table's steps and documents, in columns, as long as some run can take them.

e, v, extents   columns of each (`layout`, `elements`): what the loops and what is found read
lines           elements of a source under one key, by end; documents of the chain's streams
sources         whose rows elements of a step are: of each statement some
numbers         docids and documents by numbers, which loops count with
texts           numbers that stand for texts, as long as some element has them
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from joins.budget.limits import RunLimits
from joins.memory.ordering import numbered
from joins.memory.slots import Ints
from joins.sequences.clock import WatermarkSteps
from joins.sequences.lockstep.batchrows import BatchRows
from joins.sequences.lockstep.elements import (
    ElementColumns,
    ElementRead,
    KeyCodes,
    TextCodes,
    read_elements,
)
from joins.sequences.lockstep.growing import longer, with_room
from joins.sequences.lockstep.keptlines import KeptLines
from joins.sequences.lockstep.layout import ElementColumn, TableElements
from joins.sequences.lockstep.parts import ElementParts
from templates.chaincode import ChainProgram
from templates.chaindecision import ChainDecision, ChainLink
from templates.chainoperands import TextOf
from templates.rundecision import ElementStream

__all__ = ["KeptElements"]

_ROOM = 64


class KeptElements:
    """Elements by number, from when they come until they are forgotten."""

    def __init__(self, first: ChainDecision, program: ChainProgram) -> None:
        self.parts = ElementParts()
        self._sources: dict[tuple[int, ElementStream], int] = {}
        self._reads_of: dict[str, list[ElementRead]] = {}
        self._text_columns: dict[int, list[int]] = {}
        self.keys, self.data, self.texts = KeyCodes(), KeyCodes(), TextCodes()
        self.size = 0
        self.e = np.empty((_ROOM, len(ElementColumn)), np.int64)
        self.extents = np.empty((_ROOM, 4), np.int64)
        self.pending = np.zeros(0, np.int64)
        """Those that are not settled, which count from no document yet."""
        self._steps = len(first.links)
        self._columns = program.columns
        self._is_partitioned = first.is_partitioned
        self._is_contiguous = first.is_contiguous
        self._said = len(first.data)
        self._grace_us = first.grace_us
        self._add_documents(first)
        self._v = np.empty((_ROOM, max(map(len, program.columns))))
        self._docids, self._docids_seen = np.zeros(_ROOM, np.int64), 0
        self._watermarks_us = np.zeros(_ROOM, np.int64)
        self._orders = 0
        self._lines: KeptLines | None = None
        self._of_document, self._documents_seen = np.zeros(_ROOM, np.int64), 0

    @property
    def sources(self) -> int:
        """How many sources there are."""
        return len(self._sources)

    def sources_of(self, decision: ChainDecision) -> list[int]:
        """Return the sources of a chain, which are known from now on."""
        return [self._source(step, link) for step, link in enumerate(decision.links)]

    def _source(self, step: int, link: ChainLink) -> int:
        """Return whose rows the elements of a step are."""
        (own,) = link.elements
        found = self._sources.setdefault((step, own), len(self._sources))
        if found not in self._text_columns:
            operands = self._columns[step]
            texts = [k for k, each in enumerate(operands) if isinstance(each, TextOf)]
            self._text_columns[found] = texts
            self.parts.add_source(own.stream)
            keys = (*own.keys, *own.stream.keys[: self._said])
            data = () if step else own.stream.keys
            self._read(ElementRead(found, own.stream, keys, data, operands, link.is_repeated))
        return found

    def _add_documents(self, decision: ChainDecision) -> None:
        for number, each in enumerate(decision.documents, 1):
            keys = each.keys if decision.is_partitioned else ()
            self._read(ElementRead(-number, each.stream, keys, (), (), is_repeated=False))

    def _read(self, read: ElementRead) -> None:
        self._reads_of.setdefault(read.stream.name, []).append(read)

    @property
    def docids(self) -> Ints:
        """The docids by their numbers, which rise with them batch by batch."""
        return self._docids[: self._docids_seen]

    @property
    def watermarks_us(self) -> Ints:
        """The watermarks of these docids, 0 where only published documents have one."""
        return self._watermarks_us[: self._docids_seen]

    @property
    def due_us(self) -> int | None:
        """The first time that must be settled before an element enters."""
        if not len(self.pending):
            return None
        return int(self.e[self.pending, ElementColumn.END].min()) + self._grace_us

    # -- a batch -------------------------------------------------------------------------------

    def take(self, batch: int, rows: BatchRows, *, are_charged: bool) -> None:
        """Write the elements that the rows of a batch are into columns."""
        kept_rows = self.parts.add(batch, rows)
        codes = self.keys, self.data, self.texts
        came = read_elements(self._reads_of, rows, *codes, are_charged=are_charged)
        if came is None:
            return
        first, self.size = self.size, self.size + len(came.docids)
        self.e = with_room(self.e, self.size)
        self._v = with_room(self._v, self.size)
        self._v[first : self.size, : came.values.shape[1]] = came.values
        self.extents = with_room(self.extents, self.size)
        self.extents[first : self.size] = came.extents
        e = self.e[first : self.size]
        e[:, ElementColumn.DOCID] = came.docids
        e[:, ElementColumn.CAME] = batch
        distinct, number = numbered(came.docids)
        e[:, ElementColumn.NUMBER] = self._docids_seen + number
        self._docids = longer(self._docids, self._docids_seen, distinct)
        watermarks_us = np.zeros(len(distinct), np.int64)
        are_outside = came.extents[:, 2] == 0
        watermarks_us[number[are_outside]] = came.watermarks_us[are_outside]
        self._watermarks_us = longer(self._watermarks_us, self._docids_seen, watermarks_us)
        self._docids_seen += len(distinct)
        distinct, number = numbered(came.documents)
        e[:, ElementColumn.DOCUMENT] = self._documents_seen + number
        none = np.full(len(distinct), -1)
        self._of_document = longer(self._of_document, self._documents_seen, none)
        self._documents_seen += len(distinct)
        order, count = _orders(came)
        e[:, ElementColumn.ORDER] = self._orders + order
        self._orders += count
        e[:, ElementColumn.START] = came.starts_us
        e[:, ElementColumn.END] = came.ends_us
        e[:, ElementColumn.WATERMARK] = came.watermarks_us
        e[:, ElementColumn.KEY] = came.keys
        e[:, ElementColumn.SOURCE] = came.sources
        e[:, ElementColumn.ROW] = np.searchsorted(kept_rows, came.rows)
        e[:, ElementColumn.NEXT] = -1
        e[:, ElementColumn.CHARGE] = came.charges
        e[:, ElementColumn.DATA] = came.data
        self.pending = np.concatenate([self.pending, np.arange(first, self.size)])

    def settle(self, batch: int, clock: WatermarkSteps) -> Ints:
        """Return the elements that count from documents of a batch on, by end."""
        ends_us = self.e[self.pending, ElementColumn.END]
        is_settled = ends_us < clock.newest_us - self._grace_us
        entering, self.pending = self.pending[is_settled], self.pending[~is_settled]
        entering = entering[np.argsort(ends_us[is_settled], kind="stable")]
        docids = self.e[entering, ElementColumn.DOCID]
        settling = clock.settling(self.e[entering, ElementColumn.END] + self._grace_us)
        # Of a late one it is not known which document settled its end, nor needed.
        self.e[entering, ElementColumn.SETTLED] = np.where(settling >= docids, settling, 0)
        self.e[entering, ElementColumn.ENTERED] = np.maximum(settling, docids)
        self.e[entering, ElementColumn.BATCH] = batch
        have_keys: Ints = entering[self.e[entering, ElementColumn.KEY] >= 0]
        return have_keys

    def enter(self, entering: Ints) -> Ints:
        """Put elements into lines; return the lines that have new ones."""
        sources = self.e[entering, ElementColumn.SOURCE]
        keys = self.e[entering, ElementColumn.KEY]
        if self._lines is None:
            of_key = 1 if self._is_contiguous else self.sources
            self._lines = KeptLines(of_key, are_sparse=of_key > self._steps)
        if not self._is_contiguous:
            return self._lines.enter(self.e, entering, keys, sources, len(self.keys))
        are_documents = sources < 0
        lined = entering[are_documents]
        places = keys[are_documents] if self._is_partitioned else np.zeros(len(lined), np.int64)
        self._link(entering[~are_documents])
        return self._lines.enter(self.e, lined, places, 0, len(self.keys))

    def end_batch(self, lines: Ints) -> None:
        """Have lines have nothing new."""
        assert self._lines is not None
        self._lines.end_batch(lines)

    def _link(self, elements: Ints) -> None:
        """Have elements be found by their documents."""
        order = np.argsort(self.e[elements, ElementColumn.DOCUMENT], kind="stable")
        elements = elements[order]
        documents = self.e[elements, ElementColumn.DOCUMENT]
        begins = np.ones(len(elements), np.bool_)
        begins[1:] = documents[1:] != documents[:-1]
        before = np.concatenate([elements[:1], elements[:-1]])
        known = self._of_document[documents]
        self.e[elements, ElementColumn.NEXT] = np.where(begins, known, before)
        ends = np.append(begins[1:], True)[: len(elements)]
        self._of_document[documents[ends]] = elements[ends]

    def as_loops_read(self, batch: int, statement_limits: Ints, limits: RunLimits) -> TableElements:
        """Return what the loops of a batch read, and write: limits of statements are theirs."""
        own = self._lines
        assert own is not None
        return TableElements(
            self.e, self._v, own.lines, own.codes, own.line_of, own.arena, self.docids,
            self._of_document, statement_limits, limits.runs, limits.heads, limits.elements, batch,
            len(self.data),
        )  # fmt: skip

    # -- what is kept --------------------------------------------------------------------------

    def ending_from(self, before_us: int) -> npt.NDArray[np.bool_]:
        """Return which elements end at a time or behind it, or wait until they are settled."""
        kept: npt.NDArray[np.bool_] = self.e[: self.size, ElementColumn.END] >= before_us
        kept[self.pending] = True
        return kept

    def keep(self, kept: npt.NDArray[np.bool_], into: Ints) -> Ints:
        """Forget the elements but some, which have other numbers then.

        Return the places of the docids that are left among those before, by their new numbers.
        """
        e = self.e[: self.size][kept]
        nexts = e[:, ElementColumn.NEXT]
        e[:, ElementColumn.NEXT] = np.where(nexts >= 0, into[nexts], -1)
        self.pending = into[self.pending]
        known = self._of_document[: self._documents_seen]
        known[known >= 0] = into[known[known >= 0]]
        self.parts.keep(kept, into, e[:, ElementColumn.CAME])
        self._v = with_room(self._v[: self.size][kept], max(_ROOM, len(e)))
        self.extents = with_room(self.extents[: self.size][kept], _ROOM)
        self.size = len(e)
        self.e = with_room(e, _ROOM)
        self._keep_lines(into)
        self._keep_texts()
        return self._keep_numbers()

    def _keep_lines(self, into: Ints) -> None:
        """Write the lines anew, of the keys that are in use; the data that are have new numbers."""
        keys = self.e[: self.size, ElementColumn.KEY]
        codes = self.keys.keep(np.unique(keys[keys >= 0]))
        keys[keys >= 0] = codes[keys[keys >= 0]]
        if self._lines is not None:
            self._lines.keep(into, codes)
        data = self.e[: self.size, ElementColumn.DATA]
        data[:] = self.data.keep(np.unique(data))[data]

    def _keep_numbers(self) -> Ints:
        """Number docids and documents anew, those of the elements that are there."""
        e = self.e[: self.size]
        used, number = numbered(e[:, ElementColumn.NUMBER])
        e[:, ElementColumn.NUMBER] = number
        self._docids, self._docids_seen = self._docids[used], len(used)
        self._watermarks_us = self._watermarks_us[used]
        documents, number = numbered(e[:, ElementColumn.DOCUMENT])
        e[:, ElementColumn.DOCUMENT] = number
        self._of_document, self._documents_seen = self._of_document[documents], len(documents)
        return used

    def _keep_texts(self) -> None:
        """Forget the texts that no element has: what runs keep of texts is of their elements."""
        sources, used = self.e[: self.size, ElementColumn.SOURCE], [np.zeros(0)]
        for source in np.unique(sources[sources >= 0]).tolist():
            own = self._v[: self.size][sources == source]
            used += [own[:, k] for k in self._text_columns[source]]
        self.texts.keep(np.concatenate(used))


def _orders(came: ElementColumns) -> tuple[Ints, int]:
    """Return the place of each element among the positions of all, and how many these are."""
    if came.positions is None:
        distinct, order = numbered(came.docids)
        return order, len(distinct)
    places = {position: i for i, position in enumerate(sorted(set(came.positions)))}
    return np.array([places[each] for each in came.positions], np.int64), len(places)
