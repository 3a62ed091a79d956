"""Matches of statements with rows or limits, gathered over a batch, with what is read of them.

What is read stays text until it is asked for, and the documents of a match stay rows: most matches
are never shown.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from broker.matching.boxes.columns import Ints
from broker.matching.clauseterms import ClauseTerms
from broker.matching.confidences import known_of, times_of
from broker.matching.hits import Hits, TupleReading
from broker.matching.outcomes.asidehits import AsideMatches, AsidePiece, PlainClause
from broker.matching.outcomes.countedends import EndHits
from broker.matching.outcomes.countedpieces import CountedPiece
from broker.matching.outcomes.matched import ClauseReader, Matched, MatchedDocuments, Rows
from broker.matching.rendering.matchnodes import MatchNodes, nodes_of
from broker.matching.rendering.matchrows import MatchRows, places_of
from broker.matching.uses import Topic, Use
from templates.clause import Clause
from templates.rungraphs import CountedRuns

__all__ = ["Gathered", "MatchSource", "Rows", "source_of"]


class MatchSource(NamedTuple):
    """Whose matches they are: those of a source that several have rows of, or of a topic."""

    query: str
    name: str


DocumentsOf = Callable[[int], Callable[[], Sequence[int]] | None]
"""Returns what finds out the documents of counted runs, by their node; None if a tuple has them."""


class Gathered:
    """The matches of one batch; `long` is as in `MatchRows`."""

    def __init__(self, long: int, documents_of: DocumentsOf) -> None:
        self._long = long
        self._documents_of = documents_of
        self._found: dict[MatchSource, dict[Hashable, Matched]] = {}
        self._ends: dict[MatchSource, list[CountedPiece]] = {}
        self._documents = MatchedDocuments()
        self._pieces: list[Hits] = []
        self._readers: dict[Clause, ClauseReader] = {}
        self._aside: dict[MatchSource, AsideMatches] = {}
        self._plain: dict[tuple[str, Clause], PlainClause] = {}
        self._forms: dict[Hashable, int] = {}

    def add(self, hits: Hits) -> Ints:
        """Add tuples of roots; return the tuples that begin a match."""
        uses = zip(hits.uses, hits.terms, strict=True)
        ways = np.array([self._way_of(use, terms) for use, terms in uses], np.int64)[hits.which]
        begun = [np.zeros(0, np.int64)]
        for way, add in enumerate((self._add, self._add_counted, self._set_aside)):
            own = np.flatnonzero(ways == way)
            if len(own):
                begun.append(own[add(hits if len(own) == len(hits) else hits.alone(own))])
        return np.concatenate(begun)

    def _way_of(self, use: Use, terms: ClauseTerms) -> int:
        """Return how tuples of a use become matches: 0 one by one, 1 counted, 2 set aside."""
        if terms.counted >= 0:
            return 1
        return 2 if self._plain_of(use, terms).is_plain else 0

    def _plain_of(self, use: Use, terms: ClauseTerms) -> PlainClause:
        query = use.topic.query
        own = self._plain.get((query.id, terms.clause))
        if own is None:
            own = PlainClause(self._reader(terms), query)
            own.is_plain = own.is_plain and terms.form is not None
            self._plain[query.id, terms.clause] = own
        return own

    def _set_aside(self, hits: Hits) -> Ints:
        """Set tuples of roots aside; return the tuples that begin a match."""
        piece = AsidePiece(
            [*hits.uses],
            hits.terms,
            hits.which.tolist(),
            self._rows(hits),
            places_of(hits, np.arange(len(hits))).T,
            [self._reader(terms) for terms in hits.terms],
            [self._plain_of(*each) for each in zip(hits.uses, hits.terms, strict=True)],
            self._texts(hits),
            self._documents,
        )
        own = [self._aside.setdefault(source_of(each.topic), AsideMatches()) for each in hits.uses]
        begun = [
            hit
            for hit, (use, row) in enumerate(zip(piece.which, piece.rows, strict=True))
            if own[use].add(row, piece, hit)
        ]
        return np.array(begun, np.int64)

    def _rows(self, hits: Hits) -> list[tuple[int, ...]]:
        """Return what tells the matches of hits apart (`AsidePiece.rows`)."""
        known = self._forms
        forms = [(form.branches, form.units) for form in (each.form for each in hits.terms) if form]
        numbers = np.array([known.setdefault(each, len(known)) for each in forms], np.int64)
        leaves, lengths = hits.leaves
        visible = hits.numbers([each.visible for each in hits.clauses])
        rows = np.column_stack([numbers[hits.which], lengths, leaves, visible])
        found = [*map(tuple, rows.tolist())]
        for hit in np.flatnonzero((rows < 0).any(axis=1)).tolist():
            found[hit] = tuple([number for number in found[hit] if number >= 0])
        return found

    def _add(self, hits: Hits) -> Ints:
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
        for hit, (use, nodes) in enumerate(zip(hits.which.tolist(), nodes_of(hits), strict=True)):
            own, topic, terms = of_uses[use]
            match = own.get(nodes.key)
            if match is None:
                reader = self._reader(terms)
                match = own[nodes.key] = Matched(places[hit], nodes, topic, reader, self._documents)
                match.times = times.get(hit, match.times)
                match.known = known.get(hit, match.known)
                begun.append(hit)
            match.readings.append(readings[hit])
            match.hits.append((piece, hit))
        return np.array(begun, np.int64)

    def _add_counted(self, hits: Hits) -> Ints:
        """Add tuples of counted runs, each of which stands for the matches of one end."""
        places = places_of(hits, np.arange(len(hits))).T.tolist()
        at = hits.by_clause(terms.counted for terms in hits.clauses)
        nodes = hits.nodes[np.arange(len(hits)), at].tolist()
        texts = hits.texts(np.arange(len(hits)), at)
        leaves, lengths = (each.tolist() for each in hits.leaves)
        of_uses = [
            (self._found.setdefault(source_of(use.topic), {}), use.topic, self._reader(terms))
            for use, terms in zip(hits.uses, hits.terms, strict=True)
        ]
        columns = zip(hits.which.tolist(), places, nodes, texts, leaves, lengths, strict=True)
        for use, place, node, text, own_leaves, length in columns:
            own, topic, reader = of_uses[use]
            assert text is not None
            behind = MatchNodes(tuple(own_leaves[:length]), (), None)
            runs = CountedRuns.read(text)
            match = Matched(place, behind, topic, reader, self._documents, runs)
            match.find_leaves = self._documents_of(node)
            own[id(match)] = match
        return np.arange(len(hits))

    def add_ends(self, hits: EndHits) -> None:
        """Add ends of counted runs, each of which stands for the matches that end there."""
        readers, ends = self._readers, hits.ends
        for number, use in enumerate(hits.uses):
            reader = readers.get(use.clause)
            if reader is None:
                reader = readers[use.clause] = ClauseReader(use.clause, ())
            rows = hits.rows[hits.which == number]
            own = rows.tolist()
            if not own:
                continue
            piece = CountedPiece(
                use.topic,
                reader,
                self._documents,
                ends.places[rows],
                ends.totals.take(own),
                own,
                ends.documents,
                ends.oldest is not None,
            )
            self._ends.setdefault(source_of(use.topic), []).append(piece)

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
        self._documents.rows_of = rows
        known = (match for match in matches if match.find_leaves is None)
        self._read({number for match in known for number in match.leaves}, rows)

    def find(self, matches: Iterable[Matched], rows: Rows) -> None:
        """Find out and read the documents of matches that may be shown in later batches."""
        found = [match for match in matches if match.find_leaves is not None]
        self._read({number for match in found for number in match.found_leaves()}, rows)

    def _read(self, numbers: set[int], rows: Rows) -> None:
        for some, own in rows(sorted(numbers)) if numbers else ():
            self._documents.add(some, own)

    def _texts(self, hits: Hits) -> list[tuple[str | None, ...]]:
        """Return what keys and aggregates read of hits: of each its clause's values in order."""
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
        return list(zip(*columns, strict=True)) if columns else [()] * len(hits)

    def _readings(self, hits: Hits) -> list[TupleReading]:
        """Return hits as keys and aggregates read them."""
        starts, ends = (each.tolist() for each in hits.points.intervals(hits.rows))
        names = [self._reader(terms).names for terms in hits.terms]
        given = [use.topic.parameters for use in hits.uses]
        rows = zip(self._texts(hits), starts, ends, hits.which.tolist(), strict=True)
        return [
            TupleReading(dict(zip(names[use], own, strict=False)), start, end, given[use])
            for own, start, end, use in rows
        ]

    def take_aside(self, query: str, rows: Rows) -> dict[MatchSource, AsideMatches]:
        """Return the matches of a query that were set aside, by their source."""
        sources = [each for each in self._aside if each.query == query]
        found = {source: self._aside.pop(source) for source in sources}
        self._read(set().union(*(own.leaves() for own in found.values())), rows)
        return found

    def take_ends(self, query: str, rows: Rows) -> dict[MatchSource, list[CountedPiece]]:
        """Return the ends of counted runs that a query has, by their source."""
        self._documents.rows_of = rows
        return {source: self._ends.pop(source) for source in [*self._ends] if source.query == query}

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
