"""Which uses admit which tuples, in columns: what a table of tuples is to the ones who asked.

A hit is a tuple and a use.  Terms are numbered by clause (`clauseterms`), so what is read of hits
of many clauses is one matrix: a row for each hit, a column for each number of a term.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from broker.matching.boxes.columns import Flags, Ints, distinct
from broker.matching.boxes.lists import GrowingLists
from broker.matching.boxes.numbers import are_solved, is_made, numbers_of
from broker.matching.boxes.operands import CodedTexts
from broker.matching.boxes.points import Points
from broker.matching.clauseterms import NODE, ClauseFacts, ClauseTerms, TermTable
from broker.matching.heldvalues import bounds_of, excluded_of
from broker.matching.likenesses import spell_likenesses
from broker.matching.usegroups import FoundUses
from broker.matching.uses import Strings
from joins import ranges
from templates.box import TAKEN, WINDOW, FoundBy, Made, Solution, TestedPlace
from xscl.evaluation import compile_operand
from xscl.functions import spell, to_double
from xscl.path import Parameter
from xscl.solving import LARGEST_SOLVED

__all__ = ["Hits", "TupleReading"]

NOWHERE = -1
"""The place of the value of a term that has no node, or that a clause does not have."""


@dataclass(frozen=True)
class Hits:
    """Tuples, by their rows in `points`, each with one of the `uses`.

    `which` says of each hit which use it is of; `table` has the terms of the use's clause under one
    of the `clause_numbers`.  `owners` are the numbers of the queries that alone have the hits of a
    use of groups, negative where several may.  `made` has the texts that are made of each tuple, in
    the order of `ClauseTerms.made`; None where no clause makes any.
    """

    points: Points
    rows: Ints
    uses: FoundUses
    owners: Ints
    table: TermTable
    clause_numbers: Ints
    which: Ints
    made: npt.NDArray[np.object_] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, some: Flags | Ints) -> Hits:
        """Return some of the hits."""
        given = self.uses, self.owners, self.table, self.clause_numbers
        return self._with(Hits(self.points, self.rows[some], *given, self.which[some]), some)

    def alone(self, some: Ints) -> Hits:
        """Return some of the hits, with no uses but theirs."""
        used, _, which = distinct(self.which[some])
        given = self.uses.take(used), self.owners[used], self.table, self.clause_numbers[used]
        return self._with(Hits(self.points, self.rows[some], *given, which), some)

    def _with(self, taken: Hits, some: Flags | Ints) -> Hits:
        """Return some of the hits with what is known already of where their values are."""
        if self.made is not None:
            taken = replace(taken, made=self.made[some])
        if "at" in vars(self):
            vars(taken)["at"] = self.at[some]
        return taken

    def with_texts(self) -> Hits:
        """Return the hits once for each choice of the texts that are made of their tuples.

        One of which a text is empty is left out: it would join nothing.
        """
        are_made = self._facts.are_made > 0
        if not are_made.any():
            return self
        choices: list[list[tuple[str, ...]]] = [[()]] * len(self)
        values_of = {
            terms: [compile_operand(made.operand) for made in terms.made] for terms in self.clauses
        }
        for hit, terms, reading in self.readings(np.flatnonzero(are_made)):
            texts = [map(spell, values(reading)) for values in values_of[terms]]
            choices[hit] = [*product(*(filter(None, each) for each in texts))]
        found = self.take(np.repeat(np.arange(len(self)), [*map(len, choices)]))
        made = np.empty(len(found), np.object_)
        made[:] = [choice for each in choices for choice in each]
        return replace(found, made=made)

    @cached_property
    def texts_made(self) -> tuple[Ints, int]:
        """The number of the texts that are made of each tuple, and how many of these differ."""
        if self.made is None:
            return np.zeros(len(self), np.int64), 1
        numbers: dict[tuple[str, ...], int] = {}
        codes = [numbers.setdefault(each, len(numbers)) for each in self.made]
        return np.array(codes, np.int64), len(numbers)

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
        """Which tuples are documents as a block has them, which a decision reads.

        What is handed on by data that an index finds is as many tuples as these are.
        """
        points = self.points
        are_blocks: Flags = points.tuples.right[self.rows] == 0
        are_blocks &= points.operands.are_documents[points.left[self.rows]]
        if points.tuples.decided is not None:
            are_blocks &= points.tuples.decided[self.rows, 0] == 0
        are_blocks &= self._facts.count_by_data == 0
        return are_blocks

    @cached_property
    def terms(self) -> Sequence[ClauseTerms]:
        """The terms of the clause of each use."""
        return [self.table[number] for number in self.clause_numbers.tolist()]

    @cached_property
    def _of_hits(self) -> Ints:
        """The number of the clause of each hit."""
        numbers: Ints = self.clause_numbers[self.which]
        return numbers

    @cached_property
    def _facts(self) -> ClauseFacts:
        """The facts of each hit's clause, in columns."""
        return self.table.facts(self._of_hits)

    @property
    def streams(self) -> Ints:
        """Which of the streams of the table each hit is handed on as."""
        return self._facts.streams

    @cached_property
    def found_by(self) -> tuple[Ints, Sequence[Strings]]:
        """The strings by which hits are found: which each has, none where it hands on no data."""
        if not self._facts.are_by_data.any():
            return np.zeros(len(self), np.int64), [()]
        of_use = [
            use.finding if each.clause.is_by_data else ()
            for use, each in zip(self.uses, self.terms, strict=True)
        ]
        numbers: dict[Strings, int] = {}
        codes = [numbers.setdefault(data, len(numbers)) for data in of_use]
        return np.array(codes, np.int64)[self.which], [*numbers]

    @property
    def are_inner(self) -> Flags:
        """Which hits are of inner operators."""
        are_inner: Flags = self._facts.are_inner > 0
        return are_inner

    @property
    def have_words(self) -> Flags:
        """Which hits are of clauses that look for words in texts: several groups may have them."""
        have_words: Flags = self._facts.have_words > 0
        return have_words

    @property
    def have_factors(self) -> Flags:
        """Which hits have factors of a confidence."""
        have_factors: Flags = self._facts.have_factors > 0
        return have_factors

    @cached_property
    def _clauses(self) -> tuple[list[ClauseTerms], Ints]:
        """The different clauses, and which of them each hit is of."""
        numbers, _, of_use = distinct(self.clause_numbers)
        return [self.table[number] for number in numbers.tolist()], of_use[self.which]

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
        if not self.table.joined.counts(self.clause_numbers).any():
            return np.ones(len(self), np.bool_)
        _, first, inverse = distinct(self.rows)
        some = self.take(first)
        own, _, both = self.table.joined.taken(some._of_hits)
        left, right = (
            some.points.values_at(some.rows[own], *each) for each in (both[:3], both[3:])
        )
        are_true = np.ones(len(first), np.bool_)
        are_true[own[~self.points.operands.are_equal(left, right)]] = False
        return are_true[inverse]

    def _have_strings(self) -> Flags:
        own, k, at = self._places(self.table.equal)
        are_true = np.ones(len(self), np.bool_)
        if len(own):
            asked = [use.equal for use in self.uses]
            wanted = zip(self.which[own].tolist(), k.tolist(), strict=True)
            texts = self.points.operands.texts(at)
            spans = self.points.spans[self.rows[own]].tolist()
            equal = [
                asked[use][i] == (text if self.terms[use].equal[i].place != WINDOW else str(span))
                for (use, i), text, span in zip(wanted, texts, spans, strict=True)
            ]
            are_true[own[~np.array(equal)]] = False
        return are_true

    def _places(self, places: GrowingLists) -> tuple[Ints, Ints, Ints]:
        """Return where the values at some places are, given for each clause.

        It is a hit, the number of the place, and where in the operands, for each of the places.
        """
        own, k, found = places.taken(self._of_hits)
        return own, k, self.points.values_at(self.rows[own], *found)

    # -- terms

    @cached_property
    def at(self) -> Ints:
        """Where the value of each term is in the operands: a row for each hit."""
        width = int((self._facts.places + self._facts.instants).max(initial=0))
        at = np.full((len(self), width), NOWHERE)
        own, k, found = self._places(self.table.places)
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
        """The bytes of the values that the query asks for of each hit.

        Values that others ask for are there, too, and cost it nothing.
        """
        own, _, [terms] = self.table.valued.taken(self._of_hits)
        of_terms = np.append(self.points.operands.sizes, 0)[self.at[own, terms]]
        sizes: Ints = np.bincount(own, of_terms, len(self)).astype(np.int64)
        for hit, k in self._instants():
            sizes[hit] += len(self._instant(hit, k))
        return sizes

    def _instants(self) -> Iterable[tuple[int, int]]:
        """Return each hit with each of its terms that are times."""
        counts, first = self._facts.instants, self._facts.places
        own = np.arange(len(self)).repeat(counts)
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
        places, inverse = np.unique(at, return_inverse=True)
        is_first = int(len(places) > 0 and places[0] == NOWHERE)
        known = [None] * is_first + self.points.operands.texts(places[is_first:])
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

    def carried(self) -> tuple[Ints, Ints, Flags]:
        """Return the terms that hits hand on, in order: (hit, term, whether with its value)."""
        own, _, [terms, are_valued] = self.table.carried.taken(self._of_hits)
        return own, terms, are_valued > 0

    def tested(self) -> tuple[Ints, CodedTexts]:
        """Return how many values boxes of clauses above test of each hit, and all of these values.

        Of a span it is microseconds, of a number that is made its double.
        """
        own, _, (*places, kinds) = self.table.tested.taken(self._of_hits)
        nodes, others = (kinds == NODE).nonzero()[0], (kinds != NODE).nonzero()[0]
        at = self.points.values_at(self.rows[own[nodes]], *(column[nodes] for column in places))
        known = self.points.operands.coded(at)
        values = self._made(kinds[others], own[others])
        codes = np.empty(len(own), np.int64)
        codes[nodes], codes[others] = known.codes, values.codes_behind(known.texts)
        return np.bincount(own, minlength=len(self)), CodedTexts(codes, known.texts + values.texts)

    def _made(self, kinds: Ints, hits: Ints) -> CodedTexts:
        """Return what the tuples of some hits have at places that are no nodes."""
        codes, texts = np.empty(len(kinds), np.int64), list[str]()
        for kind in np.unique(kinds).tolist():
            some = np.flatnonzero(kinds == kind)
            values = self._values_of(self.table.made[kind], hits[some])
            codes[some] = values.codes_behind(texts)
            texts += values.texts
        return CodedTexts(codes, texts)

    def _values_of(self, place: TestedPlace, hits: Ints) -> CodedTexts:
        """Return what the tuples of some hits have at a place that is no node."""
        points, rows = self.points, self.rows[hits]
        if isinstance(place, FoundBy):
            codes, data = self.found_by
            which, inverse = np.unique(codes[hits], return_inverse=True)
            return CodedTexts(inverse, [place.text(data[code]) for code in which.tolist()])
        if isinstance(place, Made):
            assert self.made is not None
            own = [self.terms[use].made.index(place) for use in self.which[hits].tolist()]
            texts = [each[i] for each, i in zip(self.made[hits], own, strict=True)]
            return CodedTexts.of(pa.array(texts, pa.string()))
        if is_made(place):
            numbers, inverse = np.unique(numbers_of(points, place, rows), return_inverse=True)
            return CodedTexts(inverse, [_spelled(number) for number in numbers.tolist()])
        if place == TAKEN:
            return CodedTexts.of(pa.array(points.tuples.taken_or_none()[rows], pa.string()))
        spans, inverse = np.unique(points.spans[rows], return_inverse=True)
        return CodedTexts(inverse, list(map(str, spans.tolist())))

    @cached_property
    def bounds(self) -> Ints:
        """What groups hold tuples against that is bounded (`heldvalues`)."""
        return bounds_of(self.points, self.rows, self.table.bounds, self.table.made, self._of_hits)

    @cached_property
    def excluded(self) -> Ints:
        """What groups hold tuples against that is excluded (`heldvalues`)."""
        return excluded_of(self.points, self.rows, self.table.excluded, self._of_hits)

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
            has = (k < lengths).nonzero()[0]
            leaves[has, k] = operands.leaves[at[has]]
        return leaves, lengths

    # -- conditions

    def satisfy(self) -> Flags:
        """Return which hits satisfy what their clauses ask that the join does not test."""
        held = np.ones(len(self), np.bool_)
        own = ((self._facts.are_open > 0) | self._are_unsolved()).nonzero()[0]
        for hit, terms, reading in self.readings(own):
            held[hit] = terms.clause.condition(reading)
        return held

    def _are_unsolved(self) -> Flags:
        """Return of which hits a comparison is not decided by its solution."""
        found = np.zeros(len(self), np.bool_)
        some = self._facts.are_solved.nonzero()[0]
        for number in np.unique(self._of_hits[some]).tolist():
            own = some[self._of_hits[some] == number]
            for test in self.table[number].clause.box:
                place, data = test.place, test.data
                if isinstance(place, Solution):
                    found[own] |= ~are_solved(self.points, place, self.rows[own])
                    if isinstance(data, Parameter):
                        given = (self.uses[use].topic.parameters for use in self.which[own])
                        read = test.form.read
                        data_of = (read(each[data.name], test.operator) for each in given)
                        numbers = np.array([*map(to_double, data_of)])
                        found[own] |= np.abs(numbers) > LARGEST_SOLVED
        return found

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


def _spelled(number: float) -> str:
    """Return a number as boxes above read it: Python is quicker with those that are finite."""
    return repr(number) if isfinite(number) else spell(number)


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
