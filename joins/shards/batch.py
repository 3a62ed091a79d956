"""The batch in hand, as the driver of shards has it: it keeps new instances itself, whole.

A batch is made when it begins and dropped when the next one does, so nothing has to be reset.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from joins.budget.pairs import Bounds, PairBudget
from joins.budget.repeats import Most
from joins.budget.sketch import CountedInstances
from joins.classes import ClassRegistry
from joins.memory.boundnodes import bound_nodes
from joins.memory.instance import INSTANCE_SCHEMA
from joins.memory.limits import MemoryLimits
from joins.memory.shapes import Shapes
from joins.memory.slots import Ints
from joins.memory.spill import InstanceRows
from joins.shards.orders import LeftOut

__all__ = ["ReadInstances", "RoutedBatch"]


class ReadInstances:
    """Instances that shards have sent: rows of `INSTANCE_SCHEMA`, each once."""

    def __init__(self) -> None:
        self._rows: pa.Table = INSTANCE_SCHEMA.empty_table()
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


@dataclass(frozen=True, slots=True)
class RowsAtHand:
    """The rows that the driver has: `new` ones from number `first` on, and those it has `read`."""

    first: int
    new: InstanceRows
    read: ReadInstances

    def of(self, numbers: Ints) -> Iterator[tuple[list[int], pa.RecordBatch]]:
        """Yield ascending numbers with their rows, which are there."""
        old, new = numbers[numbers < self.first], numbers[numbers >= self.first]
        if len(old):
            yield old.tolist(), self.read.take(old)
        yield from self.new.take(new.tolist())


@dataclass(frozen=True, slots=True)
class NodesAtHand:
    """Finds nodes in rows that the driver has; it does not keep the join that they are of."""

    shapes: Shapes
    rows: RowsAtHand

    def positions(self, variable: int, instances: Ints) -> tuple[Ints, Ints]:
        """Return the nodes that a variable binds, as (index into `instances`, position)."""
        found = [rows.column("shape").to_numpy() for _, rows in self.rows.of(instances)]
        of = np.concatenate([np.zeros(0, np.int64), *found])
        return bound_nodes(self.shapes, of, variable)


class RoutedBatch:
    """A batch in which the instances from `first` on are new.

    `counted` and `most` have been noted of them, by a frequency sketch and by `repeats`; `read` are
    older instances that shards have sent.  Nobody wants tuples of the pairs that are `left_out`.
    """

    def __init__(
        self,
        first: int,
        classes: ClassRegistry,
        bounds: Bounds,
        shapes: Shapes,
        limits: MemoryLimits,
    ) -> None:
        self.first = first
        self.read = ReadInstances()
        self.rows = RowsAtHand(first, InstanceRows(None, limits), self.read)
        nodes = NodesAtHand(shapes, self.rows)
        self.pair_budget = PairBudget(classes, bounds, nodes.positions)
        self.counted: list[CountedInstances] = []
        self.most: Most = {}
        self.left_out: list[LeftOut] = []
        self._docids: Ints = np.zeros(0, np.int64)

    def add(self, first: int, rows: pa.Table) -> None:
        """Add new instances from number `first` on: rows of `INSTANCE_SCHEMA`."""
        self.rows.new.append(first, rows)
        self._docids = np.concatenate([self._docids, rows.column("docid").to_numpy()])

    def docids(self, instances: Ints) -> Ints:
        """Return the docids of new instances."""
        docids: Ints = self._docids[instances - self.first]
        return docids
