"""Names by number, of which very many are looked up at once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.memory.instancetable import Hashes, mixed
from joins.memory.slots import Ints
from joins.sequences.planning.readers import Begins

__all__ = ["StreamNames", "hashes_of"]

_HASH_BITS = 64
_WORD = 8

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
        if len(names) <= _FEW:
            return self._each(names)
        if self._sorted is None:
            self._sorted = _ByHash(pa.array(self._numbers, pa.string()))
        found = self._sorted.like(names)
        known = np.flatnonzero(found >= 0)
        is_same = pc.equal(self._sorted.names.take(pa.array(found[known])), names.take(known))
        others = known[~is_same.to_numpy(zero_copy_only=False)]
        found[others] = self._each(names.take(others))
        return found

    def _each(self, names: pa.StringArray) -> Ints:
        return np.array([self._numbers.get(name, -1) for name in names.to_pylist()], np.int64)


class _ByHash:
    """Names in the order of their hashes, and where the ones begin whose hashes begin alike."""

    def __init__(self, names: pa.StringArray) -> None:
        self.names = names
        hashes = hashes_of(names)
        self._order = np.argsort(hashes)
        self._hashes = hashes[self._order]
        self._shift = np.uint64(_HASH_BITS - len(names).bit_length())
        self._begins = Begins.of((self._hashes >> self._shift).view(np.int64))

    def __len__(self) -> int:
        return len(self._order)

    def like(self, names: pa.StringArray) -> Ints:
        """Return the number of a name that has the hash of each, -1 where there is none."""
        found, hashes = np.full(len(names), -1), hashes_of(names)
        at, counts = self._begins.of_numbers((hashes >> self._shift).view(np.int64))
        asked = np.flatnonzero(counts)
        at, left = at[asked], counts[asked]
        while len(asked):
            is_like = self._hashes[at] == hashes[asked]
            found[asked[is_like]] = self._order[at[is_like]]
            is_open = ~is_like & (left > 1)
            asked, at, left = asked[is_open], at[is_open] + 1, left[is_open] - 1
        return found


def hashes_of(names: pa.StringArray) -> Hashes:
    """Return hashes of the last sixteen bytes: the name of a stream ends in a digest."""
    _, offsets, data = names.buffers()
    offsets = np.frombuffer(offsets, np.int32)[names.offset : names.offset + len(names) + 1]
    ends, lengths = offsets[1:].astype(np.int64), np.diff(offsets)
    text = np.concatenate([np.zeros(2 * _WORD, np.uint8), np.frombuffer(data or b"", np.uint8)])
    words = np.ndarray((len(text) - _WORD + 1,), "<u8", text, strides=(1,))
    last, before = words[ends + _WORD], words[ends]
    # Of a short name the first bytes of a word are another's.
    last >>= (8 * np.clip(_WORD - lengths, 0, _WORD)).astype(np.uint64)
    before >>= (8 * np.clip(2 * _WORD - lengths, 0, _WORD)).astype(np.uint64)
    return mixed(mixed(lengths.astype(np.uint64), before), last)
