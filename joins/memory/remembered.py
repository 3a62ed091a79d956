"""Remembered instances: numbers and hashes in a table, whole rows beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from joins.memory.eviction import Eviction, Flags
from joins.memory.instance import Instance, read_instances
from joins.memory.instancetable import EMPTY, Hashes, HashValues, InstanceTable, hash_values
from joins.memory.limits import DEFAULT_MEMORY_LIMITS, MemoryLimits
from joins.memory.ordering import ascending
from joins.memory.places import Places
from joins.memory.retention import LayoutRetention
from joins.memory.slots import Ints, Layouts
from joins.memory.spill import InstanceRows

__all__ = ["EMPTY", "HashValues", "Hashes", "Remembered", "hash_values"]


class _Published:
    """The ids of published documents by the numbers of their instances.

    It does not refer to what has it, so that the memory of a join goes with the join.
    """

    def __init__(self, table: InstanceTable, places: Places) -> None:
        self.ids: dict[int, str] = {}
        self._table = table
        self._places = places

    def forget(self, places: Ints) -> None:
        """Forget those at some places."""
        published = places[self._table.at("depth", places) > 0]
        for number in self._places.numbers(published).tolist():
            del self.ids[number]


class Remembered:
    """The remembered instances by number; `base` is the first of them.

    `is_ordered` says that so far every instance stands at a larger docid than all before it.
    `sweeps` counts how often eviction has taken instances from between others.
    """

    def __init__(
        self,
        layouts: Layouts,
        retention: LayoutRetention,
        hashing: HashValues,
        spill_directory: Path | None = None,
        limits: MemoryLimits = DEFAULT_MEMORY_LIMITS,
        *,
        is_part: bool = False,
    ) -> None:
        self._table = InstanceTable(layouts, hashing, limits, is_part=is_part)
        self._places = self._table.places
        published = _Published(self._table, self._places)
        self._eviction = Eviction(self._table, retention, published.forget, limits)
        self._rows = InstanceRows(spill_directory, limits)
        self._rows_sweep: Iterator[None] = iter(())
        self._newest_docid = -1
        self.sweeps = 0
        self.published_ids = published.ids
        self.is_ordered = True

    def __len__(self) -> int:
        return len(self._places)

    @property
    def next_instance(self) -> int:
        """The number that the next instance will get."""
        return self._places.end

    @property
    def base(self) -> int:
        """The number of the first instance that is there."""
        return self._places.base

    def take(self, name: str, instances: Ints) -> Ints:
        """Return a column's values of some instances; the values of evicted ones are undefined."""
        return self._table.at(name, self._places.of(instances))

    def are_there(self, instances: Ints) -> Flags:
        """Return which instances have not been evicted."""
        return self._places.are_there(instances)

    def numbers(self) -> Ints:
        """Return the numbers of all instances, in order."""
        return self._places.numbers(self._places.all())

    def first_from(self, times_us: Ints) -> Ints:
        """Return, for each time, an instance such that all before it end before that time."""
        return self._places.numbers(self._table.first_from(times_us))

    def numbered(self, numbers: Ints) -> Ints:
        """Return the instances of a part that have some numbers in the whole join, in order."""
        return self._places.numbers(self._table.numbered(numbers))

    def slots(self, instances: Ints) -> Ints:
        """Return where the slots of instances start in `hashes`."""
        return self._table.slots(self._places.of(instances))

    @property
    def hashes(self) -> tuple[Hashes, Hashes]:
        """The hashes of all slots, instance by instance."""
        return self._table.hashes

    def padded_hashes(self, width: int) -> tuple[Hashes, Hashes]:
        """Return the hashes of all slots, and `width` more places behind them."""
        return self._table.padded_hashes(width)

    @property
    def memory_bytes(self) -> int:
        """The memory that instances take."""
        return self._table.memory_bytes + self._rows.memory_bytes

    @property
    def spilled_bytes(self) -> int:
        """The bytes of instances' rows that are in files."""
        return self._rows.spilled_bytes

    def layouts_in_use(self) -> set[int]:
        """Return the numbers of the layouts that instances have."""
        return set(np.flatnonzero(np.bincount(self._layouts_at(self._places.all()))).tolist())

    def layouts_of_use(self, horizon_us: int) -> Ints:
        """Return how many instances some class can still use, by the numbers of their layouts."""
        places = self._places.all()
        of_use = places[self._eviction.are_of_use(places, horizon_us)]
        return np.bincount(self._layouts_at(of_use))

    def _layouts_at(self, places: Ints) -> Ints:
        return self._table.at("layout", places)

    def append(self, rows: pa.Table) -> tuple[int, Ints]:
        """Add instances; return the first one's number, and their layouts."""
        first = self.next_instance
        rows = rows.combine_chunks()
        layouts = self._table.append(rows)
        self._remember_published(rows, first)
        self._check_order(rows)
        self._rows.append(first, rows)
        return first, layouts

    def _check_order(self, rows: pa.Table) -> None:
        """Note when a position is not above all before it, as of tuples of inner operators."""
        docids = rows.column("docid").to_numpy()
        last = self._newest_docid
        if len(docids):
            self.is_ordered &= bool(docids[0] > last and (np.diff(docids) > 0).all())
        self._newest_docid = max(last, int(docids.max(initial=last)))

    def _remember_published(self, rows: pa.Table, first: int) -> None:
        depths = rows.column("depth").to_numpy()
        for i in (depths > 0).nonzero()[0]:
            self.published_ids[first + int(i)] = rows.column("match_id")[int(i)].as_py()

    def evict(self, horizon_us: int) -> int:
        """Drop instances that no class can use any more; return how many went.

        They end before the horizon by more than the retention of their shapes.  Eviction is lazy:
        useless instances may still be found.
        """
        before, sweeps = len(self), self._eviction.sweeps
        self._eviction.run(horizon_us)
        if len(self) < before:
            self._rows.evict(self.base if len(self) else self.next_instance)
        if self._eviction.sweeps > sweeps:
            self.sweeps += 1
            self._rows_sweep = self._rows.sweep(self.are_there)
        next(self._rows_sweep, None)
        return before - len(self)

    def rows(self, numbers: Iterable[int]) -> Iterator[tuple[list[int], pa.RecordBatch]]:
        """Yield the numbers of remembered instances, ascending, with their rows."""
        asked = ascending(numbers)
        return self._rows.take(asked[self.are_there(asked)])

    def instances(self, numbers: Iterable[int]) -> dict[int, Instance]:
        """Return instances by number, without the numbers that are not remembered."""
        found: dict[int, Instance] = {}
        for wanted, rows in self.rows(numbers):
            found.update(zip(wanted, read_instances(rows, wanted), strict=True))
        return found
