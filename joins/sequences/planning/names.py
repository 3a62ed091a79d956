"""Names by number, of which very many are looked up at once."""

from __future__ import annotations

from itertools import repeat

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.memory.slots import Ints
from joins.sequences.planning.readers import Begins

__all__ = ["StreamNames"]

_HASH_BITS = 64

_FEW = 256
"""Up to so many names are looked up one by one."""


class StreamNames:
    """Names, numbered in the order in which they come.

    Where there are hundreds of thousands, each look at a dictionary waits for memory several times.
    So many names at once are sought by their hashes, in order, and what is found is compared.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._sorted: _ByHash | None = None

    def add(self, name: str) -> int:
        """Return the number of a name, which gets the next one if it is new."""
        number = self._numbers.setdefault(name, len(self._numbers))
        if self._sorted is not None and number == len(self._sorted):
            self._sorted = None
        return number

    def get(self, name: str) -> int | None:
        """Return the number of a name, None of one that was not added."""
        return self._numbers.get(name)

    def find(self, names: pa.StringArray) -> Ints:
        """Return the numbers of names, -1 of one that was not added."""
        texts: list[str] = names.to_pylist()
        if len(texts) <= _FEW:
            return np.fromiter(map(self._numbers.get, texts, repeat(-1)), np.int64, len(texts))
        if self._sorted is None:
            self._sorted = _ByHash(self._numbers)
        found = self._sorted.like(np.fromiter(map(hash, texts), np.int64, len(texts)))
        known = np.flatnonzero(found >= 0)
        is_same = pc.equal(self._sorted.names.take(pa.array(found[known])), names.take(known))
        for i in known[~is_same.to_numpy(zero_copy_only=False)].tolist():
            found[i] = self._numbers.get(texts[i], -1)
        return found


class _ByHash:
    """Names in the order of their hashes, and where the ones begin whose hashes begin alike."""

    def __init__(self, numbers: dict[str, int]) -> None:
        self.names = pa.array(numbers, pa.string())
        hashes = np.fromiter(map(hash, numbers), np.int64, len(numbers)).view(np.uint64)
        self._order = np.argsort(hashes)
        self._hashes = hashes[self._order]
        self._shift = np.uint64(_HASH_BITS - len(numbers).bit_length())
        self._begins = Begins.of((self._hashes >> self._shift).view(np.int64))

    def __len__(self) -> int:
        return len(self._order)

    def like(self, hashes: Ints) -> Ints:
        """Return the number of a name with each of some hashes, -1 where there is none."""
        found = np.full(len(hashes), -1)
        sought = hashes.view(np.uint64)
        at, counts = self._begins.of_numbers((sought >> self._shift).view(np.int64))
        asked = np.flatnonzero(counts)
        at, left = at[asked], counts[asked]
        while len(asked):
            is_like = self._hashes[at] == sought[asked]
            found[asked[is_like]] = self._order[at[is_like]]
            is_open = ~is_like & (left > 1)
            asked, at, left = asked[is_open], at[is_open] + 1, left[is_open] - 1
        return found
