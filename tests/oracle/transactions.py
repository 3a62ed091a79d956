"""Statements that use tables, by serial evaluation: section 19.

Everything is asked anew for each transaction, in the order (position, end): all queries over all
documents and what has been published so far.  So nothing is assumed of what depends on what.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial

from broker.matching.match import Match
from oracle.conditions import Facts
from oracle.rows import Rows, act
from xscl.query import Query

__all__ = ["Found", "InForce", "Order", "Possible", "Sweep", "graces", "run"]

Order = tuple[int, int]
"""The position and the end of a transaction."""


@dataclass(frozen=True, slots=True)
class InForce:
    """A query under one assignment, while it is registered: section 7.

    It sees documents above `point`; the newest document of a match is in (`after`, `through`].
    """

    query: Query
    parameters: Mapping[str, str | float]
    point: int = 0
    after: int = 0
    through: int = 1 << 62

    def has(self, match: Match) -> bool:
        """Return whether a match was found while the query was in force."""
        return self.after < match.position <= self.through


@dataclass(frozen=True, slots=True)
class Found:
    """A match, and where it stands: its position's document and depth, and its `W`.

    `sure` is its confidence.
    """

    match: Match
    depth: int
    arrival_us: int
    watermark_us: int
    sure: Fraction = Fraction(1)


@dataclass(frozen=True, slots=True)
class Possible:
    """A match but for what it asks tables.

    `name` is the id of that match.  `ask` returns the match that it is beside some rows, with the
    facts of its tuples, or None.
    """

    one: InForce
    order: Order
    name: str
    ask: Callable[[Rows], tuple[Found, list[Facts]] | None]


@dataclass
class Sweep:
    """One evaluation of everything: what is certain, and what waits for tables."""

    found: dict[str, Match] = field(default_factory=dict)
    possible: list[Possible] = field(default_factory=list)


def run(sweep: Callable[[Callable[[Possible], Found | None]], Sweep], rows: Rows) -> list[Match]:
    """Return all matches.

    `sweep` evaluates all queries; it is told which possible matches are matches, publishes those,
    and returns them all.
    """
    accepted: dict[str, Found] = {}
    last: Order = (-1, 0)
    while True:
        known = partial(_known, accepted=accepted, last=last)
        swept = sweep(known)
        pending = [each.order for each in swept.possible if each.order > last]
        if not pending:
            matches = {**swept.found, **{name: each.match for name, each in accepted.items()}}
            return sorted(matches.values(), key=lambda m: (m.position, m.query, m.id))
        acting = _Acting(min(pending), rows.copy(), known)
        sweep(acting.ask)
        for possible, found, facts in acting.in_order():
            act(possible.one.query, facts, rows)
            if possible.one.query.table is None:
                accepted[found.match.id] = found
        last = acting.order


def _known(possible: Possible, accepted: Mapping[str, Found], last: Order) -> Found | None:
    """Return what a possible match of an earlier transaction was found to be."""
    return accepted.get(possible.name) if possible.order <= last else None


class _Acting:
    """The matches of one transaction, which sees the rows `before` it."""

    def __init__(
        self, order: Order, before: Rows, known: Callable[[Possible], Found | None]
    ) -> None:
        self.order = order
        self._before = before
        self._known = known
        self._found: dict[str, tuple[Possible, Found, list[Facts]]] = {}

    def ask(self, possible: Possible) -> Found | None:
        """Return the match that a possible one is, if it is one, and note it."""
        if possible.order != self.order:
            return self._known(possible)
        asked = possible.ask(self._before)
        if asked is None or not possible.one.has(asked[0].match):
            return None
        self._found.setdefault(asked[0].match.id, (possible, *asked))
        return asked[0]

    def in_order(self) -> Iterator[tuple[Possible, Found, list[Facts]]]:
        """Yield the matches as they act."""

        def rank(each: tuple[Possible, Found, list[Facts]]) -> tuple[int, str, str]:
            match = each[1].match
            newest = max(document.docid for document in match.documents)
            return newest, match.query, match.id

        yield from sorted(self._found.values(), key=rank)


def graces(queries: Sequence[Query], lateness_us: int) -> dict[str, int]:
    """Return the grace of each query, by its id: sections 12 and 19."""
    found = {
        query.id: 0
        if query.table is not None
        else lateness_us
        if query.grace is None
        else min(query.grace, lateness_us)
        for query in queries
    }
    while True:
        before = dict(found)
        for query in queries:
            read = {block.stream for block in query.blocks}
            tables = {use.table for use in query.tables}
            for other in queries:
                shares = not tables.isdisjoint(use.table for use in other.tables)
                if other.publish in read or shares:
                    found[query.id] = max(found[query.id], found[other.id])
        if found == before:
            return found
