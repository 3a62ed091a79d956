"""The batch in hand, as the driver of shards has it: it keeps new instances itself, whole.

A batch is made when it begins and dropped when the next one does, so nothing has to be reset.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from joins.budget.pairs import PairBudget
from joins.budget.repeats import Most
from joins.budget.sketch import CountedInstances
from joins.memory.instance import READ_SCHEMA
from joins.memory.limits import MemoryLimits
from joins.memory.slots import Ints
from joins.memory.spill import InstanceRows

__all__ = ["ReadInstances", "RoutedBatch"]


class ReadInstances:
    """Instances that shards have sent: rows of `READ_SCHEMA`, each once."""

    def __init__(self) -> None:
        self._rows: pa.Table = READ_SCHEMA.empty_table()
        self._numbers: Ints = np.zeros(0, np.int64)

    def add(self, tables: Iterable[pa.Table]) -> None:
        """Add rows of instances, of which some may be there, or given twice."""
        rows = pa.concat_tables([self._rows, *tables])
        if len(rows) > len(self._rows):
            self._numbers, first = np.unique(rows.column("instance").to_numpy(), return_index=True)
            self._rows = rows.take(pa.array(first)).combine_chunks()

    def missing(self, numbers: Ints) -> Ints:
        """Return the numbers of which there is no row."""
        return numbers[~np.isin(numbers, self._numbers)]

    def take(self, numbers: Ints) -> pa.RecordBatch:
        """Return the rows of some numbers, which are there."""
        places = np.searchsorted(self._numbers, numbers)
        [rows] = self._rows.take(pa.array(places)).combine_chunks().to_batches()
        return rows


class RoutedBatch:
    """A batch in which the instances from `first` on are new.

    `counted` and `most` have been noted of them, by a frequency sketch and by `repeats`; `read` are
    older instances that shards have sent.
    """

    def __init__(self, first: int, pair_budget: PairBudget, limits: MemoryLimits) -> None:
        self.first = first
        self.pair_budget = pair_budget
        self.rows = InstanceRows(None, limits)
        self.counted: list[CountedInstances] = []
        self.most: Most = {}
        self.read = ReadInstances()
        self._docids: Ints = np.zeros(0, np.int64)

    def add(self, first: int, rows: pa.Table) -> None:
        """Add new instances from number `first` on: rows of `INSTANCE_SCHEMA`."""
        self.rows.append(first, rows)
        self._docids = np.concatenate([self._docids, rows.column("docid").to_numpy()])

    def docids(self, instances: Ints) -> Ints:
        """Return the docids of new instances."""
        docids: Ints = self._docids[instances - self.first]
        return docids
