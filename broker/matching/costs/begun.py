"""What queries have spent in the block that a batch ends in: it goes on from batch to batch.

Statements that share the streams which they read spend alike, batch for batch.  So they have one
row of counts, as long as none of them spends anything else: what is added to all of them is added
to it, however many they are.  Statements that have different tuples of one stream, as with
different windows, spend together: the counts of these are columns, and what each of them has is
added at once.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence

import numpy as np

from broker.matching.boxes.columns import Ints
from broker.matching.costs.budget import Spent

__all__ = ["Begun", "Columns", "InBlock", "Key"]

Key = tuple[str, int]
"""The id and the revision of a query."""

InBlock = Mapping[int, tuple[int, int]]
"""Matches and bytes in a block of positions, by the block of what is newest behind them."""

Columns = Mapping[int, Ints]
"""Matches and bytes as in `InBlock`, a row for each of some queries."""

_NOTHING: InBlock = {}

_FORGOTTEN = 1_000
"""Rows that are forgotten with a batch: to forget those of 50,000 queries takes some 30 ms."""


class _Row:
    """The counts of the queries that spend alike; `number` is how many of them have this row."""

    __slots__ = ("counts", "keys", "number")

    def __init__(self, counts: InBlock, keys: Sequence[Key]) -> None:
        self.counts = counts
        self.keys = keys
        self.number = len(keys)

    def of(self, key: Key) -> InBlock:
        """Return the counts of a query."""
        return self.counts

    def add(self, found: InBlock) -> None:
        """Add to what each query has."""
        self.counts = _with(self.counts, found)

    def sums(self) -> Ints:
        """Return the matches and bytes of each query."""
        return np.array([_sum(self.counts)], np.int64).repeat(len(self.keys), axis=0)

    def most(self) -> tuple[int, int]:
        """Return the most matches, and the most bytes, that a query has."""
        return _sum(self.counts)

    def columns(self) -> Columns:
        """Return the counts of each query in columns."""
        whole = (len(self.keys), 2)
        return {newest: np.full(whole, counts) for newest, counts in self.counts.items()}


class _Each(_Row):
    """The counts of queries that spend together, each its own; one may have none of a block."""

    __slots__ = ("_places", "each")

    def __init__(self, each: Columns, keys: Sequence[Key]) -> None:
        super().__init__(_NOTHING, keys)
        self.each = dict(each)
        self._places: dict[Key, int] = {}

    def of(self, key: Key) -> InBlock:
        """Return the counts of a query."""
        [place] = self._at([key])
        found = {newest: tuple(counts[place].tolist()) for newest, counts in self.each.items()}
        return {newest: counts for newest, counts in sorted(found.items()) if any(counts)}

    def _at(self, keys: Sequence[Key]) -> list[int]:
        """Return the places of some of the queries."""
        if not self._places:
            self._places = {own: place for place, own in enumerate(self.keys)}
        return [self._places[key] for key in keys]

    def taken(self, keys: Sequence[Key]) -> Columns:
        """Return the counts of some of the queries in columns."""
        places = self._at(keys)
        return {newest: counts[places] for newest, counts in self.each.items()}

    def add(self, found: InBlock) -> None:
        """Add to what each query has."""
        self.add_each({newest: np.array([counts]) for newest, counts in found.items()})

    def add_each(self, found: Columns) -> None:
        """Add to what the queries have, to each its own."""
        for newest, counts in found.items():
            before = self.each.get(newest)
            whole = np.zeros((len(self.keys), 2), np.int64) if before is None else before
            self.each[newest] = whole + counts

    def sums(self) -> Ints:
        """Return the matches and bytes of each query."""
        sums: Ints = sum(self.each.values(), np.zeros((len(self.keys), 2), np.int64))
        return sums

    def most(self) -> tuple[int, int]:
        """Return the most matches, and the most bytes, that a query has."""
        matches, nbytes = self.sums().max(axis=0).tolist()
        return matches, nbytes

    def columns(self) -> Columns:
        """Return the counts of each query in columns."""
        return self.each

    def spent(self, block: int, some: Container[Key]) -> list[Spent]:
        """Return what some of the queries have spent in a block."""
        return [
            Spent(*key, block, newest, *own)
            for newest, counts in sorted(self.each.items())
            for key, own in zip(self.keys, counts.tolist(), strict=True)
            if key in some and any(own)
        ]


class Begun:
    """What queries have spent in blocks of positions, by their keys."""

    def __init__(self, spent: Iterable[Spent] = ()) -> None:
        self._blocks: dict[int, dict[Key, _Row]] = {}
        self._gone: list[dict[Key, _Row]] = []
        for one in spent:
            counts = {one.newest_block: (one.matches, one.nbytes)}
            self._add(self._blocks.setdefault(one.block, {}), (one.query, one.revision), counts)

    def of(self, key: Key) -> list[Spent]:
        """Return what a query has spent."""
        return [
            Spent(*key, block, newest, *counts)
            for block, rows in self._blocks.items()
            if key in rows
            for newest, counts in rows[key].of(key).items()
        ]

    def sums(self, keys: Sequence[Key]) -> Ints | None:
        """Return the matches and bytes that each of some queries has; None where none has any."""
        sums: Ints | None = None
        for rows in filter(None, self._blocks.values()):
            if alike := self._row_of_all(rows, keys):
                own = alike.sums()
            elif isinstance(rows.get(keys[0]), _Each):
                nothing = np.zeros((len(keys), 2), np.int64)
                own = sum(_columns_of(rows, keys).values(), nothing)
            else:
                found = [rows[key].of(key) if key in rows else _NOTHING for key in keys]
                own = np.array([_sum(counts) for counts in found], np.int64).reshape(-1, 2)
            sums = own if sums is None else sums + own
        return sums

    def most(self, keys: Sequence[Key]) -> tuple[int, int]:
        """Return the most matches, and the most bytes, that one of some queries has."""
        most_matches = most_bytes = 0
        for rows in filter(None, self._blocks.values()):
            sums = list(self._most_of(rows, keys))
            most_matches += max((matches for matches, _ in sums), default=0)
            most_bytes += max((nbytes for _, nbytes in sums), default=0)
        return most_matches, most_bytes

    def keep(self, block: int) -> None:
        """Forget all blocks but one, some rows with each batch; when another begins, the rest."""
        kept = self._blocks.pop(block, {})
        if self._blocks:
            self._gone = [*self._blocks.values()]
        self._blocks = {block: kept}
        for rows in self._gone:
            for _ in range(min(_FORGOTTEN, len(rows))):
                rows.popitem()

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
            alike.add(found)
            return
        if rows.keys().isdisjoint(keys):
            rows.update(dict.fromkeys(keys, _Row(_with(_NOTHING, found), keys)))
            return
        had = [rows.get(key) for key in keys]
        of_row: dict[int, list[Key]] = {}
        for key, row in zip(keys, had, strict=True):
            if isinstance(row, _Each):
                self._add(rows, key, found)
            else:
                of_row.setdefault(id(row), []).append(key)
        counts = {id(row): _NOTHING if row is None else row.counts for row in had}
        for row_id, own in of_row.items():
            rows.update(dict.fromkeys(own, _Row(_with(counts[row_id], found), own)))
        for row in had:
            if row is not None and not isinstance(row, _Each):
                row.number -= 1

    def add_to_each(self, block: int, keys: Sequence[Key], found: Columns) -> None:
        """Add to what each of some queries has in a block, to each its own."""
        rows = self._blocks.setdefault(block, {})
        alike = self._row_of_all(rows, keys)
        if isinstance(alike, _Each):
            alike.add_each(found)
        elif alike or rows.keys().isdisjoint(keys):
            each = _Each(alike.columns() if alike else {}, keys)
            each.add_each(found)
            rows.update(dict.fromkeys(keys, each))
        else:
            # One more of them has come, or some spend elsewhere as well.
            each = _Each(_columns_of(rows, keys), keys)
            for row, own in _by_row(rows, keys):
                row.number -= len(own)
            each.add_each(found)
            rows.update(dict.fromkeys(keys, each))

    def spent(self, block: int, keys: Collection[Key]) -> list[Spent]:
        """Return what each of some queries has spent in a block, in any order."""
        rows = self._blocks.get(block, {})
        found: list[Spent] = []
        together: dict[int, _Each] = {}
        for key in keys:
            row = rows.get(key)
            if isinstance(row, _Each):
                together[id(row)] = row
            elif row is not None:
                found += [Spent(*key, block, newest, *own) for newest, own in row.counts.items()]
        for each in together.values():
            found += each.spent(block, {key for key in keys if rows.get(key) is each})
        return found

    def _most_of(self, rows: Mapping[Key, _Row], keys: Sequence[Key]) -> Iterator[tuple[int, int]]:
        """Yield matches and bytes of which the most are the most that one of some queries has."""
        if alike := self._row_of_all(rows, keys):
            yield alike.most()
            return
        own = [(key, row) for key in keys if (row := rows.get(key))]
        yield from (_sum(row.of(key)) for key, row in own if isinstance(row, _Each))
        alike_rows = {id(row): row for _, row in own if not isinstance(row, _Each)}
        yield from (row.most() for row in alike_rows.values())

    def _row_of_all(self, rows: Mapping[Key, _Row], keys: Sequence[Key]) -> _Row | None:
        """Return the row that some queries have, and no other; None where that is not so."""
        row = rows.get(keys[0]) if keys else None
        is_alike = row is not None and row.number == len(keys) and row.keys == keys
        return row if is_alike else None

    def _add(self, rows: dict[Key, _Row], key: Key, found: InBlock) -> None:
        before = rows.get(key)
        if before is not None:
            before.number -= 1
        had = _NOTHING if before is None else before.of(key)
        rows[key] = _Row(_with(had, found), (key,))


def _by_row(rows: Mapping[Key, _Row], keys: Sequence[Key]) -> Iterable[tuple[_Row, Sequence[int]]]:
    """Return the different rows of some queries, each with the places of those that have it."""
    found: dict[int, tuple[_Row, list[int]]] = {}
    for i, key in enumerate(keys):
        if (row := rows.get(key)) is not None:
            found.setdefault(id(row), (row, []))[1].append(i)
    return found.values()


def _columns_of(rows: Mapping[Key, _Row], keys: Sequence[Key]) -> Columns:
    """Return in columns what each of some queries has."""
    found: dict[int, Ints] = {}
    # Of queries that have rows of their own there may be many: they are written together.
    alike: dict[int, tuple[list[int], list[tuple[int, int]]]] = {}
    for row, own in _by_row(rows, keys):
        if isinstance(row, _Each):
            for newest, each in row.taken([keys[i] for i in own]).items():
                found.setdefault(newest, np.zeros((len(keys), 2), np.int64))[own] = each
            continue
        for newest, counts in row.counts.items():
            places, values = alike.setdefault(newest, ([], []))
            places += own
            values += [counts] * len(own)
    for newest, (places, values) in alike.items():
        found.setdefault(newest, np.zeros((len(keys), 2), np.int64))[places] = values
    return found


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
