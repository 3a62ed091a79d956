"""The places that boxes test, and what tuples ask there.

A **form** is the places that the boxes of a class test, with how; boxes of one form differ in data
alone.  So what a tuple asks is worked out once for each form of its class, in columns, however many
boxes there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from broker.matching.boxes.columns import Doubles, Flags, GrowingColumn, Hashes, Ints
from broker.matching.boxes.hashsets import HashSets
from broker.matching.boxes.index import LOOSE, Asks, Box, mixed
from broker.matching.boxes.numbers import ends_of, is_made, numbers_of
from broker.matching.boxes.points import Points
from broker.matching.boxes.soughtwords import SoughtWords
from joins import hash_values, ranges
from templates.clause import NONE_OF, SPAN, TAKEN, WINDOW, Clause, Number, Place, Solution, Test
from templates.computed import LARGEST_SOLVED
from xscl.functions import to_double
from xscl.path import Parameter
from xscl.pattern import INEQUALITIES
from xscl.prefilters import spell_number
from xscl.texttests import NEGATED, TEXT_TESTS

__all__ = ["BoundPlace", "Form", "Forms", "box_of"]

_NOT_BARE = -1
"""Stands for the only form of a class that has several, or one that tests something."""

NOTHING = -np.inf
"""What a tuple has where its form tests no bound: it passes each one."""


_NOWHERE: frozenset[Place] = frozenset()

_Ends = dict[tuple[int, Solution], tuple[Doubles, Doubles]]
"""Both ends of solutions, by the form that asks."""


class BoundPlace(NamedTuple):
    """A place that is held against bounds: from below, where it is negated, or from above."""

    place: Place | Number
    is_from_below: bool
    is_strict: bool

    @classmethod
    def of(cls, test: Test) -> BoundPlace:
        """Return how a test holds what is at its place against data."""
        return cls(test.place, test.operator[0] == ">", len(test.operator) == 1)


@dataclass(frozen=True, slots=True)
class Form:
    """The places that boxes of a class test; `words` have an operator of `TEXT_TESTS` each.

    So have `unwanted`, whose places must have none of them.

    Texts at places `of_several` stand for several values, of which a test holds for one.  There `=`
    is of numbers, and one of the operators.
    """

    query_class: int
    equal: tuple[Place, ...]
    excluded: tuple[Place, ...]
    taken: tuple[Place, ...]
    bounds: tuple[BoundPlace, ...]
    words: tuple[tuple[Place, str], ...]
    unwanted: tuple[tuple[Place, str], ...]
    of_several: frozenset[Place]

    @property
    def has_tests(self) -> bool:
        """Whether boxes test something but windows and registration points."""
        without = self.excluded or self.taken or self.unwanted
        return bool(self.equal or without or self.bounds or self.words)

    @property
    def sought(self) -> tuple[tuple[Place, str], ...]:
        """What is looked for in texts: what must be there, then what must not."""
        return (*self.words, *self.unwanted)

    def sought_by(self, box: Box) -> tuple[str, ...]:
        """Return what a box looks for, in the same order."""
        return (*box.equal[len(self.equal) :], *box.taken[len(self.taken) :])

    @classmethod
    def of(cls, query_class: int, clause: Clause) -> Form:
        """Return the form of the boxes of a clause."""
        box = clause.box
        return cls(
            query_class,
            tuple([of_value(t.place) for t in box if t.operator == "=" and not t.is_of_several]),
            tuple([of_value(test.place) for test in box if test.operator == "!="]),
            tuple([of_value(test.place) for test in box if test.operator == NONE_OF]),
            tuple([BoundPlace.of(test) for test in box if test.operator in INEQUALITIES]),
            tuple(
                [
                    (of_value(test.place), test.operator)
                    for test in box
                    if test.operator in TEXT_TESTS or (test.operator == "=" and test.is_of_several)
                ]
            ),
            tuple(
                [
                    (of_value(test.place), test.operator.removeprefix(NEGATED))
                    for test in box
                    if test.operator.startswith(NEGATED)
                ]
            ),
            frozenset([of_value(test.place) for test in box if test.is_of_several]) or _NOWHERE,
        )


def of_value(place: Place | Number) -> Place:
    """Return a place that has a value of its own, as those of strings do."""
    assert isinstance(place, Place)
    return place


@dataclass(slots=True)
class _Known:
    """The form of a clause, and how many boxes of the clause there are."""

    number: int
    form: Form
    uses: int = 0


class Forms:
    """The forms in use, by class."""

    def __init__(self) -> None:
        self._numbers: dict[Form, int] = {}
        self._forms: dict[int, Form] = {}
        self._clauses: Counter[int] = Counter()
        self._of_class: dict[int, tuple[int, ...]] = {}
        self._words: dict[int, list[SoughtWords]] = {}
        self._free: list[int] = []
        # By class the number of its only form, where that tests nothing.
        self._bare = GrowingColumn(np.int32, _NOT_BARE)
        self._changed: set[int] = set()
        # By class and clause, so that one more assignment does not make the form again.
        self._known: dict[tuple[int, Clause], _Known] = {}

    def add(self, query_class: int, clause: Clause, boxes: Sequence[Box]) -> int:
        """Return the number of the form of a clause's boxes, in use by so many more."""
        known = self._known.get((query_class, clause)) or self._learn(query_class, clause)
        known.uses += len(boxes)
        number = known.number
        if found := self._words.get(number):
            for box in boxes:
                for word, words in zip(known.form.sought_by(box), found, strict=True):
                    words.add(word)
        return number

    def _learn(self, query_class: int, clause: Clause) -> _Known:
        form = Form.of(query_class, clause)
        number = self._numbers.get(form)
        if number is None:
            number = self._numbers[form] = self._free.pop() if self._free else len(self._forms)
            self._forms[number] = form
            self._of_class[query_class] = (*self._of_class.get(query_class, ()), number)
            if form.sought:
                self._words[number] = [
                    SoughtWords(operator, is_of_several=place in form.of_several)
                    for place, operator in form.sought
                ]
            self._changed.add(query_class)
        self._clauses[number] += 1
        known = self._known[query_class, clause] = _Known(number, form)
        return known

    def remove(
        self, query_class: int, clause: Clause, count: int, boxes: Callable[[], Iterable[Box]]
    ) -> None:
        """Undo one `add` for each of some boxes, which are made where they look for words."""
        known = self._known[query_class, clause]
        number, form = known.number, known.form
        for box in boxes() if number in self._words else ():
            for word, words in zip(form.sought_by(box), self._words[number], strict=True):
                words.remove(word)
        known.uses -= count
        if known.uses:
            return
        del self._known[query_class, clause]
        self._clauses[number] -= 1
        if not self._clauses[number]:
            del self._clauses[number], self._forms[number], self._numbers[form]
            self._words.pop(number, None)
            own = form.query_class
            self._of_class[own] = tuple([n for n in self._of_class[own] if n != number])
            if not self._of_class[own]:
                del self._of_class[own]
            self._free.append(number)
            self._changed.add(form.query_class)

    def sought(self, query_class: int, clause: Clause) -> Sequence[SoughtWords]:
        """Return the words that boxes of a clause's form look for."""
        return self._words.get(self._known[query_class, clause].number, ())

    def _bare_of(self, classes: Ints) -> Ints:
        """Return the only form of each class where that tests nothing, else `_NOT_BARE`."""
        if self._changed:
            found = [self._only_bare(self._of_class.get(each, ())) for each in self._changed]
            changed = np.fromiter(self._changed, np.int64, len(self._changed))
            self._bare.write(changed, found)
            self._changed.clear()
        return self._bare[classes].astype(np.int64)

    def _only_bare(self, numbers: Sequence[int]) -> int:
        is_bare = len(numbers) == 1 and not self._forms[numbers[0]].has_tests
        return numbers[0] if is_bare else _NOT_BARE

    def asks(self, points: Points) -> Asks:
        """Return what tuples ask: one row for each form of their classes, and word found."""
        bare = self._bare_of(points.classes)
        if (bare != _NOT_BARE).all():
            # So it mostly is where statements differ: nothing is looked at form by form.
            keys = bare.astype(np.uint64)
            where = points.spans, points.docids_min
            return Asks(np.arange(len(points)), bare, keys, keys, *where, [], [], [], [])
        distinct, inverse = np.unique(points.classes, return_inverse=True)
        numbers = [self._of_class.get(number, ()) for number in distinct.tolist()]
        counts = np.array([len(each) for each in numbers], np.int64)
        starts = np.cumsum(counts) - counts
        rows = np.repeat(np.arange(len(points)), counts[inverse])
        which = ranges(starts[inverse], counts[inverse])
        met = [number for each in numbers for number in each]
        forms, words = [self._forms[n] for n in met], [self._words.get(n, ()) for n in met]
        return _Asking(points, forms, np.array(met, np.int64), words).asks(rows, which)


def _read(bound: BoundPlace) -> Place:
    """Return the place whose value is read for a bound; of a number that is made, some place."""
    return bound.place if isinstance(bound.place, Place) else SPAN


def box_of(clause: Clause, values: Mapping[str, Any], window_us: int, point: int) -> Box:
    """Return the box of a clause under an assignment.

    Its words stand behind what must be equal, unwanted ones behind what must not be taken.
    """
    equal: list[str] = []
    bounds: list[float] = []
    words: list[str] = []
    excluded: list[str] = []
    taken: list[str] = []
    unwanted: list[str] = []
    for test in clause.box:
        operator, data = test.operator, test.data
        given: Any = values[data.name] if isinstance(data, Parameter) else data
        if operator in INEQUALITIES:
            bound = to_double(given) if isinstance(given, str) else float(given)
            bound = -bound if operator[0] == ">" else bound
            is_beyond = isinstance(test.place, Solution) and abs(bound) > LARGEST_SOLVED
            bounds.append(LOOSE if is_beyond else bound)
        elif operator == "=" and test.is_of_several:
            words.append(spell_number(given))
        elif operator == "=":
            equal.append(str(given))
        elif operator == "!=":
            excluded.append(str(given))
        elif operator.startswith(NEGATED):
            unwanted.append(str(given))
        else:
            (taken if operator == NONE_OF else words).append(str(given))
    sets = (*taken, *unwanted)
    return Box((*equal, *words), tuple(excluded), tuple(bounds), window_us, point, sets)


@dataclass(frozen=True, slots=True)
class _Asking:
    """Tuples that ask, and the forms that they meet, each with its number and its words."""

    points: Points
    forms: Sequence[Form]
    numbers: Ints
    words: Sequence[Sequence[SoughtWords]]

    def asks(self, rows: Ints, which: Ints) -> Asks:
        """Return what each of some rows asks by one of the forms."""
        keys = self.numbers[which].astype(np.uint64)
        others = keys.copy()
        is_known = np.ones(len(rows), np.bool_)
        of_forms = [form.equal for form in self.forms]
        for k in range(max(map(len, of_forms), default=0)):
            own, at = self._place(k, of_forms, rows, which)
            known, first, other = self.points.operands.hashes(at)
            is_window = [places[k : k + 1] == (WINDOW,) for places in of_forms]
            windows = np.flatnonzero(np.array(is_window, np.bool_)[which[own]])
            spans = self.points.spans[rows[own[windows]]]
            known[windows] = True
            first[windows], other[windows] = hash_values(pa.array(spans.astype(str), pa.string()))
            keys[own], others[own] = mixed(keys[own], first), mixed(others[own], other)
            is_known[own[~known]] = False
        rows, which = rows[is_known], which[is_known]
        keys, others = keys[is_known], others[is_known]
        for k in range(max((len(form.words) for form in self.forms), default=0)):
            rows, which, keys, others = self._with_words(k, rows, which, keys, others)
        points = self.points
        return Asks(
            rows,
            self.numbers[which],
            keys,
            others,
            points.spans[rows],
            points.docids_min[rows],
            *self._bounds(rows, which),
            self._excluded(rows, which),
            list(self._taken(rows, which)),
        )

    def _places(
        self, rows: Ints, which: Ints, places_of: Callable[[Form], Sequence[Place]]
    ) -> Iterator[tuple[Ints, Ints]]:
        """Yield, for each place in order, which rows have it, and where its value is."""
        of_forms = [places_of(form) for form in self.forms]
        for k in range(max(map(len, of_forms), default=0)):
            yield self._place(k, of_forms, rows, which)

    def _place(
        self, k: int, of_forms: Sequence[Sequence[Place]], rows: Ints, which: Ints
    ) -> tuple[Ints, Ints]:
        """Return which rows have a place `k`, and where its value is."""
        has = np.array([len(places) > k for places in of_forms], np.bool_)
        table = np.array([places[k] if len(places) > k else SPAN for places in of_forms])
        own = np.flatnonzero(has[which])
        return own, self.points.values_at(rows[own], *table[which[own]].T)

    def _with_words(
        self, k: int, rows: Ints, which: Ints, keys: Hashes, others: Hashes
    ) -> tuple[Ints, Ints, Hashes, Hashes]:
        """Return a row for each word that is found at the place of the forms' words `k`."""
        counts = np.ones(len(rows), np.int64)
        found: list[str] = []
        of_forms = [[place for place, _ in form.words] for form in self.forms]
        own, at = self._place(k, of_forms, rows, which)
        places = [k] * len(self.forms)
        for row, words in zip(own.tolist(), self._found(places, which[own], at), strict=True):
            counts[row] = len(words)
            found += words
        index = np.repeat(np.arange(len(rows)), counts)
        own = np.flatnonzero(np.isin(index, own))
        rows, which, keys, others = rows[index], which[index], keys[index], others[index]
        first, other = hash_values(pa.array(found, pa.string()))
        keys[own], others[own] = mixed(keys[own], first), mixed(others[own], other)
        return rows, which, keys, others

    def _found(self, places: Sequence[int], which: Ints, at: Ints) -> Iterator[list[str]]:
        """Yield what is found of what a form looks for at one of its places, by form, in texts."""
        known: dict[tuple[int, int], list[str]] = {}
        texts = self.points.operands.texts(at)
        for form, place, text in zip(which.tolist(), at.tolist(), texts, strict=True):
            words = known.get((form, place))
            if words is None:
                words = [] if text is None else self.words[form][places[form]].found(text)
                known[form, place] = words
            yield words

    def _bounds(self, rows: Ints, which: Ints) -> tuple[list[Doubles], list[Flags]]:
        values: list[Doubles] = []
        are_strict: list[Flags] = []
        ends: _Ends = {}
        places = self._places(rows, which, lambda form: [_read(each) for each in form.bounds])
        for k, (own, at) in enumerate(places):
            bounds = [form.bounds[k] if len(form.bounds) > k else None for form in self.forms]
            is_negated = np.array([b is not None and b.is_from_below for b in bounds], np.bool_)
            is_strict = np.array([b is not None and b.is_strict for b in bounds], np.bool_)
            doubles = self.points.operands.doubles(at)
            for i, bound in enumerate(bounds):
                if bound is not None and is_made(bound.place):
                    of_form = np.flatnonzero(which[own] == i)
                    doubles[of_form] = self._made(bound.place, i, rows[own[of_form]], ends)
            column = np.full(len(rows), NOTHING)
            column[own] = np.where(is_negated[which[own]], -doubles, doubles)
            values.append(column)
            are_strict.append(is_strict[which])
        return values, are_strict

    def _made(self, place: Place | Number, form: int, rows: Ints, ends: _Ends) -> Doubles:
        """Return numbers of the tuples of a form; both ends of a solution are found together."""
        if not isinstance(place, Solution):
            return numbers_of(self.points, place, rows)
        key = form, place._replace(is_least=True)
        if key not in ends:
            ends[key] = ends_of(self.points, place, rows)
        least, largest = ends[key]
        return least if place.is_least else largest

    def _excluded(self, rows: Ints, which: Ints) -> list[tuple[Flags, Hashes, Hashes]]:
        found: list[tuple[Flags, Hashes, Hashes]] = []
        operands = self.points.operands
        places = self._places(rows, which, lambda form: form.excluded)
        for k, (own, at) in enumerate(places):
            is_known = np.zeros(len(rows), np.bool_)
            first, other = np.zeros((2, len(rows)), np.uint64)
            of_several = [not f.of_several.isdisjoint(f.excluded[k : k + 1]) for f in self.forms]
            are_several = np.array(of_several, np.bool_)[which[own]]
            for some, hashes in (
                (~are_several, operands.hashes),
                (are_several, operands.only_hashes),
            ):
                if some.any():
                    is_known[own[some]], first[own[some]], other[own[some]] = hashes(at[some])
            found.append((is_known, first, other))
        return found

    def _taken(self, rows: Ints, which: Ints) -> Iterator[HashSets]:
        """Yield, for each place of values that are taken or unwanted, the sets that rows have."""
        of_forms = [(*f.taken, *(place for place, _ in f.unwanted)) for f in self.forms]
        for k in range(max(map(len, of_forms), default=0)):
            own, at = self._place(k, of_forms, rows, which)
            is_here = [places[k : k + 1] == (TAKEN,) for places in of_forms]
            texts = np.array(self.points.operands.texts(at), np.object_)
            here = np.flatnonzero(np.array(is_here, np.bool_)[which[own]])
            texts[here] = self.points.tuples.taken_or_none()[rows[own[here]]]
            are_unwanted = np.array([len(f.taken) <= k for f in self.forms], np.bool_)
            some = np.flatnonzero(are_unwanted[which[own]])
            texts[some] = None
            places = [len(f.words) + k - len(f.taken) for f in self.forms]
            found = list(self._found(places, which[own[some]], at[some]))
            of_found = np.repeat(own[some], np.fromiter(map(len, found), np.int64, len(found)))
            words = [word for each in found for word in each]
            members = of_found, *hash_values(pa.array(words, pa.string()))
            yield HashSets.of(own, texts.tolist(), members)
