"""The values for which decided tuples are taken away, or spared: sets of hashes, by number.

A set is spelled as its hashes in ascending order, 32 digits each: so it is handed on as a value of
its tuple, and equal sets are equal strings.

Rows that must differ from a datum hold for all but their **exceptions** (`templates.exceptions`).
What is absent spares a tuple for those that all rows there have in common.  The first right of NEXT
serves all data but its own, a later one those that are left, but for its own: left are those that
all rights so far have in common, and when there are none, the left is done.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joins.memory.instancetable import Hashes, hash_values
from joins.memory.ordering import order_by
from joins.memory.slots import Ints
from joins.sequences.contenders import DONE, Contenders
from joins.sequences.decidedtuples import DecidedTuples
from joins.sequences.planning.plan import Plan
from templates.exceptions import Differing

__all__ = ["Exceptions", "RowExceptions", "SparedData", "TakenValues", "hashes_in"]

Exceptions = frozenset[str]
"""The data for which something does not hold."""

_NO_EXCEPTIONS: Exceptions = frozenset()

Texts = npt.NDArray[np.object_]

_DTYPE = np.dtype(">u8")


class TakenValues:
    """Sets by number; 0 is the empty one."""

    def __init__(self) -> None:
        self._sets = [""]

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

    def add_sets(self, sets: Sequence[Exceptions]) -> Ints:
        """Take sets that are not empty; return their numbers."""
        which = np.repeat(np.arange(len(sets)), np.array([*map(len, sets)], np.int64))
        texts = pa.array([text for each in sets for text in each], pa.string())
        _, numbers = self.add(which, *hash_values(texts))
        return numbers

    def texts(self, numbers: Ints) -> Texts | None:
        """Return the spelling of sets; None where all are empty."""
        if not numbers.any():
            return None
        return np.array([self._sets[number] for number in numbers.tolist()], np.object_)


class RowExceptions:
    """The data for which rows do not hold, that must differ from their values."""

    def __init__(self, plan: Plan, contenders: Contenders) -> None:
        self._plan = plan
        self._contenders = contenders

    def of(self, rows: Ints) -> list[Exceptions]:
        """Return those of each row; of rows that are held against no data there are none."""
        if not len(rows):
            return []
        seats, slots = (self._contenders[name][rows] for name in ("seat", "slot"))
        places = self._plan.seats["threshold"][seats]
        columns = (seats.tolist(), (slots + places).tolist())
        differences, texts = self._plan.seats.differences, self._contenders.texts
        return [
            _exceptions(differences[seat], texts[slot]) if seat in differences else _NO_EXCEPTIONS
            for seat, slot in zip(*columns, strict=True)
        ]


@lru_cache(maxsize=4_096)
def _exceptions(difference: Differing, text: str | None) -> Exceptions:
    return difference.exceptions(text)


class SparedData:
    """The data that are left of lefts of NEXT that some right has served, by contender."""

    def __init__(self, plan: Plan, contenders: Contenders) -> None:
        self._plan = plan
        self._contenders = contenders
        self._exceptions = RowExceptions(plan, contenders)
        self._left: dict[int, Exceptions] = {}
        self.begin(TakenValues())

    def begin(self, values: TakenValues) -> None:
        """Begin a batch, whose sets are `values`."""
        self._values = values
        self._numbers: dict[Exceptions, int] = {frozenset(): 0}
        self._sets: list[Exceptions] = [*self._numbers]

    def numbers(self, decisions: Ints, rights: Ints) -> Ints:
        """Return numbers of the exceptions that rows of right operands have, 0 of none."""
        numbers = np.zeros(len(rights), np.int64)
        own = np.flatnonzero(self._plan.decisions["is_sparing"][decisions])
        for i, exceptions in zip(own.tolist(), self._exceptions.of(rights[own]), strict=True):
            numbers[i] = self._numbers.setdefault(exceptions, len(self._sets))
            if numbers[i] == len(self._sets):
                self._sets.append(exceptions)
        return numbers

    def nexts(self, pairs: DecidedTuples) -> DecidedTuples:
        """Return the pairs that serve lefts for some data, each with these where it is not first.

        Pairs that are decided later, or end later, come in later calls.
        """
        pairs = pairs.some(order_by(pairs.left, pairs.docid, pairs.end_us, pairs.right))
        found = list(self._served(pairs))
        chosen = pairs.some(np.array([pair for pair, _ in found], np.int64))
        taken = np.zeros(len(found), np.int64)
        some = [i for i, (_, data) in enumerate(found) if data is not None]
        taken[some] = self._values.add_sets([data for _, data in found if data is not None])
        return replace(chosen, taken=taken)

    def _served(self, pairs: DecidedTuples) -> Iterator[tuple[int, Exceptions | None]]:
        """Yield which pairs serve, and for which data alone, None where all others are served."""
        columns = (pairs.left, pairs.docid, pairs.end_us, pairs.right, pairs.taken)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for left, steps in groupby(enumerate(rows), lambda row: row[1][0]):
            remaining = self._left.get(left)
            for _, step in groupby(steps, lambda row: row[1][1:3]):
                if remaining is not None and not remaining:
                    break
                behind = remaining
                for _, rights in groupby(step, lambda row: row[1][3]):
                    pair, *others = rights
                    exceptions = frozenset.intersection(
                        *(self._sets[row[4]] for _, row in (pair, *others))
                    )
                    behind = exceptions if behind is None else behind & exceptions
                    data = None if remaining is None else remaining - exceptions
                    if data is None or data:
                        yield pair[0], data
                remaining = behind
            assert remaining is not None
            if remaining:
                self._left[left] = remaining
            else:
                self._left.pop(left, None)
                self._contenders["grade"][left] = DONE

    def renumber(self, numbers: Ints) -> None:
        """Give lefts other numbers; those of the ones that are of no use are negative."""
        known = ((int(numbers[left]), data) for left, data in self._left.items())
        self._left = {left: data for left, data in known if left >= 0}


def hashes_in(text: str) -> tuple[Hashes, Hashes]:
    """Return both hashes of the values of a set that is spelled."""
    first, other = np.frombuffer(bytes.fromhex(text), _DTYPE).reshape(-1, 2).T.astype(np.uint64)
    return first, other
