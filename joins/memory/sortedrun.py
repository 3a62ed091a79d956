"""A sorted run of an index: keys of values under variables, and the instances that have them.

The first half of a key comes from the value's hash alone, whatever the variable: the entries of one
value stand together, and one look says that no other instance has a value, before it is looked up
under any variable (`shared`).  A long run has a directory by the first bits of its keys: what is
looked for stands among a few entries, or nowhere, and to look at these is two places in memory; a
binary search is a dozen.  Most of what is looked for is in no run: of four in five of that one bit
says so, among as many as stay in a core's cache.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from joins.memory.limits import MemoryLimits
from joins.memory.lookups import LATTER_HALF
from joins.memory.remembered import Hashes
from joins.memory.slots import Ints, ranges
from joins.memory.times import Flags

__all__ = ["AreThere", "IndexRun", "RunColumns"]

_KEY_BITS = 64

_TOGETHER = 2
"""Keys of a run, about, that a directory has one place for."""

_SPARE_BITS = 3
"""A directory has up to two to the power of this bits for each key, and more than half of that."""

_NEAR = 16
"""Entries that are all looked at for one that has been asked for: more are searched."""

_BYTE_BITS, _IN_BYTE = 3, 7
"""How many bits of a number say which bit of a byte it is, and these bits."""

AreThere = Callable[[Ints], npt.NDArray[np.bool_]]
"""Says of instances, by number, which have not been evicted."""


def _stable_order(keys: Hashes) -> Ints:
    """Return the order of keys, equal ones as they stand.

    Most keys occur once.  To sort them as they come, and then keys that do not, takes a third of
    the time of a stable sort.
    """
    order = np.argsort(keys)
    in_order = keys[order]
    is_first = np.ones(len(keys), np.bool_)
    np.not_equal(in_order[1:], in_order[:-1], out=is_first[1:])
    tied = ~is_first
    tied[:-1] |= tied[1:]
    rows = np.flatnonzero(tied)
    numbers = np.cumsum(is_first[rows]) * len(keys) + order[rows]
    numbers.sort()
    order[rows] = numbers % len(keys)
    return order


class RunColumns(NamedTuple):
    """A run and its directory as arrays, for compiled loops; `starts` of no directory is empty."""

    keys: Hashes
    offsets: npt.NDArray[np.uint32]
    first: int
    starts: npt.NDArray[np.uint32]
    shift: np.uint64
    bits: npt.NDArray[np.uint8]
    bit_shift: np.uint64


_NO_STARTS, _NO_BITS, _NO_SHIFT = np.zeros(0, np.uint32), np.zeros(0, np.uint8), np.uint64(0)


@dataclass(frozen=True, slots=True, eq=False)
class IndexRun:
    """Entries by key; the owner of entry `i` is the instance `first + offsets[i]`."""

    keys: Hashes
    offsets: npt.NDArray[np.uint32]
    first: int
    last: int
    directory: RunDirectory | None

    @classmethod
    def of(
        cls, keys: Hashes, instances: Ints, limits: MemoryLimits, *, is_merged: bool = False
    ) -> IndexRun:
        """Return a run of entries, which may stand in any order.

        What is merged stands in order but for a few places: a merge sort takes a third of the time
        then.
        """
        order = np.argsort(keys, kind="stable") if is_merged else _stable_order(keys)
        keys = keys[order]
        first = int(instances.min())
        offsets = (instances - first).astype(np.uint32)[order]
        return cls(keys, offsets, first, int(instances.max()), _directory_of(keys, limits))

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def memory_bytes(self) -> int:
        """The memory that the entries take, and their directory."""
        directory_bytes = 0 if self.directory is None else self.directory.memory_bytes
        return self.keys.nbytes + self.offsets.nbytes + directory_bytes

    @property
    def columns(self) -> RunColumns:
        """The run and its directory as arrays."""
        own = self.keys, self.offsets, self.first
        directory = self.directory
        if directory is None:
            return RunColumns(*own, _NO_STARTS, _NO_SHIFT, _NO_BITS, _NO_SHIFT)
        starts, bits = directory.starts, directory.bits
        return RunColumns(*own, starts, directory.shift, bits, directory.bit_shift)

    def owners(self, places: Ints) -> Ints:
        """Return the instances of some entries."""
        return self.offsets[places].astype(np.int64) + self.first

    def since(self, instance: int, limits: MemoryLimits) -> IndexRun:
        """Return the entries of an instance and later ones; there are some."""
        kept = self.offsets >= instance - self.first
        keys, offsets = self.keys[kept], self.offsets[kept] - np.uint32(instance - self.first)
        return IndexRun(keys, offsets, instance, self.last, _directory_of(keys, limits))

    def there(self, are_there: AreThere) -> Flags:
        """Return which entries are of instances that are there."""
        if self.last - self.first < len(self):
            # Most instances have several entries: each is looked for once, and in order.
            found = np.zeros(self.last - self.first + 1, np.bool_)
            found[self.offsets] = True
            numbers = np.flatnonzero(found)
            found[numbers] = are_there(numbers + self.first)
            return found[self.offsets]
        return are_there(self.offsets.astype(np.int64) + self.first)

    def entries(self, there: Flags) -> tuple[Hashes, Ints]:
        """Return the keys and instances of some entries."""
        if there.all():
            return self.keys, self.offsets.astype(np.int64) + self.first
        return self.keys[there], self.offsets[there].astype(np.int64) + self.first

    def find(self, needles: Hashes) -> tuple[Ints, Ints, Ints]:
        """Return which of some keys are here, where they start, and how often each occurs."""
        starts = self.keys.searchsorted(needles, "left")
        hit = (self.keys[np.minimum(starts, len(self.keys) - 1)] == needles).nonzero()[0]
        starts, needles = starts[hit], needles[hit]
        return hit, starts, self._counts(needles, starts)

    def having(self, hashes: Hashes) -> tuple[Ints, Ints, Ints]:
        """Return which of some sorted values are here, in any order, and the entries of each.

        The entries stand together: where they start, and how many they are.
        """
        if self.directory is None:
            return self._searched(hashes)
        maybe = self.directory.among(hashes)
        hashes = hashes[maybe]
        low, high = self.directory.around(hashes)
        is_far = high - low > _NEAR
        if not is_far.any():
            here, starts, counts = self._near(hashes, low, high)
            return maybe[here], starts, counts
        near, far = np.flatnonzero(~is_far), np.flatnonzero(is_far)
        here, starts, counts = self._near(hashes[near], low[near], high[near])
        others, *more = self._searched(hashes[far])
        starts, counts = map(np.append, (starts, counts), more)
        return maybe[np.append(near[here], far[others])], starts, counts

    def _searched(self, hashes: Hashes) -> tuple[Ints, Ints, Ints]:
        """Return what `having` does by binary search."""
        starts = self.keys.searchsorted(hashes & ~LATTER_HALF, "left")
        first = self.keys[np.minimum(starts, len(self.keys) - 1)]
        here = ((first ^ hashes) <= LATTER_HALF).nonzero()[0]
        starts = starts[here]
        return here, starts, self._counts(hashes[here] | LATTER_HALF, starts)

    def _near(self, hashes: Hashes, low: Ints, high: Ints) -> tuple[Ints, Ints, Ints]:
        """Return what `having` does by a look at all entries from `low` to `high`."""
        counts = high - low
        which, places = np.repeat(np.arange(len(hashes)), counts), ranges(low, counts)
        found = np.flatnonzero((self.keys[places] ^ hashes[which]) <= LATTER_HALF)
        which = which[found]
        firsts = np.flatnonzero(np.append(True, which[1:] != which[:-1]))[: len(which)]
        counts = np.diff(np.append(firsts, len(which)))
        return which[firsts], places[found[firsts]], counts

    def shared(self, hashes: Hashes, owners: Ints, own_entries: int) -> Flags:
        """Return which of sorted values may have an entry of another instance than their owner."""
        found = np.zeros(len(hashes), np.bool_)
        here, starts, counts = self.having(hashes)
        if self.last < owners.min(initial=self.last + 1):
            found[here] = True
            return found
        for place in range(own_entries):
            is_other = self.owners(starts + place) != owners[here]
            found[here[is_other]] = True
            more = (~is_other & (counts > place + 1)).nonzero()[0]
            here, starts, counts = here[more], starts[more], counts[more]
        found[here] = True
        return found

    def _counts(self, keys: Hashes, starts: Ints) -> Ints:
        """Return how many entries from some places on have no key above some; most are one."""
        counts = np.ones(len(keys), np.int64)
        if len(starts) and len(self.keys) > 1:
            following = np.minimum(starts + 1, len(self.keys) - 1)
            more = ((self.keys[following] <= keys) & (following > starts)).nonzero()[0]
            counts[more] = self.keys.searchsorted(keys[more], "right") - starts[more]
        return counts


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """Where the keys that begin with some bits start in a run, and behind them all where it ends.

    Keys are hashes, so about as many begin with each.  `bits` has a bit for each of some more first
    bits: whether any key begins with them.
    """

    starts: npt.NDArray[np.uint32]
    shift: np.uint64
    bits: npt.NDArray[np.uint8]
    bit_shift: np.uint64

    @classmethod
    def of(cls, keys: Hashes) -> RunDirectory:
        """Return the directory of sorted keys."""
        width = max(1, (len(keys) // _TOGETHER).bit_length())
        shift = np.uint64(_KEY_BITS - width)
        starts = np.zeros((1 << width) + 1, np.uint32)
        np.cumsum(np.bincount((keys >> shift).view(np.int64), minlength=1 << width), out=starts[1:])
        width = len(keys).bit_length() - 1 + _SPARE_BITS
        bit_shift = np.uint64(_KEY_BITS - width)
        are_there = np.zeros(1 << width, np.bool_)
        are_there[(keys >> bit_shift).view(np.int64)] = True
        return cls(starts, shift, np.packbits(are_there, bitorder="little"), bit_shift)

    @property
    def memory_bytes(self) -> int:
        """The memory that it takes."""
        return self.starts.nbytes + self.bits.nbytes

    def among(self, keys: Hashes) -> Ints:
        """Return which of some keys may begin as one of the run does."""
        places = (keys >> self.bit_shift).view(np.int64)
        found = self.bits[places >> _BYTE_BITS] >> (places & _IN_BYTE).astype(np.uint8)
        return np.flatnonzero(found & np.uint8(1))

    def around(self, keys: Hashes) -> tuple[Ints, Ints]:
        """Return where the entries start and end among which some keys are, if they are here."""
        places = (keys >> self.shift).view(np.int64)
        return self.starts[places].astype(np.int64), self.starts[places + 1].astype(np.int64)


def _directory_of(keys: Hashes, limits: MemoryLimits) -> RunDirectory | None:
    return RunDirectory.of(keys) if len(keys) >= limits.directory_entries else None
