"""The plain lanes of a repetition, by the values of SAME, and what their elements are asked."""

from __future__ import annotations

from collections.abc import Sequence

from joins.memory.durations import UNBOUNDED
from joins.sequences.counting.plain import FoundWays, NotPlainError, PlainLane
from joins.sequences.counting.spread import PlainElement, PlainShape
from joins.sequences.runconditions import Key, RunConditions
from joins.sequences.runparts import Head, Part, PartRow
from templates.neighbours import AskedNeighbours, InexactError, compile_neighbours
from templates.rundecision import RunAtHand, RunDecision, RunReading

__all__ = ["PlainRuns"]


class PlainRuns:
    """Lanes without steps, and how what is asked of elements is read."""

    def __init__(
        self, neighbours: AskedNeighbours, conditions: RunConditions, shape: PlainShape
    ) -> None:
        self._neighbours = neighbours
        self._conditions = conditions
        self._shape = shape
        self._lanes: dict[Key, PlainLane] = {}

    @classmethod
    def of(
        cls, decision: RunDecision, conditions: RunConditions, lateness_us: int
    ) -> PlainRuns | None:
        """Return the lanes of a repetition, None where its neighbours are asked for more."""
        neighbours = compile_neighbours(decision.begins[0])
        if neighbours is None or not decision.is_leading or decision.retention_us < 0:
            return None
        within_us = min(decision.within_us, decision.window_us, UNBOUNDED)
        remembered_us = min(decision.retention_us + lateness_us, UNBOUNDED)
        if within_us >= UNBOUNDED > remembered_us:
            return None
        compared = neighbours.compared
        shape = PlainShape(
            min(decision.gap_us, UNBOUNDED),
            within_us,
            None if compared is None else compared.operator,
            compared is None or compared.are_same,
            neighbours.may_all_begin,
            remembered_us,
        )
        return cls(neighbours, conditions, shape)

    def __len__(self) -> int:
        return sum(map(len, self._lanes.values()))

    def enter(self, key: Key, parts: Sequence[Part]) -> list[FoundWays]:
        """Add elements with one label to the lane of a key; return the runs that have one."""
        alone = [(part, self._alone(part)) for part in parts]
        own = [each for each in alone if self._neighbours.own(each[1])]
        if len(own) > 1:
            raise NotPlainError
        if not own:
            return []
        try:
            element = self._element(*own[0])
        except InexactError:
            raise NotPlainError from None
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = PlainLane(self._shape)
        return lane.enter(element)

    def leave(self, key: Key) -> list[Part]:
        """Forget a lane; return its elements in the order in which they came."""
        lane = self._lanes.pop(key, None)
        return [] if lane is None else lane.parts

    def forget(self, before_us: int) -> None:
        """Forget what ends before a time."""
        for key, lane in list(self._lanes.items()):
            if not lane.forget(before_us):
                del self._lanes[key]

    @staticmethod
    def _alone(part: Part) -> RunReading:
        """Return an element as conditions read it, also as the one before."""
        assert part.element is not None
        run = RunAtHand((part.element,), part.element, {})
        return RunReading({}, part.start_us, part.end_us, run)

    def _element(self, part: Part, alone: RunReading) -> PlainElement:
        asked = self._neighbours
        compared = asked.compared
        numbers = (0.0, 0.0) if compared is None else compared.of_element(alone)
        return PlainElement(
            part,
            part.end_us,
            *numbers,
            asked.may_all_begin or self._begins(part),
            asked.leads(alone),
        )

    def _begins(self, part: Part) -> bool:
        step = self._conditions.step(Head(0, None, (), {}, 0), part, PartRow({}))
        return self._conditions.each(step) and self._conditions.first(step)
