"""The hits of one batch that may be set aside: columns of which matches can be made later."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from broker.matching.boxes.columns import Ints
from broker.matching.clauseterms import ClauseTerms
from broker.matching.hits import TupleReading
from broker.matching.outcomes.aside import Keys, are_plain, counted_aggregates
from broker.matching.outcomes.matched import ClauseReader, Matched, MatchedDocuments
from broker.matching.rendering.matchnodes import MatchNodes
from broker.matching.uses import Use
from xscl.comparison import Operand, PathFrom, term
from xscl.evaluation import values_of_optional
from xscl.query import Query

__all__ = ["AsideMatches", "AsidePiece", "PlainClause"]

_Place = tuple[int, bool]
"""Which of the terms that are read, and whether it is a path."""


class PlainClause:
    """Where the keys of a clause are among what is read of it, and what HAVING counts."""

    def __init__(self, reader: ClauseReader, query: Query) -> None:
        count = 0 if query.rows is None else len(query.rows.keys)
        keys = reader.outcome[:count]
        # Of what is only counted nothing is read.
        counted = None if reader.clause.counts else counted_aggregates(query)
        self.is_plain = counted is not None and all(map(are_plain, keys))
        places = {name: k for k, name in enumerate(reader.names)}

        def place_of(operand: Operand) -> _Place:
            return places[term(operand)], isinstance(operand, PathFrom)

        arguments = [
            argument
            for number in sorted(counted or ())
            for argument in reader.arguments[count + number]
        ]
        if self.is_plain:
            self.keys = [place_of(each) for each in keys]
            self.counted = [place_of(each) for each in arguments if are_plain(each)]


@dataclass(frozen=True, slots=True, eq=False)
class AsidePiece:
    """Hits, with what is read of each: a row in each of the columns.

    `rows` has of each what tells its match from others of its source: the number of its form, how
    many documents it has, these, and its visible nodes.
    """

    uses: Sequence[Use]
    terms: Sequence[ClauseTerms]
    which: Sequence[int]
    rows: Sequence[tuple[int, ...]]
    places: Ints
    readers: Sequence[ClauseReader]
    clauses: Sequence[PlainClause]
    texts: Sequence[tuple[str | None, ...]]
    documents: MatchedDocuments

    def read(self) -> tuple[list[list[Keys]], list[int]]:
        """Return the keys of each hit, and how many values it has of anything that HAVING counts.

        Keys are each choice of a value for each of them.
        """
        keys: list[list[Keys]] = []
        counts: list[int] = []
        clauses = self.clauses
        for use, texts in zip(self.which, self.texts, strict=True):
            clause = clauses[use]
            own = [_values(texts[k], is_path) for k, is_path in clause.keys]
            keys.append(_choices(own))
            counted = [len(_values(texts[k], is_path)) for k, is_path in clause.counted]
            counts.append(max(1, *counted) if counted else 1)
        return keys, counts

    def leaves(self) -> Iterator[int]:
        """Yield the numbers of the documents, some of them several times."""
        for row in self.rows:
            yield from row[2 : 2 + row[1]]

    def match(self, hit: int) -> Matched:
        """Return the match of a hit."""
        use, row = self.which[hit], self.rows[hit]
        behind = 2 + row[1]
        nodes = MatchNodes(row[2:behind], row[behind:], self.terms[use].form)
        place, topic = self.places[hit].tolist(), self.uses[use].topic
        match = Matched(place, nodes, topic, self.readers[use], self.documents)
        match.readings.append(self.reading(hit))
        return match

    def reading(self, hit: int) -> TupleReading:
        """Return a hit as keys and aggregates read it."""
        names = self.readers[self.which[hit]].names
        start_us, end_us = self.places[hit, 4:].tolist()
        given = self.uses[self.which[hit]].topic.parameters
        values = dict(zip(names, self.texts[hit], strict=False))
        return TupleReading(values, start_us, end_us, given)


def _values(text: str | None, is_path: bool) -> Sequence[str]:
    if text is None:
        return ()
    if not is_path:
        return (text,)
    return values_of_optional(text)  # type: ignore[return-value]


def _choices(values: Sequence[Sequence[str]]) -> list[Keys]:
    if len(values) == 1 and len(values[0]) == 1:
        return [(values[0][0],)]
    return list(product(*map(dict.fromkeys, values)))


class AsideMatches:
    """The matches of one source that were set aside in a batch."""

    def __init__(self) -> None:
        self._first: dict[Hashable, tuple[AsidePiece, int]] = {}
        self._several: dict[Hashable, list[tuple[AsidePiece, int]]] = {}

    def add(self, key: Hashable, piece: AsidePiece, hit: int) -> bool:
        """Add a hit of a match, which the key tells from others; return whether it is the first."""
        first = self._first.get(key)
        if first is None:
            self._first[key] = piece, hit
            return True
        self._several.setdefault(key, [first]).append((piece, hit))
        return False

    def leaves(self) -> set[int]:
        """Return the numbers of the documents."""
        pieces = dict.fromkeys([piece for piece, _ in self._first.values()])
        return {number for piece in pieces for number in piece.leaves()}

    def several(self) -> Iterator[Matched]:
        """Yield the matches of several hits."""
        for (piece, hit), *others in self._several.values():
            match = piece.match(hit)
            match.readings += [other.reading(own) for other, own in others]
            yield match

    def single(self) -> dict[AsidePiece, list[int]]:
        """Return the hits of each piece that are a match alone."""
        found: dict[AsidePiece, list[int]] = {}
        for key, (piece, hit) in self._first.items():
            if key not in self._several:
                found.setdefault(piece, []).append(hit)
        return found
