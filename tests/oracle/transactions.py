"""Statements that use tables, by serial evaluation: section 19.

Everything is asked anew for each transaction, in the order (position, end): all queries over all
documents and what has been published so far.  So nothing is assumed of what depends on what.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from broker.matching.match import Match
from oracle.found import Found
from oracle.operators import Rules
from oracle.outcomes import Acting, Decided, Judged
from oracle.rows import Rows, act
from xscl.query import Query

__all__ = ["Accept", "InForce", "Order", "Possible", "Statement", "Sweep", "graces", "run"]

Order = tuple[int, int]
"""The position and the end of a transaction."""


@dataclass(frozen=True, slots=True)
class InForce:
    """A query under one assignment, while it is registered: section 7.

    It sees documents above `point`; the newest document of a match is in (`after`, `through`].
    What it was `earlier`, before a pause or another point, has given counts for what it gives.
    """

    query: Query
    parameters: Mapping[str, str | float]
    point: int = 0
    after: int = 0
    through: int = 1 << 62
    earlier: InForce | None = None

    def has(self, match: Match) -> bool:
        """Return whether a match was found while the query was in force."""
        return self.is_at(match.position)

    def is_at(self, position: int) -> bool:
        """Return whether the query was in force at a position."""
        return self.after < position <= self.through

    def was_at(self, position: int) -> bool:
        """Return whether it was so then or earlier, behind the point that holds now."""
        earlier = self.earlier is not None and self.earlier.was_at(position)
        return position > self.point and (self.is_at(position) or earlier)


@dataclass(frozen=True, slots=True)
class Possible:
    """A match but for what it asks tables.

    `ask` returns the match that it is beside some rows, with the facts of its tuples, or None.
    """

    order: Order
    ask: Callable[[Rows], Decided | None]


Accept = Callable[["Statement", Sequence[Possible]], list[Found]]
"""Returns the matches that the possible ones of a statement are."""


@dataclass(eq=False)
class Statement:
    """A query that uses tables, under one assignment: what it has given in earlier transactions.

    `before` it is what it was `earlier`.
    """

    one: InForce
    rules: Rules
    before: Statement | None = None
    judged: Judged | None = None
    given: dict[Order, list[Found]] = field(default_factory=dict)

    def earlier(self) -> list[Found]:
        """Return what it has given."""
        return [found for some in self.given.values() for found in some]

    def give(self, order: Order, matches: Sequence[Decided], before: Rows) -> list[Acting]:
        """Return what it gives of the matches of a transaction, which sees the rows before it."""
        if not matches:
            return []
        if self.one.query.has_outcome:
            found = self._judged().judge(*order, matches, before)
        else:
            each_once = {each.found.match.id: each for each in reversed(matches)}
            found = [Acting.match(self.one.query, each) for each in each_once.values()]
        if self.one.query.table is None:
            self.given[order] = [each.found for each in found]
        return found

    def _judged(self) -> Judged:
        if self.judged is None:
            before = None if self.before is None else self.before._judged()
            self.judged = Judged.of(self.one.query, self.rules, self.one.point, before)
        return self.judged


@dataclass
class Sweep:
    """One evaluation of everything: what is certain, and what waits for tables."""

    found: dict[str, Match] = field(default_factory=dict)
    possible: list[Possible] = field(default_factory=list)


def run(
    sweep: Callable[[Accept], Sweep], statements: Sequence[Statement], rows: Rows
) -> list[Match]:
    """Return all matches.

    `sweep` evaluates all queries; it is told which possible matches are matches, publishes those,
    and returns them all.
    """
    last: Order = (-1, 0)
    while True:
        swept = sweep(lambda statement, possible: statement.earlier())
        pending = [each.order for each in swept.possible if each.order > last]
        if not pending:
            given = [found.match for each in statements for found in each.earlier()]
            matches = {**swept.found, **{match.id: match for match in given}}
            return sorted(matches.values(), key=lambda m: (m.position, m.query, m.id))
        last = min(pending)
        transaction = _Transaction(last, rows.copy())
        sweep(transaction.ask)
        for acting in transaction.in_order():
            act(acting.query, acting.facts, rows)


class _Transaction:
    """The matches of one transaction, which sees the rows `before` it."""

    def __init__(self, order: Order, before: Rows) -> None:
        self._order = order
        self._before = before
        self._found: list[Acting] = []

    def ask(self, statement: Statement, possible: Sequence[Possible]) -> list[Found]:
        """Return what a statement has given so far and gives here, and note the latter."""
        asked = [each.ask(self._before) for each in possible if each.order == self._order]
        held = [each for each in asked if each is not None and statement.one.has(each.found.match)]
        before = statement.earlier()
        found = statement.give(self._order, held, self._before)
        self._found += found
        return before + [each.found for each in found]

    def in_order(self) -> list[Acting]:
        """Return the matches as they act."""
        return sorted(self._found, key=lambda each: each.rank)


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
