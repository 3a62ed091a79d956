"""One repetition over its elements, batch by batch.

    elements   behind NEXT they enter at the document from which they count: the one that settles
               their end, or their own where that is later; under ANY when they come (`elements`)
    heads      a run waits for its next element under the values that the element must have; one
               that has only what stands before begins with the first element that it may take
    next       a head takes of all elements that have entered and fit those with the least
               (document, end), and is done: elements that enter later stand behind
    limit      a document that makes too many runs, or too long ones, makes none, nor does a later
               one: the statement is over its budget there
    any        a run is found with the last of its parts that comes, and each of its elements may
               be left out: a head stays

Section 1.1 of the semantics is asked of the first instance of a run and each other one.
`docs/repetition.md` has the theory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import count
from operator import attrgetter

import numpy as np

from joins.budget.limits import RunLimits
from joins.memory.durations import UNBOUNDED
from joins.memory.instance import Instance
from joins.sequences.absentunits import AbsentTuples
from joins.sequences.clock import WatermarkSteps
from joins.sequences.repeated.elements import UnitElements
from joins.sequences.repeated.lefts import Left, Lefts
from joins.sequences.repeated.ownlefts import OwnLefts
from joins.sequences.repeated.readers import Place
from joins.sequences.repeated.runsteps import RunSteps
from joins.sequences.runconditions import Key, RunConditions
from joins.sequences.runparts import (
    DecidedRun,
    Head,
    Part,
    Roles,
)
from templates.decision import TupleStream
from templates.rundecision import RunDecision

__all__ = ["RunEvaluation"]

_END = attrgetter("end_us")


class RunEvaluation:
    """The heads of one repetition, over its `elements`; `lefts` is what stands before it."""

    needs: Sequence[frozenset[str]] = ()
    """Of rows of which streams each match has one, if they may wait until all are there."""

    def __init__(
        self,
        decision: RunDecision,
        lateness_us: int,
        limits: RunLimits,
        lefts: Lefts,
        elements: UnitElements,
    ) -> None:
        self.decision = decision
        # For how long what may decide is remembered: for the longest of all lengths that are said.
        self.retention_us = decision.retention_us
        self._lefts = OwnLefts(decision, lefts)
        self.elements = elements
        # The number behind those of the elements that are there.
        self._through = 0
        self._limits = limits
        self._begins = [RunConditions(begin, decision) for begin in decision.begins]
        self._asked = RunSteps(decision, self._begins, lateness_us)
        self._serial = count()
        self._heads: dict[Place, dict[int, Head]] = {}
        self._swept = limits.swept_parts
        self._size = 0
        self.limit: int | None = None
        self._counts: Counter[tuple[int, Key]] = Counter()
        self._head_counts: Counter[tuple[int, Key]] = Counter()
        self._absent = [
            AbsentTuples(each, decision.retention_us, lateness_us) for each in decision.absences
        ]
        self._undecided: list[tuple[int, int, Head]] = []
        self._roles = Roles()
        lefts.readers.add(self, elements)
        elements.readers.add(self, lefts)
        for unit in self._absent:
            for each in unit.absent.elements:
                self._roles.give(each.stream, unit.parts)
                unit.parts.takes_elements_of(each.stream)

    def __len__(self) -> int:
        return self._size + len(self._lefts)

    @property
    def waiting(self) -> int:
        """How many elements of its own wait until they are settled."""
        return 0

    @property
    def longest_us(self) -> int:
        """How far behind what a run begins with its elements may end."""
        return min(self.decision.within_us, self.decision.window_us, UNBOUNDED)

    @property
    def is_over(self) -> bool:
        """Whether a document makes too many runs."""
        return self.limit is not None

    @property
    def due_us(self) -> int | None:
        """The first time that must be settled before a run that waits is decided."""
        return min((each[0] + self.decision.grace_us for each in self._undecided[:1]), default=None)

    @property
    def streams(self) -> set[str]:
        """The names of the streams of which rows are absent."""
        return self._roles.streams

    def read(self, stream: TupleStream) -> None:
        """Have rows of a stream stand before the repetition."""
        self._lefts.read(stream)

    def tell(self, left: Left) -> None:
        """Take note of what came before an element that is there."""
        self._lefts.tell(left)

    def leave(self) -> None:
        """Have no more runs."""
        self._lefts.leave(self)
        self.elements.readers.leave(self)

    def add(self, stream: str, row: Instance) -> None:
        """Take a row of a stream."""
        self._roles.add(stream, row)

    # -- a batch -------------------------------------------------------------------------------

    def decide(self, clock: WatermarkSteps) -> list[DecidedRun]:
        """Return the runs that are found in the batch, in no order."""
        self._counts.clear()
        self._head_counts.clear()
        self._through = self.elements.first_new
        self._size += sum(unit.take_new() for unit in self._absent)
        if self.decision.is_next:
            found = list(self._next())
        elif self._absent:
            found = self._settled(self._any(), clock)
        else:
            return list(self._any())
        return [one for one in found if not self._is_taken_away(one)]

    def _settled(self, found: Iterable[DecidedRun], clock: WatermarkSteps) -> list[DecidedRun]:
        """Return the runs whose ends are settled in the batch; those found in it wait."""
        for one in found:
            heappush(self._undecided, (one.parts[-1].end_us, next(self._serial), one.head))
        newest_us = clock.newest_us - self.decision.grace_us
        heads: list[Head] = []
        while self._undecided and self._undecided[0][0] < newest_us:
            heads.append(heappop(self._undecided)[2])
        ends_us = np.array([head.elements[-1].end_us for head in heads], np.int64)
        settling = clock.settling(ends_us + self.decision.grace_us).tolist()
        return [
            DecidedRun(head, max(settled, head.docid))
            for head, settled in zip(heads, settling, strict=True)
        ]

    def _is_taken_away(self, one: DecidedRun) -> bool:
        """Return whether something stands before a run where nothing may stand."""
        conditions = self._begins[one.head.begin]
        if one.docid is None or not self._absent:
            return False
        lengths = self._asked.said_lengths(one.head, one.head.elements[0])
        return conditions.takes_away(one.head, self._absent, one.docid, lengths)

    # -- what stands before --------------------------------------------------------------------

    def _head(self, left: Left, data: Key) -> Head:
        """Return a run behind what stands before, without elements, which will say some data."""
        part = left.part
        folds = self._begins[left.begin].first_folds(part)
        return Head(left.begin, part, (), folds, part.docid, data)

    def _heads_behind(self, left: Left) -> Iterator[Head]:
        """Yield the new runs behind what stands before, one for each data that elements say."""
        known = self._begins[left.begin].known_of(left.part)
        said: Iterable[Key] = (known,)
        if len(known) < len(self.decision.data):
            said = dict.fromkeys(part.data for part in self._known(self._head(left, known)))
        for data in said:
            if not self._lefts.has_head(left.part, data):
                yield self._head(left, data)

    def _heads_at_hand(self) -> Iterator[Head]:
        """Yield the new runs behind what came in the batch before an element."""
        for left in self._lefts.at_hand(self.elements.latest_us):
            yield from self._heads_behind(left)

    def _begin_before(self, places: Iterable[Place], part: Part) -> None:
        """Have what stood before an element wait for it, where a run may take it."""
        for left in self._lefts.before(places, part):
            head = self._head(left, part.data)
            if not self._lefts.is_new(left) and self._asked.fits(head, part):
                self._wait(head)

    # -- NEXT ----------------------------------------------------------------------------------

    def _next(self) -> Iterator[DecidedRun]:
        touched: dict[int, tuple[Head, list[Part]]] = {}
        over = self._lefts.over
        if over is not None:
            self.limit = min(over, self.limit or over)
        self._through = self.elements.next
        for part, places in self.elements.new:
            self._begin_before(places, part)
            for place in places:
                for head in self._heads.get(place, {}).values():
                    touched.setdefault(id(head), (head, []))[1].append(part)
        for head, parts in touched.values():
            yield from self._advance(head, parts)
        for head in self._heads_at_hand():
            if self._is_taken(head):
                assert head.left is not None
                self._lefts.note_head(head.left, head.data)
                yield from self._advance(head, None)

    def _is_taken(self, head: Head) -> bool:
        """Return whether a run goes on, or its newest document makes too many."""
        if self.limit is not None and head.docid >= self.limit:
            return False
        # What stands before counts, whether it has a head by now or not.
        key = self._counted_as(head)
        self._head_counts[key] += bool(head.elements)
        heads = self._head_counts[key] + self._lefts.count(head)
        if heads <= self._limits.heads:
            return True
        self.limit = head.docid
        return False

    def _advance(self, head: Head, parts: Iterable[Part] | None) -> Iterator[DecidedRun]:
        """Yield the runs that a head becomes with what has entered, or with some of that."""
        stack = [(head, parts)]
        while stack:
            head, parts = stack.pop()
            found = self._nearest(head, self._known(head) if parts is None else parts)
            if found is None:
                self._wait(head)
                continue
            self._leave(head)
            for part in found:
                longer = self._asked.longer(head, part)
                if longer is not None and self._is_taken(longer) and self._takes(longer):
                    docid = max(longer.docid, part.settled)
                    yield DecidedRun(longer, docid)
                    stack.append((longer, None))

    def _nearest(self, head: Head, parts: Iterable[Part]) -> list[Part] | None:
        """Return the elements that fit with the least (document, end); None where none fits."""
        last = head.last
        assert last is not None
        best: tuple[int, int] | None = None
        found: list[Part] = []
        for part in sorted(parts, key=_END):
            if best is not None and part.settled > best[0]:
                break
            at = max(part.entered, last.docid), part.end_us
            if (best is None or at <= best) and self._asked.fits(head, part):
                if best is None or at < best:
                    best, found = at, []
                found.append(part)
        return None if best is None else found

    # -- any -----------------------------------------------------------------------------------

    def _any(self) -> Iterator[DecidedRun]:
        """Yield the runs that have a part which is new.

        New parts come one after the other; with each come the runs that have it, and of the parts
        that are known by then any others.
        """
        if self.decision.is_leading and not self._heads:
            for number, conditions in enumerate(self._begins):
                self._wait(Head(number, None, (), conditions.first_folds(None), 0))
        for part, places in self.elements.new:
            if self.limit is not None and part.docid >= self.limit:
                break
            self._through = part.serial + 1
            self._begin_before(places, part)
            touched = {
                id(head): head
                for place in places
                for head in list(self._heads.get(place, {}).values())
            }
            for head in self._fitting(touched.values(), part):
                yield from self._grow(head, part)
        for head in self._heads_at_hand():
            self._wait(head)
            for part in self._known(head):
                if self._asked.fits(head, part):
                    yield from self._grow(head, part)

    def _fitting(self, heads: Iterable[Head], part: Part) -> list[Head]:
        """Return the runs that may take an element: none where these are more than may be found."""
        found: list[Head] = []
        counts = Counter[tuple[int, Key]]()
        for head in heads:
            if self._asked.fits(head, part):
                found.append(head)
                before = () if head.left is None else head.left.data
                key = part.docid, (*before, *part.data)
                counts[key] += 1
                if self._counts[key] + counts[key] > self._limits.runs:
                    self.limit = part.docid
                    return []
        return found

    def _grow(self, head: Head, part: Part) -> Iterator[DecidedRun]:
        """Yield a run with one element more, and with all that are known behind it."""
        longer = self._asked.longer(head, part)
        if longer is None or not self._takes(longer):
            return
        yield DecidedRun(longer, None)
        self._wait(longer)
        for further in self._known(longer):
            if self._asked.fits(longer, further):
                yield from self._grow(longer, further)

    def _takes(self, head: Head) -> bool:
        """Return whether a run is found, or its newest document makes too many."""
        if self.limit is not None and head.docid >= self.limit:
            return False
        key, limits = self._counted_as(head), self._limits
        self._counts[key] += 1
        if self._counts[key] <= limits.runs and len(head.elements) <= limits.elements:
            return True
        self.limit = head.docid
        return False

    def _counted_as(self, head: Head) -> tuple[int, Key]:
        """Return what a run counts for: its newest document, and the data that it says."""
        return head.docid, self._begins[head.begin].said_of(head)

    # -- elements and heads --------------------------------------------------------------------

    def _places(self, head: Head) -> list[Place]:
        if head.left is None and not head.elements:
            return [(head.begin, ())]
        return [(head.begin, key) for key in self._begins[head.begin].look_up_keys(head)]

    def _known(self, head: Head) -> list[Part]:
        """Return the elements behind a head that are there, and may be in its run, by end."""
        after_us, until_us = -UNBOUNDED, UNBOUNDED
        if head.last is not None:
            first, decision = head.first, self.decision
            after_us = head.last.end_us
            until_us = min(until_us, first.start_us + decision.within_us)
            if head.left is not None:
                until_us = min(until_us, first.end_us + decision.window_us)
        found: dict[int, Part] = {}
        for place in self._places(head):
            for part in self.elements.between(place, after_us, until_us):
                if part.serial < self._through:
                    found[id(part)] = part
        return sorted(found.values(), key=_END)

    def _wait(self, head: Head) -> None:
        if head.left is not None and not head.elements:
            self._lefts.note_head(head.left, head.data)
        for place in self._places(head):
            if head.left is not None:
                self.elements.waiting.note(place, self, head.first.end_us)
            heads = self._heads.setdefault(place, {})
            self._size += id(head) not in heads
            heads[id(head)] = head

    def _leave(self, head: Head) -> None:
        for place in self._places(head):
            heads = self._heads.get(place, {})
            if heads.pop(id(head), None) is not None:
                self._size -= 1
            if not heads:
                self._heads.pop(place, None)
                self.elements.waiting.leave(place, self)

    # -- what is kept --------------------------------------------------------------------------

    def evict(self, horizon_us: int) -> None:
        """Forget, once there are enough, what no run can take any more, and runs that take none."""
        if len(self) <= self._swept:
            return
        retention_us = self.retention_us
        self._forget(-UNBOUNDED if retention_us >= UNBOUNDED else horizon_us - retention_us)
        self._swept = max(self._limits.swept_parts, 2 * len(self))

    def _forget(self, before_us: int) -> None:
        """Forget what ends before a time, and runs that begin there."""
        for heads in self._heads.values():
            gone = [i for i, head in heads.items() if self._is_over(head, before_us)]
            for i in gone:
                del heads[i]
        self._lefts.forget(before_us)
        for unit in self._absent:
            for absent in unit.lines.values():
                absent.forget(before_us)
        self._heads = {place: heads for place, heads in self._heads.items() if heads}
        self._size = sum(map(len, self._heads.values()))
        self._size += sum(len(line) for unit in self._absent for line in unit.lines.values())

    def _is_over(self, head: Head, before_us: int) -> bool:
        return head.last is not None and head.first.end_us < before_us
