"""Instances: the rows that the join pairs.

Documents from outside, documents that queries publish, and the tuples of inner operators are all
instances: a witness shape, the nodes and values that fill it, and a place in time.  They are
numbered from 1 in the order in which the join gets to know them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa

__all__ = [
    "INSTANCE_SCHEMA",
    "READ_SCHEMA",
    "Instance",
    "read_instances",
    "rows_in_sub_batches",
]

INSTANCE_SCHEMA = pa.schema(
    [
        ("instance", pa.int64()),
        ("stream", pa.string()),
        ("key", pa.string()),
        ("docid", pa.int64()),
        ("depth", pa.int32()),
        ("match_id", pa.string()),
        ("docid_min", pa.int64()),
        ("docid_max", pa.int64()),
        ("start_us", pa.int64()),
        ("end_us", pa.int64()),
        ("watermark_us", pa.int64()),
        ("shape", pa.int32()),
        ("leaves", pa.list_(pa.int64())),
        ("nodes", pa.list_(pa.int32())),
        ("vals", pa.list_(pa.string())),
    ]
)
"""An instance as a row.  `(docid, depth, match_id)` is its position, `docid_min` the smallest docid
behind it, `docid_max` the largest of documents from outside, `leaves` the documents that it
consists of, in block order; `nodes` and `vals` give the document node and the string value of each
node of its shape, and behind them texts that values of a document have in common."""


class Instance(NamedTuple):
    """One instance, read back: the columns of `INSTANCE_SCHEMA`, its shape left out."""

    instance: int
    stream: str
    key: str
    docid: int
    depth: int
    match_id: str
    docid_min: int
    docid_max: int
    start_us: int
    end_us: int
    watermark_us: int
    leaves: tuple[int, ...]
    nodes: tuple[int, ...]
    values: tuple[str | None, ...]

    @property
    def position(self) -> tuple[int, int, str]:
        """Where it stands among all instances."""
        return self.docid, self.depth, self.match_id


def rows_in_sub_batches(rows: pa.Table, bytes_max: int) -> Iterator[pa.Table]:
    """Yield rows in order: one of their batches each, then up to so many bytes."""
    part: list[pa.RecordBatch] = []
    total = 0
    batches = rows.to_batches()
    # Arrow finds bytes buffer by buffer, which takes as long as a copy of some rows.
    sizes = [batch.nbytes for batch in batches] if len(batches) > 1 else [0]
    for batch, nbytes in zip(batches, sizes, strict=False):
        if part and total + nbytes > bytes_max:
            yield pa.Table.from_batches(part)
            part, total = [], 0
        part.append(batch)
        total += nbytes
    if part:
        yield pa.Table.from_batches(part)


READ_SCHEMA = pa.schema([field for field in INSTANCE_SCHEMA if field.name != "shape"])
"""Instances as they are read back, by whom shapes are no business."""

_READ = READ_SCHEMA.names[1:]


def read_instances(rows: pa.Table | pa.RecordBatch, numbers: Iterable[int]) -> Iterator[Instance]:
    """Yield rows of `INSTANCE_SCHEMA` one by one, under numbers given in their order.

    The columns of the number and of the shape may be missing.
    """
    columns = [rows.column(name).to_pylist() for name in _READ]
    columns[-3:] = [map(tuple, column) for column in columns[-3:]]
    yield from map(Instance._make, zip(numbers, *columns, strict=True))
