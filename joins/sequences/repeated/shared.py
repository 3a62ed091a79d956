"""What repetitions of a join have in common: what stands before them, and their elements.

Two share one side where they read the same streams on it, and look it up alike.  An element wakes
those that have something before it, of however many.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple

from joins.budget.limits import RunLimits
from joins.memory.instance import Instance
from joins.sequences.awake import Awake
from joins.sequences.clock import WatermarkSteps
from joins.sequences.repeated.elements import UnitElements
from joins.sequences.repeated.lefts import Lefts
from joins.sequences.repeated.readers import RunReader, Standing
from joins.sequences.runconditions import RunConditions
from templates.rundecision import RunDecision, look_ups

__all__ = ["SharedSides", "Sides"]


class Sides(NamedTuple):
    """The two sides of a repetition."""

    lefts: Lefts
    elements: UnitElements


def _look_ups(decision: RunDecision) -> Sequence[Sequence[tuple[Hashable, Hashable]]]:
    """Return the equalities by which elements are looked up, for each way to begin."""
    is_single = len(decision.elements) == 1
    return [look_ups(begin.each) if is_single else [] for begin in decision.begins]


def _lefts_retention_us(lefts: Lefts) -> int:
    return lefts.readers.retention_us


def _elements_retention_us(elements: UnitElements) -> int:
    return elements.readers.retention_us


class SharedSides:
    """The sides of all repetitions of a join that are found one by one."""

    def __init__(self, limits: RunLimits) -> None:
        self._limits = limits
        self._lefts: dict[Hashable, Lefts] = {}
        self._elements: dict[Hashable, UnitElements] = {}
        self._lefts_at: Standing[Lefts] = Standing(limits.swept_parts, _lefts_retention_us)
        self._elements_at: Standing[UnitElements] = Standing(
            limits.swept_parts, _elements_retention_us
        )
        self._came: dict[Lefts, None] = {}
        self._taken: dict[Lefts, None] = {}
        self._awake: Awake[UnitElements] = Awake()
        self._strata: Mapping[UnitElements, int] = {}
        self._lefts_of: dict[str, list[Lefts]] = {}
        self._elements_of: dict[str, list[UnitElements]] = {}

    @property
    def waiting(self) -> int:
        """How many elements wait until they are settled."""
        return sum(each.settling for each in self._awake.waiting)

    def reads(self, stream: str) -> bool:
        """Return whether a stream is one of some side."""
        return stream in self._lefts_of or stream in self._elements_of

    # -- repetitions ---------------------------------------------------------------------------

    @classmethod
    def alone(cls, decision: RunDecision, limits: RunLimits) -> Sides:
        """Return the elements of a repetition that keeps what stands before it in another way."""
        own = cls(limits)
        begins = [RunConditions(begin, decision) for begin in decision.begins]
        return Sides(own._nothing(), own._elements_like(decision, begins))

    def of(self, decision: RunDecision) -> Sides:
        """Return the sides of a repetition."""
        begins = [RunConditions(begin, decision) for begin in decision.begins]
        return Sides(self._lefts_like(decision, begins), self._elements_like(decision, begins))

    def _nothing(self) -> Lefts:
        return Lefts((), self._limits, self._lefts_at, self._elements_at)

    def _lefts_like(self, decision: RunDecision, begins: Sequence[RunConditions]) -> Lefts:
        """Return what stands before a repetition: nothing does where it leads."""
        if decision.is_leading:
            return self._nothing()
        reading = tuple(
            (
                begin.left,
                begin.left_keys,
                begin.folds,
                tuple(left for left, _ in own),
                decision.known,
            )
            for begin, own in zip(decision.begins, _look_ups(decision), strict=True)
        )
        found = self._lefts.get(reading)
        if found is None:
            found = Lefts(begins, self._limits, self._lefts_at, self._elements_at)
            self._lefts[reading] = found
        return found

    def _elements_like(
        self, decision: RunDecision, begins: Sequence[RunConditions]
    ) -> UnitElements:
        """Return the elements of a repetition: those that are read the same, before any came."""
        reading = (
            decision.is_next,
            decision.grace_us if decision.is_next else 0,
            decision.is_leading,
            decision.known,
            decision.elements,
            tuple(tuple(right for _, right in own) for own in _look_ups(decision)),
        )
        found = self._elements.get(reading)
        if found is None or found.has_begun:
            found = UnitElements(decision, begins, self._limits, self._elements_at, self._lefts_at)
            self._elements[reading] = found
        return found

    def follow(self, strata: Mapping[UnitElements, int]) -> None:
        """Forget sides of nothing any more, and find out who reads which stream.

        `strata` are the lowest in which elements are asked for.
        """
        self._lefts = {key: own for key, own in self._lefts.items() if own.readers}
        self._elements = {key: own for key, own in self._elements.items() if own.readers}
        for gone in self._strata.keys() - strata.keys():
            self._awake.leave(gone)
        self._strata = strata
        self._lefts_of, self._elements_of = {}, {}
        for lefts in self._lefts.values():
            for stream in lefts.streams:
                self._lefts_of.setdefault(stream, []).append(lefts)
        for elements in strata:
            for stream in elements.streams:
                self._elements_of.setdefault(stream, []).append(elements)

    # -- a batch -------------------------------------------------------------------------------

    def begin_batch(self) -> None:
        """Have nothing be new."""
        for lefts in self._taken:
            lefts.begin_batch()
        self._taken = {}
        for elements in self._awake.decided:
            elements.begin_batch()
        self._awake.begin_batch()

    def add(self, stream: str, row: Instance) -> None:
        """Take a row of a stream."""
        for lefts in self._lefts_of.get(stream, ()):
            lefts.add(stream, row)
            self._came[lefts] = None
        for elements in self._elements_of.get(stream, ()):
            elements.add(stream, row)
            self._awake.wake(elements)

    def take_new(self, stratum: int, clock: WatermarkSteps) -> Iterator[RunReader]:
        """Take all that came on either side; yield who has something on the other."""
        came, self._came = self._came, {}
        for lefts in came:
            self._taken[lefts] = None
            yield from lefts.take_new()
        for elements in list(self._awake.at(clock.newest_us)):
            if self._strata[elements] <= stratum:
                yield from elements.take_new(clock)
                self._awake.has_decided(elements)

    def evict(self, horizon_us: int) -> None:
        """Forget what no reader can need, of what has grown in the batch."""
        for lefts in self._taken:
            lefts.evict(horizon_us)
        for elements in self._awake.decided:
            elements.evict(horizon_us)
        self._lefts_at.evict(horizon_us)
        self._elements_at.evict(horizon_us)
