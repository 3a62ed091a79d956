"""One decision over its timelines, batch by batch.

    right rows   enter at the document from which they count: the one that settles their end, or
                 their own where that is later; till then they wait, by end
    pairs        a right that enters looks at the lefts that are there, a left that comes at the
                 rights that have entered: each pair once, in the batch in which it is decided
    next         the pairs of a left that are decided first, and of these the ones that end first
    absent       asked when a tuple is decided, of what is there by then

Section 1.1 of the semantics is asked of any two that are held together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count, product

from joins.memory.durations import UNBOUNDED
from joins.memory.instance import Instance
from joins.sequences.clock import Clock
from joins.sequences.conditions import RowTest, Values, keys_of, values_of
from joins.sequences.contender import Contender, Operand
from joins.sequences.timeline import Timeline
from templates.decision import Decision, DecisionKind, TupleStream

__all__ = ["DecidedTuple", "Evaluation"]

INFINITE_US = 1 << 62

SWEPT_MIN = 1_000
"""The fewest contenders among which useless ones are looked for."""


@dataclass(frozen=True, slots=True)
class DecidedTuple:
    """What was decided: its parts, its end, and the document at which it was."""

    left: Contender
    right: Contender | None
    end_us: int
    docid: int

    @property
    def parts(self) -> tuple[Contender, ...]:
        """Its parts in order."""
        return (self.left,) if self.right is None else (self.left, self.right)


class Evaluation:
    """The contenders of one decision, and what waits to be decided."""

    def __init__(self, decision: Decision, lateness_us: int) -> None:
        self.decision = decision
        self._lateness_us = lateness_us
        self.left, self.right = Operand(), Operand()
        self._absent: dict[tuple[int, int], Operand] = {
            (i, j): Operand()
            for i, absent in enumerate(decision.absences)
            for j in range(len(absent.cases))
        }
        self._fits = [RowTest(fit.asked) for fit in decision.fits]
        self._cases = {
            (i, j): RowTest(case.asked)
            for i, absent in enumerate(decision.absences)
            for j, case in enumerate(absent.cases)
        }
        self._lefts, self._entered, self._cancelling = Timeline(), Timeline(), Timeline()
        self._waiting: list[tuple[int, int, Contender]] = []
        self._serial = count()
        self._swept = SWEPT_MIN
        sides = [(fit.left, fit.right) for fit in decision.fits]
        self._left_streams = dict.fromkeys([*decision.lefts, *(left for left, _ in sides)])
        self._right_streams = dict.fromkeys(right for _, right in sides)
        self._roles: dict[str, list[tuple[Operand, TupleStream]]] = defaultdict(list)
        for stream in self._left_streams:
            self.read(self.left, stream)
        for stream in self._right_streams:
            self.read(self.right, stream)
        for place, operand in self._absent.items():
            self.read(operand, decision.absences[place[0]].cases[place[1]].stream)

    def __len__(self) -> int:
        return len(self._lefts) + len(self._entered) + len(self._cancelling)

    @property
    def waiting(self) -> int:
        """How many contenders wait until they are settled."""
        return len(self._waiting)

    def read(self, operand: Operand, stream: TupleStream) -> None:
        """Have rows of a stream be contenders of an operand."""
        if (operand, stream) not in self._roles[stream.name]:
            self._roles[stream.name].append((operand, stream))

    @property
    def streams(self) -> set[str]:
        """The names of the streams that are read."""
        return set(self._roles)

    def add(self, stream: str, row: Instance) -> None:
        """Take a row of a stream."""
        for operand, own in self._roles[stream]:
            operand.add(own, row)

    # -- a batch -------------------------------------------------------------------------------

    def decide(self, clock: Clock) -> list[DecidedTuple]:
        """Return what is decided in the batch, in no order; its contenders are all there."""
        for (i, j), operand in self._absent.items():
            case = self.decision.absences[i].cases[j]
            terms = [right for _, right in case.asked.joins]
            for near in operand.take_new():
                for key in keys_of(near, case.stream, terms):
                    self._cancelling.add((i, j, key), near)
        has_right = self.decision.kind.has_right
        decided = self._pairs(clock) if has_right else list(self._alone(clock))
        return [one for one in decided if not self._is_taken_away(one)]

    def _alone(self, clock: Clock) -> Iterator[DecidedTuple]:
        """Yield the tuples of one operand whose end is settled now."""
        for left in self.left.take_new():
            if left.end_us - left.start_us <= self.decision.within_us:
                heappush(self._waiting, (self._until_us(left), next(self._serial), left))
        grace_us = self.decision.grace_us
        while self._waiting:
            settled = clock.settled(self._waiting[0][0] + grace_us)
            if settled is None:
                return
            until_us, _, left = heappop(self._waiting)
            yield DecidedTuple(left, None, until_us, max(settled, left.docid))

    def _until_us(self, left: Contender) -> int:
        if self.decision.kind is DecisionKind.BEFORE:
            return left.end_us
        window_us, within_us = self.decision.window_us, self.decision.within_us
        return min(left.end_us + window_us, left.start_us + within_us, INFINITE_US)

    def _entering(self, clock: Clock) -> list[tuple[int, Contender]]:
        """Return the rights that count from documents of the batch on, each with its document."""
        for right in self.right.take_new():
            heappush(self._waiting, (right.end_us, next(self._serial), right))
        entering: list[tuple[int, Contender]] = []
        while self._waiting:
            settled = clock.settled(self._waiting[0][0] + self.decision.grace_us)
            if settled is None:
                break
            _, _, right = heappop(self._waiting)
            entering.append((max(settled, right.docid), right))
        entering.sort(key=lambda each: (each[0], each[1].end_us))
        return entering

    def _pairs(self, clock: Clock) -> list[DecidedTuple]:
        found = _Pairs(is_next=self.decision.kind is DecisionKind.NEXT)
        new = self.left.take_new()
        for left in new:
            for place, fit in enumerate(self.decision.fits):
                for key in keys_of(left, fit.left, [a for a, _ in fit.asked.joins]):
                    self._look_ahead(left, place, key, found)
                    self._lefts.add((place, key), left)
        for docid, right in self._entering(clock):
            for place, fit in enumerate(self.decision.fits):
                for key in keys_of(right, fit.right, [b for _, b in fit.asked.joins]):
                    self._look_back(right, docid, place, key, found)
                    self._entered.add((place, key), right)
        for place_and_key in found.touched:
            self._lefts.sweep(place_and_key)
        return found.take()

    def _look_ahead(self, left: Contender, place: int, key: tuple[str, ...], found: _Pairs) -> None:
        """Have a left that came look at the rights that have entered."""
        last_us = min(
            left.end_us + self.decision.window_us, left.start_us + self.decision.within_us
        )
        for right in self._entered.within((place, key), left.end_us + 1, last_us):
            if not found.can_have(left, left.docid, right.end_us):
                return
            if self._fit(place, left, right):
                found.add(DecidedTuple(left, right, right.end_us, left.docid))

    def _look_back(
        self, right: Contender, docid: int, place: int, key: tuple[str, ...], found: _Pairs
    ) -> None:
        """Have a right that enters look at the lefts that are there."""
        first_us = right.end_us - self.decision.window_us
        for left in self._lefts.within((place, key), first_us, right.start_us - 1):
            at = max(docid, left.docid)
            if not found.can_have(left, at, right.end_us):
                continue
            if right.end_us - left.start_us > self.decision.within_us:
                continue
            if self._fit(place, left, right):
                found.add(DecidedTuple(left, right, right.end_us, at))
                found.touched.add((place, key))

    def _fit(self, place: int, left: Contender, right: Contender) -> bool:
        """Return whether a pair under one key fits: in order, remembered, and by the rest."""
        if left.end_us >= right.start_us or not self._meet(left, right, self.decision.window_us):
            return False
        test = self._fits[place]
        if test.is_by_key:
            return True
        fit = self.decision.fits[place]
        interval_us = min(left.start_us, right.start_us), max(left.end_us, right.end_us)
        rights = list(_values(right, fit.right))
        return any(
            test.holds(a, b, interval_us) for a, b in product(_values(left, fit.left), rights)
        )

    def _meet(self, one: Contender, other: Contender, window_us: int) -> bool:
        """Section 1.1: the earlier was still remembered when the later came."""
        if window_us >= INFINITE_US or one.position == other.position:
            return True
        earlier, later = (one, other) if one.position < other.position else (other, one)
        return earlier.end_us >= later.watermark_us - window_us - self._lateness_us

    # -- absence -------------------------------------------------------------------------------

    def _is_taken_away(self, one: DecidedTuple) -> bool:
        blocks = tuple(block for part in one.parts for block in part.blocks)
        return any(
            self._is_cancelled(one, (i, j))
            for i, absent in enumerate(self.decision.absences)
            for j, case in enumerate(absent.cases)
            if case.blocks == blocks
        )

    def _is_cancelled(self, one: DecidedTuple, place: tuple[int, int]) -> bool:
        """Return whether a row of an absent unit that is there takes a tuple away."""
        absent = self.decision.absences[place[0]]
        case, test = absent.cases[place[1]], self._cases[place]
        first_us, last_us = self._bounds_us(one, absent.window_us)
        terms = [term for term, _ in case.asked.joins]
        for values in self._rows(one):
            key = tuple([values[term] for term in terms])
            if not all(key):
                continue
            for near in self._cancelling.within((*place, key), first_us, last_us):
                if near.docid > one.docid or not self._stands(one, near, absent.window_us):
                    continue
                start_us = min(near.start_us, *(part.start_us for part in one.parts))
                end_us = max(near.end_us, *(part.end_us for part in one.parts))
                if test.is_by_key or any(
                    test.holds(values, own, (start_us, end_us))
                    for own in _values(near, case.stream)
                ):
                    return True
        return False

    def _rows(self, one: DecidedTuple) -> Iterator[Values]:
        """Yield the values of a tuple's rows that the decision looks at."""
        lefts = [v for each in self._left_streams for v in _values(one.left, each)]
        if one.right is None:
            yield from lefts
            return
        rights = [v for each in self._right_streams for v in _values(one.right, each)]
        for left, right in product(lefts, rights):
            yield {**left, **right}

    def _bounds_us(self, one: DecidedTuple, window_us: int) -> tuple[int, int]:
        """Return between which times an absent row has to end, both included."""
        kind = self.decision.kind
        if one.right is not None:
            return max(one.left.end_us + 1, one.end_us - window_us), one.right.start_us - 1
        if kind is DecisionKind.BEFORE:
            return one.left.end_us - window_us, one.left.start_us - 1
        if kind is DecisionKind.AFTER:
            return one.left.end_us + 1, one.end_us
        return one.left.end_us - self.decision.window_us, one.end_us

    def _stands(self, one: DecidedTuple, near: Contender, window_us: int) -> bool:
        """Return whether an absent row that ends in time stands where it takes a tuple away."""
        kind = self.decision.kind
        if kind is DecisionKind.BEFORE:
            return self._meet(one.left, near, window_us)
        if kind is DecisionKind.AROUND:
            if abs(near.end_us - one.left.end_us) > self.decision.window_us:
                return False
            if not set(near.leaves).isdisjoint(one.left.leaves):
                return False
        elif near.start_us <= one.left.end_us:
            return False
        return all(self._meet(part, near, self.decision.window_us) for part in one.parts)

    # -- what is kept --------------------------------------------------------------------------

    def evict(self, horizon_us: int) -> None:
        """Forget, once there are enough, what nothing can be decided with any more.

        What waits is kept: its end is not settled.
        """
        if len(self) <= self._swept:
            return
        reach_us = self.decision.reach_us
        before_us = -UNBOUNDED if reach_us >= INFINITE_US else horizon_us - reach_us
        for timeline in (self._lefts, self._entered, self._cancelling):
            timeline.forget(before_us)
        self._swept = max(SWEPT_MIN, 2 * len(self))


class _Pairs:
    """The pairs of a batch: all of them, or only the next ones of each left."""

    def __init__(self, *, is_next: bool) -> None:
        self.touched: set[tuple[int, tuple[str, ...]]] = set()
        self._is_next = is_next
        self._found: dict[tuple[int, int], DecidedTuple] = {}
        self._best: dict[int, tuple[tuple[int, int], dict[int, DecidedTuple]]] = {}

    def can_have(self, left: Contender, docid: int, end_us: int) -> bool:
        """Return whether a pair would count, if it fits."""
        best = self._best.get(id(left))
        return best is None or (docid, end_us) <= best[0]

    def add(self, one: DecidedTuple) -> None:
        """Add a pair, which another fit may have found before."""
        assert one.right is not None
        if not self._is_next:
            self._found[id(one.left), id(one.right)] = one
            return
        order = (one.docid, one.end_us)
        best = self._best.get(id(one.left))
        if best is None or order < best[0]:
            best = self._best[id(one.left)] = (order, {})
        if order == best[0]:
            best[1][id(one.right)] = one

    def take(self) -> list[DecidedTuple]:
        """Return the pairs; lefts whose next has been found look no further."""
        chosen = [one for _, pairs in self._best.values() for one in pairs.values()]
        for one in chosen:
            one.left.is_done = True
        return [*self._found.values(), *chosen]


def _values(contender: Contender, stream: TupleStream) -> Iterator[Values]:
    """Yield the values of a contender's rows in a stream."""
    for row in contender.rows.get(stream.name, ()):
        yield values_of(stream, row)
