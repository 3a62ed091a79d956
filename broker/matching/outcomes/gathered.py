"""Matches of statements with rows or limits, gathered over a batch, with what is read of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from broker.matching.boxes.columns import Ints
from broker.matching.hits import Hits, TupleReading
from broker.matching.rendering.leaf import Leaf
from broker.matching.rendering.matchrows import MatchRows, places_of, with_runs
from broker.matching.uses import Subscriber
from templates.clause import Clause
from xscl.comparison import Call, Operand, operand_terms, term
from xscl.evaluation import UnboundError, Values, compile_operand

__all__ = ["Gathered", "Matched", "Source"]

Asked = tuple[Values, ...]
"""The values of one key or aggregate: of each argument."""


class Source(NamedTuple):
    """Whose matches they are: those of a source that several have rows of, or of a subscriber."""

    query: str
    name: str


@dataclass(slots=True)
class Matched:
    """A decided match: where it stands, its documents, and what is read of it, in order.

    `newest` is the newest outside document behind it, `oldest` the oldest.
    """

    docid: int
    depth: int
    watermark_us: int
    start_us: int
    end_us: int
    newest: int
    leaves: tuple[int, ...]
    visible: tuple[int, ...]
    subscriber: Subscriber
    clause: Clause
    readings: list[TupleReading] = field(default_factory=list)
    hits: list[tuple[int, int]] = field(default_factory=list)
    behind: tuple[Leaf, ...] = ()
    asked: tuple[Asked, ...] = ()

    @property
    def order(self) -> tuple[Any, ...]:
        """Its place among the matches that a row is made of: by end, start and documents."""
        positions = tuple([leaf.position for leaf in self.behind])
        return self.end_us, self.start_us, positions, self.visible

    @property
    def turn(self) -> tuple[Any, ...]:
        """Its place in the order in which matches are decided."""
        return self.docid, self.depth, *self.order

    @property
    def oldest(self) -> int:
        """The oldest document behind it."""
        return min([leaf.docid for leaf in self.behind])


class Gathered:
    """The matches of one batch; `long` is as in `MatchRows`."""

    def __init__(self, long: int) -> None:
        self._long = long
        self._found: dict[Source, dict[tuple[Any, ...], Matched]] = {}
        self._pieces: list[Hits] = []
        self._readers: dict[Clause, tuple[_Reader, ...]] = {}

    def add(self, hits: Hits) -> Ints:
        """Add tuples of roots; return those that begin a match."""
        begun = []
        piece = len(self._pieces)
        self._pieces.append(hits)
        visible = hits.numbers([terms.visible for terms in hits.clauses]).tolist()
        leaves, lengths = (each.tolist() for each in hits.leaves)
        which = hits.which.tolist()
        places = places_of(hits, np.arange(len(hits))).T.tolist()
        has_runs = np.flatnonzero(hits.by_clause(bool(terms.runs) for terms in hits.clauses))
        runs = dict(zip(has_runs.tolist(), with_runs(hits, has_runs), strict=True))
        for hit, terms, reading in hits.readings(np.arange(len(hits))):
            subscriber = hits.uses[which[hit]].subscriber
            source = source_of(subscriber)
            own = self._found.setdefault(source, {})
            behind = tuple(leaves[hit][: lengths[hit]])
            form, nodes = terms.form, visible[hit][: len(terms.visible)]
            if form is None:
                form, nodes, _ = runs[hit]
            seen = tuple(nodes)
            key = (behind, seen, form.branches, form.units)
            match = own.get(key)
            if match is None:
                docid, newest, depth, watermark_us, start_us, end_us = places[hit]
                match = own[key] = Matched(
                    docid,
                    depth,
                    watermark_us,
                    start_us,
                    end_us,
                    newest,
                    behind,
                    seen,
                    subscriber,
                    terms.clause,
                )
                begun.append(hit)
            match.readings.append(reading)
            match.hits.append((piece, hit))
        return np.array(begun, np.int64)

    def take(
        self, query: str, leaves_of: Callable[[Iterable[int]], Mapping[int, Leaf]]
    ) -> dict[Source, list[Matched]]:
        """Return the matches of a query by their source, each with its documents and values."""
        found = {
            source: list(self._found.pop(source).values())
            for source in [each for each in self._found if each.query == query]
        }
        numbers = {n for matches in found.values() for match in matches for n in match.leaves}
        leaves = leaves_of(numbers) if numbers else {}
        for matches in found.values():
            for match in matches:
                match.behind = tuple([leaves[number] for number in match.leaves])
                match.asked = tuple([read(match.readings) for read in self._read(match.clause)])
                match.readings = []
        return found

    def _read(self, clause: Clause) -> tuple[_Reader, ...]:
        readers = self._readers.get(clause)
        if readers is None:
            readers = self._readers[clause] = tuple(map(_reader, clause.outcome))
        return readers

    def matches(self, kept: Iterable[Matched]) -> MatchRows:
        """Return matches as they are made."""
        found = MatchRows(self._long)
        by_piece: dict[int, list[int]] = {}
        for match in kept:
            for piece, hit in match.hits:
                by_piece.setdefault(piece, []).append(hit)
        for piece, hits in by_piece.items():
            found.add(self._pieces[piece].alone(np.array(sorted(hits))))
        return found


def source_of(subscriber: Subscriber) -> Source:
    """Return whose matches a subscriber's are."""
    return Source(subscriber.query.id, subscriber.source or f"#{id(subscriber)}")


_Reader = Callable[[Sequence[TupleReading]], Asked]


def _reader(operand: Operand) -> _Reader:
    """Return what gives the values of a key, or of the arguments of an aggregate, in a match."""
    is_aggregate = isinstance(operand, Call)
    arguments = operand.arguments if isinstance(operand, Call) else (operand,)
    if not is_aggregate or arguments:
        compiled = [_of_match(each) for each in arguments]
        return lambda readings: tuple([read(readings) for read in compiled])
    return lambda readings: ()


def _of_match(operand: Operand) -> Callable[[Sequence[TupleReading]], Values]:
    """Return what gives the values of an operand in a match: of its tuples, each choice once."""
    read = compile_operand(operand)
    terms = [term(each) for each in operand_terms(operand)]

    def one(reading: TupleReading) -> Values:
        try:
            return read(reading)
        except UnboundError:
            return ()

    def values(readings: Sequence[TupleReading]) -> Values:
        if len(readings) == 1:
            return one(readings[0])
        choices: dict[tuple[str, ...], TupleReading] = {}
        for each in readings:
            choices.setdefault(tuple([each.value(name) for name in terms]), each)
        return [value for key in sorted(choices) for value in one(choices[key])]

    return values
