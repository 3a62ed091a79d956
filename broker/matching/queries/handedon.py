"""What a query hands on between its operators, for all its assignments together.

To the operators above, assignments that differ in bounds alone (windows, thresholds, registration
points) ask for one stream: what the loosest of each bound admits, each by itself.  That lets
through tuples that no single assignment admits; its root has the whole box, and refuses them.  So a
tuple is handed on and counted once for a query, whatever its assignments, and a million of them
cost it what their different strings do.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import replace
from math import isnan
from typing import Any

from broker.matching.boxes.forms import box_of
from broker.matching.boxes.index import Box
from broker.matching.uses import Topic, Use
from joins import Largest
from templates.clause import Clause
from xscl.query import INFINITE_US, Query

__all__ = ["HandedOn"]

Enter = Callable[[Clause, int, Topic, int, Box], Use]


class _Shared:
    """The bounds of the assignments with one box's strings, and the use that stands for them."""

    def __init__(self, box: Box) -> None:
        self.box = box
        self.windows = Largest[int]()
        self.kept = Largest[int]()
        self.points = Largest[int]()
        self.bounds = [Largest[float]() for _ in box.bounds]
        self.use: Use | None = None

    def add(self, box: Box, kept_us: int) -> None:
        """Count the bounds of an assignment."""
        self.windows.add(box.window_us)
        self.kept.add(kept_us)
        self.points.add(-box.point)
        for largest, bound in zip(self.bounds, box.bounds, strict=True):
            largest.add(bound)

    def remove(self, box: Box, kept_us: int) -> None:
        """Undo one `add`."""
        self.windows.remove(box.window_us)
        self.kept.remove(kept_us)
        self.points.remove(-box.point)
        for largest, bound in zip(self.bounds, box.bounds, strict=True):
            largest.remove(bound)

    def loosest(self) -> Box:
        """Return the box of all of them."""
        bounds = tuple([each.largest for each in self.bounds])
        point = -self.points.largest
        windows_us = self.windows.largest
        # What is taken for one of them is not for another: the root says.
        return replace(self.box, bounds=bounds, window_us=windows_us, point=point, taken=())


class HandedOn:
    """The uses of a query's inner operators; `enter` makes a use, `leave` takes it away."""

    def __init__(self, query: Query, enter: Enter, leave: Callable[[Use], None]) -> None:
        self._query = query
        self._enter = enter
        self._leave = leave
        self._shared: dict[Hashable, _Shared] = {}

    def uses(self) -> Iterator[Use]:
        """Yield the uses."""
        for shared in self._shared.values():
            assert shared.use is not None
            yield shared.use

    def add(self, clause: Clause, values: Mapping[str, Any], point: int, above_us: int) -> None:
        """Add an assignment's use of a clause; windows above it add up to `above_us`."""
        box = box_of(clause, values, clause.window_under(values), point)
        if _is_empty(box):
            return
        shared = self._shared.setdefault(_key(clause, box), _Shared(box))
        shared.add(box, min(INFINITE_US, box.window_us + above_us))
        self._renew(shared, clause)

    def remove(self, clause: Clause, values: Mapping[str, Any], point: int, above_us: int) -> None:
        """Undo one `add`."""
        box = box_of(clause, values, clause.window_under(values), point)
        if _is_empty(box):
            return
        shared = self._shared[_key(clause, box)]
        shared.remove(box, min(INFINITE_US, box.window_us + above_us))
        if shared.windows:
            self._renew(shared, clause)
        else:
            del self._shared[_key(clause, box)]
            assert shared.use is not None
            self._leave(shared.use)

    def _renew(self, shared: _Shared, clause: Clause) -> None:
        before, box, kept_us = shared.use, shared.loosest(), shared.kept.largest
        if before is not None and before.box == box and before.kept_us == kept_us:
            return
        topic = Topic(self._query, {}, box.point)
        shared.use = self._enter(clause, box.window_us, topic, kept_us, box)
        # Last: what the new one asks for again has been asked for all the while.
        if before is not None:
            self._leave(before)


def _key(clause: Clause, box: Box) -> Hashable:
    # Alternatives that ask for one stream have a use of it together.
    return clause.stream, box.equal, box.excluded


def _is_empty(box: Box) -> bool:
    """Return whether nothing is in a box, as nothing is below what is no number."""
    return any(map(isnan, box.bounds))
