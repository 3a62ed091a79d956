"""What queries have spent in the block that a batch ends in: it goes on from batch to batch.

Counts are columns: numbers of queries, the block of what is newest behind them, matches and bytes.
Those of a batch are added to them all at once, whoever they are of.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, islice
from typing import overload

import numpy as np

from broker.matching.boxes.columns import GrowingColumn, Ints
from broker.matching.costs.budget import Spent
from joins import ranges

__all__ = ["Begun", "Key", "NumberedQueries", "columns_of"]

Key = tuple[str, int]
"""The id and the revision of a query."""

_NEWEST = 1 << 31
"""Counts stand at a number: that of the query times this, and that of the newest block."""

_UNKNOWN = -1
"""The number of a query that has not been asked for by its number in the set."""

_NOTHING = np.zeros((4, 0), np.int64)
"""Columns without counts."""


def columns_of(numbers: Ints, newest: Ints | int, matches: Ints | int, nbytes: Ints | int) -> Ints:
    """Return counts in columns; what is one number is that of all queries.

    >>> columns_of(np.array([4, 7]), 0, np.array([1, 2]), 30).tolist()
    [[4, 7], [0, 0], [1, 2], [30, 30]]
    """
    columns = np.empty((4, len(numbers)), np.int64)
    for own, given in zip(columns, (numbers, newest, matches, nbytes), strict=True):
        own[:] = given
    return columns


_Lists = dict[int, tuple[Sequence[str], Ints]]
"""Numbers of the queries in lists, by the list, which is kept so that no other is taken for it."""


class NumberedQueries(Sequence[str]):
    """Queries by their `numbers` in a set of queries; few are asked for their names."""

    def __init__(self, numbers: Ints, name_of: Callable[[int], str]) -> None:
        self.numbers = numbers
        self._name_of = name_of

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...
    def __getitem__(self, place: int | slice) -> str | Sequence[str]:
        if isinstance(place, slice):
            return [*map(self._name_of, range(*place.indices(len(self))))]
        if place >= len(self):
            raise IndexError(place)
        return self._name_of(place)


class _Counts:
    """Matches and bytes in one block of positions, in the order of what they stand at."""

    def __init__(self, columns: Ints) -> None:
        self.at = np.zeros(0, np.int64)
        self.counts = np.zeros((2, 0), np.int64)
        self.add(columns)

    def add(self, columns: Ints) -> None:
        """Add to counts."""
        numbers, newest, *counts = columns[:, columns[2:].any(axis=0)]
        at = numbers * _NEWEST + newest
        order = at.argsort()
        first = np.diff(at[order], prepend=-1).nonzero()[0]
        at, sums = at[order][first], np.add.reduceat(np.stack(counts)[:, order], first, axis=1)
        places = self.at.searchsorted(at)
        is_new = np.append(self.at, -1)[places] != at
        self.counts[:, places[~is_new]] += sums[:, ~is_new]
        if is_new.any():
            self.at = np.insert(self.at, places[is_new], at[is_new])
            self.counts = np.insert(self.counts, places[is_new], sums[:, is_new], axis=1)

    def rows(self, number: int) -> Iterator[tuple[int, int, int]]:
        """Yield what a query has: newest block, matches, bytes."""
        first, last = self.at.searchsorted([number * _NEWEST, (number + 1) * _NEWEST])
        newest = self.at[first:last] % _NEWEST
        return zip(newest.tolist(), *self.counts[:, first:last].tolist(), strict=True)

    def of(self, numbers: Ints) -> tuple[Ints, Ints]:
        """Return the places of what some queries have, and how many each has."""
        first, last = self.at.searchsorted(np.stack([numbers, numbers + 1]) * _NEWEST)
        return ranges(first, last - first), last - first


class _SpentInBlock(Sequence[Spent]):
    """What queries have spent in a block, in columns: newest block, matches and bytes.

    Where most statements differ these are tens of thousands a batch, read once each.
    """

    def __init__(self, keys: Sequence[Key], block: int, counts: Ints) -> None:
        self._keys = keys
        self._block = block
        self._counts = counts

    def __len__(self) -> int:
        return len(self._keys)

    @overload
    def __getitem__(self, place: int) -> Spent: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Spent]: ...
    def __getitem__(self, place: int | slice) -> Spent | Sequence[Spent]:
        if isinstance(place, slice):
            return _SpentInBlock(self._keys[place], self._block, self._counts[:, place])
        newest, matches, nbytes = self._counts[:, place].tolist()
        return Spent(*self._keys[place], self._block, newest, matches, nbytes)

    def __iter__(self) -> Iterator[Spent]:
        columns = self._counts.tolist()
        for (query, revision), newest, matches, nbytes in zip(self._keys, *columns, strict=True):
            yield Spent(query, revision, self._block, newest, matches, nbytes)


class Begun:
    """What queries have spent in blocks of positions.

    They are known by numbers, which are theirs to the end of the batch, or as long as many have
    counts.
    """

    def __init__(self, spent: Iterable[Spent] = ()) -> None:
        self._keys: list[Key] = []
        self._numbers = _numbering()
        self.forget_look_ups()
        by_block: dict[int, list[Spent]] = {}
        for one in spent:
            by_block.setdefault(one.block, []).append(one)
        self._blocks = {block: _Counts(self.columns(own)) for block, own in by_block.items()}

    def __len__(self) -> int:
        return len(self._keys)

    def numbers(self, keys: Iterable[Key]) -> Ints:
        """Return the numbers of queries; one that has none is given the next."""
        found = np.array([*map(self._numbers.__getitem__, keys)], np.int64)
        new = islice(reversed(self._numbers), len(self._numbers) - len(self._keys))
        self._keys += [*new][::-1]
        return found

    def numbers_of(self, names: Sequence[str], revision_of: Callable[[str], int]) -> Ints:
        """Return the numbers of queries in a list, which stays as it is.

        They are looked up where the list was not asked for in this batch or the one before.
        """
        if isinstance(names, NumberedQueries):
            return self._numbers_of_set(names, revision_of)
        known = self._lists.get(id(names)) or self._lists_before.get(id(names))
        if known is None:
            known = names, self.numbers(zip(names, map(revision_of, names), strict=True))
        self._lists[id(names)] = known
        return known[1]

    def _numbers_of_set(self, queries: NumberedQueries, revision_of: Callable[[str], int]) -> Ints:
        found = self._of_set[queries.numbers]
        new = (found == _UNKNOWN).nonzero()[0]
        if len(new):
            names = [queries[i] for i in new.tolist()]
            found[new] = self.numbers(zip(names, map(revision_of, names), strict=True))
            self._of_set.write(queries.numbers[new], found[new])
        return found.astype(np.int64)

    def forget_look_ups(self) -> None:
        """Look up all numbers anew: revisions may be others than before."""
        self._lists: _Lists = {}
        self._lists_before: _Lists = {}
        self._of_set = GrowingColumn(np.int32, _UNKNOWN)

    def columns(self, spent: Sequence[Spent]) -> Ints:
        """Return in columns what queries have spent in a block."""
        numbers = self.numbers((one.query, one.revision) for one in spent)
        counts = [(one.newest_block, one.matches, one.nbytes) for one in spent]
        return columns_of(numbers, *np.array(counts, np.int64).reshape(-1, 3).T)

    def of(self, key: Key) -> list[Spent]:
        """Return what a query has spent."""
        number = self._numbers.get(key, -1)
        return [
            Spent(*key, block, *row)
            for block, counts in self._blocks.items()
            for row in counts.rows(number)
            if any(row[1:])
        ]

    def sums(self, numbers: Ints) -> Ints:
        """Return the matches and bytes that each of some queries has."""
        sums = np.zeros((2, len(numbers)), np.int64)
        for counts in self._blocks.values():
            places, several = counts.of(numbers)
            which = np.repeat(np.arange(len(numbers)), several)
            for kind, own in enumerate(counts.counts[:, places]):
                np.add.at(sums[kind], which, own)
        return sums.T

    def go_on(self, block: int, told: Ints, found: Iterable[Ints]) -> Sequence[Spent]:
        """Forget other blocks, and what queries that were told all have had; add what was found.

        Return what those queries have spent, and those who found something.
        """
        counts = self._blocks.get(block) or _Counts(_NOTHING)
        self._blocks = {block: counts}
        columns = np.concatenate([_NOTHING, *found], axis=1)
        self._lists, self._lists_before = {}, self._lists
        spent: Sequence[Spent] = ()
        if len(told) or columns.size:
            counts.counts[:, counts.of(told)[0]] = 0
            counts.add(columns)
            are_found = np.zeros(len(self), np.bool_)
            are_found[told] = are_found[columns[0]] = True
            spent = self._spent(block, are_found.nonzero()[0])
        if 2 * len(counts.at) < len(self):
            self._number_anew(counts)
        return spent

    def _spent(self, block: int, numbers: Ints) -> Sequence[Spent]:
        counts = self._blocks[block]
        places, several = counts.of(numbers)
        are_some = counts.counts[:, places].any(axis=0)
        places = places[are_some]
        keys = [self._keys[i] for i in numbers.repeat(several)[are_some].tolist()]
        return _SpentInBlock(
            keys, block, np.stack([counts.at[places] % _NEWEST, *counts.counts[:, places]])
        )

    def _number_anew(self, counts: _Counts) -> None:
        """Have numbers for those that have counts in the only block, and no others."""
        own, numbers = np.unique(counts.at // _NEWEST, return_inverse=True)
        counts.at = numbers * _NEWEST + counts.at % _NEWEST
        keys, self._keys, self._numbers = self._keys, [], _numbering()
        self.forget_look_ups()
        self.numbers(keys[i] for i in own.tolist())


def _numbering() -> defaultdict[Key, int]:
    return defaultdict(count().__next__)
