"""The plain lanes of a repetition, by the values of SAME, and what their elements are asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import starmap

import numpy as np

from joins.memory.durations import UNBOUNDED
from joins.memory.slots import Ints
from joins.sequences.counting.found import EndPlaces, EndsInOrder
from joins.sequences.counting.inorder import ElementsInOrder
from joins.sequences.counting.plain import FoundWays, NotPlainError, PlainLane
from joins.sequences.counting.rowelements import RowElements
from joins.sequences.counting.spread import PlainElement, PlainShape
from joins.sequences.runconditions import Key, RunConditions
from joins.sequences.runparts import Head, Part, PartRow
from templates.neighbours import AskedNeighbours, InexactError, compile_neighbours
from templates.rundecision import RunAtHand, RunDecision, RunElement, RunReading

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
        asked = self._neighbours.own
        own = alone if asked is None else [each for each in alone if asked(each[1])]
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

    def enter_in_order(
        self, elements: ElementsInOrder, bits: int
    ) -> EndsInOrder[PlainElement] | None:
        """Add elements, each a place by itself, to the lane without a key; return their ends.

        None says that they have to be entered one by one, and changes nothing.  The last end may
        have a number of more bits; what comes behind it is left out.
        """
        lane = self._lanes.get(())
        if lane is None:
            lane = PlainLane(self._shape)
        own = self._asked_of(elements, lane)
        if own is None:
            return None
        (columns, entered), made = own
        if made:
            self._lanes[()] = lane
        totals = lane.enter_in_order(columns, made, bits)
        some = totals.some()
        rows = np.array(some, np.int64)
        stand = EndPlaces(
            columns.docids_max, columns.depths, columns.watermarks_us, columns.ends_us
        )
        return EndsInOrder(
            [made[row] for row in some],
            totals.take(some),
            entered[rows],
            stand.take(rows),
            lane.documents_to,
        )

    def _asked_of(
        self, elements: ElementsInOrder, lane: PlainLane
    ) -> tuple[ElementsInOrder, list[PlainElement]] | None:
        """Return the elements that a run may have, with what a lane has of each.

        It is None where they are not all in order, or more than a number is asked of one.
        """
        asked, readings = self._neighbours, _Readings(elements.columns)
        if asked.own is not None:
            own = np.flatnonzero(np.array([*map(asked.own, readings)], np.bool_))
            elements, readings = elements.take(own), readings.take(own)
        columns = elements.columns
        if not lane.takes_in_order(columns):
            return None
        try:
            compared, given = self._numbers(columns, readings)
        except InexactError:
            return None
        every = [True] * len(columns)
        numbers = zip(
            [(columns, row) for row in range(len(columns))],
            columns.ends_us.tolist(),
            compared,
            given,
            every if asked.may_all_begin else map(self._begins, columns.parts()),
            every if asked.leads is None else map(asked.leads, readings),
            strict=True,
        )
        return elements, [*starmap(PlainElement, numbers)]

    def _numbers(
        self, columns: RowElements, readings: _Readings
    ) -> tuple[Iterable[float], Iterable[float]]:
        """Return the numbers of elements that are compared, of the ones asked and of the given."""
        compared = self._neighbours.compared
        if compared is None:
            nothing = [0.0] * len(columns)
            return nothing, nothing
        if compared.read is not None:
            numbers = compared.read.numbers(columns.texts(compared.read.name))
            if numbers is not None:
                return numbers, numbers
        pairs = [compared.of_element(each) for each in readings]
        return [asked for asked, _ in pairs], [given for _, given in pairs]

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
        assert part.element is not None
        return _alone(part.element)

    def _element(self, part: Part, alone: RunReading) -> PlainElement:
        asked = self._neighbours
        compared = asked.compared
        numbers = (0.0, 0.0) if compared is None else compared.of_element(alone)
        return PlainElement(
            part,
            part.end_us,
            *numbers,
            asked.may_all_begin or self._begins(part),
            asked.leads is None or asked.leads(alone),
        )

    def _begins(self, part: Part) -> bool:
        step = self._conditions.step(Head(0, None, (), {}, 0), part, PartRow({}))
        return self._conditions.each(step) and self._conditions.first(step)


class _Readings:
    """Elements in columns as conditions read them, made where they are asked for."""

    def __init__(self, columns: RowElements, known: list[RunReading] | None = None) -> None:
        self._columns = columns
        self._known = known

    def __iter__(self) -> Iterator[RunReading]:
        if self._known is None:
            self._known = [_alone(each) for each in self._columns.elements()]
        return iter(self._known)

    def take(self, some: Ints) -> _Readings:
        """Return some of them, in this order."""
        known = [*self]
        return _Readings(self._columns, [known[row] for row in some.tolist()])


def _alone(element: RunElement) -> RunReading:
    """Return an element as conditions read it, also as the one before."""
    run = RunAtHand((element,), element, {})
    return RunReading({}, element.start_us, element.end_us, run)
