"""A sorted run of an index: keys of values under variables, and the instances that have them.

Most values occur once.  So the first half of a key comes from the value's hash alone, whatever the
variable: the entries of one value stand together, and one binary search says that no other instance
has a value, before it is looked up under any variable (`shared`).  And a long run has a filter, 8
bits for an entry, of which a value sets one.  It answers for seven out of eight values that are not
in the run, at the price of one look into a table that stays in the cache.

Many values are looked up under many variables (`LookUps`).  The entries of a value say by the other
half under which variable each is, so where they are fewer than these variables they are gone
through, and else each variable is looked for (`find_under`): a look-up costs the lesser of the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from joins.memory.limits import MemoryLimits
from joins.memory.lookups import LATTER_HALF, LookUps
from joins.memory.remembered import Hashes
from joins.memory.slots import Ints, ranges
from joins.memory.times import Flags

__all__ = ["AreThere", "IndexRun", "SortedRunHits"]

_FILTER_BITS = 8
_KEY_BITS = 64

_GONE_THROUGH = 32_000
"""Entries that are gone through at once: what describes them stays in a core's cache."""

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


@dataclass(frozen=True, slots=True, eq=False)
class IndexRun:
    """Entries by key; the owner of entry `i` is the instance `first + offsets[i]`."""

    keys: Hashes
    offsets: npt.NDArray[np.uint32]
    first: int
    last: int
    filter: RunFilter | None

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
        return cls(keys, offsets, first, int(instances.max()), _filter_of(keys, limits))

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def memory_bytes(self) -> int:
        """The memory that the entries take, and their filter."""
        filter_bytes = 0 if self.filter is None else self.filter.bits.nbytes
        return self.keys.nbytes + self.offsets.nbytes + filter_bytes

    def owners(self, places: Ints) -> Ints:
        """Return the instances of some entries."""
        return self.offsets[places].astype(np.int64) + self.first

    def since(self, instance: int, limits: MemoryLimits) -> IndexRun:
        """Return the entries of an instance and later ones; there are some."""
        kept = self.offsets >= instance - self.first
        keys, offsets = self.keys[kept], self.offsets[kept] - np.uint32(instance - self.first)
        return IndexRun(keys, offsets, instance, self.last, _filter_of(keys, limits))

    def entries(self, are_there: AreThere) -> tuple[Hashes, Ints]:
        """Return the keys and instances of the entries of instances that are there."""
        owners = self.offsets.astype(np.int64) + self.first
        there = are_there(owners)
        return self.keys[there], owners[there]

    def find(self, needles: Hashes) -> tuple[Ints, Ints, Ints]:
        """Return which of some keys are here, where they start, and how often each occurs."""
        asked = None if self.filter is None else self.filter.may_have(needles)
        if asked is not None:
            needles = needles[asked]
        starts = np.searchsorted(self.keys, needles, "left")
        hit = np.flatnonzero(self.keys[np.minimum(starts, len(self.keys) - 1)] == needles)
        starts, needles = starts[hit], needles[hit]
        return (hit if asked is None else asked[hit]), starts, self._counts(needles, starts)

    def find_under(
        self, hashes: Hashes, variables: Ints, look_ups: LookUps, oldest: Ints
    ) -> Iterator[tuple[Ints, Ints, Ints, Ints]]:
        """Yield values that are here, the look-up of each, where it starts, how often it occurs.

        The values ascend.  Entries of instances before the `oldest` of a value are left out where
        that saves work.
        """
        if not len(oldest) or self.last < oldest.min():
            return
        asked, starts, counts = self._of_values(hashes)
        places, variables_each = look_ups.of_values(variables[asked])
        are_few = counts <= variables_each
        few, many = np.flatnonzero(are_few), np.flatnonzero(~are_few)
        if len(few):
            parts = [
                self._gone_through(hashes, variables, look_ups, oldest, *some)
                for part in _slices(counts[few], _GONE_THROUGH)
                for some in [(asked[few[part]], starts[few[part]], counts[few[part]])]
            ]
            which, rows, begin, listed = map(np.concatenate, zip(*parts, strict=True))
            yield which, rows, begin, listed
        if len(many):
            which = np.repeat(asked[many], variables_each[many])
            at = ranges(places[many], variables_each[many])
            found, begin, listed = self.find(hashes[which] ^ look_ups.latter_halves(at))
            yield which[found], look_ups.rows[at[found]], begin, listed

    def _gone_through(
        self,
        hashes: Hashes,
        variables: Ints,
        look_ups: LookUps,
        oldest: Ints,
        asked: Ints,
        starts: Ints,
        counts: Ints,
    ) -> tuple[Ints, Ints, Ints, Ints]:
        """Return what `find_under` yields of the values `asked`, by a look at all their entries."""
        which, entries = np.repeat(asked, counts), ranges(starts, counts)
        # Those of one key ascend by their instances, so what is left of them stands together.
        reach = np.repeat(oldest[asked] - self.first, counts)
        kept = np.flatnonzero(self.offsets[entries] >= reach)
        if len(kept) < len(entries):
            which, entries = which[kept], entries[kept]
        keys = self.keys[entries]
        found, at = look_ups.find(variables[which], keys ^ hashes[which])
        # The entries of one key stand together.
        keys, which = keys[found], which[found]
        begins = np.ones(len(found), np.bool_)
        begins[1:] = (keys[1:] != keys[:-1]) | (which[1:] != which[:-1])
        of_key = np.flatnonzero(begins)
        listed = np.diff(np.append(of_key, len(found)))
        return which[of_key], look_ups.rows[at[of_key]], entries[found[of_key]], listed

    def _of_values(self, hashes: Hashes) -> tuple[Ints, Ints, Ints]:
        """Return which of sorted values are here, and where the entries of each start; how many."""
        # A node has its value under several variables, so a value is looked for once.
        firsts = np.flatnonzero(np.append(True, hashes[1:] != hashes[:-1]))[: len(hashes)]
        distinct, repeats = hashes[firsts], np.diff(np.append(firsts, len(hashes)))
        asked = np.arange(len(distinct)) if self.filter is None else self.filter.may_have(distinct)
        starts = np.searchsorted(self.keys, distinct[asked] & ~LATTER_HALF, "left")
        first = self.keys[np.minimum(starts, len(self.keys) - 1)]
        hit = np.flatnonzero((first ^ distinct[asked]) <= LATTER_HALF)
        asked, starts = asked[hit], starts[hit]
        counts = np.searchsorted(self.keys, distinct[asked] | LATTER_HALF, "right") - starts
        repeats = repeats[asked]
        which = ranges(firsts[asked], repeats)
        return which, np.repeat(starts, repeats), np.repeat(counts, repeats)

    def shared(self, hashes: Hashes, owners: Ints, own_entries: int) -> Flags:
        """Return which of sorted values may have an entry of another instance than their owner."""
        asked = np.arange(len(hashes)) if self.filter is None else self.filter.may_have(hashes)
        prefixes = hashes[asked] & ~LATTER_HALF
        places = np.searchsorted(self.keys, prefixes, "left")
        found = np.zeros(len(hashes), np.bool_)
        for _ in range(own_entries):
            inside = places < len(self.keys)
            is_same = (self.keys[places[inside]] & ~LATTER_HALF) == prefixes[inside]
            rows = np.flatnonzero(inside)[is_same]
            asked, places, prefixes = asked[rows], places[rows], prefixes[rows]
            is_own = self.owners(places) == owners[asked]
            found[asked[~is_own]] = True
            asked, places, prefixes = asked[is_own], places[is_own] + 1, prefixes[is_own]
            if not len(asked):
                return found
        found[asked] = True
        return found

    def _counts(self, keys: Hashes, starts: Ints) -> Ints:
        """Return how often keys occur that start at some places; most occur once."""
        following = np.minimum(starts + 1, len(self.keys) - 1)
        counts = np.ones(len(keys), np.int64)
        more = np.flatnonzero((self.keys[following] == keys) & (following > starts))
        counts[more] = np.searchsorted(self.keys, keys[more], "right") - starts[more]
        return counts


@dataclass(frozen=True, slots=True)
class RunFilter:
    """The first bits that occur among the keys of a run."""

    bits: npt.NDArray[np.uint8]
    shift: np.uint64

    @classmethod
    def of(cls, keys: Hashes) -> RunFilter:
        """Return the filter of sorted keys."""
        width = (len(keys) * _FILTER_BITS - 1).bit_length()
        shift = np.uint64(_KEY_BITS - width)
        is_set = np.zeros(1 << width, np.bool_)
        is_set[keys >> shift] = True
        return cls(np.packbits(is_set, bitorder="little"), shift)

    def may_have(self, keys: Hashes) -> Ints:
        """Return the places of the keys that may be in the run."""
        places = keys >> self.shift
        bits = self.bits[places >> np.uint64(3)] >> (places & np.uint64(7)).astype(np.uint8)
        return np.flatnonzero(bits & np.uint8(1))


def _filter_of(keys: Hashes, limits: MemoryLimits) -> RunFilter | None:
    return RunFilter.of(keys) if len(keys) >= limits.filtered_entries else None


@dataclass(frozen=True, slots=True)
class SortedRunHits:
    """Where keys are in one run: the key at `indices[i]` has `counts[i]` entries."""

    run: IndexRun
    indices: Ints
    starts: Ints
    counts: Ints

    @classmethod
    def of(cls, run: IndexRun, indices: Ints, starts: Ints, counts: Ints) -> SortedRunHits:
        """Return hits in the order of the keys."""
        order = np.argsort(indices)
        return cls(run, indices[order], starts[order], counts[order])

    def since(self, instances: Ints) -> SortedRunHits:
        """Return the hits of the key at `indices[i]` from the instance `instances[i]` on."""
        starts, ends = self._first_from(instances), self.starts + self.counts
        return replace(self, starts=starts, counts=ends - starts).some(starts < ends)

    def before(self, instances: Ints) -> SortedRunHits:
        """Return the hits of the key at `indices[i]` before the instance `instances[i]`."""
        ends = self._first_from(instances)
        return replace(self, counts=ends - self.starts).some(self.starts < ends)

    def _first_from(self, instances: Ints) -> Ints:
        """Return the first entry of each key of an instance from some on, or where its hits end."""
        last = len(self.run) - 1
        low, high = self.starts, self.starts + self.counts
        while (is_open := low < high).any():
            middle = (low + high) // 2
            is_before = is_open & (self.run.owners(np.minimum(middle, last)) < instances)
            low = np.where(is_before, middle + 1, low)
            high = np.where(is_before, high, np.minimum(middle, high))
        return low

    def some(self, chosen: Flags) -> SortedRunHits:
        """Return the hits of some of the keys."""
        return SortedRunHits(
            self.run, self.indices[chosen], self.starts[chosen], self.counts[chosen]
        )

    def listed(self, hits_max: int) -> Iterator[tuple[Ints, Ints, Ints]]:
        """Yield all as (indices of keys, hits of each, instances), about `hits_max` at a time.

        A slice goes over that only where one key alone has more hits.
        """
        for part in _slices(self.counts, hits_max):
            counts = self.counts[part]
            yield self.indices[part], counts, self.run.owners(ranges(self.starts[part], counts))


def _slices(counts: Ints, total_max: int) -> Iterator[slice]:
    """Cut into slices whose counts add up to `total_max` at most, or of one larger count."""
    ends = np.cumsum(counts)
    start, done = 0, 0
    while start < len(counts):
        stop = max(start + 1, int(np.searchsorted(ends, done + total_max, "right")))
        yield slice(start, stop)
        start, done = stop, int(ends[stop - 1])
