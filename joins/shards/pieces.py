"""The pieces of each shard's state, as the driver knows them.

Instances for a shard wait until they are enough for a piece, or until the shard is asked.  The
driver counts the instances of each piece by shape and keeps the newest end (`retained`).  It
deletes a piece without a useful instance; a piece of which half is useless is **thin**.  With its
next order a shard merges its thin pieces, or its newest small ones where there are many.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate, groupby, takewhile

import pyarrow as pa

from joins.memory.retention import Retention
from joins.shards.limits import DEFAULT_SHARD_LIMITS, ShardLimits
from joins.shards.orders import Piece, Store
from joins.shards.retained import RetainedCount, merged

__all__ = ["Pieces"]


class Pieces:
    """The pieces of all shards in a store.

    `written_rows` counts the rows of all that were ever written: an instance has one in each shard
    that it goes to.
    """

    def __init__(
        self, store: Store, retention: Retention, limits: ShardLimits = DEFAULT_SHARD_LIMITS
    ) -> None:
        self._limits = limits
        self._store = store
        self._retention = retention
        self._pieces: dict[int, list[Piece]] = defaultdict(list)
        self._last: dict[int, int] = defaultdict(int)
        self._retained_of: dict[str, RetainedCount] = {}
        self._thin: set[str] = set()
        self._pending: dict[int, list[pa.Table]] = defaultdict(list)
        self._pending_rows = 0
        self._pending_bytes = 0
        self._writings = 0
        self.written_rows = 0

    def append(self, rows: pa.Table, counts: Sequence[int]) -> None:
        """Have instances go to shards, rows of `INSTANCE_SCHEMA`: so many to each, in order."""
        start = 0
        for shard, count in enumerate(counts):
            if count:
                self._pending[shard].append(rows.slice(start, count))
                start += count
        self._pending_rows += rows.num_rows
        self._pending_bytes += rows.nbytes

    def write_much(self, shards: int) -> None:
        """Write the waiting instances of `shards` shards once they are many."""
        rows_max, bytes_max = self._limits.pending_rows * shards, self._limits.pending_bytes
        if self._pending_rows > rows_max or self._pending_bytes > bytes_max:
            self.write()

    def write(self) -> None:
        """Write the waiting instances."""
        written: dict[str, pa.Table] = {}
        for shard, tables in self._pending.items():
            rows = pa.concat_tables(tables)
            numbers = rows.column("instance")
            first, last = numbers[0].as_py(), numbers[-1].as_py()
            piece = Piece(f"{shard}-{first}-{self._writings}", first, last, len(rows))
            written[piece.name] = rows
            self._pieces[shard].append(piece)
            self._last[shard] = last
            self._retained_of[piece.name] = RetainedCount.of(rows)
        self._store.put_all(written)
        self._writings += 1
        self.written_rows += self._pending_rows
        self._pending.clear()
        self._pending_rows = self._pending_bytes = 0

    def shards(self) -> list[int]:
        """Return the shards that have any."""
        return sorted(shard for shard, pieces in self._pieces.items() if pieces)

    def of(self, shard: int) -> tuple[Piece, ...]:
        """Return the pieces of a shard, the oldest first."""
        return tuple(self._pieces[shard])

    def last(self, shard: int) -> int:
        """Return the number of the newest instance that was written for a shard; 0: none was."""
        return self._last[shard]

    def to_merge(self, shard: int) -> tuple[Piece, ...]:
        """Return neighbouring thin pieces, or the newest small pieces where there are too many."""
        pieces, limits = self._pieces[shard], self._limits
        for is_thin, group in groupby(pieces, lambda piece: piece.name in self._thin):
            if is_thin:
                thin = list(group)[: limits.compacted_pieces]
                ends = accumulate(piece.rows for piece in thin)
                return tuple(thin[: max(1, sum(end <= 2 * limits.piece_rows for end in ends))])
        small = list(takewhile(lambda piece: 2 * piece.rows <= limits.piece_rows, reversed(pieces)))
        if len(small) <= limits.pieces:
            return ()
        return tuple(_newest(small[::-1], limits.piece_rows))

    def replace(self, shard: int, old: tuple[Piece, ...], new: Piece, horizon_us: int) -> None:
        """Put a merged piece in the place of the old ones."""
        pieces = self._pieces[shard]
        start = pieces.index(old[0])
        pieces[start : start + len(old)] = [new]
        retained = merged(self._retained_of[piece.name] for piece in old)
        self._retained_of[new.name] = retained.of_use(self._retention, horizon_us)
        self._remove(old)

    def evict(self, horizon_us: int) -> bool:
        """Delete pieces in which no class can use any instance; return whether there were any."""
        self._thin.clear()
        before = len(self._retained_of)
        for shard, pieces in self._pieces.items():
            of_use = [self._retained_of[p.name].of_use(self._retention, horizon_us) for p in pieces]
            dead = [piece for piece, left in zip(pieces, of_use, strict=True) if not left.by_shape]
            self._pieces[shard] = [piece for piece in pieces if piece not in dead]
            self._remove(dead)
            sizes = zip(pieces, map(len, of_use), strict=True)
            self._thin |= {piece.name for piece, left in sizes if 0 < 2 * left <= piece.rows}
        return len(self._retained_of) < before

    def _remove(self, pieces: Iterable[Piece]) -> None:
        names = [piece.name for piece in pieces]
        self._store.remove(names)
        for name in names:
            del self._retained_of[name]

    def shapes(self) -> set[int]:
        """Return the shapes of all instances that were written or wait."""
        waiting = (RetainedCount.of(table) for tables in self._pending.values() for table in tables)
        return {
            shape
            for retained in (*self._retained_of.values(), *waiting)
            for shape in retained.by_shape
        }

    def first(self, default: int) -> int:
        """Return the number of the oldest instance that was written or waits, if there is any."""
        firsts = [pieces[0].first for pieces in self._pieces.values() if pieces]
        firsts += [tables[0]["instance"][0].as_py() for tables in self._pending.values()]
        return min(firsts, default=default)


def _newest(pieces: list[Piece], rows_max: int) -> list[Piece]:
    """Return the newest pieces, back to one that is larger than all after it twice over.

    They are two at least, and all of them small; together they have `rows_max` rows at most.
    """
    start = len(pieces) - 2
    rows = pieces[-1].rows + pieces[-2].rows
    while start > 0 and pieces[start - 1].rows < min(2 * rows, rows_max - rows):
        start -= 1
        rows += pieces[start].rows
    return pieces[start:]
