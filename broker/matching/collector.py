"""What the tuples of a stratum become: instances that other operators read, and matches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from broker.matching.accounts import Accounts
from broker.matching.blocks import Account
from broker.matching.budget import Tally
from broker.matching.fanout import FoundTuple, Subscriber, Use, holds
from broker.matching.leaf import Leaf
from broker.matching.matches import MatchBuilder
from broker.matching.rules.candidates import Candidates
from templates.clause import Clause

__all__ = ["TUPLE_COST", "Collector"]

TUPLE_COST = 400
"""What a tuple of nodes costs beside its values, in bytes."""


@dataclass(slots=True)
class _HandedOn:
    """A tuple of an inner operator, as an instance, and the queries that have found it."""

    row: dict[str, Any]
    queries: set[str] = field(default_factory=set)


class Collector:
    """Gathers the tuples of one stratum in a batch, as far as the budgets of queries go.

    Where the matches of the batch are known, only tuples that other operators read are gathered.
    `shape_of` gives the shape of a clause's tuples as instances.  What asks tables, or writes them,
    is gathered in `candidates`.  Equal values of matches that have `long` characters or more are
    held once.
    """

    def __init__(
        self,
        accounts: Accounts,
        shape_of: Callable[[Clause], int],
        candidates: Candidates,
        *,
        is_known: bool,
        long: int,
    ) -> None:
        self._accounts = accounts
        self._shape_of = shape_of
        self._candidates = candidates
        self._is_known = is_known
        self._long = long
        self._handed_on: dict[tuple[Any, ...], _HandedOn] = {}
        self._builders: dict[Subscriber, MatchBuilder] = {}
        self._leaves: dict[int, Leaf] = {}
        self._tallies: dict[Subscriber, Tally] = {}

    def take(self, found: FoundTuple, use: Use) -> None:
        """Add a tuple to the instances of its clause, or to its query's matches."""
        is_inner = bool(found.clause.stream)
        query = use.subscriber.query
        if self._is_known and not is_inner and (query.publish is None or query.guards):
            return
        tally = self._tally(use)
        account = found.account
        if query.table is None:  # a load costs nobody's budget
            tally.find(account)
            tally.spend(account, TUPLE_COST + found.nbytes)
            tally.keep(found.docid, found.nbytes)
        if not tally.takes(account) or not holds(found, use):
            return
        if is_inner:
            self._hand_on(found, tally)
        else:
            self._match(found, use.subscriber, tally)

    def looks_at(self, use: Use, account: Account) -> bool:
        """Return whether tuples of a use still count in an account."""
        return self._tally(use).looks_at(account)

    def _tally(self, use: Use) -> Tally:
        tally = self._tallies.get(use.subscriber)
        if tally is None:
            tally = self._accounts.of(use.subscriber.query.id)
            self._tallies[use.subscriber] = tally
        return tally

    def _hand_on(self, found: FoundTuple, tally: Tally) -> None:
        row = found.handed_on(self._shape_of(found.clause))
        # One node may carry several values: a function of it may have more than one.
        key = (row["shape"], *row["leaves"], *row["nodes"], *row["vals"])
        finders = self._handed_on.setdefault(key, _HandedOn(row)).queries
        if tally.query not in finders:
            finders.add(tally.query)
            if not found.is_block:
                tally.hand_on(found.clause.stream, found.account)

    def _match(self, found: FoundTuple, subscriber: Subscriber, tally: Tally) -> None:
        query = subscriber.query
        if query.tables and not self._is_known:
            is_new = self._candidates.add(found, subscriber)
            if is_new and query.guards:
                tally.match(found.account)
        if query.guards or query.table is not None:
            return
        builder = self._builders.get(subscriber)
        if builder is None:
            builder = self._builders[subscriber] = MatchBuilder(subscriber, self._long)
        if builder.add(found):
            tally.match(found.account)
            for one in found.instances:
                if one.is_document and one.instance not in self._leaves:
                    self._leaves[one.instance] = Leaf.of(one)

    def rows(self) -> list[dict[str, Any]]:
        """Return the tuples of inner operators as instances."""
        return [
            each.row
            for each in self._handed_on.values()
            if any(each.row["docid"] < self._accounts.of(query).limit for query in each.queries)
        ]

    def builders(self) -> list[MatchBuilder]:
        """Return the builders of the matches."""
        for builder in self._builders.values():
            builder.drop_from(self._accounts.of(builder.subscriber.query.id).limit)
        return list(self._builders.values())

    def leaves(self) -> dict[int, Leaf]:
        """Return the documents behind matches, but for those behind tuples of inner operators."""
        return self._leaves
