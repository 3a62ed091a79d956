"""The forms in use, by class.

What a tuple asks is worked out once for each form of its class, however many boxes there are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from weakref import WeakValueDictionary

import numpy as np

from broker.matching.boxes.asking import AskingTuples
from broker.matching.boxes.columns import GrowingColumn, Ints
from broker.matching.boxes.form import Form
from broker.matching.boxes.index import Asks, Box
from broker.matching.boxes.points import Points
from broker.matching.boxes.soughtwords import SoughtWords
from joins import ranges
from templates.box import Place
from templates.clause import Clause

__all__ = ["Forms"]

_NOT_BARE = -1
"""Stands for the only form of a class that has several, or one that tests something."""


_Sought = tuple[str, Place, str, bool, int]
"""What is looked for: in which stream, and there where, how, and behind how many others."""


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
        self._clauses: dict[int, int] = defaultdict(int)
        self._of_class: dict[int, tuple[int, ...]] = {}
        self._words: dict[int, list[SoughtWords]] = {}
        # An operator hands on what it tests, and those above look for the same words there.
        self._of_streams: WeakValueDictionary[_Sought, SoughtWords] = WeakValueDictionary()
        self._free: list[int] = []
        # By class the number of its only form, where that tests nothing.
        self._bare = GrowingColumn(np.int32, _NOT_BARE)
        self._changed: set[int] = set()
        # By class and clause, so that one more assignment does not make the form again.
        self._known: dict[tuple[int, Clause], _Known] = {}

    def add(self, query_class: int, clause: Clause, boxes: Sequence[Box]) -> tuple[int, bool]:
        """Return the number of the form of a clause's boxes, in use by so many more.

        With it comes whether their first `taken` may be the only datum of a tuple.
        """
        known = self._known.get((query_class, clause)) or self._learn(query_class, clause)
        known.uses += len(boxes)
        number = known.number
        if found := self._words.get(number):
            for words, sought in zip(found, known.form.sought_by(boxes), strict=True):
                words.add_all(sought)
        return number, known.form.spared > 0

    def _learn(self, query_class: int, clause: Clause) -> _Known:
        form = Form.of(query_class, clause)
        next_one = self._free[-1] if self._free else len(self._forms)
        number = self._numbers.setdefault(form, next_one)
        if number not in self._forms:
            if self._free:
                self._free.pop()
            self._forms[number] = form
            self._of_class[query_class] = (*self._of_class.get(query_class, ()), number)
            if form.words or form.unwanted:
                self._words[number] = list(self._words_of(form, clause))
            self._changed.add(query_class)
        self._clauses[number] += 1
        known = self._known[query_class, clause] = _Known(number, form)
        return known

    def _words_of(self, form: Form, clause: Clause) -> Iterator[SoughtWords]:
        """Yield the words of a form: those of a query's own stream are the same above it.

        What is found that no box of a form looks for finds none.
        """
        for k, (place, operator) in enumerate(form.sought):
            is_of_several = place in form.of_several
            own = SoughtWords(operator, is_of_several=is_of_several)
            first, at = clause.first_tested(place)
            if first.stream and not first.is_common:
                key = first.stream, at, operator, is_of_several, k
                own = self._of_streams.setdefault(key, own)
            yield own

    def remove(
        self, query_class: int, clause: Clause, count: int, boxes: Callable[[], Sequence[Box]]
    ) -> None:
        """Undo one `add` for each of some boxes, which are made where they look for words."""
        known = self._known[query_class, clause]
        number, form = known.number, known.form
        if found := self._words.get(number):
            for words, sought in zip(found, form.sought_by(boxes()), strict=True):
                words.remove_all(sought)
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

    def wanted(self, query_class: int, clause: Clause) -> int:
        """Return how many of them boxes want: they stand before those that texts must not have."""
        return len(self._known[query_class, clause].form.words)

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
        return AskingTuples(points, forms, np.array(met, np.int64), words).asks(rows, which)
