"""Runs over chains in columns: all statements whose elements are alike step on together.

    elements  those of all steps, and documents of the chain's streams (`keptelements`); they enter
              as `chained.chains` says
    heads     runs as far as they have come, each with the head that it has one element more than
    programs  what is asked of an element: code over columns, and constants, which are data
    complete  runs that are found in a batch (`completeruns`)

A statement that comes when elements have come begins with a table of its own.
`docs/repetition.md` has the theory.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joins.budget.limits import RunLimits
from joins.memory.durations import UNBOUNDED
from joins.memory.slots import Ints
from joins.sequences.clock import WatermarkSteps
from joins.sequences.lockstep.batchrows import BatchRows
from joins.sequences.lockstep.completeruns import CompleteRuns
from joins.sequences.lockstep.ends import HeadEnds
from joins.sequences.lockstep.forgetting import kept_heads, kept_near, numbering
from joins.sequences.lockstep.found import ColumnChain
from joins.sequences.lockstep.growing import with_room
from joins.sequences.lockstep.keptelements import KeptElements
from joins.sequences.lockstep.layout import (
    NEVER_US,
    NO_LIMIT,
    Beginnings,
    ElementColumn,
    HeadColumn,
    Programs,
    Runs,
    Scratch,
)
from joins.sequences.lockstep.statements import TableChain, programs_of, what_is_read
from templates.chaincode import ChainProgram
from templates.chaindecision import ChainDecision
from templates.decision import TupleStream

__all__ = ["RunTable"]

_ROOM = 64


class RunTable:
    """The elements of some chains that read the same ones, and the runs of each."""

    def __init__(
        self, first: ChainDecision, program: ChainProgram, lateness_us: int, limits: RunLimits
    ) -> None:
        self._reading = what_is_read(first, program)
        self._documents = first.documents
        self._lateness_us, self._limits = lateness_us, limits
        self._statements: list[TableChain] = []
        self._retained_us = 0
        self._programs: tuple[Programs, Beginnings] | None = None
        self._gone: set[int] = set()
        self._elements = KeptElements(first, program)
        self._complete = CompleteRuns(first, self._elements)
        self._batch = 0
        self._advanced: WatermarkSteps | None = None
        self._came: list[BatchRows] = []
        self._h = np.empty((_ROOM, len(HeadColumn)), np.int64)
        self._slots = np.empty((_ROOM, 1))
        self._heads = 0
        self._waiting = np.zeros(0, np.int64)
        self._near, self._nears = np.empty((_ROOM, 2), np.int64), 0
        self.is_charged = False
        self._swept = self._swept_least = limits.swept_parts
        self.limits = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return self._elements.size + len(self._waiting)

    @property
    def has_begun(self) -> bool:
        """Whether elements have come: then no further statement may join."""
        return bool(self._batch or self._came or self._elements.parts.have_come)

    @property
    def is_over(self) -> bool:
        """Whether some statement has too many runs."""
        return bool((self.limits != NO_LIMIT).any())

    @property
    def waiting(self) -> int:
        """How many elements wait until they are settled."""
        return len(self._elements.pending)

    @property
    def due_us(self) -> int | None:
        """The first time that must be settled before something that waits goes on."""
        return self._elements.due_us

    @property
    def streams(self) -> set[str]:
        """The names of the streams that are read."""
        return self._elements.parts.streams | {each.stream.name for each in self._documents}

    def reads_as(self, decision: ChainDecision, program: ChainProgram) -> bool:
        """Return whether a chain reads the elements of this table."""
        return what_is_read(decision, program) == self._reading

    def join(self, decision: ChainDecision, program: ChainProgram) -> int:
        """Add a statement before any element has come; return its number."""
        constants = [
            float(self._elements.texts.constant(each) if isinstance(each, str) else each)
            for each in program.constants
        ]
        sources = self._elements.sources_of(decision)
        self._statements.append(TableChain(decision, program, constants, sources))
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

    def read(self, statement: int, step: int, stream: TupleStream) -> None:
        """Have rows of a stream be rows of the elements of a step of a statement."""
        self._elements.parts.read(self._statements[statement].sources[step], stream)

    # -- a batch -------------------------------------------------------------------------------

    def absorb(self, rows: BatchRows) -> None:
        """Take rows, some of the streams that are read, which are of one batch."""
        self._came.append(rows)

    def advance(self, clock: WatermarkSteps) -> None:
        """Have all runs go on as far as they go in a batch, once."""
        if self._advanced is clock:
            return
        self._advanced = clock
        self._complete.begin_batch()
        self._batch += 1
        if self._came:
            self._elements.take(self._batch, self._rows(), are_charged=self.is_charged)
            self._came = []
        entering = self._elements.settle(self._batch, clock)
        if len(entering):
            self._go_on(entering)

    def _rows(self) -> BatchRows:
        """Return the rows that came in the batch; what other tables read may be among them."""
        if len(self._came) == 1:
            return self._came[0]
        streams = self.streams
        return BatchRows(pa.concat_tables([rows.only(streams)[0] for rows in self._came]))

    def _go_on(self, entering: Ints) -> None:
        from joins.sequences.lockstep.loops.beginning import begin
        from joins.sequences.lockstep.loops.stepping import step_on

        if self._programs is None:
            self._programs = programs_of(
                self._statements, self._elements.sources, self._gone, self._lateness_us
            )
            widest = int(np.diff(self._programs[0].slots_at).max())
            if not self._heads:
                self._slots = np.empty((len(self._h), max(widest, 1)))
        programs, beginnings = self._programs
        lines = self._elements.enter(entering)
        elements = self._elements.as_loops_read(self._batch, self.limits, self._limits)
        runs = Runs(self._h, self._slots, self._heads, self._near, self._nears)
        sources = elements.e[entering, ElementColumn.SOURCE]
        of_first = entering[sources >= 0]
        begun = begin(programs, beginnings, elements, runs, of_first)
        asked, waiting = self._asked(int(elements.e[entering, ElementColumn.START].min()))
        before = self._heads
        scratch = Scratch.of(self._elements.size, len(elements.numbers))
        own = self._h[asked]
        runs = step_on(
            programs,
            elements,
            runs,
            scratch,
            elements.grouped(own[:, HeadColumn.STATEMENT], own[:, HeadColumn.FIRST], asked),
            elements.grouped(begun[:, 0], begun[:, 1], begun[:, 1]),
        )
        self._h, self._slots, self._heads, self._near, self._nears = runs
        self._elements.end_batch(lines)
        touched = np.concatenate([asked, np.arange(before, self._heads)])
        still = touched[self._h[touched, HeadColumn.UNTIL] > NEVER_US]
        self._waiting = np.concatenate([waiting, still])
        self._complete.take(self._h[: self._heads], before)

    def _asked(self, start_us: int) -> tuple[Ints, Ints]:
        """Return the heads that what begins at a time or behind may concern, and the others."""
        waiting = self._waiting
        concerned = self._h[waiting, HeadColumn.UNTIL] >= start_us
        return waiting[concerned], waiting[~concerned]

    # -- what is found -------------------------------------------------------------------------

    def finding(self, clock: WatermarkSteps) -> Iterable[int]:
        """Return the statements of which runs are decided in the batch."""
        self.advance(clock)
        return self._complete.statements

    def decided(self, statement: int) -> list[ColumnChain]:
        """Return the runs of a statement that are decided in the batch."""
        return self._complete.listed(statement)

    def ends(self, statement: int) -> tuple[HeadEnds, list[ColumnChain]]:
        """Return the runs of `decided` that are told by their last heads, and the others."""
        return self._complete.ends(statement)

    # -- what is kept --------------------------------------------------------------------------

    def evict(self, horizon_us: int) -> None:
        """Forget, once there are enough, what no run can take any more, and runs that take none."""
        if self._elements.size + self._heads <= self._swept:
            return
        retained_us = self._retained_us
        self._forget(-UNBOUNDED if retained_us >= UNBOUNDED else horizon_us - retained_us)
        self._swept = max(self._swept_least, 2 * (self._elements.size + self._heads))

    def _forget(self, before_us: int) -> None:
        kept = self._elements.ending_from(before_us)
        into = numbering(kept)
        self._complete.begin_batch()
        self._keep_heads(kept, into)
        near = self._near[: self._nears]
        near, self._nears = kept_near(self._h[: self._heads], near, into)
        self._near = with_room(near, _ROOM)
        used, h = self._elements.keep(kept, into), self._h[: self._heads]
        for column in (HeadColumn.NUMBER, HeadColumn.OLDEST):
            h[:, column] = np.searchsorted(used, h[:, column])

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
        self._heads = len(h)
        self._h, self._slots = (with_room(each, max(_ROOM, len(h))) for each in (h, slots))
