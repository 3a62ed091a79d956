"""Registered queries as an engine sees them, and changes of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xscl.query import Query

__all__ = ["NOTHING", "Assignment", "RegisteredQuery", "SetChange", "publishers_first"]

Assignment = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RegisteredQuery:
    """A query with its registration.

    It sees documents with a docid above `registration_point`.  A parameterised query has matches
    for each of its `assignments`, which are canonical (`xscl.assignment`); equal ones are one.
    `assignment_points` has a registration point for each assignment, unless it is empty.
    `revision` is the registry's number of this statement, `stated_at` that of the first of which it
    differs in pauses alone.  A query that was paused published nothing new from then on through
    document `paused_through`.
    """

    query: Query
    registration_point: int = 0
    assignments: tuple[Assignment, ...] = ()
    assignment_points: tuple[int, ...] = ()
    revision: int = 0
    stated_at: int = 0
    paused_through: int = 0

    def pointed(self) -> Iterator[tuple[Assignment, int]]:
        """Yield each assignment with its point; a query without parameters has the empty one."""
        if not self.query.parameters:
            yield {}, self.registration_point
            return
        least = self.registration_point
        points = self.assignment_points or (least,) * len(self.assignments)
        for values, point in zip(self.assignments, points, strict=True):
            yield values, point if point > least else least


@dataclass(frozen=True, slots=True)
class SetChange:
    """The queries and assignments that may have changed since a set was last brought up to date.

    `queries` are queries as they are now, with all their assignments; `gone` are ids of removed
    queries.  `assigned` are single assignments of other queries, each with its registration point,
    or None if it was removed.
    """

    queries: Sequence[RegisteredQuery] = ()
    gone: Collection[str] = ()
    assigned: Sequence[tuple[str, Assignment, int | None]] = ()


NOTHING = SetChange()
"""The change that changes nothing."""


def publishers_first(queries: Iterable[RegisteredQuery]) -> Iterator[RegisteredQuery]:
    """Yield every query after the publishers of the streams it reads."""
    waiting = list(queries)
    while waiting:
        unfinished = {r.query.publish for r in waiting if r.query.publish is not None}
        ready: list[RegisteredQuery] = []
        later: list[RegisteredQuery] = []
        for registered in waiting:
            is_ready = unfinished.isdisjoint(block.stream for block in registered.query.blocks)
            (ready if is_ready else later).append(registered)
        if not ready:
            raise ValueError("published streams form a cycle")
        yield from ready
        waiting = later
