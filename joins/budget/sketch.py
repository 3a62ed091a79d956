"""A frequency sketch: it finds the few new instances that may go over the budget.

The sketch keeps no instances.  It has a counter for each value under a variable; several values may
share one.  So the counters of an instance's values add up to at least the number of pairs that it
makes by a value join.  Only an instance for which this sum exceeds the budget, by every value join
of a class, is a **suspect**: its pairs are counted exactly.

Counters lie in **layers**, one for each stretch of instances.  A layer is dropped once no window
reaches its instances, and left out where the window of a join does not.  Neighbouring layers of
like size are merged, so there are few, and all take some megabytes whatever is remembered.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joins.budget.entries import Entries
from joins.budget.probe import TIME_COLUMNS, ProbeRow, ValueJoin
from joins.classes import ClassRegistry
from joins.memory.durations import UNBOUNDED
from joins.memory.lookups import entry_keys
from joins.memory.shapes import Shapes
from joins.memory.slots import Ints
from joins.memory.times import Flags

__all__ = ["CountedInstances", "FrequencySketch", "Suspect"]

_COUNTERS_BITS = 16
"""Two to this many counters in a layer, 256 KB: ten values in each of 100,000 documents that are
all different add 15 to a counter."""

_LAYER_INSTANCES = 5_000
_LAYERS_MAX = 12


class Suspect(NamedTuple):
    """A new instance, and the classes in which it may go over the budget."""

    probe_row: ProbeRow
    classes: tuple[int, ...]


@dataclass(slots=True)
class _Layer:
    """Counters of a stretch of instances that all end by `newest_us`."""

    counters: npt.NDArray[np.uint32]
    instances: int
    newest_us: int


@dataclass(frozen=True, slots=True)
class CountedInstances:
    """Instances that were counted together, and their values, by variable."""

    rows: pa.Table
    values: dict[int, tuple[Ints, npt.NDArray[np.uint64]]]


@dataclass(frozen=True, slots=True)
class _AskedJoins:
    """The value joins of a stratum's classes that pair instances, each with its widest window."""

    classes: dict[int, frozenset[ValueJoin]]
    joins: dict[ValueJoin, int]
    joined: frozenset[int]

    @classmethod
    def of(cls, classes: ClassRegistry, stratum: int) -> _AskedJoins:
        """Return the value joins of a stratum's classes."""
        paired = {
            number: frozenset(query_class.value_pairs())
            for number, query_class in classes.by_number.items()
            if query_class.stratum == stratum and query_class.template.has_right
        }
        windows = {(a, b): w for s, a, b, w, _ in classes.value_pairs() if s == stratum}
        return cls(paired, windows, frozenset(v for join in windows for v in join))


class FrequencySketch:
    """Counts the values of a join's instances, and says which new ones are to be looked at."""

    def __init__(self, shapes: Shapes, classes: ClassRegistry, pairs_max: int) -> None:
        self._shapes = shapes
        self._classes = classes
        self._pairs_max = pairs_max
        self._layers: list[_Layer] = []
        self._by_stratum: dict[int, _AskedJoins] = {}
        self._version = -1

    @property
    def is_needed(self) -> bool:
        """Whether there is a budget."""
        return self._pairs_max != UNBOUNDED

    def note(self, rows: pa.Table, entries: Entries) -> CountedInstances:
        """Count instances, rows of `INSTANCE_SCHEMA`, with their entries under joined variables.

        There is at least one.
        """
        if not self._layers or self._layers[-1].instances >= _LAYER_INSTANCES:
            self._begin_layer()
        layer = self._layers[-1]
        places = _places(entries.hashes, entries.variables)
        np.add.at(layer.counters, places, np.uint32(1))
        layer.instances += rows.num_rows
        layer.newest_us = max(layer.newest_us, int(rows.column("end_us").to_numpy().max()))
        values = {}
        for variable in np.unique(entries.variables).tolist():
            held = entries.variables == variable
            values[variable] = entries.owners[held], entries.hashes[held]
        return CountedInstances(rows, values)

    def _begin_layer(self) -> None:
        """Begin a layer; lay the two neighbours together that are smallest where there are many."""
        if len(self._layers) >= _LAYERS_MAX:
            sizes = [layer.instances for layer in self._layers]
            i = min(range(len(sizes) - 1), key=lambda i: sizes[i] + sizes[i + 1])
            earlier, later = self._layers[i : i + 2]
            both = _Layer(
                earlier.counters + later.counters,
                earlier.instances + later.instances,
                max(earlier.newest_us, later.newest_us),
            )
            self._layers[i : i + 2] = [both]
        counters = np.zeros(1 << _COUNTERS_BITS, np.uint32)
        self._layers.append(_Layer(counters, 0, np.iinfo(np.int64).min))

    def evict(self, before_us: int) -> None:
        """Forget stretches of instances that all end before a time."""
        self._layers = [layer for layer in self._layers if layer.newest_us >= before_us]

    def suspects(self, stratum: int, batch: Sequence[CountedInstances]) -> Iterator[Suspect]:
        """Yield the new instances that may go over the budget in a stratum, by their docids."""
        remembered = sum(layer.instances for layer in self._layers)
        if not self.is_needed or 2 * remembered <= self._pairs_max:
            return
        asked = self._asked(stratum)
        found = [
            (new.rows.column("docid")[row].as_py(), new, row, numbers)
            for new in batch
            for row, numbers in self._suspected(new, asked).items()
        ]
        for _, new, row, numbers in sorted(found, key=lambda each: each[0]):
            probe_row = self._probe_row(new.rows.slice(row, 1), asked.joined)
            standing = (n for n in numbers if self._can_stand(probe_row, n))
            if classes := tuple(standing):
                yield Suspect(probe_row, classes)

    def _asked(self, stratum: int) -> _AskedJoins:
        """Return the value joins of a stratum's classes, kept until a class changes."""
        if self._version != self._classes.version:
            self._version = self._classes.version
            self._by_stratum = {s: _AskedJoins.of(self._classes, s) for s in self._classes.strata}
        return self._by_stratum[stratum]

    def _suspected(self, new: CountedInstances, asked: _AskedJoins) -> dict[int, list[int]]:
        """Return the rows that may go over the budget, and the classes in which they may."""
        over = {join: self._is_over(new, join, window) for join, window in asked.joins.items()}
        over = {join: flags for join, flags in over.items() if flags.any()}
        suspected: dict[int, list[int]] = defaultdict(list)
        for number, joins in asked.classes.items():
            if joins <= over.keys():
                flags = [np.ones(len(new.rows), np.bool_), *(over[join] for join in joins)]
                for row in np.flatnonzero(np.logical_and.reduce(flags)).tolist():
                    suspected[row].append(number)
        return suspected

    def _can_stand(self, probe_row: ProbeRow, number: int) -> bool:
        query_class = self._classes.by_number[number]
        return any(probe_row.fits(query_class, is_right=is_right) for is_right in (True, False))

    def equal_nodes(self, value_join: ValueJoin, batch: Sequence[CountedInstances]) -> Ints:
        """Return how many equal nodes new instances have at most with others by a value join."""
        every_us = int(np.iinfo(np.int64).max)
        parts = [self._equal(new, value_join, every_us) for new in batch]
        return np.concatenate([np.zeros(0, np.int64), *parts])

    def _is_over(self, new: CountedInstances, value_join: ValueJoin, window_us: int) -> Flags:
        """Return which new instances may make too many pairs by a value join."""
        return self._equal(new, value_join, window_us) > self._pairs_max

    def _equal(self, new: CountedInstances, value_join: ValueJoin, window_us: int) -> Ints:
        """Return how many equal nodes new instances have at most with others within a window."""
        left, right = value_join
        oldest_us = int(new.rows.column("end_us").to_numpy().min()) - window_us
        layers = [layer.counters for layer in self._layers if layer.newest_us >= oldest_us]
        pairs = np.zeros(len(new.rows), np.int64)
        for mine, other in ((right, left), (left, right)):
            if mine in new.values:
                owners, hashes = new.values[mine]
                places = _places(hashes, np.full(len(hashes), other))
                counts = sum(counters[places].astype(np.int64) for counters in layers)
                np.add.at(pairs, owners, counts)
        return pairs

    def _probe_row(self, row: pa.Table, joined: Set[int]) -> ProbeRow:
        """Return an instance as a probe row, with its values under some variables."""
        (instance,) = row.select(
            ["instance", "match_id", "shape", "vals", *TIME_COLUMNS]
        ).to_pylist()
        shape, strings = self._shapes[instance.pop("shape")], instance.pop("vals")
        values: dict[int, set[str]] = defaultdict(set)
        for node, variables in shape.binding.items():
            for variable in variables & joined if strings[node] else ():
                values[variable].add(strings[node])
        filled = {variable: tuple(sorted(own)) for variable, own in values.items()}
        return ProbeRow(**instance, values=filled, bound=shape.variables)


def _places(hashes: npt.NDArray[np.uint64], variables: Ints) -> Ints:
    """Return the counters of values under variables."""
    shift = np.uint64(64 - _COUNTERS_BITS)
    return (entry_keys(hashes, variables) >> shift).astype(np.int64)
