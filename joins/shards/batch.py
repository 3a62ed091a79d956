"""The batch in hand, as the driver of shards has it: it keeps new instances itself, whole.

A batch is made when it begins and dropped when the next one does, so nothing has to be reset.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from joins.budget.pairs import PairBudget
from joins.budget.repeats import Most
from joins.budget.sketch import CountedInstances
from joins.memory.instance import Instance
from joins.memory.limits import MemoryLimits
from joins.memory.slots import Ints
from joins.memory.spill import InstanceRows

__all__ = ["RoutedBatch"]


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
        self.read: dict[int, Instance] = {}
        self._docids: Ints = np.zeros(0, np.int64)

    def add(self, first: int, rows: pa.Table) -> None:
        """Add new instances from number `first` on: rows of `INSTANCE_SCHEMA`."""
        self.rows.append(first, rows)
        self._docids = np.concatenate([self._docids, rows.column("docid").to_numpy()])

    def docids(self, instances: Ints) -> Ints:
        """Return the docids of new instances."""
        docids: Ints = self._docids[instances - self.first]
        return docids
