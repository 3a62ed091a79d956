"""Who reads matches, while these are made: how lines are spelled, and who is charged."""

from __future__ import annotations

from collections.abc import Hashable

from broker.matching.costs.accounting import Accounting
from broker.matching.costs.budget import Tally
from broker.matching.match import parameters_key
from broker.matching.rendering.lines import MatchLines
from broker.matching.rendering.matchrows import Reader
from joins import UNBOUNDED
from xscl.query import Constructor, SelectAll, SelectNodes

__all__ = ["MatchReader"]


class MatchReader:
    """A reader of matches: how its lines are spelled, and what its outputs depend on.

    `number` is that of its query.
    """

    def __init__(self, reader: Reader, number: int) -> None:
        topic, self.form = reader
        self.query = query = topic.query
        self.query_id = query.id
        self.number = number
        self.given = topic.parameters
        self.lines = MatchLines(self.given, self.form)
        self.parameters = parameters_key(self.given)
        self.is_constructed = isinstance(query.select, Constructor)
        self.selects_all = isinstance(query.select, SelectAll)
        self.is_ordered = query.is_ordered
        self.has_confidence = query.has_confidence
        self.publishes = query.publish
        self.selection = self._selection()
        self.tally: Tally | None = None
        self.limit = UNBOUNDED

    @property
    def is_copying(self) -> bool:
        """Whether its matches are copies of documents alone, charged together with others."""
        return self.selects_all and self.publishes is None and self.tally is None

    def look_up(self, accounts: Accounting) -> None:
        """Have matches charged as the query is now."""
        self.tally = accounts.opened(self.query.id)
        self.limit = accounts.limit_of(self.query.id)

    def _selection(self) -> Hashable:
        """Return what the output depends on beside documents, times and visible nodes."""
        select, form = self.query.select, self.form
        mentioned = () if isinstance(select, SelectAll) else select.variables
        shown = [
            (name, tuple([(form.visible[i][1], i) for i in form.indices[name]]))
            for name in mentioned
            if name in form.indices
        ]
        if isinstance(select, Constructor):
            # Alternatives may bind different variables of it to one node.
            return select, tuple(shown), self.parameters
        if isinstance(select, SelectNodes):
            return tuple([places for _, places in shown])
        return None
