"""Elements that come in order, as columns, and those that wait.

Where nothing but their number is asked of runs, and no element is late, has two ways or stands
apart from others, a batch of elements goes from the rows of the join to numbers of runs, without
an object of each on the way.  Where one is not so, all that wait become tuples of an operand, as
elsewhere, and are taken one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from joins.memory.instance import Instance
from joins.memory.slots import Ints
from joins.sequences.clock import WatermarkSteps
from joins.sequences.counting.rowelements import RowElements
from templates.decision import TupleStream

__all__ = ["ElementsInOrder", "WaitingColumns"]


class ElementsInOrder(NamedTuple):
    """Elements by the document from which they count, `entered`, then by end and arrival."""

    columns: RowElements
    entered: Ints

    def take(self, some: Ints) -> ElementsInOrder:
        """Return some of them, in this order."""
        return ElementsInOrder(self.columns.take(some), self.entered[some])


class WaitingColumns:
    """Elements of one stream that have not entered."""

    def __init__(self, stream: TupleStream, grace_us: int, point: int) -> None:
        self.stream = stream
        self._grace_us, self._point = grace_us, point
        self._tables: list[pa.Table] = []
        self._rest: RowElements | None = None

    def __len__(self) -> int:
        return 0 if self._rest is None else len(self._rest)

    @property
    def due_us(self) -> Sequence[int]:
        """The first time that must be settled before an element enters, if any waits."""
        return () if self._rest is None else [int(self._rest.ends_us.min()) + self._grace_us]

    @property
    def is_empty(self) -> bool:
        """Whether there are none."""
        return self._rest is None and not self._tables

    def add(self, rows: pa.Table) -> None:
        """Take rows of the batch."""
        self._tables.append(rows)

    def entering(self, clock: WatermarkSteps) -> ElementsInOrder | None:
        """Return the elements that count from documents of the batch on, and no longer wait.

        None says that there are none, or that some are more than a row each.
        """
        tables = self._tables if self._rest is None else [self._rest.rows, *self._tables]
        own = RowElements.of(self.stream, tables) if tables else None
        if own is None:
            return None
        times_us = own.ends_us + self._grace_us
        are_settled = times_us < clock.newest_us
        some = np.flatnonzero(are_settled)
        entered = np.maximum(clock.settling(times_us[some]), own.docids[some])
        some = some[order := np.lexsort((own.leaves[some], own.ends_us[some], entered))]
        entered = entered[order]
        are_new = own.docids_min[some] > self._point
        rest = np.flatnonzero(~are_settled)
        self._tables, self._rest = [], own.take(rest) if len(rest) else None
        return ElementsInOrder(own.take(some[are_new]), entered[are_new])

    def give_back(self) -> Iterator[Instance]:
        """Yield all that wait as rows, and forget them."""
        tables, rest = self._tables, self._rest
        self._tables, self._rest = [], None
        for own in [] if rest is None else [rest]:
            yield from own.instances()
        for rows in tables:
            yield from RowElements(self.stream, rows).instances()
