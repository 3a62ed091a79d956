"""Instances for the join to remember, made of witnesses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins import INSTANCE_SCHEMA

__all__ = ["UNNUMBERED", "WATERMARK_MIN_US", "TupleShapes", "of_witnesses"]

WATERMARK_MIN_US = -(1 << 61)
"""The watermark before any document: differences of it and other times fit 64 bits."""

UNNUMBERED = pa.schema(list(INSTANCE_SCHEMA)[1:])
"""An instance before it has a number."""

TupleShapes = Callable[[Sequence[str], Sequence[tuple[int, ...]]], list[int]]
"""Gives the shapes of tuples as instances, by their streams and the variables of their nodes."""


def of_witnesses(
    found: pa.Table,
    first: int,
    shape_number: Callable[[str], int | None],
    docid_max_of: Mapping[str, int],
) -> pa.Table:
    """Return witnesses as rows of `INSTANCE_SCHEMA` without the numbers, which begin with `first`.

    The witnesses have nodes, and `shape_number` knows their shapes.  `docid_max_of` says for match
    ids of published documents which outside document is the newest behind them.
    """
    size = found.num_rows
    shapes = found.column("shape").combine_chunks().dictionary_encode()
    numbers = [shape_number(shape) for shape in shapes.dictionary.to_pylist()]
    assert None not in numbers, "the evaluator named a shape that it never spelled out"
    leaves = pa.arange(first, first + size)
    columns = {
        **{name: found.column(name) for name in ("stream", "key", "docid", "depth")},
        **{name: found.column(name) for name in ("match_id", "start_us", "end_us", "nodes")},
        "docid_min": found.column("docid"),
        "docid_max": _docids_max(found, docid_max_of),
        "watermark_us": pc.max_element_wise(found.column("watermark_us"), WATERMARK_MIN_US),
        "shape": pa.array(numbers, pa.int32()).take(shapes.indices),
        "leaves": pa.ListArray.from_arrays(pa.array(np.arange(size + 1, dtype=np.int32)), leaves),
        "vals": found.column("values"),
    }
    return pa.table([columns[name] for name in UNNUMBERED.names], UNNUMBERED)


def _docids_max(found: pa.Table, docid_max_of: Mapping[str, int]) -> pa.ChunkedArray | pa.Array:
    docids = found.column("docid")
    if not docid_max_of:
        return docids
    ids = found.column("match_id").to_pylist()
    known = [docid_max_of.get(match_id, 0) for match_id in ids]
    return pc.if_else(
        pc.greater(pa.array(known, pa.int64()), 0), pa.array(known, pa.int64()), docids
    )
