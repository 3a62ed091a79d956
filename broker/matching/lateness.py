"""Which documents come too late to be joined with anything, by the streams that they are on.

With an operator of window `T`, `W` the newest event time so far and `A` the allowed lateness, a
document that comes later joins an earlier one only if that ends at `W - T - A` or after it
(section 1.1 of the semantics).  So a document on a stream that the operator reads

    is joined with a later one        only if it ends at      W - A - T    or after it
    is joined with an earlier one     only if it ends at      W - A - 2T   or after it, as the left
                                                              side, or as either one of a JOIN
                                                              W - A - T    or after it, as the right
                                                              side of FOLLOWED BY

The largest of these spans, `T` or `2T`, over all blocks that read a stream is the stream's
**span**: what ends before `W - A - span` is in no match of an operator, now or later.  Each match
of a nested query holds a tuple of the operator next to the block, so only that one counts.  What
a query of one block publishes is joined in its stead.

Where something is decided nothing is too late: what comes late is judged at once, by what is known
then.  Nor is it where something is repeated: how late an element may be, its whole run says.

But the time of a document may have been **settled** before it came, for the grace of a query that
reads its stream: then the query may have answered without it.

Invariant: what is too late is in no match of a query with an operator, and decides of none.  That
some document is not too late promises nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from broker.matching.queries.member import Name, name_of
from broker.matching.queries.registration import Assignment, RegisteredQuery, SetChange
from joins import Durations, Largest
from templates.plain import plain_statements
from xscl.query import INFINITE_US, Operator, OperatorKind, Query, Window

__all__ = ["Lateness"]

_EVERY_STREAM = "*"

_Span = tuple[str, int]
"""A stream, and a span in microseconds."""


class _Side(NamedTuple):
    """A block beside an operator: its stream, and how many times a window its span is.

    The window is a length in microseconds, or a parameter that has it, by name.
    """

    stream: str
    times: int
    window: int | str


@dataclass(slots=True)
class _AskedSpans:
    """What a query asks: the spans under each of its assignments, by name, and its grace.

    Assignments with equal windows have the same spans; those of the last one are `known`.
    """

    query: Query
    sides: Sequence[_Side]
    spans: dict[Name, tuple[_Span, ...]] = field(default_factory=dict)
    grace_us: int = 0
    known: tuple[_Span, ...] = ()

    @classmethod
    def of(cls, query: Query) -> _AskedSpans:
        """Return what a query without assignments asks."""
        return cls(query, [*_sides(query)])

    def under(self, values: Assignment) -> tuple[_Span, ...]:
        """Return the span of each block that stands beside an operator, under an assignment."""
        spans: list[_Span] = []
        for stream, times, window in self.sides:
            window_us = int(values[window]) if isinstance(window, str) else window
            spans.append((stream, min(times * window_us, INFINITE_US)))
        if self.known != (found := tuple(spans)):
            self.known = found
        return self.known


class Lateness:
    """Which documents are too late, as queries come and go.

    A change costs what it changes, however many queries there are.  For one thread at a time.
    """

    def __init__(self, lateness_us: int) -> None:
        self._lateness_us = lateness_us
        self._asked: dict[str, _AskedSpans] = {}
        self._spans: dict[str, Durations] = defaultdict(Durations)
        # The queries of one block that publish: what their stream's documents become.
        self._passed_on: dict[str, dict[str, str]] = defaultdict(dict)
        self._known: dict[str, int | None] = {}
        self._graces: dict[str, Largest[int]] = defaultdict(Largest)
        self._published_graces: dict[str, Largest[int]] = defaultdict(Largest)
        self._shortest: dict[str, int | None] = {}

    def follow(self, change: SetChange) -> None:
        """Take over a change of the queries, or of their assignments."""
        self._known.clear()
        self._shortest.clear()
        for query_id in (*change.gone, *(each.query.id for each in change.queries)):
            self._remove(query_id)
        for registered in change.queries:
            self._add(registered)
        for query_id, values, point in change.assigned:
            if query_id in self._asked:
                self._assign(self._asked[query_id], values, is_wanted=point is not None)

    @property
    def is_decided(self) -> bool:
        """Whether any query decides something, for which time has to pass."""
        return bool(self._graces)

    def is_too_late(self, stream: str, end_us: int, watermark_us: int) -> bool:
        """Return whether a document that ends then is in no match of an operator.

        `watermark_us` is `W` before it.  On a stream that no operator reads nothing is too late.
        """
        bound_us = self.bound_us(stream, watermark_us)
        return bound_us is not None and end_us < bound_us

    def is_settled(self, stream: str, end_us: int, watermark_us: int) -> bool:
        """Return whether the time of a document was settled before it came.

        So it was for the shortest grace of the queries that read the stream and decide.
        """
        if stream not in self._shortest:
            names = [name for name in (stream, _EVERY_STREAM) if name in self._graces]
            graces = [-self._graces[name].largest for name in names]
            self._shortest[stream] = min(graces, default=None)
        grace_us = self._shortest[stream]
        return grace_us is not None and watermark_us > end_us + grace_us

    def bound_us(self, stream: str, watermark_us: int) -> int | None:
        """Return the earliest end of a document that is not too late; None where none is."""
        if stream not in self._known:
            self._known[stream] = self._span_us(stream)
        span_us = self._known[stream]
        if span_us is None or span_us >= INFINITE_US:
            return None
        return watermark_us - self._lateness_us - span_us

    def _span_us(self, stream: str) -> int | None:
        names = (stream, _EVERY_STREAM)
        spans = [self._spans[name].longest for name in names if name in self._spans]
        for name in names:
            later = (self._span_us(to) for to in self._passed_on.get(name, {}).values())
            spans += [span for span in later if span is not None]
        return max(spans, default=None)

    def _add(self, registered: RegisteredQuery) -> None:
        query = registered.query
        asked = self._asked[query.id] = _AskedSpans.of(query)
        if query.publish is not None:
            for stream in _passed_on(query):
                self._passed_on[stream][query.id] = query.publish
        for values, _ in registered.pointed():
            self._assign(asked, values, is_wanted=True)
        if not query.is_ordered:
            return
        asked.grace_us = self._grace_us(query)
        for stream in {block.stream for block in query.blocks}:
            self._graces[stream].add(-asked.grace_us)
        if query.publish is not None:
            self._published_graces[query.publish].add(asked.grace_us)

    def _grace_us(self, query: Query) -> int:
        """Return what a query says, and at least the grace of what publishes its streams."""
        own_us = self._lateness_us if query.grace is None else query.grace
        read = {block.stream for block in query.blocks} & self._published_graces.keys()
        graces = (self._published_graces[stream].largest for stream in read)
        return max(min(own_us, self._lateness_us), *graces, 0)

    def _remove(self, query_id: str) -> None:
        asked = self._asked.pop(query_id, None)
        if asked is None:
            return
        for spans in asked.spans.values():
            self._forget(spans)
        for stream in _passed_on(asked.query):
            self._passed_on[stream].pop(query_id, None)
        if not asked.query.is_ordered:
            return
        for stream in {block.stream for block in asked.query.blocks}:
            _take_out(self._graces, stream, -asked.grace_us)
        if asked.query.publish is not None:
            _take_out(self._published_graces, asked.query.publish, asked.grace_us)

    def _assign(self, asked: _AskedSpans, values: Assignment, *, is_wanted: bool) -> None:
        name = name_of(values)
        self._forget(asked.spans.pop(name, ()))
        if not is_wanted:
            return
        asked.spans[name] = asked.under(values)
        for stream, span_us in asked.spans[name]:
            self._spans[stream].add(span_us)

    def _forget(self, spans: Sequence[_Span]) -> None:
        for stream, span_us in spans:
            self._spans[stream].remove(span_us)
            if not self._spans[stream]:
                del self._spans[stream]


def _take_out(graces: dict[str, Largest[int]], stream: str, grace_us: int) -> None:
    graces[stream].remove(grace_us)
    if not graces[stream]:
        del graces[stream]


def _passed_on(query: Query) -> set[str]:
    """Return the streams whose documents are matches by themselves."""
    return set() if any(query.operators()) else {block.stream for block in query.blocks}


def _sides(query: Query) -> Iterator[_Side]:
    """Yield each block that stands beside an operator.

    Where something is decided, or repeated, no document is too late.
    """
    if query.is_ordered or query.has_runs:
        yield from (_Side(block.stream, 1, INFINITE_US) for block in query.blocks)
        return
    for operator in (each for plain in plain_statements(query) for each in plain.operators()):
        window = operator.window
        length = window.length_us if isinstance(window, Window) else window.name
        is_ordered = operator.kind is OperatorKind.FOLLOWED_BY
        sides = ((operator.left, 2), (operator.right, 1 if is_ordered else 2))
        for side, windows in sides:
            if not isinstance(side, Operator):
                assert isinstance(side, int)  # no other is left in a plain statement
                yield _Side(query.blocks[side].stream, windows, length)
