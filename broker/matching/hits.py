"""Which uses admit which tuples, in columns: what a table of tuples is to the ones who asked.

A hit is a tuple and a use.  Terms are numbered by clause (`clauseterms`), so what is read of hits
of many clauses is one matrix: a row for each hit, a column for each number of a term.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from broker.matching.boxes.columns import Flags, Ints
from broker.matching.boxes.forms import of_value
from broker.matching.boxes.operands import CodedTexts
from broker.matching.boxes.points import Points
from broker.matching.clauseterms import ClauseTerms
from broker.matching.likenesses import spell_likenesses
from broker.matching.uses import Use
from joins import ranges
from templates.clause import BAR, SPAN, TAKEN, WINDOW, Measured, Place
from xscl.functions import spell
from xscl.pattern import INEQUALITIES

__all__ = ["Hits", "TupleReading"]

NOWHERE = -1
"""The place of the value of a term that has no node, or that a clause does not have."""

_MADE: frozenset[Place | Measured] = frozenset((SPAN, WINDOW, BAR, TAKEN))


@dataclass(frozen=True)
class Hits:
    """Tuples, by their rows in `points`, each with one of the `uses`.

    `which` says of each hit which use it is of; `terms` are those of the use's clause.
    """

    points: Points
    rows: Ints
    uses: Sequence[Use]
    terms: Sequence[ClauseTerms]
    which: Ints

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, some: Flags | Ints) -> Hits:
        """Return some of the hits."""
        return Hits(self.points, self.rows[some], self.uses, self.terms, self.which[some])

    def alone(self, some: Ints) -> Hits:
        """Return some of the hits, with no uses but theirs."""
        used, which = np.unique(self.which[some], return_inverse=True)
        numbers = used.tolist()
        uses, terms = ([each[i] for i in numbers] for each in (self.uses, self.terms))
        return Hits(self.points, self.rows[some], uses, terms, which)

    @cached_property
    def docids(self) -> Ints:
        """The docid at which each tuple stands."""
        return self.points.docids[self.rows]

    @cached_property
    def docids_max(self) -> Ints:
        """The newest document from outside behind each tuple."""
        return self.points.docids_max[self.rows]

    @property
    def are_blocks(self) -> Flags:
        """Which tuples are documents as a block has them, which a decision reads."""
        points = self.points
        are_blocks: Flags = points.tuples.right[self.rows] == 0
        are_blocks &= points.operands.are_documents[points.left[self.rows]]
        if points.tuples.decided is not None:
            are_blocks &= points.tuples.decided[self.rows, 0] == 0
        return are_blocks

    @cached_property
    def _clauses(self) -> tuple[list[ClauseTerms], Ints]:
        """The different clauses, and which of them each hit is of."""
        numbers: dict[ClauseTerms, int] = {}
        of_use = np.array([numbers.setdefault(each, len(numbers)) for each in self.terms], np.int64)
        return list(numbers), of_use[self.which]

    def by_clause(self, values: Iterable[int]) -> Ints:
        """Return one value of each clause, in the order of `clauses`, for each hit."""
        _, of_hit = self._clauses
        return np.array(list(values), np.int64)[of_hit]

    @property
    def clauses(self) -> list[ClauseTerms]:
        """The different clauses of the hits."""
        return self._clauses[0]

    # -- what the join and the index have compared by hashes

    def are_true(self) -> Flags:
        """Return of which hits the values that joined or were asked for are equal."""
        return self._have_equal_values() & self._have_strings()

    def _have_equal_values(self) -> Flags:
        _, first, inverse = np.unique(self.rows, return_index=True, return_inverse=True)
        some = self.take(first)
        joined = [each.joined for each in self.clauses]
        own, _, left = some._places([[one for one, _ in pairs] for pairs in joined])
        _, _, right = some._places([[other for _, other in pairs] for pairs in joined])
        are_true = np.ones(len(first), np.bool_)
        are_true[own[~self.points.operands.are_equal(left, right)]] = False
        return are_true[inverse]

    def _have_strings(self) -> Flags:
        own, k, at = self._places(
            [[of_value(test.place) for test in each.equal] for each in self.clauses]
        )
        are_true = np.ones(len(self), np.bool_)
        if len(own):
            asked = [
                use.strings(each.equal) for use, each in zip(self.uses, self.terms, strict=True)
            ]
            wanted = zip(self.which[own].tolist(), k.tolist(), strict=True)
            texts = self.points.operands.texts(at)
            spans = self.points.spans[self.rows[own]].tolist()
            equal = [
                asked[use][i] == (text if self.terms[use].equal[i].place != WINDOW else str(span))
                for (use, i), text, span in zip(wanted, texts, spans, strict=True)
            ]
            are_true[own[~np.array(equal)]] = False
        return are_true

    def _places(self, places: Sequence[Sequence[Place]]) -> tuple[Ints, Ints, Ints]:
        """Return where the values at some places are, given for each clause.

        It is a hit, the number of the place, and where in the operands, for each of the places.
        """
        counts = np.array([len(each) for each in places], np.int64)
        flat = np.array([each for some in places for each in some], np.int64).reshape(-1, 3)
        starts = np.cumsum(counts) - counts
        _, of_hit = self._clauses
        own = np.repeat(np.arange(len(self)), counts[of_hit])
        found = ranges(starts[of_hit], counts[of_hit])
        at = self.points.values_at(self.rows[own], *flat[found].T)
        return own, found - starts[of_hit][own], at

    # -- terms

    @cached_property
    def at(self) -> Ints:
        """Where the value of each term is in the operands: a row for each hit."""
        width = max((len(each.names) for each in self.clauses), default=0)
        at = np.full((len(self), width), NOWHERE)
        own, k, found = self._places([each.places for each in self.clauses])
        at[own, k] = found
        return at

    @cached_property
    def nodes(self) -> Ints:
        """The node number of each term, 0 where it has none."""
        numbers: Ints = np.append(self.points.operands.nodes, 0)[self.at]
        return numbers

    def numbers(self, terms: Sequence[Sequence[int]]) -> Ints:
        """Return the nodes of some terms, given for each clause, -1 behind the last of a hit."""
        counts = np.array([len(each) for each in terms], np.int64)
        starts = np.cumsum(counts) - counts
        flat = np.array([term for each in terms for term in each], np.int64)
        _, of_hit = self._clauses
        found = np.full((len(self), int(counts.max(initial=0))), NOWHERE)
        own = np.repeat(np.arange(len(self)), counts[of_hit])
        which = ranges(starts[of_hit], counts[of_hit])
        found[own, which - starts[of_hit][own]] = self.nodes[own, flat[which]]
        return found

    @cached_property
    def nbytes(self) -> Ints:
        """The bytes of the values of all terms of each hit."""
        sizes: Ints = np.append(self.points.operands.sizes, 0)[self.at].sum(axis=1)
        for hit, k in self._instants():
            sizes[hit] += len(self._instant(hit, k))
        return sizes

    def _instants(self) -> Iterable[tuple[int, int]]:
        """Return each hit with each of its terms that are times."""
        counts = self.by_clause(len(each.instants) for each in self.clauses)
        first = self.by_clause(len(each.places) for each in self.clauses)
        own = np.repeat(np.arange(len(self)), counts)
        return zip(own.tolist(), ranges(first, counts).tolist(), strict=True)

    def _instant(self, hit: int, k: int) -> str:
        points, terms = self.points, self.terms[self.which[hit]]
        side, is_end = terms.instants[k - len(terms.places)]
        operand = (points.right if side else points.left)[self.rows[hit]]
        name = "end_us" if is_end else "start_us"
        return str(points.operands.rows.column(name)[int(operand)].as_py())

    def texts(self, hits: Ints, terms: Ints) -> list[str | None]:
        """Return the values of some terms of some hits."""
        at = self.at[hits, terms]
        distinct, inverse = np.unique(at, return_inverse=True)
        is_first = int(len(distinct) > 0 and distinct[0] == NOWHERE)
        known = [None] * is_first + self.points.operands.texts(distinct[is_first:])
        texts = [known[i] for i in inverse.tolist()]
        for i in np.flatnonzero(at == NOWHERE).tolist():
            texts[i] = self._instant(int(hits[i]), int(terms[i]))
        return texts

    def coded(self, hits: Ints, terms: Ints) -> CodedTexts:
        """Return the values of some terms of some hits."""
        at = self.at[hits, terms]
        if (at == NOWHERE).any():
            return CodedTexts.of(pa.array(self.texts(hits, terms), pa.string()))
        return self.points.operands.coded(at)

    def tested(self) -> tuple[Ints, CodedTexts]:
        """Return how many values boxes of clauses above test of each hit, and all of these values.

        Of a span it is microseconds, of a measure its double.
        """
        tested = [terms.clause.tested for terms in self.clauses]
        own, k, at = self._places([list(map(_read, places)) for places in tested])
        places = [place for some in tested for place in some]
        first = np.cumsum([0, *map(len, tested)])[:-1]
        of_place = self.by_clause(first)[own] + k
        made = [place in _MADE or isinstance(place, Measured) for place in places]
        are_made = np.array(made, np.bool_)[of_place]
        nodes, others = np.flatnonzero(~are_made), np.flatnonzero(are_made)
        known = self.points.operands.coded(at[nodes])
        values = self._made([places[i] for i in of_place[others].tolist()], own[others])
        codes = np.empty(len(own), np.int64)
        codes[nodes], codes[others] = known.codes, values.codes_behind(known.texts)
        return np.bincount(own, minlength=len(self)), CodedTexts(codes, known.texts + values.texts)

    def _made(self, places: list[Place | Measured], hits: Ints) -> CodedTexts:
        """Return what the tuples of some hits have at places that are no nodes."""
        rows = self.rows[hits]
        found: dict[Place | Measured, list[int]] = {}
        for i, place in enumerate(places):
            found.setdefault(place, []).append(i)
        codes, texts = np.empty(len(places), np.int64), list[str]()
        for place, some in found.items():
            values = self._values_of(place, rows[some])
            codes[some] = values.codes_behind(texts)
            texts += values.texts
        return CodedTexts(codes, texts)

    def _values_of(self, place: Place | Measured, rows: Ints) -> CodedTexts:
        """Return what some tuples have at a place that is no node."""
        points = self.points
        if isinstance(place, Measured):
            return CodedTexts.of(pa.array(map(repr, points.measured(place, rows).tolist())))
        if place == BAR:
            return CodedTexts.of(pa.array(map(spell, points.bars[rows].tolist())))
        if place == TAKEN:
            return CodedTexts.of(pa.array(points.tuples.taken_or_none()[rows], pa.string()))
        spans, inverse = np.unique(points.spans[rows], return_inverse=True)
        return CodedTexts(inverse, list(map(str, spans.tolist())))

    def bounds(self) -> Ints:
        """Return what groups hold tuples against (`GroupColumns`).

        A clause with fewer operators below it has the smallest numbers behind its own.
        """
        below = [
            [of_value(test.place) for test in terms.clause.box if test.operator in INEQUALITIES]
            if terms.clause.is_common
            else []
            for terms in self.clauses
        ]
        width = 2 + max(map(len, below), default=0)
        found = np.full((len(self), width), np.iinfo(np.int64).min)
        found[:, 0] = self.points.spans[self.rows]
        found[:, 1] = -self.points.docids_min[self.rows]
        own, k, at = self._places(below)
        found[own, 2 + k] = np.array(self.points.operands.texts(at), np.dtype("U")).astype(np.int64)
        return found

    @cached_property
    def leaves(self) -> tuple[Ints, Ints]:
        """The documents behind each tuple, -1 behind the last, and how many they are."""
        points, operands = self.points, self.points.operands
        left, right = points.left[self.rows], points.right[self.rows]
        counts, starts = np.diff(operands.leaf_starts), operands.leaf_starts
        own = counts[left]
        lengths = own + np.where(points.tuples.right[self.rows] > 0, counts[right], 0)
        leaves = np.full((len(self), int(lengths.max(initial=0))), NOWHERE)
        for k in range(leaves.shape[1]):
            at = np.where(k < own, starts[left] + k, starts[right] + k - own)
            has = np.flatnonzero(k < lengths)
            leaves[has, k] = operands.leaves[at[has]]
        return leaves, lengths

    # -- conditions

    def satisfy(self) -> Flags:
        """Return which hits satisfy what their clauses ask that the join does not test."""
        are_open = self.by_clause(
            bool(each.clause.residuals or each.clause.tests) for each in self.clauses
        )
        held = np.ones(len(self), np.bool_)
        own = np.flatnonzero(are_open)
        for hit, terms, reading in self.readings(own):
            held[hit] = terms.clause.condition(reading)
        return held

    def likenesses(self) -> list[str]:
        """Return what the similarity joins of each tuple have found, as JSON."""
        are_similar = self.by_clause(bool(each.clause.similar) for each in self.clauses)
        found = [""] * len(self)
        for hit, terms, reading in self.readings(np.flatnonzero(are_similar)):
            found[hit] = spell_likenesses(terms.clause.similar, reading)
        return found

    def readings(self, own: Ints) -> Iterator[tuple[int, ClauseTerms, TupleReading]]:
        """Yield some hits as conditions read them, each with the terms of its clause."""
        if not len(own):
            return
        counts = self.by_clause(len(each.names) for each in self.clauses)[own]
        texts = self.texts(np.repeat(own, counts), ranges(np.zeros_like(counts), counts))
        ends = np.cumsum(counts)
        intervals = (each.tolist() for each in self.points.intervals(self.rows[own]))
        columns = (own, self.which[own], ends - counts, ends)
        for hit, use, first, last, start_us, end_us in zip(
            *(column.tolist() for column in columns), *intervals, strict=True
        ):
            terms, parameters = self.terms[use], self.uses[use].topic.parameters
            values = dict(zip(terms.names, texts[first:last], strict=True))
            yield hit, terms, TupleReading(values, start_us, end_us, parameters)


@dataclass(frozen=True, slots=True)
class TupleReading:
    """A tuple under one assignment, as conditions read it."""

    values: Mapping[str, str | None]
    start_us: int
    end_us: int
    parameters: Mapping[str, Any]

    def value(self, name: str) -> str:
        """Return the value of a term."""
        value = self.values[name]
        assert value is not None
        return value


def _read(place: Place | Measured) -> Place:
    """Return the place whose value is read; of a number that is made, some place."""
    return place.left if isinstance(place, Measured) else place
