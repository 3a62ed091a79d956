"""What tuples ask, worked out in columns for each form that they meet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from broker.matching.boxes.columns import Doubles, Flags, Hashes, Ints
from broker.matching.boxes.form import BoundPlace, Form
from broker.matching.boxes.hashsets import HashSets
from broker.matching.boxes.index import Asks, as_number, mixed
from broker.matching.boxes.numbers import ends_of, is_made, numbers_of
from broker.matching.boxes.points import Points
from broker.matching.boxes.soughtwords import SoughtWords
from joins import ALL_BUT, hash_values, hashes_in
from templates.box import SPAN, TAKEN, WINDOW, Excluded, Number, Place, Solution

__all__ = ["AskingTuples"]

_NOTHING = -np.inf
"""What a tuple has where its form tests no bound: it passes each one."""


_Ends = dict[tuple[int, Solution], tuple[Doubles, Doubles]]
"""Both ends of solutions, by the form that asks."""


@dataclass(frozen=True, slots=True)
class AskingTuples:
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
        again, spared = self._spared(rows, which)
        rows, which, keys, others = rows[again], which[again], keys[again], others[again]
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
            spared,
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
        own = has[which].nonzero()[0]
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
        # Nodes have one text where what is read is above them, and some of the wanted are asked.
        codes, texts = self.points.operands.coded(at)
        for form, code in zip(which.tolist(), codes.tolist(), strict=True):
            words = known.get((form, code))
            if words is None:
                words = [] if code < 0 else self.words[form][places[form]].found(texts[code])
                known[form, code] = words
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
            column = np.full(len(rows), _NOTHING)
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
            of_numbers = [any(form.are_numbers[k : k + 1]) for form in self.forms]
            are_numbers = np.array(of_numbers, np.bool_)[which[own]]
            kinds = np.where(are_numbers, Excluded.NUMBER, are_several.astype(np.int64))
            is_known[own], first[own], other[own] = operands.sole_hashes(at, kinds)
            found.append((is_known, first, other))
        return found

    def _taken(self, rows: Ints, which: Ints) -> Iterator[HashSets]:
        """Yield, for each place of values that are taken or unwanted, the sets that rows have."""
        of_forms = [(*f.taken, *(place for place, _ in f.unwanted)) for f in self.forms]
        for k in range(max(map(len, of_forms), default=0)):
            own, texts, at = self._texts_of_taken(k, of_forms, rows, which)
            are_unwanted = np.array([len(f.taken) <= k for f in self.forms], np.bool_)
            some = np.flatnonzero(are_unwanted[which[own]])
            texts[some] = None
            places = [len(f.words) + k - len(f.taken) for f in self.forms]
            found = list(self._found(places, which[own[some]], at[some]))
            of_found = np.repeat(own[some], np.fromiter(map(len, found), np.int64, len(found)))
            words = [word for each in found for word in each]
            members = of_found, *hash_values(pa.array(words, pa.string()))
            is_spared = np.array([f.spared > k for f in self.forms], np.bool_)[which]
            is_spared[own] &= _are_spared(texts)
            texts[:] = [text and text.removeprefix(ALL_BUT) for text in texts.tolist()]
            yield HashSets.of(own, texts.tolist(), members, is_spared)

    def _texts_of_taken(
        self, k: int, of_forms: Sequence[Sequence[Place]], rows: Ints, which: Ints
    ) -> tuple[Ints, npt.NDArray[np.object_], Ints]:
        """Return which rows have a place `k` of a set, how the sets are spelled, and where."""
        own, at = self._place(k, of_forms, rows, which)
        is_here = [places[k : k + 1] == (TAKEN,) for places in of_forms]
        texts = np.array(self.points.operands.texts(at), np.object_)
        here = np.flatnonzero(np.array(is_here, np.bool_)[which[own]])
        texts[here] = self.points.tuples.taken_or_none()[rows[own[here]]]
        return own, texts, at

    def _spared(self, rows: Ints, which: Ints) -> tuple[Ints, Doubles | None]:
        """Return each row once for each datum that it is for alone, and the numbers of these.

        What is for others stands once.
        """
        of_forms = [form.taken[:1] if form.spared else () for form in self.forms]
        if not any(of_forms):
            return np.arange(len(rows)), None
        own, texts, _ = self._texts_of_taken(0, of_forms, rows, which)
        counts, found = np.ones(len(rows), np.int64), [np.zeros(0, np.uint64)]
        own, texts = own[_are_spared(texts)], texts[_are_spared(texts)]
        for row, text in zip(own.tolist(), texts.tolist(), strict=True):
            found.append(hashes_in(text)[0])
            counts[row] = len(found[-1])
        again = np.repeat(np.arange(len(rows)), counts)
        spared = np.full(len(again), np.nan)
        spared[np.isin(again, own)] = as_number(np.concatenate(found))
        return again, spared


def _are_spared(texts: npt.NDArray[np.object_]) -> Flags:
    """Return which sets have the only data that are spared, and not those that are not."""
    return np.array([bool(text) and text[0] != ALL_BUT for text in texts.tolist()], np.bool_)


def _read(bound: BoundPlace) -> Place:
    """Return the place whose value is read for a bound; of a number that is made, some place."""
    return bound.place if isinstance(bound.place, Place) else SPAN
