"""Timelines: what stands under a key, in the order of ends, in columns.

A timeline is a log-structured set of sorted runs, as the value index is.  They are in the order of
(key, end), so *the first behind a time*, *the last before it*, and *all between two times* are
binary searches, made for a whole column of questions at once:

    between           where the entries stand that a question asks for, run by run
    RunSpans.listed   all of them, some at a time
    RunSpans.first    the first of each question that fits, found in rounds of growing width
    RunSpans.last     the last of each question that fits, in each run
    RunSpans.has      whether any fits, sought from either end

A key is 64 bits of a hash: whoever lists entries compares what they stand for.  Rows are numbers of
the asker's own table.  Entries that are of no use any more are found until their run is written
anew (`renumber`, `sweep`): whoever lists entries leaves them out, and counts them (`wasted`), so
that no run is looked through in vain for longer than it takes to write it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from joins.memory.instancetable import Hashes
from joins.memory.limits import DEFAULT_MEMORY_LIMITS, MemoryLimits
from joins.memory.ordering import order_by
from joins.memory.slots import Ints, ranges
from joins.memory.times import Flags

__all__ = ["Fits", "RunSpan", "RunSpans", "SortedRun", "Timeline"]

Fits = Callable[[Ints, "SortedRun", Ints], Flags]
"""Tells of questions and of entries of a run, given by their places, which fit."""

_WIDENING = 4
"""How many times as many entries as in the round before are looked at in the next."""


@dataclass(slots=True, eq=False)
class SortedRun:
    """Entries in the order of (key, end); `wasted` were listed in vain since it was written."""

    keys: Hashes
    ends_us: Ints
    rows: Ints
    wasted: int = 0

    @classmethod
    def of(cls, keys: Hashes, ends_us: Ints, rows: Ints) -> SortedRun:
        """Return a run of entries, which may stand in any order."""
        order = order_by(keys, ends_us, rows)
        return cls(keys[order], ends_us[order], rows[order])

    def __len__(self) -> int:
        return len(self.keys)

    def some(self, chosen: Flags) -> SortedRun:
        """Return a run of some of the entries."""
        return SortedRun(self.keys[chosen], self.ends_us[chosen], self.rows[chosen])

    def between(self, keys: Hashes, first_us: Ints, last_us: Ints) -> tuple[Ints, Ints]:
        """Return where the entries of sorted keys begin and stop that end in closed intervals."""
        low = np.searchsorted(self.keys, keys, "left")
        high = np.searchsorted(self.keys, keys, "right")
        starts = _first_above(self.ends_us, low, high, first_us - 1)
        return starts, _first_above(self.ends_us, starts, high, last_us)


def _first_above(values: Ints, starts: Ints, stops: Ints, limits: Ints) -> Ints:
    """Return, for each ascending range of values, the first place whose value is above a limit."""
    found = stops.copy()
    asked = (starts < stops).nonzero()[0]
    low, high, limits = starts[asked], stops[asked], limits[asked]
    while len(asked):
        middle = (low + high) >> 1
        is_below = values[middle] <= limits
        low = np.where(is_below, middle + 1, low)
        high = np.where(is_below, high, middle)
        is_open = low < high
        if not is_open.all():
            found[asked[~is_open]] = low[~is_open]
            asked, low, high, limits = (each[is_open] for each in (asked, low, high, limits))
    return found


@dataclass(slots=True)
class RunSpan:
    """Where the entries of a run stand that questions ask for: `starts` up to before `stops`."""

    run: SortedRun
    starts: Ints
    stops: Ints


@dataclass(slots=True)
class RunSpans:
    """What questions ask for, run by run."""

    size: int
    parts: list[RunSpan]

    def counts(self) -> Ints:
        """Return how many entries each question asks for."""
        total = np.zeros(self.size, np.int64)
        for part in self.parts:
            total += part.stops - part.starts
        return total

    def some(self, chosen: Ints | slice) -> RunSpans:
        """Return what some questions ask for."""
        parts = [RunSpan(each.run, each.starts[chosen], each.stops[chosen]) for each in self.parts]
        return RunSpans(
            len(range(self.size)[chosen]) if isinstance(chosen, slice) else len(chosen), parts
        )

    def listed(self, most: int) -> Iterator[tuple[Ints, SortedRun, Ints]]:
        """Yield all that is asked for: which question, and the place in a run.

        About `most` are yielded at once; more only where one question asks for more.
        """
        for part in self.parts:
            counts = part.stops - part.starts
            ends = np.cumsum(counts)
            start, done = 0, 0
            while start < len(counts) and done < ends[-1]:
                stop = max(start + 1, int(np.searchsorted(ends, done + most, "right")))
                some = slice(start, stop)
                questions = np.repeat(np.arange(start, stop), counts[some])
                if len(questions):
                    yield questions, part.run, ranges(part.starts[some], counts[some])
                start, done = stop, int(ends[stop - 1])

    def first(self, fits: Fits, none_us: int) -> Ints:
        """Return when the first entry ends that fits a question, `none_us` where none does."""
        ends_us = np.full(self.size, none_us, np.int64)
        for part in self.parts:
            found, places = self._sought(part, np.arange(self.size), fits, is_last=False)
            ends_us[found] = np.minimum(ends_us[found], part.run.ends_us[places])
        return ends_us

    def has(self, fits: Fits, *, is_last: bool) -> Flags:
        """Return which questions some entry fits; with `is_last` the last are looked at first."""
        has = np.zeros(self.size, np.bool_)
        for part in reversed(self.parts):
            found, _ = self._sought(part, np.flatnonzero(~has), fits, is_last=is_last)
            has[found] = True
        return has

    def last(self, fits: Fits) -> Iterator[tuple[Ints, Ints]]:
        """Yield, of each run, the questions that an entry fits, and the row of the last of each."""
        for part in self.parts:
            found, places = self._sought(part, np.arange(self.size), fits, is_last=True)
            if len(found):
                yield found, part.run.rows[places]

    def _sought(
        self, part: RunSpan, questions: Ints, fits: Fits, *, is_last: bool
    ) -> tuple[Ints, Ints]:
        """Return the questions that an entry fits, and the place of the first, or last, of each."""
        starts, stops = part.starts[questions], part.stops[questions]
        found: list[tuple[Ints, Ints]] = []
        width = 1
        while True:
            is_open = starts < stops
            questions, starts, stops = (each[is_open] for each in (questions, starts, stops))
            if not len(questions):
                break
            counts = np.minimum(stops - starts, width)
            from_place = stops - counts if is_last else starts
            places, which = ranges(from_place, counts), np.repeat(np.arange(len(counts)), counts)
            if is_last:
                places, which = places[::-1], which[::-1]
            fitting = np.flatnonzero(fits(questions[which], part.run, places))
            hit, at = np.unique(which[fitting], return_index=True)
            found.append((questions[hit], places[fitting[at]]))
            if is_last:
                stops = stops - counts
            else:
                starts = starts + counts
            stops[hit] = starts[hit]
            width *= _WIDENING
        nothing = np.zeros(0, np.int64)
        columns = zip(*found, strict=True) if found else (nothing[None], nothing[None])
        wanted, at = (np.concatenate(tuple(each)) for each in columns)
        return wanted, at


class Timeline:
    """Runs, oldest first."""

    def __init__(self, limits: MemoryLimits = DEFAULT_MEMORY_LIMITS) -> None:
        self._entries_max = limits.run_entries
        self.runs: list[SortedRun] = []

    def __len__(self) -> int:
        return sum(map(len, self.runs))

    def add(
        self,
        keys: Hashes,
        ends_us: Ints,
        rows: Ints,
        is_of_use: Callable[[Ints], Flags],
    ) -> None:
        """Add entries as a run, and merge runs of like size, without what is of no use."""
        if not len(keys):
            return
        self.runs.append(SortedRun.of(keys, ends_us, rows))
        while self._is_worth_merging():
            merged = [run.some(is_of_use(run.rows)) for run in self.runs[-2:]]
            self.runs[-2:] = [
                SortedRun.of(
                    *(
                        np.concatenate([getattr(run, name) for run in merged])
                        for name in ("keys", "ends_us", "rows")
                    )
                )
            ]

    def _is_worth_merging(self) -> bool:
        """Return whether the last two runs are of like size."""
        sizes = [len(run) for run in self.runs[-2:]]
        return len(sizes) > 1 and sizes[0] < 2 * sizes[1] and sum(sizes) <= self._entries_max

    def between(self, keys: Hashes, first_us: Ints, last_us: Ints) -> RunSpans:
        """Return where the entries under keys stand that end in closed intervals."""
        if not len(keys):
            return RunSpans(0, [])
        order = order_by(keys)
        asked = keys[order], first_us[order], last_us[order]
        parts: list[RunSpan] = []
        for run in self.runs:
            starts, stops = np.empty((2, len(keys)), np.int64)
            starts[order], stops[order] = run.between(*asked)
            parts.append(RunSpan(run, starts, stops))
        return RunSpans(len(keys), parts)

    def sweep(self, is_of_use: Callable[[Ints], Flags]) -> bool:
        """Write anew the runs that were looked through in vain too often; return if any was."""
        is_changed = False
        for i, run in enumerate(self.runs):
            if run.wasted > len(run):
                self.runs[i], is_changed = run.some(is_of_use(run.rows)), True
        self.runs = [run for run in self.runs if len(run)]
        return is_changed

    def rewrite(self, entries_of: Callable[[Ints], tuple[Hashes, Ints, Ints]]) -> None:
        """Write all runs anew, with the keys, the ends and the rows that some rows have now."""
        self.runs = [SortedRun.of(*entries_of(np.unique(run.rows))) for run in self.runs]

    def renumber(self, is_of_use: Callable[[Ints], Flags], numbers: Ints) -> None:
        """Write all runs anew, without what is of no use, under other numbers of rows."""
        kept = [run.some(is_of_use(run.rows)) for run in self.runs]
        self.runs = [run for run in kept if len(run)]
        for run in self.runs:
            run.rows = numbers[run.rows]
