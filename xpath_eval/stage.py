"""Stage 1 over Arrow: batches of documents in, batches of witnesses out.

This is what runs inside Spark's workers.  A worker keeps one evaluator for each plan, so its
caches live as long as the worker does.  Each call spells out every shape that it meets once,
because a warm cache here must not hide a shape from a reader that has just been restarted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

import pyarrow as pa

from xpath_eval.catalog import EvaluationPlan
from xpath_eval.evaluator import Evaluator, Witnesses
from xpath_eval.structure import XmlError
from xpath_eval.witnesses import IDENTITY, WITNESS_SCHEMA

__all__ = ["evaluate_batches"]


def evaluate_batches(
    plan: EvaluationPlan, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the witnesses of documents: `DOCUMENT_SCHEMA` in, `WITNESS_SCHEMA` out, row by row."""
    evaluator = _evaluator(plan, plan.version)
    spelled: set[str] = set()
    for batch in batches:
        yield _evaluate_batch(evaluator, batch, spelled)


@lru_cache(maxsize=2)
def _cached_evaluator(holder: _PlanHolder) -> Evaluator:
    return Evaluator(holder.plan)


class _PlanHolder:
    """A plan that is hashed by its version: plans are large, and equal ones are common."""

    def __init__(self, plan: EvaluationPlan, version: str) -> None:
        self.plan = plan
        self.version = version

    def __hash__(self) -> int:
        return hash(self.version)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _PlanHolder) and other.version == self.version


def _evaluator(plan: EvaluationPlan, version: str) -> Evaluator:
    return _cached_evaluator(_PlanHolder(plan, version))


def _evaluate_batch(
    evaluator: Evaluator, batch: pa.RecordBatch, spelled: set[str]
) -> pa.RecordBatch:
    errors: list[str | None] = []
    shapes: list[str | None] = []
    edges: list[list[dict[str, int]] | None] = []
    nodes: list[tuple[int, ...] | None] = []
    values: list[tuple[str | None, ...] | None] = []
    columns = (batch.column(name).to_pylist() for name in ("stream", "depth", "xml"))
    for stream, depth, xml in zip(*columns, strict=True):
        witnesses, error = _try_evaluate(evaluator, stream, xml, is_published=depth > 0)
        errors.append(error)
        shapes.append(witnesses.shape.id if witnesses else None)
        nodes.append(witnesses.nodes if witnesses else None)
        values.append(witnesses.values if witnesses else None)
        edges.append(_spell(witnesses, spelled) if witnesses else None)
    identity = [batch.column(column.name) for column in IDENTITY]
    found = [
        pa.array(column, WITNESS_SCHEMA.field(name).type)
        for name, column in (
            ("error", errors),
            ("shape", shapes),
            ("edges", edges),
            ("nodes", nodes),
            ("values", values),
        )
    ]
    return pa.RecordBatch.from_arrays([*identity, *found], schema=WITNESS_SCHEMA)


def _try_evaluate(
    evaluator: Evaluator, stream: str, xml: bytes, *, is_published: bool
) -> tuple[Witnesses | None, str | None]:
    try:
        return evaluator.evaluate(stream, xml, is_published=is_published), None
    except XmlError as error:
        return None, str(error)


def _spell(witnesses: Witnesses, spelled: set[str]) -> list[dict[str, int]] | None:
    shape = witnesses.shape
    if shape.id in spelled:
        return None
    spelled.add(shape.id)
    return [
        {"var1": var1, "var2": var2, "node1": node1, "node2": node2}
        for var1, var2, node1, node2 in shape.edges
    ]
