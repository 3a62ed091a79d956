"""The witnesses of one document, as the paper's tables print them (Hong 2009, section 6.3.1).

`R_binW(var1, var2, node1, node2)` are the pairs of nodes that bind two variables, `R_docW(node,
strVal)` the values of those nodes, `R_docTSW(docid, timestamp)` when the document was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from broker.documents.document import Document, DocumentError, render_time
from broker.documents.segment import documents_as_rows
from broker.explain.survey import survey_with_plan
from broker.explain.trees import indent, table
from xpath_eval.stage import evaluate_batches
from xpath_eval.witnesses import WITNESS_SCHEMA
from xscl.query import Query

__all__ = ["Relations", "relations_of", "render_relations"]

VALUE_CHARACTERS = 100


@dataclass(frozen=True, slots=True)
class Relations:
    """The witnesses of one document; a value is None where no query compares it."""

    r_bin: tuple[tuple[str, str, int, int], ...]
    r_doc: tuple[tuple[int, str | None], ...]
    r_doc_ts: tuple[tuple[int, str | None], ...]

    def as_data(self) -> dict[str, Any]:
        """Return the relations as rows with named columns."""
        return {
            "R_binW": [
                dict(zip(("var1", "var2", "node1", "node2"), row, strict=True))
                for row in self.r_bin
            ],
            "R_docW": [{"node": node, "strVal": value} for node, value in self.r_doc],
            "R_docTSW": [{"docid": docid, "timestamp": time} for docid, time in self.r_doc_ts],
        }


def relations_of(
    queries: Sequence[Query], document: Document, *, has_time: bool = True
) -> Relations:
    """Return what queries find in a document; `DocumentError` where it cannot be read."""
    found, plan = survey_with_plan(queries)
    witnesses = pa.Table.from_batches(
        evaluate_batches(plan, [documents_as_rows([document])]), WITNESS_SCHEMA
    )
    (row,) = witnesses.to_pylist()
    if row["error"] is not None:
        raise DocumentError(row["error"])
    nodes, values = row["nodes"], row["values"]
    r_bin = {
        (found.name(e["var1"]), found.name(e["var2"]), nodes[e["node1"]], nodes[e["node2"]])
        for e in row["edges"] or ()
    }
    r_doc = {(node, value) for node, value in zip(nodes, values, strict=True)}
    time = render_time(document.end_us) if has_time else None
    order = {view.name: number for number, view in found.variables.items()}
    return Relations(
        tuple(sorted(r_bin, key=lambda e: (order[e[0]], order[e[1]], e[2:]))),
        tuple(sorted(r_doc, key=lambda pair: (pair[0], pair[1] is not None, pair[1] or ""))),
        ((document.docid, time),),
    )


def render_relations(relations: Relations) -> str:
    """Return the three tables as text; `-` stands for no value."""
    bins = [[v1, v2, str(n1), str(n2)] for v1, v2, n1, n2 in relations.r_bin]
    docs = [[str(node), _cell(value)] for node, value in relations.r_doc]
    times = [[str(docid), _cell(time)] for docid, time in relations.r_doc_ts]
    lines = ["R_binW", *indent(table(["var1", "var2", "node1", "node2"], bins))]
    lines += ["", "R_docW", *indent(table(["node", "strVal"], docs))]
    lines += ["", "R_docTSW", *indent(table(["docid", "timestamp"], times))]
    return "\n".join(lines) + "\n"


def _cell(value: str | None) -> str:
    if value is None:
        return "-"
    shown = value.replace("\n", "\\n").replace("\t", "\\t")
    return shown if len(shown) <= VALUE_CHARACTERS else shown[: VALUE_CHARACTERS - 1] + "…"
