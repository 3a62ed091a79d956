"""Candidates: matches but for what they ask tables, gathered over the strata of a batch."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from broker.matching.boxes.columns import Ints
from broker.matching.hits import Hits
from broker.matching.outcomes.gathered import Gathered
from broker.matching.outcomes.rows import FoundWindow
from broker.matching.rendering.leaf import Leaf
from broker.matching.rendering.lines import Behind, MatchLines
from broker.matching.rendering.matchnodes import nodes_of
from broker.matching.rendering.matchrows import MatchRows, places_of
from broker.matching.rules.candidate import FoundTuple, Reads, RuleCandidate
from broker.matching.rules.judged import ActingRow, JudgedTurn, Judging
from broker.matching.uses import Topic
from broker.tables.actions import Actions, LockReader
from broker.tables.groups import Group
from broker.tables.locks import Locks
from broker.tables.store import Order, TableVersions
from templates.clause import Clause

__all__ = ["AnyTurn", "RuleCandidates", "Turn", "rows_of"]


@dataclass(eq=False, slots=True)
class Turn:
    """A candidate in one group: its guard is asked there, or its actions are done, or both.

    See `broker.tables.transactions.Candidate`.
    """

    candidate: RuleCandidate
    order: Order
    is_asked: bool
    is_acting: bool

    @property
    def query(self) -> str:
        """The id of its query."""
        return self.candidate.query

    @property
    def candidates(self) -> Sequence[RuleCandidate]:
        """The candidate alone."""
        return (self.candidate,)

    def locks(self) -> Locks:
        """Return what it reads and may write."""
        candidate = self.candidate
        reads = candidate.guard_locks() if self.is_asked else []
        if not self.is_acting:
            return Locks(reads)
        actions = candidate.action_locks(None if self.is_asked else candidate.matching)
        return Locks([*reads, *actions.reads], actions.writes)

    def ask(self, tables: TableVersions) -> Sequence[RuleCandidate]:
        """Return the candidate, if it is a match and acts."""
        if self.is_asked:
            self.candidate.ask(tables)
        return self.candidates if self.is_acting and self.candidate.matching else ()


AnyTurn = Turn | JudgedTurn
"""What takes part in a transaction."""


class RuleCandidates:
    """The candidates of one batch; `long` is as in `MatchRows`.

    Of statements with rows or limits they are matches of `gathered` that wait for a transaction.
    """

    def __init__(self, long: int, gathered: Gathered, judging: Judging) -> None:
        self._long = long
        self._gathered = gathered
        self._judging = judging
        self._by_query: dict[str, dict[Hashable, RuleCandidate]] = {}
        self._compiled: dict[Clause, tuple[Reads, Actions]] = {}
        self._pieces: list[Hits] = []

    def add(self, hits: Hits) -> Ints:
        """Add tuples; return the tuples that begin a candidate."""
        begun = []
        piece = len(self._pieces)
        self._pieces.append(hits)
        docids, which = hits.docids.tolist(), hits.which.tolist()
        topics = [use.topic for use in hits.uses]
        owns = [self._by_query.setdefault(each.query.id, {}) for each in topics]
        are_guarded = [each.query.has_candidates for each in topics]
        are_judged = [each.query.is_judged_together for each in topics]
        nodes = list(nodes_of(hits))
        places = places_of(hits, np.arange(len(hits))).T.tolist()
        for hit, terms, reading in hits.readings(np.arange(len(hits))):
            use = which[hit]
            topic, own = topics[use], owns[use]
            key = (id(topic), nodes[hit].key)
            candidate = own.get(key)
            if candidate is None:
                order = (docids[hit], reading.end_us)
                _, actions = self._compiled_of(terms.clause)
                candidate = own[key] = RuleCandidate(topic, order, nodes[hit], actions)
                begun.append(hit)
                if are_judged[use]:
                    candidate.matched = self._gathered.match(places[hit], nodes[hit], topic, terms)
            found = FoundTuple(self._compiled_of(terms.clause)[0], reading, piece, hit)
            candidate.tuples.append(found)
            if not are_guarded[use]:
                candidate.matching.append(found)
        return np.array(begun, np.int64)

    def _compiled_of(self, clause: Clause) -> tuple[Reads, Actions]:
        """Return what a clause asks of tables, and what it does to them."""
        compiled = self._compiled.get(clause)
        if compiled is None:
            rows = clause.guard.rows if clause.guard is not None else ()
            compiled = Reads(clause.guard, LockReader(rows)), Actions(clause.actions)
            self._compiled[clause] = compiled
        return compiled

    def of(self, query: str) -> Iterator[RuleCandidate]:
        """Yield the candidates of a query."""
        yield from self._by_query.get(query, {}).values()

    def turns(self, group: Group) -> Iterator[AnyTurn]:
        """Yield the turns of a group."""
        for query in sorted(group.guards | group.actors):
            is_asked, is_acting = query in group.guards, query in group.actors
            together: dict[tuple[Topic, Order], list[RuleCandidate]] = {}
            for candidate in self.of(query):
                if candidate.matched is None:
                    yield Turn(candidate, candidate.order, is_asked, is_acting)
                else:
                    together.setdefault((candidate.topic, candidate.order), []).append(candidate)
            for (topic, order), some in together.items():
                yield JudgedTurn(self._judging, topic, order, some, is_asked, is_acting)

    def give_names(self, candidates: Sequence[RuleCandidate], leaves: Mapping[int, Leaf]) -> None:
        """Give candidates the ids of the matches that they would be."""
        lines: dict[tuple[int, int], MatchLines] = {}
        for each in candidates:
            form = each.nodes.form
            assert form is not None, "what acts is not counted"
            asked = id(each.topic), id(form)
            if asked not in lines:
                lines[asked] = MatchLines(each.topic.parameters, form)
            behind = Behind.of([leaves[number] for number in each.nodes.leaves], form)
            own = lines[asked]
            each.name = own.id(own.identity(behind.keys, own.nodes(each.nodes.visible)))

    def matches(self, turns: Iterable[AnyTurn]) -> MatchRows:
        """Return the matches of turns, but for rows."""
        found = MatchRows(self._long)
        by_piece: dict[int, list[int]] = {}
        for turn in turns:
            for candidate in _matches(turn):
                for each in candidate.matching:
                    by_piece.setdefault(each.piece, []).append(each.hit)
        for piece, hits in by_piece.items():
            found.add(self._pieces[piece].alone(np.array(hits)))
        return found


def rows_of(turns: Iterable[AnyTurn]) -> Iterator[FoundWindow]:
    """Yield the rows that were given in turns."""
    for turn in turns:
        if isinstance(turn, JudgedTurn) and turn.is_asked:
            yield from (each.row for each in turn.given if isinstance(each, ActingRow))


def _matches(turn: AnyTurn) -> Sequence[RuleCandidate]:
    """Return the candidates of a turn that became matches, unless rows are made of them."""
    if not turn.is_asked:
        return ()
    if isinstance(turn, Turn):
        return turn.candidates
    return [each for each in turn.given if isinstance(each, RuleCandidate)]
