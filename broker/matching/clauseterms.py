"""What a clause's tuples are read by: its terms, and which of them a match shows or compares."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from broker.matching.boxes.columns import Ints
from broker.matching.boxes.form import BoundPlace, of_value
from broker.matching.boxes.lists import GrowingLists
from broker.matching.rendering.form import MatchForm, MatchForms
from templates.box import (
    BAR,
    SPAN,
    TAKEN,
    WINDOW,
    Instant,
    Made,
    Number,
    Place,
    Test,
    TestedPlace,
    place_at,
)
from templates.clause import Clause
from templates.factor import Factor
from xscl.pattern import INEQUALITIES
from xscl.query import Query, Variable, term
from xscl.texttests import NEGATED

__all__ = ["NODE", "SPANNED", "ClauseFacts", "ClauseTerms", "TermTable"]

_MADE = frozenset((SPAN, WINDOW, BAR, TAKEN))

NODE = -1
"""Stands for a tested place that is a node's."""

SPANNED = -2
"""Stands for a tested place that is the span of an operator below."""

_SPARE = 100
"""Clauses that may be gone, beside as many as are there, before a table is made anew."""


@dataclass(frozen=True, slots=True, eq=False)
class ClauseTerms:
    """The terms of a clause's operands, those without a node last.

    `places` say where the nodes are, `instants` what the terms without one are.  The rest are
    places among the terms: of a root the visible nodes of a match (`form`; where there are `runs`
    it depends on them, by `forms`), and what its witness tuples show, each with its place among the
    query's variables; of another what is handed on.
    `counted` is the place of runs that are counted, -1 where none are.
    `made` are the texts that are made of tuples, `equal` the tests of the box against strings,
    `joined` the places of the values that the join has found equal, `timed` the times that the
    clause's factors ask for.
    """

    clause: Clause
    names: tuple[str, ...]
    places: tuple[Place, ...]
    instants: tuple[Instant, ...]
    forms: MatchForms | None
    form: MatchForm | None
    runs: tuple[int, ...]
    counted: int
    visible: tuple[int, ...]
    compared: tuple[tuple[int, int], ...]
    carried: tuple[int, ...]
    made: tuple[Made, ...]
    equal: tuple[Test, ...]
    joined: tuple[tuple[Place, Place], ...]
    timed: tuple[int, ...]

    @classmethod
    def of(cls, query: Query, clause: Clause) -> ClauseTerms:
        """Return the terms of a clause of a query."""
        names, places, instants = _named(clause)
        at = {name: i for i, name in enumerate(names)}
        forms = None if clause.stream else MatchForms(query)
        counted = "" if clause.stream else clause.counts
        runs = forms.run_terms(clause.blocks) if forms and not counted else []
        form = forms.of(clause.blocks, []) if forms and not runs and not counted else None
        compared = [
            (i, at[variable.name])
            for i, variable in enumerate(_in_order(query))
            if variable.name in clause.compared and variable.block in clause.blocks
        ]
        return cls(
            clause,
            names,
            places,
            instants,
            forms,
            form,
            tuple([at[name] for name in runs]),
            at[counted] if counted else -1,
            tuple([at[name] for name, _ in form.visible]) if form else (),
            () if clause.stream else tuple(compared),
            tuple([at[name] for name in clause.carried]) if clause.stream else (),
            clause.made,
            tuple(_equal(clause)),
            tuple(_joined(clause)),
            tuple([at[name] for name in dict.fromkeys(_times(clause))]),
        )

    @property
    def factors(self) -> tuple[Factor, ...]:
        """The factors of a root's confidence."""
        return self.clause.factors


def _in_order(query: Query) -> list[Variable]:
    return sorted(query.variables, key=lambda variable: variable.block)


def _named(clause: Clause) -> tuple[tuple[str, ...], tuple[Place, ...], tuple[Instant, ...]]:
    """Return the terms, where those are that have a node, and what the others behind them are."""
    left_size = clause.query_class.template.left_size
    places = {name: place_at(int(at >= left_size), at) for name, at in clause.places.items()}
    instants: dict[str, Instant] = {}
    for side, source in enumerate(clause.sources):
        if source.below is not None:
            for position, name in enumerate(source.below.carried, 1):
                places[name] = place_at(side, -1, position)
        for call in source.instants:
            instants[term(call)] = Instant(side, call.function != "start")
    for name in instants.keys() & places.keys() if instants else ():
        del places[name]
    return (*places, *instants), tuple(places.values()), tuple(instants.values())


def _times(clause: Clause) -> Iterator[str]:
    return (term(call) for factor in clause.factors for call in factor.terms())


def _equal(clause: Clause) -> list[Test]:
    """Return the tests of a clause's box against strings."""
    return [test for test in clause.box if test.operator == "=" and not test.is_of_several]


def _joined(clause: Clause) -> Iterator[tuple[Place, Place]]:
    template = clause.query_class.template
    size = template.left_size
    for left, right in template.value_joins:
        yield place_at(int(left >= size), left), place_at(int(right >= size), right)


class ClauseFacts(NamedTuple):
    """Some clauses in columns: which of the streams of their table each hands on, if it does.

    Further columns are how many terms have a node, how many are times, and, 0 or 1, whether
    something is asked that neither the join tests nor a box, whether a box has solved something
    that may have to be asked, whether texts are made of tuples, whether these are handed on by
    data, and count for each, whether the box looks for words in texts, so that several groups may
    have a tuple, and whether a confidence has factors.
    """

    streams: Ints
    are_inner: Ints
    places: Ints
    instants: Ints
    are_open: Ints
    are_solved: Ints
    are_made: Ints
    are_by_data: Ints
    count_by_data: Ints
    have_words: Ints
    have_factors: Ints


class TermTable:
    """The terms of clauses, which get numbers, and in columns what is read of many clauses at once.

    Of each stream that clauses hand tuples on in there are the name and the variables of its nodes.
    Where statements differ, each tuple that is handed on is of a clause of its own: what is read of
    it is no loop over clauses.  A row of `places` and `equal` is a place, one of `joined` two.
    A row of `tested`, whose values boxes of clauses above test, is a place, and which of `made` it
    is where the value is no node's, but made of the tuple; so is one of `bounds`, which groups are
    held against (`Hits.bounds`), and says besides whether it is from below, and strict.  A row of
    `excluded`, which uses of a group may exclude, is a place, and of which kind (`Excluded`).  No
    number of a clause is given twice.
    """

    def __init__(self) -> None:
        self._numbers: dict[Clause, int] = {}
        # What only few are asked for is made when they are.
        self._terms: dict[int, ClauseTerms] = {}
        self._clauses: dict[int, tuple[Query, Clause]] = {}
        self._next = 0
        self._streams: dict[str, int] = {}
        self.streams: list[str] = []
        self.variables: list[tuple[int, ...]] = []
        self.places, self.equal = GrowingLists(3), GrowingLists(3)
        self.joined, self.tested, self.bounds = GrowingLists(6), GrowingLists(4), GrowingLists(6)
        self.carried, self.excluded = GrowingLists(2), GrowingLists(4)
        self.valued = GrowingLists(1)
        self._facts = GrowingLists(len(ClauseFacts._fields))
        self._kinds: dict[TestedPlace, int] = {}
        self.made: list[TestedPlace] = []

    def __getitem__(self, number: int) -> ClauseTerms:
        terms = self._terms.get(number)
        if terms is None:
            terms = self._terms[number] = ClauseTerms.of(*self._clauses[number])
        return terms

    def number(self, query: Query, clause: Clause) -> int:
        """Return the number of a clause of a query."""
        number = self._numbers.get(clause)
        if number is None:
            number = self._numbers[clause] = self._next
            self._next += 1
            self._clauses[number] = query, clause
            self._write(clause)
        return number

    def _write(self, clause: Clause) -> None:
        names, places, instants = _named(clause)
        stream = self._streams.setdefault(clause.stream, len(self._streams))
        if stream == len(self.streams):
            self.streams.append(clause.stream)
            self.variables.append(())
        self.variables[stream] = clause.tuple_variables
        self.places.append(places)
        self.equal.append([of_value(test.place) for test in _equal(clause)])
        bounds = map(BoundPlace.of, _bounds(clause))
        self.bounds.append(
            [(*_read(place), self._bound_kind(clause, place), *how) for place, *how in bounds]
        )
        excluded = [test for test in clause.box if test.excludes] if clause.is_common else ()
        self.excluded.append([(*of_value(t.place), t.excluded_kind) for t in excluded])
        self.tested.append([(*_read(place), self._kind(place)) for place in clause.tested])
        self.joined.append([(*one, *other) for one, other in _joined(clause)])
        own, valued = clause.places, clause.valued
        are_valued = [name not in own or name in valued for name in names]
        self.valued.append([i for i, has_value in enumerate(are_valued) if has_value])
        carried = [*map(names.index, clause.carried)] if clause.stream else ()
        self.carried.append([(each, are_valued[each]) for each in carried])
        is_open = bool(clause.residuals[clause.solved :] or clause.tests)
        sizes = len(places), len(instants)
        has_words = any(t.looks_in_texts or t.operator.startswith(NEGATED) for t in clause.box)
        by_data = clause.is_by_data, clause.counts_by_data
        are = (
            is_open,
            clause.solved > 0,
            bool(clause.made),
            *by_data,
            has_words,
            bool(clause.factors),
        )
        self._facts.append([(stream, bool(clause.stream), *sizes, *are)])

    def _kind(self, place: TestedPlace) -> int:
        """Return which of `made` a place is, `NODE` where it is of a node."""
        if isinstance(place, Place) and place not in _MADE:
            return NODE
        kind = self._kinds.setdefault(place, len(self.made))
        if kind == len(self.made):
            self.made.append(place)
        return kind

    def _bound_kind(self, clause: Clause, place: Place | Number) -> int:
        """Return what `_kind` does, but `SPANNED` for the span of an operator below."""
        is_span = isinstance(place, Place) and _is_span(clause, place)
        return SPANNED if is_span else self._kind(place)

    def forget(self, clause: Clause) -> None:
        """Forget a clause."""
        number = self._numbers.pop(clause, None)
        if number is not None:
            del self._clauses[number]
            self._terms.pop(number, None)

    @property
    def is_worn(self) -> bool:
        """Whether most of the clauses that have come are gone."""
        return self._next > 2 * len(self._numbers) + _SPARE

    def facts(self, numbers: Ints) -> ClauseFacts:
        """Return what is asked of some clauses first, in columns."""
        _, _, columns = self._facts.taken(numbers)
        return ClauseFacts(*columns)


def _bounds(clause: Clause) -> list[Test]:
    """Return what a clause of a common stream tests against bounds."""
    if not clause.is_common:
        return []
    return [test for test in clause.box if test.operator in INEQUALITIES]


def _is_span(clause: Clause, place: Place) -> bool:
    """Return whether what an operator below has handed on at a place is a span."""
    return place != SPAN and clause.first_tested(place)[1] == SPAN


def _read(place: TestedPlace) -> Place:
    """Return the place whose value is read; of a number that is made, some place."""
    return place if isinstance(place, Place) else SPAN
