"""What a query hands on between its operators, for all its assignments together.

To the operators above, assignments that differ in bounds alone (windows, thresholds, registration
points) ask for one stream: what the loosest of each bound admits, each by itself.  That lets
through tuples that no single assignment admits; its root has the whole box, and refuses them.  So a
tuple is handed on and counted once for a query, whatever its assignments, and a million of them
cost it what their different strings do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import isnan
from typing import Any, Protocol

from broker.matching.boxes.boxreader import box_of, strings_of
from broker.matching.boxes.exclusions import loosest_excluded
from broker.matching.boxes.index import Box
from broker.matching.uses import Strings, Topic, Use
from joins import Largest
from templates.clause import Clause
from templates.founddata import parameters_read, says_sets
from xscl.query import INFINITE_US, Query

__all__ = ["HandedOn"]

_NO_VALUES: Mapping[str, Any] = {}

Asked = Box | Strings


class UsesOfClasses(Protocol):
    """Where uses of inner operators come and go."""

    def enter(
        self, member: int, clause: Clause, window_us: int, topic: Topic, kept_us: int, box: Asked
    ) -> Use:
        """Return a use of a class by a member of the set, which has a number."""

    def leave(self, uses: Sequence[Use]) -> None:
        """Undo one `enter` for each of some uses."""


class _Loosest:
    """The largest number of each column of rows, which come and go."""

    __slots__ = ("_columns",)

    def __init__(self, row: tuple[float, ...]) -> None:
        self._columns: Sequence[Largest[float]] = [Largest() for _ in row]

    def __bool__(self) -> bool:
        return self._columns[0].any_largest is not None

    def add(self, row: tuple[float, ...]) -> None:
        """Count a row."""
        for column, number in zip(self._columns, row, strict=True):
            column.add(number)

    def remove(self, row: tuple[float, ...]) -> None:
        """Undo one `add`."""
        for column, number in zip(self._columns, row, strict=True):
            column.remove(number)

    @property
    def row(self) -> tuple[float, ...]:
        """The largest numbers; there must be a row."""
        return tuple([column.largest for column in self._columns])


class _Shared:
    """The bounds of the assignments with one box's strings, and the use that stands for them.

    What they exclude is counted, too: where they do not exclude the same, nothing is excluded.
    """

    __slots__ = ("_bounds", "_excluded", "box", "clause", "use")

    def __init__(self, use: Use) -> None:
        self.clause = use.clause
        self.box = use.asked
        self.use = use
        row = _row(self.box, use.kept_us)
        self._bounds = _Loosest(row)
        self._excluded = Counter[tuple[Strings, Strings]]()
        self.add(self.box, use.kept_us)

    def __bool__(self) -> bool:
        return bool(self._bounds)

    def add(self, box: Box, kept_us: int) -> None:
        """Count the bounds of an assignment."""
        self._bounds.add(_row(box, kept_us))
        if box.excluded or box.taken:
            self._excluded[box.excluded, box.taken] += 1

    def remove(self, box: Box, kept_us: int) -> None:
        """Undo one `add`."""
        self._bounds.remove(_row(box, kept_us))
        if box.excluded or box.taken:
            excluded = box.excluded, box.taken
            self._excluded[excluded] -= 1
            if not self._excluded[excluded]:
                del self._excluded[excluded]

    def loosest(self) -> tuple[Box, int]:
        """Return the box of all of them, and for how long instances are kept."""
        window_us, kept_us, negated, *bounds = self._bounds.row
        own, point = self.box, -int(negated)
        if self._excluded:
            excluded = loosest_excluded(excluded for excluded, _ in self._excluded)
            taken = loosest_excluded(taken for _, taken in self._excluded)
            own = own._replace(excluded=excluded, taken=taken)
        if (own.window_us, own.point, *own.bounds) != (window_us, point, *bounds):
            own = own._replace(bounds=tuple(bounds), window_us=int(window_us), point=point)
        return own, int(kept_us)


class HandedOn:
    """The uses of a query's inner operators; the query is the member of a number.

    Assignments come and go by `add` and `remove`, many at a time; behind them stands one `settle`.
    The first with some strings is a use at once, and nothing more while there is no other.
    """

    __slots__ = (
        "_changed",
        "_classes",
        "_kept_us",
        "_leaving",
        "_member",
        "_query",
        "_shared",
        "_topic",
    )

    def __init__(self, query: Query, member: int, classes: UsesOfClasses) -> None:
        self._query = query
        self._member = member
        self._classes = classes
        # By streams, which alternatives may have together, and by the strings that boxes ask for.
        self._shared: dict[str, dict[tuple[str, ...], Use | _Shared]] = {}
        # None where nothing waits, as mostly.
        self._changed: dict[_Shared, None] | None = None
        self._leaving: list[Use] | None = None
        # Of a million strings the uses mostly begin at one point, and keep for one time.
        self._topic: Topic | None = None
        self._kept_us = 0

    def uses(self) -> Iterator[Use]:
        """Yield the uses."""
        for by_strings in self._shared.values():
            for found in by_strings.values():
                yield found.use if isinstance(found, _Shared) else found

    def add(self, clause: Clause, values: Mapping[str, Any], point: int, above_us: int) -> None:
        """Add an assignment's use of a clause; windows above it add up to `above_us`."""
        by_strings = self._shared.get(clause.stream)
        if by_strings is None:
            by_strings = self._shared[clause.stream] = {}
        window_us = clause.window_under(values)
        kept_us = _kept_us(window_us, above_us)
        strings = strings_of(clause, values)
        if strings is not None and strings not in by_strings:
            # Of a million assignments mostly each is the first with its strings.
            given = _given(clause, values)
            by_strings[strings] = self._use(clause, strings, window_us, point, kept_us, given)
            return
        box = _box(clause, values, window_us, point)
        if box.bounds and _is_empty(box):
            if not by_strings:
                del self._shared[clause.stream]
            return
        finding = box.finding
        found = by_strings.get(finding)
        if found is None:
            by_strings[finding] = self._use_of(clause, box, kept_us, values)
            return
        if not isinstance(found, _Shared):
            found = by_strings[finding] = _Shared(found)
        found.add(box, kept_us)
        self._note(found)

    def remove(self, clause: Clause, values: Mapping[str, Any], point: int, above_us: int) -> None:
        """Undo one `add`."""
        box = _box(clause, values, clause.window_under(values), point)
        if box.bounds and _is_empty(box):
            return
        by_strings = self._shared[clause.stream]
        found = by_strings[box.finding]
        if isinstance(found, _Shared):
            found.remove(box, _kept_us(box.window_us, above_us))
            self._note(found)
            if found:
                return
        else:
            if self._leaving is None:
                self._leaving = []
            self._leaving.append(found)
        del by_strings[box.finding]
        if not by_strings:
            del self._shared[clause.stream]

    def clear(self) -> list[Use]:
        """Forget all assignments; return the uses that are to be taken away."""
        changed, leaving = self._changed or {}, self._leaving or []
        uses = [*self.uses(), *(shared.use for shared in changed), *leaving]
        self._shared, self._changed, self._leaving = {}, None, None
        return list(dict.fromkeys(uses))

    def _note(self, changed: _Shared) -> None:
        if self._changed is None:
            self._changed = {}
        self._changed[changed] = None

    def settle(self) -> None:
        """Have the uses that all assignments come to by now.

        What is asked for again, by others, has been asked for all the while.
        """
        if self._changed is None and self._leaving is None:
            return
        changed, self._changed = self._changed, None
        leaving, self._leaving = self._leaving or [], None
        for shared in changed or ():
            if not shared:
                leaving.append(shared.use)
                continue
            before = shared.use
            box, kept_us = shared.loosest()
            if before.asked != box or before.kept_us != kept_us:
                given = before.topic.parameters
                shared.use = self._use_of(shared.clause, box, kept_us, given)
                leaving.append(before)
        if leaving:
            self._classes.leave(leaving)

    def _use_of(self, clause: Clause, box: Box, kept_us: int, values: Mapping[str, Any]) -> Use:
        # The window and the point are the use's.
        asks_more = box.bounds or box.excluded or box.taken or box.data
        asked = box if asks_more else box.equal
        given = _given(clause, values)
        return self._use(clause, asked, box.window_us, box.point, kept_us, given)

    def _use(
        self,
        clause: Clause,
        asked: Asked,
        window_us: int,
        point: int,
        kept_us: int,
        given: Mapping[str, Any] = _NO_VALUES,
    ) -> Use:
        topic = self._topic
        if topic is None or topic.registration_point != point:
            topic = self._topic = Topic(self._query, _NO_VALUES, point)
        if given:
            topic = replace(topic, parameters=given)
        if kept_us == self._kept_us:
            kept_us = self._kept_us
        self._kept_us = kept_us
        use = self._classes.enter(self._member, clause, window_us, topic, kept_us, asked)
        use.beside = self._shared[clause.stream]
        return use


def _given(clause: Clause, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a clause's tuples are asked for, which all who ask with its strings give."""
    read = parameters_read(clause)
    return {name: values[name] for name in read} if read else _NO_VALUES


def _kept_us(window_us: int, above_us: int) -> int:
    return min(INFINITE_US, window_us + above_us)


def _row(box: Box, kept_us: int) -> tuple[float, ...]:
    """Return the bounds of an assignment: how long instances are kept is one of them."""
    return box.window_us, kept_us, -box.point, *box.bounds


def _box(clause: Clause, values: Mapping[str, Any], window_us: int, point: int) -> Box:
    """Return what is asked under an assignment whatever else is asked with its strings.

    What is taken for one of them is not for another: the root says, unless tuples do.
    """
    box = box_of(clause, values, window_us, point)
    return box if not box.taken or says_sets(clause) else box._replace(taken=())


def _is_empty(box: Box) -> bool:
    """Return whether nothing is in a box, as nothing is below what is no number."""
    return any(map(isnan, box.bounds))
