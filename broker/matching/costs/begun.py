"""What queries have spent in the block that a batch ends in: it goes on from batch to batch.

Statements that share the streams which they read spend alike, batch for batch.  So they have one
row of counts, as long as none of them spends anything else: what is added to all of them is added
to it, however many they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from broker.matching.boxes.columns import Ints
from broker.matching.costs.budget import Spent

__all__ = ["Begun", "InBlock", "Key"]

Key = tuple[str, int]
"""The id and the revision of a query."""

InBlock = Mapping[int, tuple[int, int]]
"""Matches and bytes in a block of positions, by the block of what is newest behind them."""

_NOTHING: InBlock = {}


class _Row:
    """The counts of the queries that spend alike; `number` is how many they are."""

    __slots__ = ("counts", "keys", "number")

    def __init__(self, counts: InBlock, keys: Sequence[Key]) -> None:
        self.counts = counts
        self.keys = keys
        self.number = len(keys)


class Begun:
    """What queries have spent in blocks of positions, by their keys."""

    def __init__(self, spent: Iterable[Spent] = ()) -> None:
        self._blocks: dict[int, dict[Key, _Row]] = {}
        for one in spent:
            counts = {one.newest_block: (one.matches, one.nbytes)}
            self._add(self._blocks.setdefault(one.block, {}), (one.query, one.revision), counts)

    def of(self, key: Key) -> list[Spent]:
        """Return what a query has spent."""
        return [
            Spent(*key, block, newest, *counts)
            for block, rows in self._blocks.items()
            if key in rows
            for newest, counts in rows[key].counts.items()
        ]

    def sums(self, keys: Sequence[Key]) -> Ints | None:
        """Return the matches and bytes that each of some queries has; None where none has any."""
        sums: Ints | None = None
        for rows in filter(None, self._blocks.values()):
            found = [rows[key].counts if key in rows else _NOTHING for key in keys]
            own = np.array([_sum(counts) for counts in found], np.int64).reshape(-1, 2)
            sums = own if sums is None else sums + own
        return sums

    def most(self, keys: Sequence[Key]) -> tuple[int, int]:
        """Return the most matches, and the most bytes, that one of some queries has."""
        most_matches = most_bytes = 0
        for rows in filter(None, self._blocks.values()):
            sums = [_sum(row.counts) for row in self._rows_of(rows, keys)]
            most_matches += max((matches for matches, _ in sums), default=0)
            most_bytes += max((nbytes for _, nbytes in sums), default=0)
        return most_matches, most_bytes

    def keep(self, block: int) -> None:
        """Forget all blocks but one."""
        self._blocks = {block: self._blocks.get(block, {})}

    def put(self, block: int, key: Key, counts: InBlock) -> None:
        """Take counts in the place of those that a query has in a block; none are none."""
        rows = self._blocks.setdefault(block, {})
        if before := rows.pop(key, None):
            before.number -= 1
        if counts:
            rows[key] = _Row(counts, (key,))

    def add(self, block: int, key: Key, found: InBlock) -> None:
        """Add to what a query has in a block."""
        self._add(self._blocks.setdefault(block, {}), key, found)

    def add_to_all(self, block: int, keys: Sequence[Key], found: InBlock) -> None:
        """Add the same to what each of some queries has in a block."""
        rows = self._blocks.setdefault(block, {})
        if alike := self._row_of_all(rows, keys):
            alike.counts = _with(alike.counts, found)
            return
        if rows.keys().isdisjoint(keys):
            rows.update(dict.fromkeys(keys, _Row(_with(_NOTHING, found), keys)))
            return
        had = [rows.get(key) for key in keys]
        of_row: dict[int, list[Key]] = {}
        for key, row in zip(keys, had, strict=True):
            of_row.setdefault(id(row), []).append(key)
        counts = {id(row): _NOTHING if row is None else row.counts for row in had}
        for row_id, own in of_row.items():
            rows.update(dict.fromkeys(own, _Row(_with(counts[row_id], found), own)))
        for row in had:
            if row is not None:
                row.number -= 1

    def spent(self, block: int, keys: Iterable[Key]) -> list[Spent]:
        """Return what each of some queries has spent in a block."""
        rows = self._blocks.get(block, {})
        return [
            Spent(*key, block, newest, *counts)
            for key in keys
            if key in rows
            for newest, counts in rows[key].counts.items()
        ]

    def _rows_of(self, rows: Mapping[Key, _Row], keys: Sequence[Key]) -> Iterable[_Row]:
        """Return the rows of some queries, each once."""
        if alike := self._row_of_all(rows, keys):
            return [alike]
        return {id(row): row for key in keys if (row := rows.get(key))}.values()

    def _row_of_all(self, rows: Mapping[Key, _Row], keys: Sequence[Key]) -> _Row | None:
        """Return the row that some queries have, and no other; None where that is not so."""
        row = rows.get(keys[0]) if keys else None
        is_alike = row is not None and row.number == len(keys) and row.keys == keys
        return row if is_alike else None

    def _add(self, rows: dict[Key, _Row], key: Key, found: InBlock) -> None:
        before = rows.get(key)
        if before is not None:
            before.number -= 1
        rows[key] = _Row(_with(_NOTHING if before is None else before.counts, found), (key,))


def _sum(counts: InBlock) -> tuple[int, int]:
    """Return the matches and bytes of all blocks."""
    if len(counts) == 1:
        return next(iter(counts.values()))
    return sum(each[0] for each in counts.values()), sum(each[1] for each in counts.values())


def _with(before: InBlock, found: InBlock) -> InBlock:
    """Return what a query has in a block, with further matches and bytes by newest block."""
    if not before:
        return dict(sorted(found.items())) if len(found) > 1 else found
    if len(found) == len(before) == 1:
        [(newest, more)], [(held, had)] = found.items(), before.items()
        if newest == held:
            return {newest: (had[0] + more[0], had[1] + more[1])}
    both = dict(before)
    for newest, (matches, nbytes) in found.items():
        known = both.get(newest, (0, 0))
        both[newest] = known[0] + matches, known[1] + nbytes
    return dict(sorted(both.items()))
