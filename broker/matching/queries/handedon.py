"""What a query hands on between its operators, for all its assignments together.

To the operators above, assignments that differ in bounds alone (windows, thresholds, registration
points) ask for one stream: what the loosest of each bound admits, each by itself.  That lets
through tuples that no single assignment admits; its root has the whole box, and refuses them.  So a
tuple is handed on and counted once for a query, whatever its assignments, and a million of them
cost it what their different strings do.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from math import isnan
from typing import Any

from broker.matching.boxes.forms import box_of
from broker.matching.boxes.index import Box
from broker.matching.uses import Topic, Use
from joins import Largest
from templates.clause import Clause
from xscl.query import INFINITE_US, Query

__all__ = ["HandedOn"]

_NO_VALUES: Mapping[str, Any] = {}

Enter = Callable[[Clause, int, Topic, int, Box], Use]


class _Loosest:
    """The largest number of each column of rows, which come and go; often there is one row."""

    __slots__ = ("_columns", "_only")

    def __init__(self) -> None:
        self._only: tuple[float, ...] | None = None
        self._columns: Sequence[Largest[float]] = ()

    def __bool__(self) -> bool:
        return self._only is not None or any(map(len, self._columns))

    def add(self, row: tuple[float, ...]) -> None:
        """Count a row."""
        if not self:
            self._only, self._columns = row, ()
            return
        rows = [row] if self._only is None else [self._only, row]
        self._columns = self._columns or [Largest() for _ in row]
        self._only = None
        for each in rows:
            for column, number in zip(self._columns, each, strict=True):
                column.add(number)

    def remove(self, row: tuple[float, ...]) -> None:
        """Undo one `add`."""
        self._only = None
        for column, number in zip(self._columns, row, strict=False):
            column.remove(number)

    @property
    def row(self) -> tuple[float, ...]:
        """The largest numbers; there must be a row."""
        return self._only or tuple([column.largest for column in self._columns])


class _Shared:
    """The bounds of the assignments with one box's strings, and the use that stands for them."""

    __slots__ = ("_bounds", "box", "clause", "use")

    def __init__(self, clause: Clause, box: Box) -> None:
        self.clause = clause
        self.box = box
        self.use: Use | None = None
        self._bounds = _Loosest()

    def __bool__(self) -> bool:
        return bool(self._bounds)

    def add(self, row: tuple[float, ...]) -> None:
        """Count the bounds of an assignment."""
        self._bounds.add(row)

    def remove(self, row: tuple[float, ...]) -> None:
        """Undo one `add`."""
        self._bounds.remove(row)

    def loosest(self) -> tuple[Box, int]:
        """Return the box of all of them, and for how long instances are kept."""
        window_us, kept_us, negated, *bounds = self._bounds.row
        own = self.box
        is_own = (own.window_us, -own.point, *own.bounds) == (window_us, negated, *bounds)
        if is_own and not own.taken:
            return own, int(kept_us)
        # What is taken for one of them is not for another: the root says.
        box = Box(
            self.box.equal,
            self.box.excluded,
            tuple(bounds),
            int(window_us),
            -int(negated),
        )
        return box, int(kept_us)


class HandedOn:
    """The uses of a query's inner operators; `enter` makes a use, `leave` takes some away.

    Assignments come and go by `add` and `remove`, many at a time; behind them stands one `settle`.
    """

    def __init__(self, query: Query, enter: Enter, leave: Callable[[Sequence[Use]], None]) -> None:
        self._query = query
        self._enter = enter
        self._leave = leave
        # By what boxes ask but strings, and by these.
        self._shared: dict[Hashable, dict[tuple[str, ...], _Shared]] = {}
        self._changed: dict[_Shared, None] = {}
        # Of a million strings the uses mostly begin at one point, and have the same bounds.
        self._topic: Topic | None = None
        self._row: tuple[float, ...] = ()

    def uses(self) -> Iterator[Use]:
        """Yield the uses."""
        for shared in self._all():
            assert shared.use is not None
            yield shared.use

    def _all(self) -> Iterator[_Shared]:
        for by_strings in self._shared.values():
            yield from by_strings.values()

    def add(self, clause: Clause, values: Mapping[str, Any], point: int, above_us: int) -> None:
        """Add an assignment's use of a clause; windows above it add up to `above_us`."""
        box = box_of(clause, values, clause.window_under(values), point)
        if _is_empty(box):
            return
        by_strings = self._shared.setdefault(_key(clause, box), {})
        shared = by_strings.get(box.equal)
        if shared is None:
            shared = by_strings[box.equal] = _Shared(clause, box)
        row = _row(box, above_us)
        if row != self._row:
            self._row = row
        shared.add(self._row)
        self._changed[shared] = None

    def remove(self, clause: Clause, values: Mapping[str, Any], point: int, above_us: int) -> None:
        """Undo one `add`."""
        box = box_of(clause, values, clause.window_under(values), point)
        if _is_empty(box):
            return
        key = _key(clause, box)
        by_strings = self._shared[key]
        shared = by_strings[box.equal]
        shared.remove(_row(box, above_us))
        self._changed[shared] = None
        if not shared:
            del by_strings[box.equal]
            if not by_strings:
                del self._shared[key]

    def clear(self) -> list[Use]:
        """Forget all assignments; return the uses that are to be taken away."""
        uses = [shared.use for shared in (*self._all(), *self._changed)]
        self._shared, self._changed = {}, {}
        return list({use: None for use in uses if use is not None})

    def settle(self) -> None:
        """Have the uses that all assignments come to by now.

        What is asked for again, by others, has been asked for all the while.
        """
        changed, self._changed = self._changed, {}
        for shared in changed:
            if shared:
                self._renew(shared)
        for shared in changed:
            if not shared and shared.use is not None:
                self._leave([shared.use])

    def _renew(self, shared: _Shared) -> None:
        before = shared.use
        box, kept_us = shared.loosest()
        if before is not None and before.box == box and before.kept_us == kept_us:
            return
        if self._topic is None or self._topic.registration_point != box.point:
            self._topic = Topic(self._query, _NO_VALUES, box.point)
        topic = self._topic
        shared.use = self._enter(shared.clause, box.window_us, topic, kept_us, box)
        if before is not None:
            self._leave([before])


def _key(clause: Clause, box: Box) -> Hashable:
    # Alternatives that ask for one stream have a use of it together.
    return clause.stream, box.excluded


def _row(box: Box, above_us: int) -> tuple[float, ...]:
    """Return the bounds of an assignment: how long instances are kept is one of them."""
    kept_us = min(INFINITE_US, box.window_us + above_us)
    return box.window_us, kept_us, -box.point, *box.bounds


def _is_empty(box: Box) -> bool:
    """Return whether nothing is in a box, as nothing is below what is no number."""
    return any(map(isnan, box.bounds))
