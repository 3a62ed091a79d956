"""The elements of a table's steps and documents, in columns, as long as some run can take them.

e, v, extents   columns of each (`layout`, `elements`): what the loops and what is found read
lines, arena    elements of a step under one key, by end; documents of the chain's streams
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
from joins.sequences.lockstep.forgetting import NOTHING_NEW, kept_lines
from joins.sequences.lockstep.growing import longer, with_room
from joins.sequences.lockstep.layout import ElementColumn, LineColumn, TableElements
from joins.sequences.lockstep.parts import ElementParts
from templates.chaincode import ChainProgram
from templates.chaindecision import ChainDecision
from templates.chainoperands import TextOf

__all__ = ["KeptElements"]

_ROOM = 64


class KeptElements:
    """Elements by number, from when they come until they are forgotten."""

    def __init__(self, first: ChainDecision, program: ChainProgram) -> None:
        self.parts = ElementParts(first.links)
        self.keys, self.texts = KeyCodes(), TextCodes()
        self.size = 0
        self.e = np.empty((_ROOM, len(ElementColumn)), np.int64)
        self.extents = np.empty((_ROOM, 4), np.int64)
        self.pending = np.zeros(0, np.int64)
        """Those that are not settled, which count from no document yet."""
        self._steps = len(first.links)
        self._is_partitioned = first.is_partitioned
        self._is_contiguous = first.is_contiguous
        self._grace_us = first.grace_us
        self._reads = _reads_of(first, program)
        self._v = np.empty((_ROOM, max(map(len, program.columns))))
        self._docids, self._docids_seen = np.zeros(_ROOM, np.int64), 0
        self._watermarks_us = np.zeros(_ROOM, np.int64)
        self._orders = 0
        self._lines = np.zeros((0, len(LineColumn)), np.int64)
        self._arena, self._used = np.empty(_ROOM, np.int64), 0
        self._of_document, self._documents_seen = np.zeros(_ROOM, np.int64), 0

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
        came = read_elements(self._reads, rows, self.keys, self.texts, are_charged=are_charged)
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
        e[:, ElementColumn.STEP] = came.steps
        e[:, ElementColumn.ROW] = np.searchsorted(kept_rows, came.rows)
        e[:, ElementColumn.NEXT] = -1
        e[:, ElementColumn.CHARGE] = came.charges
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
        from joins.sequences.lockstep.loops.lines import enter

        steps = self.e[entering, ElementColumn.STEP]
        keys = self.e[entering, ElementColumn.KEY]
        if self._is_contiguous:
            is_document = steps == self._steps
            lined = entering[is_document]
            places = keys[is_document] if self._is_partitioned else np.zeros(len(lined), np.int64)
            self._link(entering[~is_document])
            self._more_lines(len(self.keys))
        else:
            lined, places = entering, keys * self._steps + steps
            self._more_lines(len(self.keys) * self._steps)
        self._arena, self._used = enter(self.e, self._lines, self._arena, self._used, lined, places)
        return places

    def end_batch(self, lines: Ints) -> None:
        """Have lines have nothing new."""
        self._lines[lines, LineColumn.NEW] = NOTHING_NEW

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

    def _more_lines(self, count: int) -> None:
        if count > len(self._lines):
            more = np.zeros((max(count, 2 * len(self._lines)), len(LineColumn)), np.int64)
            more[:, LineColumn.NEW] = NOTHING_NEW
            more[: len(self._lines)] = self._lines
            self._lines = more

    def as_loops_read(self, batch: int, statement_limits: Ints, limits: RunLimits) -> TableElements:
        """Return what the loops of a batch read, and write: limits of statements are theirs."""
        return TableElements(
            self.e, self._v, self._lines, self._arena, self.docids, self._of_document,
            statement_limits, limits.runs, limits.heads, limits.elements, batch,
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
        """Write the lines anew, of the keys that are in use."""
        keys = self.e[: self.size, ElementColumn.KEY]
        codes = self.keys.keep(np.unique(keys[keys >= 0]))
        keys[keys >= 0] = codes[keys[keys >= 0]]
        of_key = 1 if self._is_contiguous else self._steps
        self._lines, own = kept_lines(self._lines, self._arena, into, codes, of_key)
        self._used = len(own)
        self._arena = np.concatenate([own, np.empty(_ROOM, np.int64)])

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
        steps, used = self.e[: self.size, ElementColumn.STEP], [np.zeros(0)]
        for read in self._reads:
            own = [k for k, each in enumerate(read.operands) if isinstance(each, TextOf)]
            used += [self._v[: self.size][steps == read.step, k] for k in own]
        self.texts.keep(np.concatenate(used))


def _reads_of(first: ChainDecision, program: ChainProgram) -> list[ElementRead]:
    """Return how rows are read: as elements of each step, and as documents behind the last one."""
    reads = [
        ElementRead(
            step, each.stream, each.keys, own, are_documents=False, is_repeated=link.is_repeated
        )
        for step, (link, own) in enumerate(zip(first.links, program.columns, strict=True))
        for each in link.elements
    ]
    reads += [
        ElementRead(
            len(first.links),
            each.stream,
            each.keys if first.is_partitioned else (),
            (),
            are_documents=True,
            is_repeated=False,
        )
        for each in first.documents
    ]
    return reads


def _orders(came: ElementColumns) -> tuple[Ints, int]:
    """Return the place of each element among the positions of all, and how many these are."""
    if came.positions is None:
        distinct, order = numbered(came.docids)
        return order, len(distinct)
    places = {position: i for i, position in enumerate(sorted(set(came.positions)))}
    return np.array([places[each] for each in came.positions], np.int64), len(places)
