"""What rows must have in common, and what is tested of them, in columns.

Equalities of terms, and comparisons of two terms, are made for all rows at once; any other
condition is called for each that is left.  Values are compared by 128 bits of hashes, as everywhere
in the join, and by their numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joins.memory.instancetable import EMPTY, Hashes, hash_values, mixed
from joins.memory.slots import Ints, ranges
from joins.memory.times import Flags
from joins.sequences.contenders import Contenders
from joins.sequences.planning.asked import SimilarRules
from joins.sequences.planning.plan import Plan
from joins.sequences.planning.terms import Terms
from joins.similarity.textsets import TextSets
from templates.rule import values_in_lists

__all__ = ["RowView", "RuleConditions", "mixed"]


class RuleConditions:
    """The rules of a plan, asked of rows of contenders: side by side, one column for each side."""

    def __init__(self, plan: Plan, contenders: Contenders) -> None:
        self._plan = plan
        self._contenders = contenders
        self._sets = TextSets(lambda slots: [each or "" for each in contenders.texts[slots]])
        self.forget_sets = self._sets.forget
        self.renew_words = self._sets.renew

    def keys(self, rules: Ints, sides: Sequence[Ints], half: int) -> tuple[Ints, Hashes]:
        """Return keys made of what equalities ask: which rows have one, and the key of each.

        `half` says which term of each equality is read.  The empty string joins nothing, but where
        it may be a datum.  A row in which the term is a list has a key for each value in it.
        """
        keys = mixed(np.zeros(len(rules), np.uint64), rules.astype(np.uint64))
        has = np.ones(len(rules), np.bool_)
        first, _ = self._contenders.hashes
        for own, terms, may_be_empty in self._plan.asked.joins(rules):
            hashes = first[self._slots(terms[half], [side[own] for side in sides])]
            keys[own] = mixed(keys[own], hashes)
            has[own[(hashes == EMPTY) & ~may_be_empty]] = False
        rows = has.nonzero()[0]
        rows, keys = self._with_lists(rules, sides, half, rows, keys[rows])
        return self._with_words(rules, sides, half, rows, keys)

    def _with_lists(
        self, rules: Ints, sides: Sequence[Ints], half: int, rows: Ints, keys: Hashes
    ) -> tuple[Ints, Hashes]:
        """Return rows with what is in lists mixed in their keys."""
        terms = self._plan.asked.lists(rules[rows])[half]
        own = (terms >= 0).nonzero()[0]
        if not len(own):
            return rows, keys
        slots = self._slots(terms[own], [side[rows[own]] for side in sides])
        if half:
            keys[own] = mixed(keys[own], self._contenders.hashes[0][slots])
            return rows, keys
        lists = values_in_lists(self._contenders.texts[slots].tolist())
        counts = np.ones(len(rows), np.int64)
        counts[own] = [len(each) for each in lists]
        again = np.repeat(np.arange(len(rows)), counts)
        keys, in_list = keys[again], (terms >= 0)[again]
        values = pa.array([value for each in lists for value in each], pa.string())
        keys[in_list] = mixed(keys[in_list], hash_values(values)[0])
        return rows[again], keys

    def _with_words(
        self, rules: Ints, sides: Sequence[Ints], half: int, rows: Ints, keys: Hashes
    ) -> tuple[Ints, Hashes]:
        """Return rows, for each word by which they are found, with the word in their keys."""
        are_found = self._plan.asked.are_found_by_words(rules[rows])
        if not are_found.any():
            return rows, keys
        found = np.flatnonzero(are_found)
        asked = self._plan.asked.similar(rules[rows[found]])
        which, sets = self._sets_of(asked, half, [side[rows[found]] for side in sides])
        sizes = self._sets.sizes(sets)
        lengths = asked.bounds.some(which).prefixes(sizes, is_right=bool(half))
        words = self._sets.first_words(sets, lengths)
        again = found[np.repeat(which, lengths)]
        others = np.flatnonzero(~are_found)
        which = np.concatenate([others, again])
        return rows[which], np.concatenate([keys[others], mixed(keys[again], words)])

    def _sets_of(self, asked: SimilarRules, half: int, sides: Sequence[Ints]) -> tuple[Ints, Ints]:
        """Return the sets of one half of similarity joins: of which join each is, and the set."""
        slots = self._slots(asked.terms[half], sides)
        first, counts = np.zeros((2, len(slots)), np.int64)
        for (kind, is_list), number in self._plan.asked.kinds.items():
            own = np.flatnonzero(asked.kinds[half] == number)
            first[own], counts[own] = self._sets.of(kind, slots[own], is_list=is_list)
        return np.repeat(np.arange(len(slots)), counts), ranges(first, counts)

    def groups(self, rows: Ints) -> tuple[Hashes, Hashes]:
        """Return two hashes of the values by which rows compete in groups, zeros where all do."""
        first, other = np.zeros((2, len(rows)), np.uint64)
        for own, places in self._plan.seats.keys_of(self._contenders["seat"][rows]):
            slots = self._contenders["slot"][rows[own]] + places
            for groups, hashes in zip((first, other), self._contenders.hashes, strict=True):
                groups[own] = mixed(groups[own], hashes[slots])
        return first, other

    def numbers(self, terms: Ints, rows: Ints) -> npt.NDArray[np.float64]:
        """Return the values of terms of rows as numbers."""
        return self._contenders.numbers(self._slots(terms, [rows]))

    def hold(self, rules: Ints, sides: Sequence[Ints], start_us: Ints, end_us: Ints) -> Flags:
        """Return where rules hold of rows together, whose interval is given."""
        holds = np.ones(len(rules), np.bool_)
        first, other = self._contenders.hashes
        for own, terms, may_be_empty in self._plan.asked.joins(rules):
            a, b = (self._slots(each, [side[own] for side in sides]) for each in terms)
            holds[own] &= (first[a] == first[b]) & (other[a] == other[b])
            holds[own] &= (first[a] != EMPTY) | may_be_empty
        for own, left, operators, right in self._plan.asked.comparisons(rules):
            a, b = (self._slots(each, [side[own] for side in sides]) for each in (left, right))
            are_equal = (first[a] == first[b]) & (other[a] == other[b])
            x, y = self._contenders.numbers(a), self._contenders.numbers(b)
            outcomes = [are_equal, ~are_equal, x < y, x <= y, x > y, x >= y]
            holds[own] &= np.choose(operators, outcomes)
        lengths = self._plan.asked.lengths(rules)
        bounded = np.flatnonzero(lengths >= 0)
        if len(bounded):
            slots = self._slots(lengths[bounded], [side[bounded] for side in sides])
            lengths_us = self._contenders.numbers(slots)
            holds[bounded] &= (end_us - start_us)[bounded] <= lengths_us
        self._compare_words(rules, sides, holds)
        self._test(rules, sides, (start_us, end_us), holds)
        return holds

    def _compare_words(self, rules: Ints, sides: Sequence[Ints], holds: Flags) -> None:
        """Leave out rows whose texts share too few words; nearly all that are left are similar."""
        rows = np.flatnonzero(holds)
        asked = self._plan.asked.similar(rules[rows])
        if not len(asked.own):
            return
        rows = rows[asked.own]
        left, right = (
            self._sets_of(asked, half, [side[rows] for side in sides]) for half in (0, 1)
        )
        counts = np.bincount(right[0], minlength=len(rows))
        again = np.repeat(np.arange(len(left[0])), counts[left[0]])
        which, one = left[0][again], left[1][again]
        other = right[1][ranges((np.cumsum(counts) - counts)[left[0]], counts[left[0]])]
        passed = self._sets.may_hold(one, other, asked.bounds.some(which))
        holds[rows] = np.bincount(which[passed], minlength=len(rows)) > 0

    def _test(
        self, rules: Ints, sides: Sequence[Ints], interval_us: tuple[Ints, Ints], holds: Flags
    ) -> None:
        """Leave out rows of which another condition does not hold."""
        asked = list(self._plan.asked.conditions(rules, holds))
        if not asked:
            return
        own = np.array([row for row, _ in asked], np.int64)
        columns = self._where([side[own] for side in sides])
        columns += [each[own].tolist() for each in interval_us]
        read = self._plan.terms, self._contenders.texts
        known: dict[tuple[int, ...], bool] = {}
        for (row, condition), *where in zip(asked, *columns, strict=True):
            # Rows that are found by several words are asked once.
            key = int(rules[row]), *where
            if key not in known:
                known[key] = condition(RowView(*read, where[:-2], where[-2], where[-1]))
            holds[row] = known[key]

    def scores(self, rules: Ints, sides: Sequence[Ints]) -> npt.NDArray[np.float64]:
        """Return the scores of rows that are held against data: NaN where there is none."""
        read = self._plan.terms, self._contenders.texts
        known: dict[tuple[int, ...], float] = {}
        found: list[float] = []
        columns = rules.tolist(), self._plan.asked.scores(rules), *self._where(sides)
        for rule, score, *where in zip(*columns, strict=True):
            key = rule, *where
            if key not in known:
                known[key] = score(RowView(*read, where, 0, 0))
            found.append(known[key])
        return np.array(found, np.float64)

    def _where(self, sides: Sequence[Ints]) -> list[list[int]]:
        """Return where rows have their values: of each side the layout, and the first slot."""
        columns: list[list[int]] = []
        for rows in sides:
            seats = self._contenders["seat"][rows]
            columns.append(self._plan.seats["layout"][seats].tolist())
            columns.append(self._contenders["slot"][rows].tolist())
        return columns

    def _slots(self, terms: Ints, sides: Sequence[Ints]) -> Ints:
        """Return the slots of terms' values, each in the row of the side that has it."""
        slots = np.full(len(terms), -1, np.int64)
        for rows in sides:
            seats, first = self._contenders["seat"][rows], self._contenders["slot"][rows]
            places = self._plan.terms.places(terms, self._plan.seats["layout"][seats])
            slots = np.where(places >= 0, first + places, slots)
        assert (slots >= 0).all(), "a term is on no side"
        return slots


@dataclass(frozen=True, slots=True)
class RowView:
    """Rows together, as conditions read them: no parameter is left in what is decided.

    `where` has the layout and the first slot of the row of each side.
    """

    terms: Terms
    texts: npt.NDArray[np.object_]
    where: Sequence[int]
    start_us: int
    end_us: int

    @property
    def parameters(self) -> Mapping[str, Any]:
        """No values."""
        return {}

    def value(self, name: str) -> str:
        """Return the value of a term."""
        for layout, slot in zip(self.where[-2::-2], self.where[-1::-2], strict=True):
            place = self.terms.place(name, layout)
            if place is not None:
                value = self.texts[slot + place]
                assert value is not None
                return str(value)
        raise AssertionError(f"{name} is on no side")
