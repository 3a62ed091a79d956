"""What shards remember, as a data source of Spark: `xscl-state`.

    spark.dataSource.register(StateSource)
    spark.read.format("xscl-state").load("<data>/shards")

It is for a session of the reader's own.  The path is that of the folder with the run: below a
store, `s3://bucket/prefix/broker-.../shards?region=...`.

A row is an instance in a shard, once, however many pieces have it; one that goes to several shards
is a row in each.  The broker goes on meanwhile: a piece that it replaces is read where it went.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from broker.pipeline.store.objects import Objects, StorePlace
from broker.pipeline.store.runs import RunStore

__all__ = ["STATE_SCHEMA", "StateSource"]

STATE_SCHEMA = (
    "shard int, instance bigint, stream string, key string, docid bigint, depth int,"
    " match_id string, start timestamp, end timestamp, shape int, values array<string>"
)
"""The columns of the state, as Spark writes types: `depth` is 0 for documents from outside, and
`values` are the string values of the nodes of a witness shape."""

_PIECE = re.compile(r"(\d+)-\d+-\w+")
_ATTEMPTS = 5


class StateSource(DataSource):
    """The state of shards as a source of Spark."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "xscl-state"

    def schema(self) -> str:
        """Return the columns."""
        return STATE_SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of what is there now."""
        return _StateReader(StorePlace.at(self.options["path"]))


@dataclass
class _ShardPart(InputPartition):
    run: StorePlace
    shard: int


class _StateReader(DataSourceReader):
    def __init__(self, place: StorePlace) -> None:
        self._place = place

    def partitions(self) -> list[InputPartition]:
        runs = Objects(self._place).names()
        if len(runs) > 1:
            raise ValueError(f"there are {len(runs)} runs: a broker is being started, try again")
        found: list[InputPartition] = []
        for run in map(self._place.below, runs):
            shards = {int(parts[1]) for name in _pieces(run) if (parts := _PIECE.fullmatch(name))}
            found += [_ShardPart(run, shard) for shard in sorted(shards)]
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _ShardPart)
        seen = np.zeros(0, np.int64)
        for rows in _tables(partition.run, partition.shard):
            numbers = rows.column("instance").to_numpy()
            rows = rows.filter(pa.array(~np.isin(numbers, seen)))
            seen = np.concatenate([seen, rows.column("instance").to_numpy()])
            yield from _as_columns(rows, partition.shard).to_batches()


def _pieces(run: StorePlace) -> list[str]:
    return [name for name in Objects(run).names() if _PIECE.fullmatch(name)]


def _tables(run: StorePlace, shard: int) -> Iterator[pa.Table]:
    """Yield the pieces of a shard; of those that are merged meanwhile the merged ones follow."""
    store, done = RunStore(run, is_begun=True), set[str]()
    for _ in range(_ATTEMPTS):
        names = [name for name in _pieces(run) if name.startswith(f"{shard}-")]
        left = [name for name in names if name not in done]
        if not left:
            return
        for name in left:
            try:
                yield store.get(name)
            except FileNotFoundError:
                continue
            done.add(name)
    raise FileNotFoundError(f"the pieces of shard {shard} change all the time")


def _as_columns(rows: pa.Table, shard: int) -> pa.Table:
    times = pa.timestamp("us", "UTC")
    columns: dict[str, Any] = {
        "shard": pa.repeat(pa.scalar(shard, pa.int32()), rows.num_rows),
        **{n: rows[n] for n in ("instance", "stream", "key", "docid", "depth", "match_id")},
        "start": rows["start_us"].cast(times),
        "end": rows["end_us"].cast(times),
        "shape": rows["shape"],
        "values": rows["vals"],
    }
    return pa.table(columns)
