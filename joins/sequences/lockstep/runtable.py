"""Runs over chains in columns: all statements that read the same elements step on together.

    elements  of all steps, and documents of the chain's streams, in columns, in which they stay
              until no run can take them; they enter as `chained.chains` says
    lines     elements of a step under one key, by end
    heads     runs as far as they have come, each with the head that it has one element more than
    programs  what is asked of an element: code over columns, and constants, which are data
    texts     numbers that stand for texts, as long as some element has them
    parts     elements as others read them, made of those only that runs have which are complete

A statement that comes when elements have come begins with a table of its own.
`docs/repetition.md` has the theory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joins.budget.limits import RunLimits
from joins.memory.durations import UNBOUNDED
from joins.memory.ordering import numbered
from joins.memory.slots import Ints
from joins.sequences.clock import WatermarkSteps
from joins.sequences.lockstep.batchrows import BatchRows
from joins.sequences.lockstep.charges import OF_A_RUN
from joins.sequences.lockstep.elements import (
    ElementColumns,
    ElementRead,
    KeyCodes,
    TextCodes,
    read_elements,
)
from joins.sequences.lockstep.ends import HeadEnds
from joins.sequences.lockstep.followed import AT_A_TIME, extents_of, runs_of
from joins.sequences.lockstep.forgetting import (
    NOTHING_NEW,
    kept_heads,
    kept_lines,
    kept_near,
    numbering,
)
from joins.sequences.lockstep.found import ColumnChain
from joins.sequences.lockstep.growing import longer, with_room
from joins.sequences.lockstep.layout import (
    NEVER_US,
    NO_LIMIT,
    Beginnings,
    ElementColumn,
    HeadColumn,
    LineColumn,
    Programs,
    Runs,
    Scratch,
    TableElements,
)
from joins.sequences.lockstep.parts import ElementParts
from joins.sequences.lockstep.statements import TableChain, programs_of, what_is_read
from templates.chaincode import ChainProgram
from templates.chaindecision import ChainDecision
from templates.chainoperands import TextOf
from templates.decision import TupleStream

__all__ = ["RunTable"]

Doubles = npt.NDArray[np.float64]

_ROOM = 64
_NONE = np.zeros(0, np.int64)


class RunTable:
    """The elements of some chains that read the same ones, and the runs of each."""

    def __init__(
        self, first: ChainDecision, program: ChainProgram, lateness_us: int, limits: RunLimits
    ) -> None:
        self._reading = what_is_read(first, program)
        self._links, self._documents = first.links, first.documents
        self._is_partitioned = first.is_partitioned
        self._is_contiguous = first.is_contiguous
        self._grace_us, self._lateness_us = first.grace_us, lateness_us
        self._most = limits.runs, limits.heads, limits.elements
        self._statements: list[TableChain] = []
        self._retained_us = 0
        self._programs: tuple[Programs, Beginnings] | None = None
        self._gone: set[int] = set()
        self._parts = ElementParts(first.links)
        self._codes, self._texts = KeyCodes(), TextCodes()
        self._reads = [
            ElementRead(
                step,
                each.stream,
                each.keys,
                own,
                are_documents=False,
                is_repeated=link.is_repeated,
            )
            for step, (link, own) in enumerate(zip(first.links, program.columns, strict=True))
            for each in link.elements
        ]
        self._reads += [
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
        self._batch = 0
        self._advanced: WatermarkSteps | None = None
        self._orders = 0
        self._came: list[pa.Table] = []
        self._e = np.empty((_ROOM, len(ElementColumn)), np.int64)
        self._v = np.empty((_ROOM, max(map(len, program.columns))))
        self._extents = np.empty((_ROOM, 4), np.int64)
        self._size = 0
        self._pending = np.zeros(0, np.int64)
        self._docids, self._docids_seen = np.zeros(_ROOM, np.int64), 0
        self._watermarks_us = np.zeros(_ROOM, np.int64)
        self._h = np.empty((_ROOM, len(HeadColumn)), np.int64)
        self._slots = np.empty((_ROOM, 1))
        self._heads = 0
        self._waiting = np.zeros(0, np.int64)
        self._near, self._nears = np.empty((_ROOM, 2), np.int64), 0
        self._lines = np.zeros((0, len(LineColumn)), np.int64)
        self._arena, self._used = np.empty(_ROOM, np.int64), 0
        self._of_document, self._documents_seen = np.zeros(_ROOM, np.int64), 0
        self._found: dict[int, Ints] = {}
        self._leaves: dict[int, Sequence[int]] = {}
        self.is_charged = False
        self._swept = self._swept_least = limits.swept_parts
        self.limits = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return self._size + len(self._waiting)

    @property
    def has_begun(self) -> bool:
        """Whether elements have come: then no further statement may join."""
        return bool(self._batch or self._came or self._parts.have_come)

    @property
    def is_over(self) -> bool:
        """Whether some statement has too many runs."""
        return bool((self.limits != NO_LIMIT).any())

    @property
    def waiting(self) -> int:
        """How many elements wait until they are settled."""
        return len(self._pending)

    @property
    def streams(self) -> set[str]:
        """The names of the streams that are read."""
        roles = {name for role in self._parts.roles for name in role}
        return roles | {each.stream.name for each in self._documents}

    def reads_as(self, decision: ChainDecision, program: ChainProgram) -> bool:
        """Return whether a chain reads the elements of this table."""
        return what_is_read(decision, program) == self._reading

    def join(self, decision: ChainDecision, program: ChainProgram) -> int:
        """Add a statement before any element has come; return its number."""
        constants = [
            float(self._texts.constant(each) if isinstance(each, str) else each)
            for each in program.constants
        ]
        self._statements.append(TableChain(decision, program, constants))
        self._retained_us = max(self._retained_us, decision.retained_us)
        self.limits = np.full(len(self._statements), NO_LIMIT)
        self._programs = None
        return len(self._statements) - 1

    def leave(self, statement: int) -> None:
        """Have no more runs of a statement."""
        self._gone.add(statement)
        self._programs = None
        is_other = self._h[self._waiting, HeadColumn.STATEMENT] != statement
        self._waiting = self._waiting[is_other]

    def read(self, step: int, stream: TupleStream) -> None:
        """Have rows of a stream be rows of the elements of a step."""
        self._parts.roles[step].setdefault(stream.name, stream)

    # -- a batch -------------------------------------------------------------------------------

    def absorb(self, rows: pa.Table) -> None:
        """Take rows of the streams that are read, which are of one batch."""
        self._came.append(rows)

    def advance(self, clock: WatermarkSteps) -> None:
        """Have all runs go on as far as they go in a batch, once."""
        if self._advanced is clock:
            return
        self._advanced = clock
        self._found, self._leaves = {}, {}
        self._batch += 1
        self._take_new()
        entering = self._entering(clock)
        if len(entering):
            self._go_on(entering)

    def _take_new(self) -> None:
        """Write the elements that came in the batch into columns."""
        if not self._came:
            return
        rows, self._came = BatchRows(pa.concat_tables(self._came)), []
        places = self._parts.add(self._batch, rows)
        came = read_elements(
            self._reads, rows, self._codes, self._texts, are_charged=self.is_charged
        )
        if came is None:
            return
        first, self._size = self._size, self._size + len(came.docids)
        self._e = with_room(self._e, self._size)
        self._v = with_room(self._v, self._size)
        self._v[first : self._size, : came.values.shape[1]] = came.values
        self._extents = with_room(self._extents, self._size)
        self._extents[first : self._size] = came.extents
        e = self._e[first : self._size]
        e[:, ElementColumn.DOCID] = came.docids
        e[:, ElementColumn.CAME] = self._batch
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
        e[:, ElementColumn.ROW] = places[came.rows]
        e[:, ElementColumn.NEXT] = -1
        e[:, ElementColumn.CHARGE] = came.charges
        self._pending = np.concatenate([self._pending, np.arange(first, self._size)])

    def _entering(self, clock: WatermarkSteps) -> Ints:
        """Return the elements that count from documents of the batch on, by end."""
        ends_us = self._e[self._pending, ElementColumn.END]
        is_settled = ends_us < clock.newest_us - self._grace_us
        entering, self._pending = self._pending[is_settled], self._pending[~is_settled]
        entering = entering[np.argsort(ends_us[is_settled], kind="stable")]
        docids = self._e[entering, ElementColumn.DOCID]
        settling = clock.settling(self._e[entering, ElementColumn.END] + self._grace_us)
        # Of a late one it is not known which document settled its end, nor needed.
        self._e[entering, ElementColumn.SETTLED] = np.where(settling >= docids, settling, 0)
        self._e[entering, ElementColumn.ENTERED] = np.maximum(settling, docids)
        self._e[entering, ElementColumn.BATCH] = self._batch
        have_keys: Ints = entering[self._e[entering, ElementColumn.KEY] >= 0]
        return have_keys

    def _go_on(self, entering: Ints) -> None:
        from joins.sequences.lockstep.loops.beginning import begin
        from joins.sequences.lockstep.loops.lines import enter
        from joins.sequences.lockstep.loops.stepping import step_on

        if self._programs is None:
            self._programs = programs_of(self._statements, self._gone, self._lateness_us)
            widest = int(np.diff(self._programs[0].slots_at).max())
            if not self._heads:
                self._slots = np.empty((len(self._h), max(widest, 1)))
        (programs, beginnings), e = self._programs, self._e
        steps, keys = e[entering, ElementColumn.STEP], e[entering, ElementColumn.KEY]
        if self._is_contiguous:
            is_document = steps == len(self._links)
            lined = entering[is_document]
            places = keys[is_document] if self._is_partitioned else np.zeros(len(lined), np.int64)
            own = entering[~is_document]
            lines = len(self._codes)
            self._link(own)
        else:
            lined, places = entering, keys * len(self._links) + steps
            lines = len(self._codes) * len(self._links)
        self._more_lines(lines)
        self._arena, self._used = enter(e, self._lines, self._arena, self._used, lined, places)
        docids = self._docids[: self._docids_seen]
        elements = TableElements(
            e, self._v, self._lines, self._arena, docids, self._of_document, self.limits,
            *self._most, self._batch,
        )  # fmt: skip
        runs = Runs(self._h, self._slots, self._heads, self._near, self._nears)
        begun = begin(programs, beginnings, elements, runs, entering[steps == 0])
        begun = begun[np.argsort(begun[:, 0], kind="stable")]
        asked, waiting = self._asked(int(e[entering, ElementColumn.START].min()))
        before = self._heads
        scratch = Scratch.of(self._size, self._docids_seen)
        runs = step_on(programs, elements, runs, scratch, asked, begun)
        self._h, self._slots, self._heads, self._near, self._nears = runs
        self._lines[places, LineColumn.NEW] = NOTHING_NEW
        new = np.arange(before, self._heads)
        touched = np.concatenate([asked, new])
        still = touched[self._h[touched, HeadColumn.UNTIL] > NEVER_US]
        self._waiting = np.concatenate([waiting, still])
        complete = new[self._h[new, HeadColumn.STEP] == len(self._links) - 1]
        of = self._h[complete, HeadColumn.STATEMENT]
        if len(complete):
            order = np.argsort(of, kind="stable")
            numbers, at = np.unique(of[order], return_index=True)
            split = np.split(complete[order], at[1:])
            self._found = dict(zip(numbers.tolist(), split, strict=True))

    def _link(self, elements: Ints) -> None:
        """Have elements be found by their documents."""
        order = np.argsort(self._e[elements, ElementColumn.DOCUMENT], kind="stable")
        elements = elements[order]
        documents = self._e[elements, ElementColumn.DOCUMENT]
        begins = np.ones(len(elements), np.bool_)
        begins[1:] = documents[1:] != documents[:-1]
        before = np.concatenate([elements[:1], elements[:-1]])
        known = self._of_document[documents]
        self._e[elements, ElementColumn.NEXT] = np.where(begins, known, before)
        ends = np.append(begins[1:], True)[: len(elements)]
        self._of_document[documents[ends]] = elements[ends]

    def _more_lines(self, count: int) -> None:
        if count > len(self._lines):
            more = np.zeros((max(count, 2 * len(self._lines)), len(LineColumn)), np.int64)
            more[:, LineColumn.NEW] = NOTHING_NEW
            more[: len(self._lines)] = self._lines
            self._lines = more

    def _asked(self, start_us: int) -> tuple[Ints, Ints]:
        """Return the heads that what begins at a time or behind may concern, and the others."""
        waiting = self._waiting
        concerned = self._h[waiting, HeadColumn.UNTIL] >= start_us
        asked = waiting[concerned]
        of = self._h[asked, HeadColumn.STATEMENT]
        return asked[np.argsort(of, kind="stable")], waiting[~concerned]

    # -- what is found -------------------------------------------------------------------------

    def finding(self, clock: WatermarkSteps) -> Iterable[int]:
        """Return the statements of which runs are decided in the batch."""
        self.advance(clock)
        return self._found.keys()

    def decided(self, statement: int) -> list[ColumnChain]:
        """Return the runs of a statement that are decided in the batch."""
        return self._listed(self._found.get(statement, _NONE))

    def ends(self, statement: int) -> tuple[HeadEnds, list[ColumnChain]]:
        """Return the runs of `decided` that are told by their last heads, and the others."""
        heads = self._found.get(statement, _NONE)
        are_told = self._h[heads, HeadColumn.CHARGE] >= 0
        return self._ends(heads[are_told]), self._listed(heads[~are_told])

    def _ends(self, heads: Ints) -> HeadEnds:
        h, e = self._h[heads], self._e
        last, first = e[h[:, HeadColumn.ELEMENT]], e[h[:, HeadColumn.FIRST]]
        ends_us, starts_us = last[:, ElementColumn.END], first[:, ElementColumn.START]
        newest = self._docids[h[:, HeadColumn.NUMBER]]
        docids = np.maximum(newest, last[:, ElementColumn.SETTLED])
        came_us = self._watermarks_us[h[:, HeadColumn.NUMBER]]
        watermarks_us = np.maximum(ends_us + self._grace_us, came_us)
        depths = np.ones(len(heads), np.int64)
        places = np.stack([docids, newest, depths, watermarks_us, starts_us, ends_us], axis=1)
        order = np.lexsort((starts_us, ends_us, docids))
        runs = sum(link.is_repeated for link in self._links)
        of_runs = runs * (OF_A_RUN + self._codes.sizes[first[:, ElementColumn.KEY]])
        return HeadEnds(
            places[order],
            self._docids[h[order, HeadColumn.OLDEST]],
            (h[:, HeadColumn.CHARGE] + of_runs)[order],
            partial(self._leaves_of, heads[order], self._batch),
        )

    def _leaves_of(self, heads: Ints, batch: int, row: int) -> Sequence[int]:
        """Return the documents of one of some runs that have been found in a batch: this one."""
        assert batch == self._batch, "heads have other numbers in other batches"
        head = int(heads[row])
        if head not in self._leaves:
            some = heads[row : row + AT_A_TIME]
            runs, at = runs_of(self._h[: self._heads], some)
            leaves = self._extents[self._h[runs, HeadColumn.ELEMENT], 3]
            own = [each.tolist() for each in np.split(leaves, at[1:-1])]
            self._leaves.update(zip(some.tolist(), own, strict=True))
        return self._leaves[head]

    def _listed(self, heads: Ints) -> list[ColumnChain]:
        found: list[ColumnChain] = []
        for first in range(0, len(heads), AT_A_TIME):
            found += self._chains(heads[first : first + AT_A_TIME])
        return found

    def _chains(self, heads: Ints) -> Iterator[ColumnChain]:
        """Yield the runs of which some heads are the last."""
        h, e = self._h, self._e
        runs, at = runs_of(h[: self._heads], heads)
        elements, of_step = h[runs, HeadColumn.ELEMENT], h[runs, HeadColumn.STEP]
        self._parts.make_parts(e, np.unique(elements).tolist())
        newest = self._docids[h[heads, HeadColumn.NUMBER]]
        settled = e[h[heads, HeadColumn.ELEMENT], ElementColumn.SETTLED]
        steps = len(self._links)
        of_run = np.repeat(np.arange(len(heads)), np.diff(at))
        sizes = np.bincount(of_run * steps + of_step, minlength=len(heads) * steps)
        parts = self._parts.parts
        extents = extents_of(elements, at, e[elements], self._extents[elements], parts)
        chosen = self._parts.chosen_of(elements)
        for i, docid in enumerate(np.maximum(newest, settled).tolist()):
            own = slice(at[i], at[i + 1])
            yield ColumnChain(
                elements[own],
                runs[own],
                sizes[i * steps : i * steps + steps].tolist(),
                docid,
                extents[i],
                chosen[own],
                parts,
                self._run_of,
            )

    def _run_of(self, step: int) -> str:
        return self._links[step].run

    # -- what is kept --------------------------------------------------------------------------

    def evict(self, horizon_us: int) -> None:
        """Forget, once there are enough, what no run can take any more, and runs that take none."""
        if self._size + self._heads <= self._swept:
            return
        retained_us = self._retained_us
        before_us = -UNBOUNDED if retained_us >= UNBOUNDED else horizon_us - retained_us
        self._forget(before_us)
        self._swept = max(self._swept_least, 2 * (self._size + self._heads))

    def _forget(self, before_us: int) -> None:
        kept = self._e[: self._size, ElementColumn.END] >= before_us
        kept[self._pending] = True
        into = numbering(kept)
        self._keep_heads(kept, into)
        near = self._near[: self._nears]
        near, self._nears = kept_near(self._h[: self._heads], near, into)
        self._near = with_room(near, _ROOM)
        self._keep_elements(kept, into)
        self._keep_lines(into)
        self._keep_numbers()
        self._keep_texts()

    def _keep_heads(self, kept: npt.NDArray[np.bool_], into: Ints) -> None:
        """Keep the heads that wait and begin with what is kept, and what is before them."""
        from joins.sequences.lockstep.loops.stepping import keep_before

        h = self._h[: self._heads]
        self._waiting = self._waiting[kept[h[self._waiting, HeadColumn.FIRST]]]
        is_kept = np.zeros(len(h), np.bool_)
        is_kept[self._waiting] = True
        keep_before(h, is_kept)
        head_into = numbering(is_kept)
        h = kept_heads(h, is_kept, into, head_into)
        self._waiting = head_into[self._waiting]
        slots = self._slots[: self._heads][is_kept]
        self._heads, self._found, self._leaves = len(h), {}, {}
        self._h, self._slots = (with_room(each, max(_ROOM, len(h))) for each in (h, slots))

    def _keep_elements(self, kept: npt.NDArray[np.bool_], into: Ints) -> None:
        e = self._e[: self._size][kept]
        nexts = e[:, ElementColumn.NEXT]
        e[:, ElementColumn.NEXT] = np.where(nexts >= 0, into[nexts], -1)
        self._pending = into[self._pending]
        known = self._of_document[: self._documents_seen]
        known[known >= 0] = into[known[known >= 0]]
        self._parts.keep(kept, into, e[:, ElementColumn.CAME])
        self._v = with_room(self._v[: self._size][kept], max(_ROOM, len(e)))
        self._extents = with_room(self._extents[: self._size][kept], _ROOM)
        self._size = len(e)
        self._e = with_room(e, _ROOM)

    def _keep_lines(self, into: Ints) -> None:
        """Write the lines anew, of the keys that are in use."""
        keys = self._e[: self._size, ElementColumn.KEY]
        codes = self._codes.keep(np.unique(keys[keys >= 0]))
        keys[keys >= 0] = codes[keys[keys >= 0]]
        of_key = 1 if self._is_contiguous else len(self._links)
        self._lines, own = kept_lines(self._lines, self._arena, into, codes, of_key)
        self._used = len(own)
        self._arena = np.concatenate([own, np.empty(_ROOM, np.int64)])

    def _keep_numbers(self) -> None:
        """Number docids and documents anew, those of the elements that are there."""
        e, h = self._e[: self._size], self._h[: self._heads]
        used, number = numbered(e[:, ElementColumn.NUMBER])
        for column in (HeadColumn.NUMBER, HeadColumn.OLDEST):
            h[:, column] = np.searchsorted(used, h[:, column])
        e[:, ElementColumn.NUMBER] = number
        self._docids, self._docids_seen = self._docids[used], len(used)
        self._watermarks_us = self._watermarks_us[used]
        used, number = numbered(e[:, ElementColumn.DOCUMENT])
        e[:, ElementColumn.DOCUMENT] = number
        self._of_document, self._documents_seen = self._of_document[used], len(used)

    def _keep_texts(self) -> None:
        """Forget the texts that no element has: what runs keep of texts is of their elements."""
        steps, used = self._e[: self._size, ElementColumn.STEP], [np.zeros(0)]
        for read in self._reads:
            own = [k for k, each in enumerate(read.operands) if isinstance(each, TextOf)]
            used += [self._v[: self._size][steps == read.step, k] for k in own]
        self._texts.keep(np.concatenate(used))


def _orders(came: ElementColumns) -> tuple[Ints, int]:
    """Return the place of each element among the positions of all, and how many these are."""
    if came.positions is None:
        distinct, order = numbered(came.docids)
        return order, len(distinct)
    places = {position: i for i, position in enumerate(sorted(set(came.positions)))}
    return np.array([places[each] for each in came.positions], np.int64), len(places)
