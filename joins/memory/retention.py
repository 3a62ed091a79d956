"""The retention of instances: the widest window among the classes that an instance can fill.

The witness shape of an instance decides which classes it can fill: on one side of the class, the
shape must bind all variables of the value joins, or all variables where there is no value join.  So
a shape has a **retention**: an instance is of use until its end lies further than that behind the
horizon, which is the newest event time less the allowed lateness (section 1.1 of the semantics).  A
query with a wide window over a rare stream keeps only instances that it can join there.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Set

import numpy as np

from joins.memory.durations import UNBOUNDED, Durations
from joins.memory.shapes import Shapes
from joins.memory.slots import Ints, Layouts

__all__ = ["LayoutRetention", "Retention", "needed_from"]

Variables = frozenset[int]

_Side = tuple[int, ...]
"""Variables in order: they take a quarter of the memory of a set."""

_Asked = dict[int, dict[_Side, Durations]]
"""What a shape must bind, under one of its variables, with the durations of all who ask."""

_VARIABLE_BITS = 32

_MOVED_MAX = 100
"""Classes whose windows have changed and wait for a look: each takes a kilobyte and a half."""

_BOUND_MIN = 1 << 14
"""Variables of shapes that may be there several times in any case."""


class Retention:
    """The retention of each witness shape, as classes and shapes come and go.

    `version` grows with every change, and `shortened` counts how often a retention may have become
    shorter.  What a class asks for is looked at when somebody reads, so that a million windows of
    it, each wider than those before, are one change.
    """

    def __init__(self, shapes: Shapes) -> None:
        self._asked: _Asked = defaultdict(dict)
        self._shapes = shapes
        self._by_shape: dict[int, int | None] = {}
        self._bound = _Bound()
        # What is kept for longer since somebody looked, and variables of what is kept for less.
        self._longer: _Asked = defaultdict(dict)
        self._shorter: set[int] = set()
        self._watchers: list[Callable[[Set[int]], None]] = []
        # Durations that ask for sides, and for how long they did when somebody last looked.
        self._moved: dict[Durations, tuple[Set[_Side], int | None]] = {}
        self._version = 0
        self._shortened = 0
        shapes.watch(self._forget)

    def watch(self, forget: Callable[[Set[int]], None]) -> None:
        """Have `forget` hear of shapes whose retention may have changed, when that is looked at."""
        self._watchers.append(forget)

    @property
    def version(self) -> int:
        """A number that grows with every change."""
        self._settle()
        return self._version

    @property
    def shortened(self) -> int:
        """How often a retention may have become shorter."""
        self._settle()
        return self._shortened

    def ask(
        self, sides: Callable[[], Set[_Side]], durations: Durations, before_us: int | None
    ) -> None:
        """Keep what can fill some sides for the longest of some durations, if there are any.

        Before, that was `before_us`; it may change again until somebody looks.
        """
        if durations not in self._moved:
            if len(self._moved) >= _MOVED_MAX:
                self._settle()
            self._moved[durations] = sides(), before_us

    def _settle(self) -> None:
        """Bring everything up to date with the durations that have changed."""
        moved, self._moved = self._moved, {}
        for durations, (sides, before_us) in moved.items():
            longest_us = durations.any_largest
            if longest_us == before_us:
                continue
            if longest_us is not None:
                self.add(sides, longest_us)
            if before_us is not None:
                self.remove(sides, before_us)

    def add(self, sides: Set[_Side], retention_us: int) -> None:
        """Keep instances that can fill one of a class's sides for a duration."""
        for variables in sides:
            first = variables[0]
            asked = self._asked[first]
            durations, longest_us = asked.get(variables), None
            if durations is None:
                durations = asked[variables] = Durations(retention_us)
            else:
                longest_us = durations.any_largest
                durations.add(retention_us)
            if longest_us is None or retention_us > longest_us:
                self._version += 1
                if self._by_shape:  # else no shape is known that is kept for longer
                    self._longer[first][variables] = durations

    def remove(self, sides: Set[_Side], retention_us: int) -> None:
        """Undo one `add`."""
        for variables in sides:
            first = variables[0]
            durations = self._asked[first][variables]
            durations.remove(retention_us)
            if not durations:
                del self._asked[first][variables]
                if not self._asked[first]:
                    del self._asked[first]
            if not durations or retention_us > durations.longest:
                self._shorter.add(first)
                self._version += 1
                self._shortened += 1

    def _forget(self, shapes: Set[int]) -> None:
        for shape in shapes:
            self._by_shape.pop(shape, None)
        self._bound.keep(self._by_shape.keys())

    def of(self, shape: int) -> int | None:
        """Return a shape's retention in microseconds, None where nobody asks."""
        [retention_us] = self.of_each([shape])
        return retention_us

    def of_each(self, shapes: Iterable[int]) -> list[int | None]:
        """Return the retention of each of some shapes."""
        self.follow()
        known = self._by_shape
        return [known[shape] if shape in known else self._learn(shape) for shape in shapes]

    def needed_from(self, shape: int, horizon_us: int) -> int:
        """Return the end from which on instances of a shape are of use."""
        return needed_from(self.of(shape), horizon_us)

    def _learn(self, shape: int) -> int | None:
        bound = self._shapes[shape].variables
        retention_us = self._by_shape[shape] = _widest(self._asked, bound)
        self._bound.add(shape, bound)
        return retention_us

    def follow(self) -> None:
        """Forget the retentions that may have become shorter; those that are longer are known."""
        if self._moved:
            self._settle()
        if not self._longer and not self._shorter:
            return
        changed = self._by_shape.keys() & self._bound.shapes(self._shorter)
        for shape in changed:
            del self._by_shape[shape]
        for shape in self._by_shape.keys() & self._bound.shapes(self._longer):
            longest_us = _widest(self._longer, self._shapes[shape].variables)
            known_us = self._by_shape[shape]
            if longest_us is not None and (known_us is None or longest_us > known_us):
                self._by_shape[shape] = longest_us
                changed.add(shape)
        self._bound.keep(self._by_shape.keys())
        for forget in self._watchers:
            forget(changed)
        self._longer.clear()
        self._shorter.clear()

    def retaining(self, shape: int) -> list[_Side]:
        """Return the sides that ask for the whole retention of a shape."""
        bound, retention_us = self._shapes[shape].variables, self.of(shape)
        return [
            variables
            for first in self._asked.keys() & bound
            for variables, durations in self._asked[first].items()
            if bound.issuperset(variables) and durations.longest == retention_us
        ]

    def widest(self) -> int | None:
        """Return the longest retention that a shape can have, None where nobody asks."""
        self._settle()
        asked = (
            durations.longest for sides in self._asked.values() for durations in sides.values()
        )
        return max(asked, default=None)

    def of_shapes(self) -> dict[int, int | None]:
        """Return the retentions of all shapes."""
        return dict(zip(self._shapes, self.of_each(self._shapes), strict=True))


def needed_from(retention_us: int | None, horizon_us: int) -> int:
    """Return the end from which on instances with a retention are of use: none where it is None."""
    return UNBOUNDED if retention_us is None else horizon_us - retention_us


def _widest(asked: _Asked, bound: Variables) -> int | None:
    """Return the longest duration that is asked for of what a shape binds, None where none is."""
    durations = [
        durations.longest
        for first in (bound if len(bound) < len(asked) else asked.keys() & bound)
        if (sides := asked.get(first))
        for variables, durations in sides.items()
        if bound.issuperset(variables)
    ]
    return max(durations, default=None)


class _Bound:
    """The variables of shapes, in columns: after a change it is looked which have one of some.

    A shape may be there several times, and one that is forgotten for a while.
    """

    def __init__(self) -> None:
        self._variables = array("q")
        self._shapes = array("q")
        self._many = _BOUND_MIN

    def add(self, shape: int, variables: Collection[int]) -> None:
        """Add a shape."""
        self._variables.extend(variables)
        self._shapes.extend([shape] * len(variables))

    def shapes(self, variables: Collection[int]) -> set[int]:
        """Return the shapes with some of these variables."""
        if not self._shapes:
            return set()
        asked = np.fromiter(variables, np.int64, len(variables))
        rows = np.flatnonzero(np.isin(np.frombuffer(self._variables, np.int64), asked))
        found: list[int] = np.frombuffer(self._shapes, np.int64)[rows].tolist()
        return set(found)

    def keep(self, shapes: Collection[int]) -> None:
        """Forget all shapes but some, where that is worth it; each is there once behind it."""
        if len(self._shapes) <= self._many:
            return
        of_entries = np.frombuffer(self._shapes, np.int64)
        variables = np.frombuffer(self._variables, np.int64)
        kept = np.isin(of_entries, np.fromiter(shapes, np.int64, len(shapes)))
        codes = np.unique(of_entries[kept] << _VARIABLE_BITS | variables[kept])
        columns = codes >> _VARIABLE_BITS, codes & (1 << _VARIABLE_BITS) - 1
        self._shapes, self._variables = (array("q", column.tobytes()) for column in columns)
        self._many = max(_BOUND_MIN, 2 * len(self._shapes))


class LayoutRetention:
    """The retentions of layouts, by number, in arrays."""

    def __init__(self, retention: Retention, layouts: Layouts) -> None:
        self._retention = retention
        self._layouts = layouts
        self._version = -1
        self._known = np.zeros(0, np.bool_)
        self._is_asked = np.zeros(0, np.bool_)
        self._of = np.zeros(0, np.int64)
        self._shape_of = np.zeros(0, np.int64)
        retention.watch(self._forget)

    def _forget(self, shapes: Set[int]) -> None:
        """Forget what is known of the layouts of some shapes."""
        self._known &= ~np.isin(self._shape_of, list(shapes))

    @property
    def shortened(self) -> int:
        """How often a retention may have become shorter."""
        return self._retention.shortened

    def needed_from(self, layouts: Ints, horizon_us: int) -> Ints:
        """Return the end from which on instances of each of some layouts are of use."""
        self._retention.follow()
        if self._version != self._layouts.version:
            self._version = self._layouts.version
            self._known[:] = False
        size = len(self._layouts.layouts)
        if len(self._known) < size:
            more = 2 * size - len(self._known)
            self._known = np.append(self._known, np.zeros(more, np.bool_))
            self._is_asked = np.append(self._is_asked, np.zeros(more, np.bool_))
            self._of = np.append(self._of, np.zeros(more, np.int64))
            self._shape_of = np.append(self._shape_of, np.zeros(more, np.int64))
        unknown = layouts[~self._known[layouts]]
        if len(unknown):
            self._learn(np.unique(unknown))
        return np.where(self._is_asked[layouts], horizon_us - self._of[layouts], UNBOUNDED)

    def _learn(self, layouts: Ints) -> None:
        shapes = [self._layouts.layouts[layout].shape for layout in layouts.tolist()]
        self._shape_of[layouts] = shapes
        retentions = self._retention.of_each(shapes)
        self._is_asked[layouts] = [each is not None for each in retentions]
        self._of[layouts] = [each or 0 for each in retentions]
        self._known[layouts] = True
