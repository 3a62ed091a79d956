"""Which instances whoever finds runs takes: as columns, one by one, or later.

    columns     tables of chains, and what counts in order, take rows as they stand
    one by one  the others read rows that are read once for all
    later       who misses something takes none before it comes (`deferred`)

Who takes something is awake.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from joins.budget.limits import RunLimits
from joins.memory.instance import read_instances
from joins.memory.slots import Ints
from joins.sequences.awake import Awake
from joins.sequences.deferred import Deferred, DeferredRows
from joins.sequences.lockstep.batchrows import BatchRows
from joins.sequences.lockstep.runtable import RunTable
from joins.sequences.repeated.shared import SharedSides
from joins.sequences.runevaluations import CountedEvaluation, RowEvaluation

__all__ = ["RowReaders"]


def _some(instances: pa.Table, rows: Ints) -> pa.Table:
    """Return some rows in order: as they stand, where they stand together."""
    if rows[-1] - rows[0] + 1 == len(rows):
        return instances.slice(rows[0], len(rows))
    return instances.take(pa.array(rows))


def _of(numbers: Ints, some: Iterable[int]) -> Ints:
    """Return the places of some numbers."""
    places: Ints = np.isin(numbers, list(some)).nonzero()[0]
    return places


class RowReaders:
    """Who reads which stream; `sides` read what repetitions share."""

    def __init__(
        self,
        awake: Awake[RowEvaluation | RunTable],
        sides: SharedSides,
        lateness_us: int,
        limits: RunLimits,
    ) -> None:
        self._awake = awake
        self._sides = sides
        self._deferred: Deferred[RowEvaluation] = Deferred(lateness_us, limits.swept_parts)
        self._read_by: dict[str, dict[RowEvaluation, None]] = {}
        self._read_by_columns: dict[str, dict[RunTable | CountedEvaluation, None]] = {}

    def follow(self, evaluations: Iterable[RowEvaluation], tables: Iterable[RunTable]) -> None:
        """Have these be all readers."""
        self._read_by, self._read_by_columns = {}, {}
        for evaluation in evaluations:
            if evaluation.needs:
                self._deferred.follow(evaluation)
            if not self._deferred.waits(evaluation):
                self._feed(evaluation)
        for table in tables:
            for stream in table.streams:
                self._read_by_columns.setdefault(stream, {})[table] = None

    def leave(self, evaluation: RowEvaluation) -> None:
        """Forget what waits for a reader."""
        self._deferred.leave(evaluation)

    def _feed(self, evaluation: RowEvaluation) -> None:
        """Have an evaluation take the rows of its streams as they come."""
        for stream in evaluation.streams:
            if isinstance(evaluation, CountedEvaluation) and evaluation.takes_columns:
                self._read_by_columns.setdefault(stream, {})[evaluation] = None
            else:
                self._read_by.setdefault(stream, {})[evaluation] = None

    # -- a batch -------------------------------------------------------------------------------

    def begin_batch(self) -> None:
        """Have nothing be new."""
        self._deferred.begin_batch()

    def absorb(self, instances: pa.Table, first: int) -> None:
        """Have all take instances, numbered from `first` on, of the streams that they read."""
        streams = instances.column("stream").combine_chunks().dictionary_encode()
        names, of_row = streams.dictionary.to_pylist(), streams.indices.to_numpy()
        read: dict[RunTable | CountedEvaluation, list[int]] = {}
        of_tables: set[int] = set()
        for i, name in enumerate(names):
            for reader in self._read_by_columns.get(name, ()):
                read.setdefault(reader, []).append(i)
                if isinstance(reader, RunTable):
                    of_tables.add(i)
        if of_tables:
            shared = BatchRows(_some(instances, _of(of_row, of_tables)))
        for reader, own in read.items():
            self._awake.wake(reader)
            if isinstance(reader, RunTable):
                reader.absorb(shared)
            else:
                reader.absorb(_some(instances, _of(of_row, own)))
        is_read = [bool(self._read_by.get(name)) or self._sides.reads(name) for name in names]
        rows = np.array(is_read, np.bool_)[of_row].nonzero()[0]
        if len(rows):
            for row in read_instances(_some(instances, rows), (first + rows).tolist()):
                for evaluation in self._read_by.get(row.stream, ()):
                    evaluation.add(row.stream, row)
                    self._awake.wake(evaluation)
                self._sides.add(row.stream, row)
        for i, name in enumerate(names):
            if name in self._deferred:
                came = _of(of_row, (i,))
                self._deferred.add(name, _some(instances, came), first + came)
        for woken, deferred in self._deferred.wake(names):
            self._catch_up(woken, deferred)

    def _catch_up(self, evaluation: RowEvaluation, deferred: Sequence[DeferredRows]) -> None:
        """Have an evaluation take rows that it has not taken, and from now on as they come."""
        self._awake.wake(evaluation)
        self._feed(evaluation)
        if isinstance(evaluation, CountedEvaluation) and evaluation.takes_columns:
            evaluation.absorb(pa.concat_tables([each.table for each in deferred]))
            return
        for each in deferred:
            for row in each.rows():
                evaluation.add(each.stream, row)

    def rest(self, horizon_us: int) -> None:
        """Have those that decided in the batch, and miss something from now on, take no rows."""
        one_by_one = [each for each in self._awake.decided if not isinstance(each, RunTable)]
        for resting in self._deferred.rest(one_by_one, horizon_us):
            for stream in resting.streams:
                self._read_by.get(stream, {}).pop(resting, None)
                if isinstance(resting, CountedEvaluation):
                    self._read_by_columns.get(stream, {}).pop(resting, None)
