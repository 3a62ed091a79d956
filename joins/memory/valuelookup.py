"""Values that are looked up under many variables, in all runs of an index.

The entries of a value say by the latter half of their keys under which variable each is.  So where
they are fewer than the variables that are asked for they are gone through, those of all runs
together, and else each variable is looked for: a look-up costs the lesser of the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from joins.memory.hits import EntryHits, FoundEntries, slices
from joins.memory.lookups import LookUps
from joins.memory.remembered import Hashes
from joins.memory.slots import Ints, ranges
from joins.memory.sortedrun import IndexRun

__all__ = ["AskedValues", "find_compiled", "put_together"]

_GONE_THROUGH = 32_000
"""Entries that are gone through at once: what describes them stays in a core's cache."""

_FEW = 16
"""Entries of a value that are gone through however few variables are asked for."""

_LARGE = 1 << 19
"""Entries of a run from which on it is in no core's cache."""

_Found = tuple[Ints, Ints, EntryHits]
"""Values, the look-up of each, and where they are."""


class _Piece(NamedTuple):
    """Entries of values in a run: of value `asked[i]`, `counts[i]` entries from `starts[i]` on."""

    run: IndexRun
    asked: Ints
    starts: Ints
    counts: Ints

    def some(self, rows: Ints | slice) -> _Piece:
        """Return the entries of some of the values."""
        return _Piece(self.run, self.asked[rows], self.starts[rows], self.counts[rows])


class AskedValues(NamedTuple):
    """Values in order: `hashes[i]` of a variable, with partners from the instance `oldest[i]` on.

    A value of several variables is there for each: the `repeats[j]` values from `firsts[j]` on are
    one.  `order` has the place of each among those given.
    """

    order: Ints
    hashes: Hashes
    variables: Ints
    oldest: Ints
    firsts: Ints
    repeats: Ints
    look_ups: LookUps

    @classmethod
    def of(cls, hashes: Hashes, variables: Ints, oldest: Ints, look_ups: LookUps) -> AskedValues:
        """Return values that are looked up as `look_ups` say."""
        order = np.argsort(hashes)
        hashes = hashes[order]
        firsts = np.flatnonzero(np.append(True, hashes[1:] != hashes[:-1]))[: len(hashes)]
        repeats = np.diff(np.append(firsts, len(hashes)))
        return cls(order, hashes, variables[order], oldest[order], firsts, repeats, look_ups)

    def find(self, runs: Sequence[IndexRun]) -> tuple[Ints, Ints, list[EntryHits]]:
        """Return values that some runs have, the look-up of each, and where they are.

        Hits are of the places in what is returned.  Entries of instances before the oldest are left
        out where that saves work.
        """
        which, rows, hits = _together(self._found(runs))
        return self.order[which], rows, hits

    def _found(self, runs: Sequence[IndexRun]) -> Iterator[_Found]:
        places, variables = self.look_ups.of_values(self.variables)
        oldest = self.oldest.min(initial=np.iinfo(np.int64).max)
        distinct, few = self.hashes[self.firsts], list[_Piece]()
        for run in runs:
            if run.last < oldest:
                continue
            piece = self._spread(run, *run.having(distinct))
            are_few = piece.counts <= np.maximum(variables[piece.asked], _FEW)
            if are_few.all():
                few.append(piece)
                continue
            few.append(piece.some(np.flatnonzero(are_few)))
            many = piece.asked[~are_few]
            yield _searched(run, self.look_ups, (many, self.hashes, places, variables))
        yield from map(self._gone_through, _portions(few))

    def _spread(self, run: IndexRun, rows: Ints, starts: Ints, counts: Ints) -> _Piece:
        """Return entries of distinct values as those of each variable that has one."""
        repeats = self.repeats[rows]
        if repeats.max(initial=1) == 1:
            return _Piece(run, self.firsts[rows], starts, counts)
        which = ranges(self.firsts[rows], repeats)
        return _Piece(run, which, starts.repeat(repeats), counts.repeat(repeats))

    def _gone_through(self, portion: Sequence[_Piece]) -> _Found:
        """Return what is found by a look at some entries."""
        places = [ranges(piece.starts, piece.counts) for piece in portion]
        each = list(zip(portion, places, strict=True))
        keys = np.concatenate([piece.run.keys[at] for piece, at in each])
        owners = np.concatenate([piece.run.owners(at) for piece, at in each])
        which = np.concatenate([np.repeat(piece.asked, piece.counts) for piece in portion])
        # Those of one key ascend by their instances, so what is left of them stands together.
        kept = np.flatnonzero(owners >= self.oldest[which])
        if len(kept) < len(owners):
            keys, owners, which = keys[kept], owners[kept], which[kept]
        found, at = self.look_ups.find(self.variables[which], keys ^ self.hashes[which])
        keys, owners, which = keys[found], owners[found], which[found]
        # The entries of one key stand together.
        begins = np.ones(len(found), np.bool_)
        begins[1:] = (keys[1:] != keys[:-1]) | (which[1:] != which[:-1])
        of_key = np.flatnonzero(begins)
        counts = np.diff(np.append(of_key, len(found)))
        hits = EntryHits(FoundEntries.of(owners), of_key, of_key, counts)
        return which[of_key], at[of_key], hits


def _searched(run: IndexRun, look_ups: LookUps, values: tuple[Ints, Hashes, Ints, Ints]) -> _Found:
    """Return what a run has of some of the values, under each variable that is asked for.

    `values` are which, all of them, and where the look-ups of each start, and how many they are.
    """
    many, hashes, starts, counts = values
    which = np.repeat(many, counts[many])
    at = ranges(starts[many], counts[many])
    found, firsts, entries = run.find(hashes[which] ^ look_ups.latter_halves(at))
    return which[found], look_ups.rows[at[found]], EntryHits(run, found, firsts, entries)


class _Listed(NamedTuple):
    """Look-ups with their entries: `entries[i]` of `owners` are those of value `which[i]`."""

    which: Ints
    rows: Ints
    entries: Ints
    owners: Ints

    def found(self) -> _Found:
        """Return the values, the look-up of each, and where they are."""
        ends = np.cumsum(self.entries)
        hits = EntryHits(FoundEntries.of(self.owners), ends, ends - self.entries, self.entries)
        return self.which, self.rows, hits


def are_large(runs: Sequence[IndexRun]) -> bool:
    """Return whether it is worth to sort what is looked up: near entries are read together."""
    return any(len(run) >= _LARGE for run in runs)


def find_compiled(
    runs: Sequence[IndexRun], hashes: Hashes, variables: Ints, oldest: Ints, look_ups: LookUps
) -> tuple[Ints, Ints, list[EntryHits]]:
    """Return what `AskedValues.find` does by compiled loops."""
    from joins.memory.kernels import values_under

    order: Ints | None = None
    if are_large(runs):
        # In the order of the entries, what is looked at next is near by.
        order = np.argsort(hashes)
        hashes, variables, oldest = hashes[order], variables[order], oldest[order]
    starts, counts = look_ups.of_values(variables)
    table = look_ups.table.columns
    least = oldest.min(initial=np.iinfo(np.int64).max)
    listed: list[_Listed] = []
    found: list[_Found] = []
    for run in (run for run in runs if run.last >= least):
        *own, many = values_under(hashes, variables, counts, oldest, run.columns, table, _FEW)
        listed.append(_Listed(*own))
        if len(many):
            found.append(_searched(run, look_ups, (many, hashes, starts, counts)))
    if len(listed) > 1 and sum(len(each.owners) for each in listed) <= _GONE_THROUGH:
        # What is done with the hits of each run costs by the run, where they are few.
        listed = [_Listed(*map(np.concatenate, zip(*listed, strict=True)))]
    found += [each.found() for each in listed]
    which, rows, hits_of_all = _together(found)
    return which if order is None else order[which], rows, hits_of_all


def _together(found: Iterable[_Found]) -> tuple[Ints, Ints, list[EntryHits]]:
    """Return all that is found: hits are of the places of values in what is returned."""
    which, rows, hits = list[Ints](), list[Ints](), list[EntryHits]()
    first = 0
    for values, asked, entries in found:
        if len(values):
            places = np.arange(first, first + len(values))
            hits.append(EntryHits(entries.entries, places, entries.starts, entries.counts))
            which.append(values)
            rows.append(asked)
            first += len(values)
    return put_together(which), put_together(rows), hits


def put_together(parts: Sequence[Ints]) -> Ints:
    """Return all numbers of some arrays; of one array these are not copied."""
    return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.int64), *parts])


def _portions(pieces: Sequence[_Piece]) -> Iterator[list[_Piece]]:
    """Yield pieces, cut into portions of about `_GONE_THROUGH` entries."""
    portion, entries = list[_Piece](), 0
    for piece in pieces:
        for part in slices(piece.counts, _GONE_THROUGH):
            some = piece.some(part)
            total = int(some.counts.sum())
            if portion and entries + total > _GONE_THROUGH:
                yield portion
                portion, entries = [], 0
            portion.append(some)
            entries += total
    if portion:
        yield portion
