"""The values for which decided tuples are taken away, or spared: sets of hashes, by number.

A set is spelled as its hashes in ascending order, 32 digits each: so it is handed on as a value of
its tuple, and equal sets are equal strings.

Rows that must differ from a datum hold for all but their **exceptions**, as others hold for some
data or for all (`templates.exceptions`).  What is absent spares a tuple for those that no row there
holds for.  A right of NEXT serves those that it holds for of the ones that are left: left are those
that no right so far has held for, and when there are none, the left is done.  Such a set is spelled
as the only data for which a tuple is, or behind `!` as those for which it is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joins.memory.instancetable import Hashes, hash_values
from joins.memory.ordering import order_by
from joins.memory.slots import Ints
from joins.sequences.conditions import RuleConditions
from joins.sequences.contenders import DONE, Contenders
from joins.sequences.decidedtuples import DecidedTuples
from joins.sequences.planning.plan import Plan
from templates.exceptions import ALL_DATA, NO_DATA, DataSet, HeldFor

__all__ = ["ALL_BUT", "RefusedData", "SparedData", "TakenValues", "hashes_in"]

ALL_BUT = "!"
"""Stands before data for which a tuple is not, where others have those for which alone it is."""

Texts = npt.NDArray[np.object_]

_DTYPE = np.dtype(">u8")


class TakenValues:
    """Sets by number; 0 is the empty one."""

    def __init__(self) -> None:
        self._sets = [""]
        self._data: dict[int, DataSet] = {}

    def add(self, which: Ints, first: Hashes, other: Hashes) -> tuple[Ints, Ints]:
        """Take the set of values of each of some things; return which things, and its number."""
        if not len(which):
            return which, which
        order = order_by(which, first, other)
        which, first, other = which[order], first[order], other[order]
        is_new = np.ones(len(order), np.bool_)
        is_new[1:] = (which[1:] != which[:-1]) | (first[1:] != first[:-1])
        is_new[1:] |= other[1:] != other[:-1]
        which, first, other = which[is_new], first[is_new], other[is_new]
        things, starts = np.unique(which, return_index=True)
        digits = np.stack([first, other], axis=1).astype(_DTYPE).tobytes().hex()
        ends = np.append(starts[1:], len(which))
        begin = len(self._sets)
        self._sets += [
            digits[32 * start : 32 * end]
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ]
        return things, begin + np.arange(len(things))

    def add_data(self, data: Sequence[DataSet]) -> Ints:
        """Take sets of data, none of them empty; return their numbers."""
        numbers = np.zeros(len(data), np.int64)
        which = np.repeat(np.arange(len(data)), np.array([len(e.some) for e in data], np.int64))
        texts = pa.array([text for each in data for text in each.some], pa.string())
        own, numbers[own] = self.add(which, *hash_values(texts))
        for number, each in zip(numbers.tolist(), data, strict=True):
            if number:
                self._sets[number] = ALL_BUT * each.is_all_but + self._sets[number]
                self._data[number] = each
        return numbers

    def data(self, number: int) -> DataSet:
        """Return the set of data that has a number."""
        return self._data.get(number, ALL_DATA)

    def texts(self, numbers: Ints) -> Texts | None:
        """Return the spelling of sets; None where all are empty."""
        if not numbers.any():
            return None
        return np.array([self._sets[number] for number in numbers.tolist()], np.object_)


class RefusedData:
    """The data for which rows do not hold."""

    def __init__(self, plan: Plan, contenders: Contenders) -> None:
        self._plan = plan
        self._contenders = contenders

    def of(self, rows: Ints) -> list[DataSet]:
        """Return those of each row; rows that are held against no data hold for all."""
        if not len(rows):
            return []
        seats, slots = (self._contenders[name][rows] for name in ("seat", "slot"))
        places = self._plan.seats["threshold"][seats]
        columns = (seats.tolist(), (slots + places).tolist())
        held, texts = self._plan.seats.held, self._contenders.texts
        return [
            _refused(held[seat], texts[slot]) if seat in held else NO_DATA
            for seat, slot in zip(*columns, strict=True)
        ]


@lru_cache(maxsize=4_096)
def _refused(held: HeldFor, text: str | None) -> DataSet:
    return held.refused(text)


_Pair = tuple[int, tuple[int, ...]]
"""The place of a pair, and its left, group, position, end, right, and the number of its data."""


class SparedData:
    """The data that are left of lefts of NEXT which some right has served, by group."""

    def __init__(self, plan: Plan, contenders: Contenders, conditions: RuleConditions) -> None:
        self._plan = plan
        self._contenders = contenders
        self._conditions = conditions
        self._refused = RefusedData(plan, contenders)
        self._left: dict[int, dict[tuple[int, ...], DataSet]] = {}
        self.begin(TakenValues())

    def begin(self, values: TakenValues) -> None:
        """Begin a batch, whose sets are `values`."""
        self._values = values
        self._numbers: dict[DataSet, int] = {NO_DATA: 0}
        self._sets: list[DataSet] = [NO_DATA]

    def numbers(self, decisions: Ints, rights: Ints) -> Ints:
        """Return numbers of the data for which rows of right operands do not hold, 0 of none."""
        numbers = np.zeros(len(rights), np.int64)
        own = np.flatnonzero(self._plan.decisions["is_sparing"][decisions])
        for i, refused in zip(own.tolist(), self._refused.of(rights[own]), strict=True):
            numbers[i] = self._numbers.setdefault(refused, len(self._sets))
            if numbers[i] == len(self._sets):
                self._sets.append(refused)
        return numbers

    def nexts(self, pairs: DecidedTuples) -> DecidedTuples:
        """Return the pairs that serve lefts for some data, each with those that were left.

        Pairs that are decided later, or end later, come in later calls.
        """
        first, other = (each.view(np.int64) for each in self._conditions.groups(pairs.right))
        order = order_by(pairs.left, first, other, pairs.docid, pairs.end_us, pairs.right)
        pairs, first, other = pairs.some(order), first[order], other[order]
        place = pairs.docid, pairs.end_us, pairs.right, pairs.taken
        columns = (column.tolist() for column in (pairs.left, first, other, *place))
        found: list[tuple[int, DataSet]] = []
        rows = enumerate(zip(*columns, strict=True))
        for (left, *group), some in groupby(rows, lambda row: row[1][:3]):
            found += self._served(left, tuple(group), some)
        chosen = pairs.some(np.array([pair for pair, _ in found], np.int64))
        return replace(chosen, taken=self._values.add_data([data for _, data in found]))

    def _served(
        self, left: int, group: tuple[int, ...], pairs: Iterable[_Pair]
    ) -> Iterator[tuple[int, DataSet]]:
        """Yield which pairs of a left and a group serve, and what was left before each."""
        of_left = self._left.setdefault(left, {})
        remaining = of_left.get(group, ALL_DATA)
        for _, step in groupby(pairs, lambda row: row[1][3:5]):
            behind = remaining
            for _, rows in groupby(step, lambda row: row[1][5]):
                pair, *others = rows
                refused = self._sets[pair[1][6]]
                for _, row in others:
                    refused &= self._sets[row[6]]
                behind &= refused
                if data := remaining & ~refused:
                    # Who asks for a row has it hold for him: so much need not be said.
                    yield pair[0], remaining if data.is_all_but else data
            remaining = behind
        of_left[group] = remaining
        if not remaining and not any(group):
            del self._left[left]
            self._contenders["grade"][left] = DONE

    def renumber(self, numbers: Ints) -> None:
        """Give lefts other numbers; those of the ones that are of no use are negative."""
        known = ((int(numbers[left]), data) for left, data in self._left.items())
        self._left = {left: data for left, data in known if left >= 0}


def hashes_in(text: str) -> tuple[Hashes, Hashes]:
    """Return both hashes of the values of a set that is spelled."""
    first, other = np.frombuffer(bytes.fromhex(text), _DTYPE).reshape(-1, 2).T.astype(np.uint64)
    return first, other
