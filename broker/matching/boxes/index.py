"""Boxes: which subscriptions admit a tuple, found without a look at each of them.

A tuple is a point: its values at the places that are tested, its span, its smallest docid.  A
subscription is a **box** around points: these values equal, those different, spans up to this,
numbers below that, registered before (docs/tuples.md).  Subscriptions that test the same places
have one **form**; a tuple **asks** once for each form of its class (and once for each word of a
form that is found in its text).

Boxes of all forms stand together in sorted runs, which are merged as they double.  A run is in the
order of `keys`, a mix of the form and of the hashes of its equalities; boxes of one key are in the
order of one of their bounds, the loosest first: of the one with the most different values among the
boxes of the form there.  So a binary search finds the boxes of a key, a second one finds the boxes
of these whose leading bound holds, and only the latter are listed and tested on the rest.  Where
one datum is tested from above and from below, as where something is decided for steps of
thresholds, a third search finds where the second bound begins to hold.

All bounds are upper ones: a test from below is one of the negated number.  A box whose bound is no
number admits nothing, and has no row.  Equalities are two independent 64-bit hashes; who lists a
box compares the strings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from broker.matching.boxes.columns import Doubles, Flags, GrowingColumn, Hashes, Ints
from broker.matching.boxes.hashsets import HashSets
from joins import hash_values, ranges

__all__ = ["LOOSE", "Asks", "Box", "BoxIndex", "as_number", "mixed"]

LOOSE = np.inf
"""A bound that all numbers pass."""

_SPARE = 1_000
"""Boxes that are gone, up to which runs are not made anew because of them."""

_NO_BOUND, _WINDOW, _POINT, _SPARED, _FIRST_BOUND = range(-1, 4)


class Box(NamedTuple):
    """A box: strings that are asked for and excluded, in the order of the form's places.

    `bounds` are upper ones, negated where the test is from below.  `taken` are strings that must be
    in no set at a place.  Where tuples are handed on by data that are asked each, `data` are these.
    """

    equal: tuple[str, ...]
    excluded: tuple[str, ...]
    bounds: tuple[float, ...]
    window_us: int
    point: int
    taken: tuple[str, ...] = ()
    data: tuple[str, ...] = ()

    @property
    def finding(self) -> tuple[str, ...]:
        """The strings by which tuples are found that are handed on by data."""
        return (*self.equal, *self.data) if self.data else self.equal


@dataclass(frozen=True, slots=True)
class Asks:
    """What tuples ask: one row for each tuple and form of its class.

    `rows` say of which tuple.  `bounds` and `excluded` are columns, of the form's places in order;
    a form with fewer has -inf there, and no known value.  `is_strict` says whether a bound itself
    is outside.  An excluded place has whether its value is known, and both hashes; `taken` has
    sets.  `spared` is the first hash of the only datum for which a row is at the first of these
    places, as a number; NaN where it is for others.
    """

    rows: Ints
    forms: Ints
    keys: Hashes
    others: Hashes
    spans: Ints
    docids_min: Ints
    bounds: Sequence[Doubles]
    is_strict: Sequence[Flags]
    excluded: Sequence[tuple[Flags, Hashes, Hashes]]
    taken: Sequence[HashSets] = ()
    spared: Doubles | None = None

    def __len__(self) -> int:
        return len(self.rows)


def as_number(first: Hashes) -> Doubles:
    """Return first hashes as numbers by which boxes are sorted."""
    return first.astype(np.float64)


def mixed(hashes: Hashes, more: Hashes) -> Hashes:
    """Return two hashes as one, in which the order of the two matters."""
    result = (hashes ^ (hashes >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    result = (result ^ (result >> np.uint64(32))) + more
    return (result ^ (result >> np.uint64(31))) * np.uint64(0x94D049BB133111EB)


class _Leading(NamedTuple):
    """The bound by which boxes of a form are sorted, and one that is its opposite in each of them.

    `_NO_BOUND` is that there is none.  Opposite are those of one datum that is held against two
    numbers of a tuple, from above and from below: what holds between them stands in a row.
    """

    kind: int
    opposite: int


_ALONE = _Leading(_WINDOW, _NO_BOUND)


@dataclass(frozen=True, slots=True)
class _SortedBoxes:
    """Boxes in the order of their keys and leading bounds; `leading` says which, by column.

    A column of it is that of `_Leading`.
    """

    keys: Hashes
    leads: Doubles
    numbers: Ints
    leading: npt.NDArray[np.int16]


class BoxIndex:
    """Boxes by number.  The number of a box that is gone is given again, once no run has it.

    Some `listed_max` are listed at a time, unless one tuple alone asks for more, and up to
    `waiting_max` wait as objects.
    """

    def __init__(self, listed_max: int, waiting_max: int) -> None:
        self._listed_max = listed_max
        self._waiting_max = waiting_max
        self._next = 0
        self._alive = 0
        self._free: list[int] = []
        self._gone: list[int] = []
        self._forms = GrowingColumn(np.int32)
        self._keys = GrowingColumn(np.uint64)
        self._others = GrowingColumn(np.uint64)
        self._windows = GrowingColumn(np.int64)
        self._points = GrowingColumn(np.int64)
        self._is_there = GrowingColumn(np.bool_)
        self._bounds: list[GrowingColumn] = []
        self._excluded: list[tuple[GrowingColumn, GrowingColumn]] = []
        self._taken: list[tuple[GrowingColumn, GrowingColumn]] = []
        self._waiting: dict[int, tuple[int, Box]] = {}
        # In columns, but in no run yet.
        self._written: list[Ints] = []
        self._runs: list[_SortedBoxes] = []
        self._spared_forms: set[int] = set()

    def __len__(self) -> int:
        return self._alive

    def add(self, form: int, boxes: Sequence[Box], *, are_spared: bool = False) -> Sequence[int]:
        """Add boxes of a form; return their numbers.

        Where they `are_spared`, the first of `taken` may be the only datum of a tuple.
        """
        (self._spared_forms.add if are_spared else self._spared_forms.discard)(form)
        count = len(boxes)
        numbers: list[int] = []
        if self._free:
            numbers += [self._free.pop() for _ in range(min(count, len(self._free)))]
        first = self._next
        self._next += count - len(numbers)
        numbers += range(first, self._next)
        self._alive += count
        for number, box in zip(numbers, boxes, strict=True):
            if not (box.bounds and any(map(isnan, box.bounds))):
                self._waiting[number] = form, box
        if len(self._waiting) >= self._waiting_max:
            self._write_waiting()
        return numbers

    def remove(self, numbers: Sequence[int]) -> None:
        """Remove some boxes."""
        self._alive -= len(numbers)
        gone = [number for number in numbers if self._waiting.pop(number, None) is None]
        if len(gone) < len(numbers):
            self._free += {*numbers}.difference(gone)
        if gone:
            self._is_there.write(np.array(gone), False)
            self._gone += gone

    def find(self, asks: Asks) -> Iterator[tuple[Ints, Ints]]:
        """Yield (index into `asks`, number) of each box that admits what is asked.

        One piece has the asks in ascending order.
        """
        self.settle()
        for run in self._runs:
            yield from self._find(run, asks)

    def settle(self) -> None:
        """Put the boxes that wait into a run; where many are gone, make one run of the rest."""
        if len(self._gone) > self._alive + _SPARE:
            numbers = np.concatenate([np.zeros(0, np.int64), *(run.numbers for run in self._runs)])
            numbers = numbers[self._is_there[numbers].astype(np.bool_)]
            self._runs = [self._run(numbers)] if len(numbers) else []
            self._free += self._gone
            self._gone = []
        self._write_waiting()
        if not self._written:
            return
        numbers = np.concatenate(self._written)
        numbers = numbers[self._is_there[numbers].astype(np.bool_)]
        self._written = []
        while self._runs and len(self._runs[-1].numbers) < 2 * len(numbers):
            earlier = self._runs.pop().numbers
            numbers = np.concatenate([earlier[self._is_there[earlier].astype(np.bool_)], numbers])
        if len(numbers):
            self._runs.append(self._run(numbers))

    def _write_waiting(self) -> None:
        """Write the boxes that wait in columns."""
        if not self._waiting:
            return
        numbers = np.fromiter(self._waiting, np.int64, len(self._waiting))
        forms, boxes = zip(*self._waiting.values(), strict=True)
        self._waiting = {}
        self._write(numbers, np.fromiter(forms, np.int64, len(forms)), boxes)
        self._written.append(numbers)

    def _write(self, numbers: Ints, forms: Ints, boxes: Sequence[Box]) -> None:
        size = len(boxes)
        equal, excluded, bounds, windows, points, taken, _ = zip(*boxes, strict=True)
        self._forms.write(numbers, forms)
        self._windows.write(numbers, np.fromiter(windows, np.int64, size))
        self._points.write(numbers, np.fromiter(points, np.int64, size))
        self._is_there.write(numbers, True)
        keys, others = forms.astype(np.uint64), forms.astype(np.uint64)
        for k in range(max(map(len, equal))):
            own = [i for i, strings in enumerate(equal) if len(strings) > k]
            first, other = _hash([equal[i][k] for i in own])
            keys[own], others[own] = mixed(keys[own], first), mixed(others[own], other)
        self._keys.write(numbers, keys)
        self._others.write(numbers, others)
        while len(self._bounds) < max(map(len, bounds)):
            self._bounds.append(GrowingColumn(np.float64, LOOSE))
        for j, column in enumerate(self._bounds):
            column.write(numbers, [some[j] if len(some) > j else LOOSE for some in bounds])
        _write_strings(self._excluded, numbers, excluded)
        _write_strings(self._taken, numbers, taken)

    def _run(self, numbers: Ints) -> _SortedBoxes:
        """Return boxes as a run."""
        forms = self._forms[numbers].astype(np.int64)
        leads = -self._windows[numbers].astype(np.float64)
        leading = np.empty((2, len(numbers)), np.int16)
        leading[:] = np.array(_ALONE, np.int16)[:, None]
        order = np.argsort(forms, kind="stable")
        cuts = np.array([0, *(np.flatnonzero(np.diff(forms[order])) + 1).tolist(), len(order)])
        several = np.flatnonzero(np.diff(cuts) > 1)
        for start, stop in zip(cuts[several].tolist(), cuts[several + 1].tolist(), strict=True):
            rows = order[start:stop]
            (leading[0, rows], leading[1, rows]), leads[rows] = self._leading(numbers[rows])
        keys = self._keys[numbers].astype(np.uint64)
        order = np.lexsort((leads, keys))
        return _SortedBoxes(keys[order], leads[order], numbers[order], leading[:, order])

    def _leading(self, numbers: Ints) -> tuple[_Leading, Doubles]:
        """Return the bound with the most different values, and its values, the loosest smallest."""
        spared = np.zeros(len(numbers))
        if int(self._forms[numbers[0]]) in self._spared_forms:
            spared = as_number(self._taken[0][0][numbers].astype(np.uint64))
        found: list[Doubles] = [
            -self._windows[numbers].astype(np.float64),
            self._points[numbers].astype(np.float64),
            spared,
            *(-column[numbers].astype(np.float64) for column in self._bounds),
        ]
        distinct = [len(np.unique(values)) for values in found]
        kind = int(np.argmax(distinct))
        leads = found[kind]
        opposites = (i for i, values in enumerate(found) if np.array_equal(values, -leads))
        return _Leading(kind, next(opposites, _NO_BOUND)), leads

    def _find(self, run: _SortedBoxes, asks: Asks) -> Iterator[tuple[Ints, Ints]]:
        # In the order of the keys one search finds in the cache what the one before has read, and
        # only for the few keys that somebody has it is looked where they end.
        order = asks.keys.argsort()
        starts = np.empty(len(asks), np.int64)
        starts[order] = run.keys.searchsorted(asks.keys[order], "left")
        is_there = run.keys[np.minimum(starts, len(run.keys) - 1)] == asks.keys
        some = is_there.nonzero()[0]
        if not len(some):
            return
        starts = starts[some]
        stops = run.keys.searchsorted(asks.keys[some], "right")
        # A key of another form may be the same by chance; `_hold` tells them apart.
        kind, opposite = run.leading[:, starts]
        stops = _first_above(run.leads, starts, stops, self._limits(kind, asks, some))
        floors = np.nextafter(-self._limits(opposite, asks, some), -np.inf)
        if asks.spared is not None:
            own = kind == _SPARED
            floors[own] = np.nextafter(asks.spared[some[own]], -np.inf)
        floors[floors == -np.inf] = np.nan  # nothing is below: a loose bound, too, has this number
        starts = _first_above(run.leads, starts, stops, floors)
        counts = stops - starts
        ends = counts.cumsum()
        at = 0
        while at < len(some):
            # At least one ask; one that has more boxes is listed alone.
            before = int(ends[at - 1]) if at else 0
            until = max(at + 1, int(ends.searchsorted(before + self._listed_max, "right")))
            part = slice(at, until)
            at = until
            if ends[until - 1] == before:
                continue
            numbers = run.numbers[ranges(starts[part], counts[part])]
            which = some[part].repeat(counts[part])
            held = self._hold(numbers, which, asks)
            if held.any():
                yield which[held], numbers[held]

    def _limits(self, kinds: npt.NDArray[np.int16], asks: Asks, some: Ints) -> Doubles:
        """Return up to where bounds of some kinds may hold, each for an ask."""
        limits = np.full(len(some), np.inf)
        of_windows, of_points = kinds == _WINDOW, kinds == _POINT
        limits[of_windows] = -asks.spans[some[of_windows]].astype(np.float64)
        limits[of_points] = asks.docids_min[some[of_points]]
        if asks.spared is not None:
            own = kinds == _SPARED
            spared = asks.spared[some[own]]
            limits[own] = np.where(np.isnan(spared), np.inf, spared)
        for j, bounds in enumerate(asks.bounds):
            own = kinds == _FIRST_BOUND + j
            limits[own] = -bounds[some[own]]
        return limits

    def _hold(self, numbers: Ints, which: Ints, asks: Asks) -> Flags:
        """Return where a box holds all that is asked."""
        held = self._is_there[numbers].astype(np.bool_)
        held &= self._others[numbers] == asks.others[which]
        held &= self._windows[numbers].astype(np.int64) >= asks.spans[which]
        held &= self._points[numbers].astype(np.int64) < asks.docids_min[which]
        for column, values, is_strict in zip(
            self._bounds, asks.bounds, asks.is_strict, strict=False
        ):
            bounds, own = column[numbers].astype(np.float64), values[which]
            held &= np.where(is_strict[which], own < bounds, own <= bounds)
        for (first, other), (is_known, own_first, own_other) in zip(
            self._excluded, asks.excluded, strict=False
        ):
            equal = first[numbers] == own_first[which]
            held &= ~(is_known[which] & equal & (other[numbers] == own_other[which]))
        for columns, sets in zip(self._taken, asks.taken, strict=False):
            hashes = [column[numbers].astype(np.uint64) for column in columns]
            held &= ~sets.refuse(which, *hashes)
        return held


_NO_HASH = 2**64 - 1
"""Stands for the hash of a string that a box does not have: that of the empty one is 0."""


def _write_strings(
    columns: list[tuple[GrowingColumn, GrowingColumn]],
    numbers: Ints,
    strings: Sequence[Sequence[str]],
) -> None:
    """Write both hashes of the strings of some boxes, each in columns of its own."""
    while len(columns) < max(map(len, strings), default=0):
        columns.append((GrowingColumn(np.uint64, _NO_HASH), GrowingColumn(np.uint64, _NO_HASH)))
    for j, pair in enumerate(columns):
        own = [i for i, each in enumerate(strings) if len(each) > j]
        if len(own) < len(numbers):
            for column in pair:  # A number may have been that of a box which had one.
                column.write(numbers, _NO_HASH)
        for column, values in zip(pair, _hash([strings[i][j] for i in own]), strict=True):
            column.write(numbers[own], values)


def _hash(strings: Sequence[str]) -> tuple[Hashes, Hashes]:
    return hash_values(pa.array(strings, pa.string()))


def _first_above(values: Doubles, starts: Ints, stops: Ints, limits: Doubles) -> Ints:
    """Return, for each ascending range of values, the first place whose value is above a limit."""
    low, high = starts.copy(), stops.copy()
    while (is_open := low < high).any():
        middle = (low + high) // 2
        is_below = values[np.minimum(middle, len(values) - 1)] <= limits
        low = np.where(is_open & is_below, middle + 1, low)
        high = np.where(is_open & ~is_below, middle, high)
    return low
