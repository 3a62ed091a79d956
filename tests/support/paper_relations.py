"""The paper's relations, as views over the tables of the join (Hong 2009, section 6.3.1).

The join stores witnesses once for each shape; here they are spelled out document by document, in
document nodes, as the paper's tables 6.4(b) to (f) print them.
"""

from __future__ import annotations

from typing import Literal

from joins.sql import schema
from joins.sql.engine import SqlProcessor

__all__ = ["r_bin", "r_doc", "r_doc_ts", "r_out"]

Which = Literal["remembered", "new"]
"""`new` restricts a relation to the batch in hand: the paper's `R_binW`, `R_docW`, `R_docTSW`."""


def r_bin(
    processor: SqlProcessor, which: Which = "remembered"
) -> list[tuple[int, int, int, int, int]]:
    """Return `R_bin(docid, var1, var2, node1, node2)`, sorted; variables are catalog numbers."""
    return processor.state.run(
        f"""SELECT d.docid, e.var1, e.var2, d.nodes[e.node1 + 1], d.nodes[e.node2 + 1]
FROM {schema.REMEMBERED} AS d, {schema.SHAPE_EDGE} AS e
WHERE e.shape = d.shape AND {_is_meant(processor, which)}
ORDER BY ALL"""
    )


def r_doc(
    processor: SqlProcessor, which: Which = "remembered"
) -> list[tuple[int, int, str | None]]:
    """Return `R_doc(docid, node, strVal)`, sorted; the value is None where no query compares it."""
    return processor.state.run(
        f"""SELECT DISTINCT d.docid, unnest(d.nodes) AS node, unnest(d.vals) AS value
FROM {schema.REMEMBERED} AS d
WHERE {_is_meant(processor, which)}
ORDER BY ALL"""
    )


def r_doc_ts(processor: SqlProcessor, which: Which = "remembered") -> list[tuple[int, int]]:
    """Return `R_docTS(docid, timestamp)`, sorted; microseconds."""
    return processor.state.run(
        f"""SELECT d.docid, d.end_us FROM {schema.REMEMBERED} AS d
WHERE {_is_meant(processor, which)}
ORDER BY ALL"""
    )


def r_out(processor: SqlProcessor, stratum: int = 0) -> list[tuple[int, ...]]:
    """Return `R_outT(class, docid1, node1, ...)` of the batch in hand, for all its templates."""
    tuples = processor.probe(stratum)
    known = processor.instances({n for t in tuples for n in (t.left, t.right) if n is not None})
    rows: list[tuple[int, ...]] = []
    for one in tuples:
        left = known[one.left]
        right = left if one.right is None else known[one.right]
        size = processor.template_of(one.query_class).left_size
        nodes = [(left if i < size else right).nodes[n] for i, n in enumerate(one.nodes)]
        rows.append((one.query_class, left.docid, *nodes))
    return sorted(rows)


def _is_meant(processor: SqlProcessor, which: Which) -> str:
    return f"d.instance >= {processor.batch.first if which == 'new' else 0}"
