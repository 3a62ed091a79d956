"""Stage 1 over Arrow: batches of documents in, batches of witnesses out.

This is what runs inside Spark's workers.  A worker keeps an evaluator from call to call, so its
caches live as long as the worker does, and turns it to the plan of the call.  Each call spells out
every shape that it meets once, because a warm cache here must not hide a shape from a reader that
has just been restarted.

Columns are built from flat lists and from the columns that shapes are made of: a row never becomes
a dictionary.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, chain

import numpy as np
import pyarrow as pa

from xpath_eval.catalog import EvaluationPlan
from xpath_eval.counters import counted
from xpath_eval.evaluator import Evaluator, Shape, Witnesses
from xpath_eval.limits import DEFAULT_EVALUATOR_LIMITS, EvaluatorLimits
from xpath_eval.parsing import XmlError
from xpath_eval.witnesses import EDGE, IDENTITY, WITNESS_SCHEMA

__all__ = ["evaluate_batches", "idle_evaluator", "spelled_edges", "witness_batch"]

_IDLE: list[Evaluator] = []
"""Evaluators that no call uses, the last used at the end; calls come from several threads.

There is no lock: an evaluator is put back when its generator ends, and one that nobody goes through
to its end is ended by Python at any moment, also while another evaluator is taken.
"""


def evaluate_batches(
    plan: EvaluationPlan,
    batches: Iterable[pa.RecordBatch],
    limits: EvaluatorLimits = DEFAULT_EVALUATOR_LIMITS,
) -> Iterator[pa.RecordBatch]:
    """Yield the witnesses of documents: `DOCUMENT_SCHEMA` in, `WITNESS_SCHEMA` out, row by row.

    Each batch carries what its evaluation has counted (`xpath_eval.counters`).  A batch is cut
    behind the document with which its values have more than `limits.characters`; what follows
    spells all its shapes out again, so the parts need not stay together.
    """
    spelled: set[str] = set()
    with idle_evaluator(plan, limits) as evaluator:
        for batch in batches:
            start = 0
            for found in _found(evaluator, batch):
                if start:
                    spelled.clear()
                part = batch.slice(start, len(found))
                yield counted(witness_batch(part, found, spelled), evaluator.take_counters())
                start += len(found)


_READ = ("stream", "depth", "revision", "xml")
_READ_AT_ONCE = 64


@contextmanager
def idle_evaluator(plan: EvaluationPlan, limits: EvaluatorLimits) -> Iterator[Evaluator]:
    """Give an evaluator of a plan that nobody else uses meanwhile."""
    evaluator = _take(plan, limits)
    try:
        yield evaluator
    finally:
        _put_back(evaluator)


def _take(plan: EvaluationPlan, limits: EvaluatorLimits) -> Evaluator:
    """Return an evaluator that nobody else uses: of this plan if there is one."""
    while idle := [evaluator for evaluator in tuple(_IDLE) if evaluator.limits == limits]:
        of_plan = [evaluator for evaluator in idle if evaluator.plan.version == plan.version]
        evaluator = of_plan[0] if of_plan else idle[-1]
        try:
            _IDLE.remove(evaluator)
        except ValueError:  # somebody has taken it since
            continue
        if evaluator.plan.version != plan.version:
            evaluator.update(plan)
        return evaluator
    return Evaluator(plan, limits)


def _put_back(evaluator: Evaluator) -> None:
    _IDLE.append(evaluator)
    del _IDLE[: -evaluator.limits.idle]


def _found(evaluator: Evaluator, batch: pa.RecordBatch) -> Iterator[list[Witnesses | XmlError]]:
    """Yield what is found in documents, as many of them at a time as may be in one batch."""
    found: list[Witnesses | XmlError] = []
    characters = 0
    for stream, depth, revision, xml in _rows(batch):
        if characters > evaluator.limits.characters:
            yield found
            found, characters = [], 0
        try:
            witnesses = evaluator.evaluate(stream, xml, is_published=depth > 0, revision=revision)
        except XmlError as error:
            found.append(error)
            continue
        found.append(witnesses)
        for value in witnesses.values:
            if value is not None:
                characters += len(value)
    yield found


def _rows(batch: pa.RecordBatch) -> Iterator[tuple[str, int, int, bytes]]:
    """Yield stream, depth, revision and text of documents, some of which are read at once."""
    for start in range(0, batch.num_rows, _READ_AT_ONCE):
        part = batch.slice(start, _READ_AT_ONCE)
        columns = (part.column(name).to_numpy(zero_copy_only=False) for name in _READ)
        # Arrow's own values of Python's are made in Python, one by one.
        yield from zip(*(column.tolist() for column in columns), strict=True)


def witness_batch(
    batch: pa.RecordBatch, results: Sequence[Witnesses | XmlError], spelled: set[str]
) -> pa.RecordBatch:
    """Return what was found in documents as rows; `spelled` are shapes that need no edges."""
    found = [None if isinstance(result, XmlError) else result for result in results]
    errors = [str(result) if isinstance(result, XmlError) else None for result in results]
    new: list[Shape | None] = []
    for witnesses in found:
        is_new = witnesses is not None and witnesses.shape.id not in spelled
        new.append(witnesses.shape if witnesses is not None and is_new else None)
        if witnesses is not None:
            spelled.add(witnesses.shape.id)
    return pa.RecordBatch.from_arrays(
        [
            *(batch.column(column.name) for column in IDENTITY),
            pa.array(errors, pa.string()),
            pa.array([None if w is None else w.shape.id for w in found], pa.string()),
            spelled_edges(new),
            _lists([None if w is None else w.nodes for w in found], pa.int32()),
            _lists([None if w is None else w.values for w in found], pa.string()),
        ],
        schema=WITNESS_SCHEMA,
    )


def _lists(rows: Sequence[Sequence[object] | None], type_: pa.DataType) -> pa.Array:
    """Return rows of items as a list column."""
    items = pa.array(chain.from_iterable([row for row in rows if row]), type_)
    return pa.ListArray.from_arrays(_offsets(rows), items, mask=_missing(rows))


def spelled_edges(shapes: Sequence[Shape | None]) -> pa.Array:
    """Return the edges of the shapes that are given, null for the others."""
    given = [shape.columns for shape in shapes if shape is not None]
    columns = [np.concatenate(parts) for parts in zip(*given, strict=True)] or [_NO_COLUMN] * 4
    items = pa.StructArray.from_arrays([pa.array(c) for c in columns], fields=list(EDGE))
    return pa.ListArray.from_arrays(
        _offsets(shapes), items, type=pa.list_(EDGE), mask=_missing(shapes)
    )


_NO_COLUMN = np.empty(0, np.int32)


def _offsets(rows: Sequence[Sequence[object] | Shape | None]) -> pa.Array:
    return pa.array(
        accumulate((0 if row is None else len(row) for row in rows), initial=0), pa.int32()
    )


def _missing(rows: Sequence[object | None]) -> pa.Array:
    return pa.array([row is None for row in rows], pa.bool_())
