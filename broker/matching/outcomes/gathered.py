"""Matches of statements with rows or limits, gathered over a batch, with what is read of them.

What is read stays text until it is asked for, and the documents of a match stay rows: most matches
are never shown.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from broker.matching.boxes.columns import Ints
from broker.matching.clauseterms import ClauseTerms
from broker.matching.confidences import known_of, times_of
from broker.matching.hits import Hits, TupleReading
from broker.matching.rendering.leaf import Leaf
from broker.matching.rendering.lines import Behind, MatchLines
from broker.matching.rendering.matchnodes import MatchNodes, nodes_of
from broker.matching.rendering.matchrows import MatchRows, places_of
from broker.matching.uses import Topic
from templates.clause import Clause
from templates.rungraphs import CountedRuns
from xscl.comparison import Call, Operand, operand_terms, term
from xscl.evaluation import UnboundError, Values, compile_operand

__all__ = ["Asked", "Gathered", "MatchSource", "Matched", "Rows"]

CERTAIN = Fraction(1)
"""How sure documents are of which nothing else is known."""

Asked = tuple[Values, ...]
"""The values of one key or aggregate: of each argument."""

Rows = Callable[[Iterable[int]], Iterator[tuple[Sequence[int], pa.RecordBatch]]]
"""Yields the rows of instances by number."""


class MatchSource(NamedTuple):
    """Whose matches they are: those of a source that several have rows of, or of a topic."""

    query: str
    name: str


class _Documents:
    """The documents of some matches, by number: read when one of them is shown or compared."""

    def __init__(self) -> None:
        self._at: dict[int, tuple[pa.RecordBatch, int]] = {}
        self._leaves: dict[int, Leaf] = {}

    def add(self, numbers: Sequence[int], rows: pa.RecordBatch) -> None:
        """Take rows of documents."""
        narrow = Leaf.columns(rows)
        self._at.update({number: (narrow, at) for at, number in enumerate(numbers)})

    def __getitem__(self, number: int) -> Leaf:
        leaf = self._leaves.get(number)
        if leaf is None:
            rows, at = self._at[number]
            (leaf,) = Leaf.read([number], rows.slice(at, 1))
            self._leaves[number] = leaf
        return leaf


class Matched:
    """A decided match: where it stands, its documents, and what is read of it.

    `form` is None where matches are counted: then it stands for `count` of them, which are
    `counted`.  `newest` is the newest outside document behind it.  `times` are what the factors of
    its confidence ask for, `known` is how sure its documents are where that counts; `confidence` is
    set where it is known.
    """

    __slots__ = (
        "_asked",
        "_documents",
        "clause",
        "confidence",
        "counted",
        "depth",
        "docid",
        "end_us",
        "form",
        "hits",
        "known",
        "leaves",
        "newest",
        "readings",
        "start_us",
        "times",
        "topic",
        "visible",
        "watermark_us",
    )

    def __init__(
        self,
        place: Sequence[int],
        nodes: MatchNodes,
        topic: Topic,
        clause: ClauseReader,
        documents: _Documents,
        counted: CountedRuns | None = None,
    ) -> None:
        self.leaves, self.visible, self.form = nodes
        self.counted = counted
        self.docid, self.newest, self.depth, self.watermark_us, self.start_us, self.end_us = place
        self.topic = topic
        self.clause = clause
        self.readings: list[TupleReading] = []
        self.hits: list[tuple[int, int]] = []
        self.times: dict[str, int] = {}
        self.known = CERTAIN
        self.confidence: Fraction | None = None
        self._documents = documents
        self._asked: dict[int, Asked] = {}

    def asked(self, number: int) -> Asked:
        """Return the values of a key, or of the arguments of an aggregate, by its number."""
        if self.counted is not None:
            # Of what is counted nothing else is asked than what it is told apart by.
            keys = self.counted.keys
            return ((keys[number],),) if number < len(keys) else ()
        found = self._asked.get(number)
        if found is None:
            found = self._asked[number] = self.clause.readers[number](self.readings)
        return found

    def read(self, readings: Sequence[TupleReading]) -> None:
        """Have it be of other tuples."""
        self.readings = [*readings]
        self._asked.clear()

    def read_as(self, asked: Sequence[Asked]) -> None:
        """Have keys and aggregates be as they were read once."""
        self._asked = dict(enumerate(asked))

    @property
    def name(self) -> str:
        """Its id."""
        assert self.form is not None, "what is counted has none"
        lines = MatchLines(self.topic.parameters, self.form)
        return lines.id(MatchLines.identity(Behind.of(self.behind, self.form), self.visible))

    @property
    def count(self) -> int:
        """How many matches it stands for."""
        return 1 if self.counted is None else self.counted.count

    @property
    def behind(self) -> list[Leaf]:
        """Its documents."""
        return [self._documents[number] for number in self.leaves]

    @property
    def order(self) -> tuple[Any, ...]:
        """Its place among the matches that a row is made of: by end, start and documents."""
        positions = tuple([leaf.position for leaf in self.behind])
        return self.end_us, self.start_us, positions, self.visible

    @property
    def turn(self) -> tuple[Any, ...]:
        """Its place in the order in which matches are decided."""
        return self.docid, self.depth, *self.order


class ClauseReader:
    """What is read of the tuples of a clause: `names` of terms, `readers` of keys and aggregates.

    `at` are the places of the terms among those of the clause.
    """

    def __init__(self, clause: Clause, names: Sequence[str]) -> None:
        self.clause = clause
        outcome = () if clause.counts else clause.outcome
        operands = [o for each in outcome for o in _arguments(each)]
        asked = dict.fromkeys(term(t) for o in operands for t in operand_terms(o))
        self.names = tuple(asked)
        self.at = np.array([names.index(name) for name in asked], np.int64)
        self.readers = [_reader(each) for each in outcome]


class Gathered:
    """The matches of one batch; `long` is as in `MatchRows`."""

    def __init__(self, long: int) -> None:
        self._long = long
        self._found: dict[MatchSource, dict[Hashable, Matched]] = {}
        self._documents = _Documents()
        self._pieces: list[Hits] = []
        self._readers: dict[Clause, ClauseReader] = {}

    def add(self, hits: Hits) -> Ints:
        """Add tuples of roots; return the tuples that begin a match."""
        begun = []
        piece = len(self._pieces)
        self._pieces.append(hits)
        places = places_of(hits, np.arange(len(hits))).T.tolist()
        times, known = dict(times_of(hits)), known_of(hits)
        of_uses = [
            (self._found.setdefault(source_of(use.topic), {}), use.topic, terms)
            for use, terms in zip(hits.uses, hits.terms, strict=True)
        ]
        readings = self._readings(hits)
        graphs = self._graphs(hits)
        for hit, (use, nodes) in enumerate(zip(hits.which.tolist(), nodes_of(hits), strict=True)):
            own, topic, terms = of_uses[use]
            counted = graphs.get(hit)
            key = nodes.key if counted is None else (piece, hit)
            match = own.get(key)
            if match is None:
                reader = self._reader(terms)
                match = own[key] = Matched(
                    places[hit], nodes, topic, reader, self._documents, counted
                )
                match.times = times.get(hit, match.times)
                match.known = known.get(hit, match.known)
                begun.append(hit)
            match.readings.append(readings[hit])
            match.hits.append((piece, hit))
        return np.array(begun, np.int64)

    def match(
        self, place: Sequence[int], nodes: MatchNodes, topic: Topic, terms: ClauseTerms
    ) -> Matched:
        """Return a match of this batch that is not gathered: its tuples have to be asked first."""
        return Matched(place, nodes, topic, self._reader(terms), self._documents)

    def _reader(self, terms: ClauseTerms) -> ClauseReader:
        reader = self._readers.get(terms.clause)
        if reader is None:
            reader = self._readers[terms.clause] = ClauseReader(terms.clause, terms.names)
        return reader

    def read(self, matches: Iterable[Matched], rows: Rows) -> None:
        """Read the documents of matches, which may be shown or compared then."""
        numbers = {number for match in matches for number in match.leaves}
        for some, own in rows(sorted(numbers)) if numbers else ():
            self._documents.add(some, own)

    def _graphs(self, hits: Hits) -> dict[int, CountedRuns]:
        """Return the runs of hits that are of counted runs."""
        at = hits.by_clause(terms.counted for terms in hits.clauses)
        own = np.flatnonzero(at >= 0)
        texts = hits.texts(own, at[own]) if len(own) else []
        found = zip(own.tolist(), texts, strict=True)
        return {hit: CountedRuns.read(text) for hit, text in found if text is not None}

    def _readings(self, hits: Hits) -> list[TupleReading]:
        """Return what keys and aggregates read of hits."""
        readers = [self._reader(terms) for terms in hits.clauses]
        counts = hits.by_clause(len(reader.at) for reader in readers)
        flat = [hits.by_clause(_at(reader, k) for reader in readers) for k in range(counts.max())]
        columns = []
        for k, at in enumerate(flat):
            own = np.flatnonzero(counts > k)
            texts: list[str | None] = [None] * len(hits)
            for hit, text in zip(own.tolist(), hits.texts(own, at[own]), strict=True):
                texts[hit] = text
            columns.append(texts)
        values = list(zip(*columns, strict=True)) if columns else [()] * len(hits)
        starts, ends = (each.tolist() for each in hits.points.intervals(hits.rows))
        names = [reader.names for reader in readers]
        given = [use.topic.parameters for use in hits.uses]
        rows = zip(
            values,
            starts,
            ends,
            hits.by_clause(range(len(readers))).tolist(),
            hits.which.tolist(),
            strict=True,
        )
        return [
            TupleReading(dict(zip(names[clause], own, strict=False)), start, end, given[use])
            for own, start, end, clause, use in rows
        ]

    def take(self, query: str, rows: Rows) -> dict[MatchSource, list[Matched]]:
        """Return the matches of a query by their source; `rows` yields those of documents."""
        found = {
            source: list(self._found.pop(source).values())
            for source in [each for each in self._found if each.query == query]
        }
        self.read((match for matches in found.values() for match in matches), rows)
        return {source: matches for source, matches in found.items() if matches}

    def matches(self, kept: Iterable[Matched]) -> MatchRows:
        """Return matches as they are made."""
        found = MatchRows(self._long)
        by_piece: dict[int, dict[int, Fraction | None]] = {}
        for match in kept:
            for piece, hit in match.hits:
                by_piece.setdefault(piece, {})[hit] = match.confidence
        for piece, hits in by_piece.items():
            own = sorted(hits)
            sure = {i: each for i, hit in enumerate(own) if (each := hits[hit]) is not None}
            found.add(self._pieces[piece].alone(np.array(own)), sure)
        return found


def source_of(topic: Topic) -> MatchSource:
    """Return whose matches a topic's are."""
    return MatchSource(topic.query.id, topic.source or f"#{id(topic)}")


def _at(reader: ClauseReader, k: int) -> int:
    return int(reader.at[k]) if k < len(reader.at) else -1


_Reader = Callable[[Sequence[TupleReading]], Asked]


def _arguments(operand: Operand) -> tuple[Operand, ...]:
    """Return what is read of a match: a key, or the arguments of an aggregate."""
    return operand.arguments if isinstance(operand, Call) else (operand,)


def _reader(operand: Operand) -> _Reader:
    """Return what gives the values of a key, or of the arguments of an aggregate, in a match."""
    compiled = [_of_match(each) for each in _arguments(operand)]
    return lambda readings: tuple([read(readings) for read in compiled])


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
