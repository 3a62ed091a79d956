"""Gives what statements make of their matches, behind the stratum in which these are all known.

Matches of the batch are taken in the order in which they are decided.  For WINDOW they become rows;
LIMIT and DISJOINT leave some out, and DELAY learned what is not sure enough.  What costs more than
its query's budget is not given, nor anything of that query from that document on, and it leaves no
note.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from broker.matching.confidences import least_of
from broker.matching.costs.accounts import Accounts
from broker.matching.costs.budget import Tally
from broker.matching.match import parameters_key
from broker.matching.outcomes.asidehits import AsideMatches
from broker.matching.outcomes.countedpieces import CountedPiece
from broker.matching.outcomes.gathered import Gathered, MatchSource, Rows, source_of
from broker.matching.outcomes.graphs import build_graph
from broker.matching.outcomes.held import HeldMatches
from broker.matching.outcomes.kept import Given, GivenAt, Note, NoteOwner
from broker.matching.outcomes.learned import LEARNED
from broker.matching.outcomes.matched import Matched
from broker.matching.outcomes.rowlines import RowBuilder
from broker.matching.outcomes.rows import BesideRows, FoundWindow, RowSource
from broker.matching.outcomes.standing import Outcomes
from broker.matching.rendering.leaf import Leaf
from broker.matching.rendering.matches import BuiltMatch, BuiltMatches
from broker.matching.rendering.matchrows import MatchRows
from broker.matching.rendering.trees import DocumentTree
from broker.matching.uses import Topic, length_under
from templates.learnedunits import learned_units
from xscl.comparison import Elements
from xscl.path import Literal, Parameter
from xscl.query import INFINITE_US, Query, SelectKind
from xscl.query import Rows as RowsClause
from xscl.rowvalues import operand_of_row
from xscl.sequence import From

__all__ = ["Giving"]

Build = Callable[[MatchRows, dict[int, Leaf]], BuiltMatches]


@dataclass
class _Attempt:
    """What was noted before an attempt, and which matches rows have taken in it."""

    noted: int = 0
    held: int = 0
    taken: list[tuple[RowSource, Sequence[Matched], RowsClause]] = field(default_factory=list)


class Giving:
    """What the statements of a set make of the matches of one batch.

    `gathered` are the matches, `rows_of` yields the rows of instances of the join, `tree_of`
    returns the tree of a document.
    """

    def __init__(
        self,
        outcomes: Outcomes,
        accounts: Accounts,
        gathered: Gathered,
        rows_of: Rows,
        tree_of: Callable[[Leaf], DocumentTree],
    ) -> None:
        self._outcomes = outcomes
        self._queries = outcomes.queries
        self._accounts = accounts
        self._is_known = accounts.is_known
        self._gathered = gathered
        self._rows_of = rows_of
        self._tree_of = tree_of
        self._noted: list[Note] = []
        self._learned: list[Note] = []
        self._held: list[Note] = []
        self._attempt = _Attempt()

    def give(self, stratum: int, build: Build) -> Iterator[BuiltMatches]:
        """Yield what is given of statements whose matches are known behind a stratum."""
        for name in self._queries.outcomes(stratum):
            query = self._queries.get(name)
            found = self._gathered.take(name, self._rows_of)
            aside = self._gathered.take_aside(name, self._rows_of)
            ends = self._gathered.take_ends(name, self._rows_of)
            if query is None or not (found or aside or ends):
                continue
            if query.rows is not None:
                yield BuiltMatches.of(self._rows(query, found, aside, ends))
            elif query.kind is SelectKind.COMPRESSED:
                yield BuiltMatches.of(self._compressed(query, found))
            elif not self._is_known:
                yield self._matches(query, found, build)

    def notes(self) -> list[Note]:
        """Return what has been given of statements that look back at it, as far as budgets went."""
        limit_of = self._accounts.limit_of
        outcomes = self._outcomes
        return [
            *outcomes.notes.keep(self._noted, limit_of),
            *outcomes.learned.keep(self._learned, limit_of),
            *(note for note in self._held if note.docid < limit_of(note.query)),
        ]

    # -- in transactions -----------------------------------------------------------------------

    def read(self, matches: Iterable[Matched]) -> None:
        """Read the documents of matches that transactions ask for."""
        self._gathered.read(matches, self._rows_of)

    def begin_attempt(self) -> None:
        """Begin to run transactions that may have to be run again."""
        self._attempt = _Attempt(len(self._noted), len(self._held))

    def undo_attempt(self) -> None:
        """Undo what was kept, noted and taken since the attempt began."""
        for own, matches, rows in reversed(self._attempt.taken):
            own.undo(matches, rows)
        for note in self._noted[self._attempt.noted :]:
            self._outcomes.notes.undo(note)
        del self._noted[self._attempt.noted :], self._held[self._attempt.held :]

    def kept(self, matches: Iterable[Matched]) -> list[Matched]:
        """Return which matches of one transaction and one query are given, and note them."""
        return [m for m in sorted(matches, key=_turn) if self._keeps(m.topic.query, m)]

    def rows(
        self, topic: Topic, matches: Sequence[Matched], beside: BesideRows
    ) -> list[FoundWindow]:
        """Return the rows that are given of the matches of a transaction, as they are decided."""
        query = topic.query
        source = source_of(topic)
        asking = self._outcomes.asking_of(source)
        assert asking is not None
        own = self._outcomes.rows_of(source)
        self._attempt.taken.append((own, matches, asking.rows))
        found = own.take(matches, asking, is_known=False, beside=beside)
        given = [row for row in found if self._is_given(row)]
        if query.guards_of_matches:
            stated_at = self._queries.stated_at(query.id)
            held = (HeldMatches.note(each, stated_at, asking.longest_us) for each in matches)
            self._held += held
        return given

    def built(self, rows: Iterable[FoundWindow]) -> BuiltMatches:
        """Return rows as they are kept, as far as the budgets of their queries go."""
        builder = RowBuilder(self._tree_of)
        made = (builder.build(row, self._accounts.of(row.topic.query.id)) for row in rows)
        return BuiltMatches.of(each for each in made if each is not None)

    # -- WINDOW --------------------------------------------------------------------------------

    def _rows(
        self,
        query: Query,
        found: dict[MatchSource, list[Matched]],
        aside: dict[MatchSource, AsideMatches],
        ends: dict[MatchSource, list[CountedPiece]],
    ) -> Iterator[BuiltMatch]:
        accounts, builder = self._accounts, RowBuilder(self._tree_of)
        tally: Tally | None = None
        held = self._outcomes.held if query.guards_of_matches else None
        for source in sorted({*found, *aside, *ends}):
            asking = self._outcomes.asking_of(source)
            if asking is None:
                continue
            own, matches = self._outcomes.rows_of(source), found.get(source, [])
            pieces = ends.get(source, [])
            if held is not None or asking.longest_us:
                matches += [match for piece in pieces for match in piece.matches()]
                pieces = []
            if held is not None:
                matches = held.holding(matches, self._queries.stated_at(query.id))
            if asking.longest_us:
                self._gathered.find(matches, self._rows_of)
            taken = own.take(
                matches, asking, is_known=self._is_known, aside=aside.get(source), ends=pieces
            )
            for row in taken:
                if row.docid < accounts.limit_of(query.id) and self._is_given(row):
                    # Of who is given nothing it mostly need not be told what it is charged.
                    tally = tally or accounts.of(query.id)
                    made = builder.build(row, tally)
                    if made is not None:
                        yield made

    def _compressed(
        self, query: Query, found: dict[MatchSource, list[Matched]]
    ) -> Iterator[BuiltMatch]:
        tally = self._accounts.of(query.id)
        for source, matches in sorted(found.items()):
            topic = self._outcomes.topic_of(source)
            if topic is None:
                continue
            own = self._outcomes.graphs_of(source, topic)
            for each in own.take(matches, is_known=self._is_known):
                if each.matches[0].docid < tally.limit:
                    made = build_graph(each, tally)
                    if made is not None:
                        yield made

    def _is_given(self, row: FoundWindow) -> bool:
        """Return whether LIMIT lets a row pass, and note it."""
        topic = row.topic
        limit, rows = topic.query.limit, topic.query.rows
        if limit is None or rows is None:
            return True
        read = [operand_of_row(each, rows) for each in limit.keys]
        numbers = [int(str(e.operand.value)) for e in read if _is_value(e)]  # type: ignore[union-attr]
        key = repr([row.keys[number] for number in numbers])
        one = GivenAt(row.end_us, row.end_us, row.docid)
        return self._passes(topic, key, one, row.watermark_us)

    # -- LIMIT, DISJOINT -----------------------------------------------------------------------

    def _matches(
        self, query: Query, found: dict[MatchSource, list[Matched]], build: Build
    ) -> BuiltMatches:
        tally = self._accounts.of(query.id)
        kept: list[Matched] = []
        for _, matches in sorted(found.items()):
            for match in sorted(matches, key=_turn):
                if match.docid < tally.limit and self._keeps(query, match):
                    kept.append(match)
        leaves = {leaf.instance: leaf for match in kept for leaf in match.behind}
        return build(self._gathered.matches(kept), leaves)

    def _keeps(self, query: Query, match: Matched) -> bool:
        """Return whether a match is given, and note it."""
        return self._is_sure(query, match) if query.learns else self._is_let_pass(query, match)

    def _is_let_pass(self, query: Query, match: Matched) -> bool:
        topic = match.topic
        one = GivenAt(match.end_us, match.start_us, match.docid)
        first = 0 if query.limit is None else len(query.limit.keys)
        disjoint: Given | None = None
        asked = [match.asked(number) for number in range(len(match.clause.readers))]
        key = _key(asked[first:])
        if query.kind is SelectKind.DISJOINT:
            disjoint = self._given(topic, "DISJOINT", key, _within_us(topic))
            if disjoint.meets(one, match.watermark_us - self._outcomes.lateness_us):
                return False
        of_limit = _key(asked[:first])
        if query.limit is not None and not self._passes(topic, of_limit, one, match.watermark_us):
            return False
        if disjoint is not None:
            self._note(topic, "DISJOINT", key, one)
        return True

    def _passes(self, topic: Topic, key: str, one: GivenAt, watermark_us: int) -> bool:
        limit, given = topic.query.limit, topic.parameters
        assert limit is not None
        length_us = length_under(limit.length, given)
        count = given[limit.count.name] if isinstance(limit.count, Parameter) else limit.count
        before = self._given(topic, "LIMIT", key, length_us)
        if before.near(one, length_us, watermark_us - self._outcomes.lateness_us) >= count:
            return False
        self._note(topic, "LIMIT", key, one)
        return True

    def _given(self, topic: Topic, clause: str, key: str, retention_us: int) -> Given:
        return self._outcomes.notes.of(
            self._owner(topic, clause), key, retention_us, topic.registration_point
        )

    def _note(self, topic: Topic, clause: str, key: str, one: GivenAt) -> None:
        self._noted.append(self._outcomes.notes.add(self._owner(topic, clause), key, one))

    def _owner(self, topic: Topic, clause: str) -> NoteOwner:
        name = topic.query.id
        return NoteOwner(
            name, self._queries.stated_at(name), parameters_key(topic.parameters), clause
        )

    # -- LOSS ----------------------------------------------------------------------------------

    def _is_sure(self, query: Query, match: Matched) -> bool:
        """Set the confidence of a match; return whether it is enough, and learn from the match."""
        clause, topic = match.clause.clause, match.topic
        units = learned_units(query)
        owner = self._owner(topic, LEARNED)
        samples = None
        if any(factor.learns for factor in clause.factors):
            samples = self._outcomes.learned.samples(
                owner, units, match.docid, topic.registration_point
            )
            if samples is None:
                return False
        match.confidence = math.prod(
            (each.at(each.gap_us(match.times), samples) for each in clause.factors),
            start=match.known,
        )
        if match.confidence == 0 or match.confidence < least_of(topic):
            return False
        if not any(factor.is_lost for factor in clause.factors):
            ends_us = (leaf.end_us for leaf in match.behind)
            end_of = dict(zip(clause.blocks, ends_us, strict=True))
            interval = match.start_us, match.end_us
            delays = [unit.delay_us(end_of) for unit in units]
            learned = self._outcomes.learned.add(owner, match.docid, interval, delays)
            self._learned.append(learned)
        return True


def _turn(match: Matched) -> tuple[Any, ...]:
    return match.turn


def _is_value(operand: object) -> bool:
    return isinstance(operand, Elements) and isinstance(operand.operand, Literal)


def _key(asked: Iterable[tuple[Any, ...]]) -> str:
    """Return the text by which keys are compared: of each all its values, in order."""
    return repr([sorted(dict.fromkeys(map(str, each[0]))) if each else [] for each in asked])


def _within_us(topic: Topic) -> int:
    root = topic.query.root
    if not isinstance(root, From) or root.within is None:
        return INFINITE_US
    return length_under(root.within, topic.parameters)
