"""What passes into stage 1 and out of it, as Arrow.

A document goes in as one row of `DOCUMENT_SCHEMA` and comes out as one row of `WITNESS_SCHEMA`.
The columns that say which document it is (`IDENTITY`) are the same on both sides.

A row of witnesses names its **witness shape**: the binary relation of the paper (Hong 2009,
section 6.3.1) over node positions, which many documents have in common.  `edges` spells the
shape out on at least the first row that has it in each stream of batches, and may be null after
that; a reader keeps the shapes that it has seen.  `nodes[i]` and `values[i]` are the document
node and the string value of the shape's node `i`.  So, for one document,

    R_binW(var1, var2, node1, node2) = {(v1, v2, nodes[a], nodes[b]) | (v1, v2, a, b) in edges}
    R_docW(node, strVal)             = {(nodes[i], values[i])}

A value is null where no query compares it.  Two shape nodes may stand for one document node:
a derived value (`lower-case(x2)`) has a shape node of its own.  Behind the nodes of the shape stand
texts that values have in common (`xscl.sharedtexts`), each with `SHARED` for its node.
"""

from __future__ import annotations

import pyarrow as pa

__all__ = ["DOCUMENT_SCHEMA", "IDENTITY", "WITNESS_SCHEMA"]

IDENTITY = [
    pa.field("docid", pa.int64(), nullable=False),
    pa.field("depth", pa.int32(), nullable=False),
    pa.field("match_id", pa.string(), nullable=False),
    pa.field("stream", pa.string(), nullable=False),
    pa.field("key", pa.string(), nullable=False),
    pa.field("start_us", pa.int64(), nullable=False),
    pa.field("end_us", pa.int64(), nullable=False),
    pa.field("watermark_us", pa.int64(), nullable=False),
]
"""Which document: its position `(docid, depth, match_id)`, its stream and key, its interval.

`depth` is 0 and `match_id` empty for a document from outside.  `watermark_us` is `W(docid)` of
the semantics, section 1.1: the largest event time of any outside document with a smaller docid
(for docid 1, which has none before it, the least int64).  Times are microseconds since 1970, UTC.
"""

DOCUMENT_SCHEMA = pa.schema(
    [
        *IDENTITY,
        pa.field("revision", pa.int32(), nullable=False),
        pa.field("xml", pa.binary(), nullable=False),
    ]
)
"""A document: `revision` says how many it revises, 0 of one that has no publisher's key."""

EDGE = pa.struct(
    [
        pa.field("var1", pa.int32(), nullable=False),
        pa.field("var2", pa.int32(), nullable=False),
        pa.field("node1", pa.int32(), nullable=False),
        pa.field("node2", pa.int32(), nullable=False),
    ]
)

WITNESS_SCHEMA = pa.schema(
    [
        *IDENTITY,
        pa.field("error", pa.string()),
        pa.field("shape", pa.string()),
        pa.field("edges", pa.list_(EDGE)),
        pa.field("nodes", pa.list_(pa.int32())),
        pa.field("values", pa.list_(pa.string())),
    ]
)
"""One document's witnesses.  `error` is the reason why it could not be read, else null.

A row without `error` and `shape` says that the document is still to be evaluated."""
