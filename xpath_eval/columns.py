"""Documents taken apart into columns, which are evaluated for one plan after another.

Most of the time of an evaluation goes into parsing, and most documents of a stream have one of a
few structures.  Here a batch is parsed once.  Documents of one structure keep their texts together
in one array, and a plan whose patterns ask nothing of these texts takes from it the values that it
compares: for all of them at a time, without a parser.

What the texts decide (predicates, functions) is asked of the kept texts, one document after
another (`keptelements`).  Documents of rare structures are evaluated as they are everywhere
(`evaluate_batches`).

Invariant: `DocumentColumns.evaluate` gives the witnesses that `evaluate_batches` gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from xpath_eval.catalog import EvaluationPlan
from xpath_eval.evaluator import Evaluator, Shape, Witnesses
from xpath_eval.keptelements import KeptTree, Place
from xpath_eval.limits import DEFAULT_EVALUATOR_LIMITS, EvaluatorLimits
from xpath_eval.parsing import XmlError, parse_elements
from xpath_eval.shape import ShapeCollector
from xpath_eval.stage import evaluate_batches, idle_evaluator, spelled_edges, witness_batch
from xpath_eval.structure import Detail, Structure, StructureKey, structure_key
from xpath_eval.witnesses import IDENTITY, WITNESS_SCHEMA

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["DocumentColumns"]

_ALIKE_MIN = 8
"""Documents of one structure in a batch from which on arrays cost less than a parser."""

_FOUND = pa.schema([each for each in WITNESS_SCHEMA if each not in IDENTITY])


@dataclass(slots=True)
class _Alike:
    """The documents of a batch with one stream and structure: their rows, and all their texts."""

    rows: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Columns:
    """Texts of documents alike, one document after another, an empty one behind them."""

    rows: NDArray[np.int64]
    structure: Structure
    places: dict[Place, int]
    texts: pa.StringArray

    def values(self, filled: ShapeCollector) -> tuple[pa.StringArray, NDArray[np.int64]]:
        """Return texts, and by document and shape node which of them is its value, or -1."""
        count, width = len(self.rows), len(self.places)
        starts = np.arange(count) * width
        chosen = np.full((count, len(filled.leaves)), -1)
        parts = [self.texts]
        size = len(self.texts)

        def take(node: int, place: Place) -> None:
            at = self.places.get(place)
            chosen[:, node] = count * width if at is None else starts + at

        for node, element in enumerate(filled.leaves):
            if element >= 0:
                take(node, (element, False))
        for node, kind, element, detail in filled.others:
            if kind == "element":
                parts.append(self._whole(element, starts))
                chosen[:, node] = size + np.arange(count)
                size += count
            else:
                assert isinstance(detail, str | bool)
                take(node, (element, detail))
        return pa.concat_arrays(parts), chosen

    def asked(self, evaluator: Evaluator, batch: pa.RecordBatch) -> Iterator[pa.Table]:
        """Yield what is found in the documents where their texts decide, some at a time."""
        xml = batch.column("xml")
        tree = KeptTree(
            self.structure,
            self.places,
            self.texts.to_pylist(),
            lambda document: bytes(xml[int(self.rows[document])].as_py()),
        )
        stream, depth, first = next(_rows(batch.slice(self.rows[0], 1)))
        revisions = batch.column("revision").take(pa.array(self.rows)).to_pylist()
        trees = map(tree.move, range(len(self.rows)), revisions)
        found: list[Witnesses | XmlError] = []
        start = characters = 0
        for each in evaluator.evaluate_alike(stream, first, trees, is_published=depth > 0):
            found.append(each)
            if isinstance(each, Witnesses):
                characters += sum(map(len, filter(None, each.values)))
            if characters > evaluator.limits.characters:
                yield _asked(batch, self.rows[start : start + len(found)], found)
                start, found, characters = start + len(found), [], 0
        if found:
            yield _asked(batch, self.rows[start:], found)

    def _whole(self, element: int, starts: NDArray[np.int64]) -> pa.StringArray:
        """Return the string value of an element with children: all texts within it, in order."""
        end = self.structure.ends[element]
        within = [
            self.places[owner, is_tail]
            for owner, is_tail in self.structure.texts
            if element <= owner < end and not (is_tail and owner == element)
        ]
        columns = [self.texts.take(pa.array(starts + at)).to_pylist() for at in within]
        found = map("".join, zip(*columns, strict=True)) if columns else [""] * len(starts)
        return pa.array(found, pa.string())


class DocumentColumns:
    """A batch of `DOCUMENT_SCHEMA`, taken apart.

    It keeps the texts, not the batch: `evaluate` is given the same one again.
    """

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.errors: dict[int, str] = {}
        alike: dict[tuple[str, bool, StructureKey], _Alike] = {}
        for row, (stream, depth, xml) in enumerate(_rows(batch)):
            if not xml:  # a tick of the clock has no structure
                continue
            try:
                elements = parse_elements(xml)
            except XmlError as error:
                self.errors[row] = str(error)
                continue
            key = structure_key(elements, Detail.TEXTS)
            found = alike.setdefault((stream, depth > 0, key), _Alike())
            found.rows.append(row)
            found.texts += [text for e in elements for text in (e.text, e.tail) if text]
            found.texts += [str(value) for e in elements if e.keys() for value in e.values()]
        self._columns = [
            _columns(key, each)
            for (_, _, key), each in alike.items()
            if len(each.rows) >= _ALIKE_MIN
        ]

    @property
    def nbytes(self) -> int:
        """How much memory the texts take."""
        return sum(each.texts.nbytes for each in self._columns)

    def evaluate(
        self,
        plan: EvaluationPlan,
        batch: pa.RecordBatch,
        limits: EvaluatorLimits = DEFAULT_EVALUATOR_LIMITS,
    ) -> pa.Table:
        """Return the witnesses of the batch, `WITNESS_SCHEMA`, in its order."""
        left = np.ones(batch.num_rows, bool)
        left[list(self.errors)] = False
        parts: list[pa.Table] = []
        orders: list[NDArray[np.int64]] = []
        with idle_evaluator(plan, limits) as evaluator:
            known = [*self._known(evaluator, batch)]
            has_all = {id(columns) for columns, _ in known}
            for columns in self._columns:
                if id(columns) not in has_all:
                    parts += columns.asked(evaluator, batch)
                    orders.append(columns.rows)
                    left[columns.rows] = False
        spelled = _first_rows(known)
        for columns, filled in known:
            left[columns.rows] = False
            is_first = spelled[filled.shape.id] == columns.rows[0]
            parts.append(_filled(columns, filled, is_spelled=is_first))
            orders.append(columns.rows)
        if self.errors:
            parts.append(_failed([*self.errors.values()]))
            orders.append(np.array([*self.errors]))
        others = np.flatnonzero(left)
        if len(others):
            rest = batch if len(others) == batch.num_rows else batch.take(pa.array(others))
            witnesses = pa.Table.from_batches(
                evaluate_batches(plan, [rest], limits), WITNESS_SCHEMA
            )
            parts.append(witnesses.select(_FOUND.names))
            orders.append(others)
        if not parts:
            return WITNESS_SCHEMA.empty_table()
        order = np.argsort(np.concatenate(orders))
        found = pa.concat_tables(parts).take(pa.array(order))
        identity = [batch.column(each.name) for each in IDENTITY]
        return pa.Table.from_arrays([*identity, *found.columns], schema=WITNESS_SCHEMA)

    def _known(
        self, evaluator: Evaluator, batch: pa.RecordBatch
    ) -> Iterator[tuple[_Columns, ShapeCollector]]:
        """Yield the documents of which the structure says everything, with how they are filled."""
        for columns in self._columns:
            (first,) = _rows(batch.slice(columns.rows[0], 1))
            stream, depth, xml = first
            filled = evaluator.gathering(stream, xml, is_published=depth > 0)
            if filled is None:
                continue
            inner = sum(kind == "element" for _, kind, _, _ in filled.others)
            if columns.texts.nbytes * (1 + inner) <= evaluator.limits.characters:
                yield columns, filled


def _rows(batch: pa.RecordBatch) -> Iterator[tuple[str, int, bytes]]:
    columns = (batch.column(name).to_pylist() for name in ("stream", "depth", "xml"))
    return zip(*columns, strict=True)


def _columns(key: StructureKey, alike: _Alike) -> _Columns:
    texts: list[Place] = [
        (element, is_tail)
        for element, row in enumerate(key)
        for is_tail in (False, True)
        if row[2 + is_tail]
    ]
    attributes: list[Place] = [(e, name) for e, row in enumerate(key) for name in row[4:]]
    return _Columns(
        np.array(alike.rows),
        Structure(key, Detail.TEXTS),
        {place: at for at, place in enumerate([*texts, *attributes])},
        pa.array([*alike.texts, ""], pa.string()),
    )


def _first_rows(known: Sequence[tuple[_Columns, ShapeCollector]]) -> dict[str, int]:
    """Return by shape the first row that has it."""
    first: dict[str, int] = {}
    for columns, filled in known:
        at = int(columns.rows[0])
        first[filled.shape.id] = min(at, first.get(filled.shape.id, at))
    return first


def _asked(
    batch: pa.RecordBatch, rows: NDArray[np.int64], found: Sequence[Witnesses | XmlError]
) -> pa.Table:
    """Return what is found in some rows of a batch; each shape is spelled out where it is new."""
    identity = batch.select([each.name for each in IDENTITY])
    part = witness_batch(identity.take(pa.array(rows)), found, set())
    return pa.Table.from_batches([part]).select(_FOUND.names)


def _filled(columns: _Columns, filled: ShapeCollector, *, is_spelled: bool) -> pa.Table:
    """Return what is found in documents that are alike; the first may spell their shape out."""
    count, width = len(columns.rows), len(filled.nodes)
    texts, chosen = columns.values(filled)
    flat = chosen.ravel()
    values = texts.take(pa.array(flat, mask=flat < 0))
    offsets = pa.array(np.arange(count + 1, dtype=np.int32) * width)
    nodes = pa.array(np.tile(np.array(filled.nodes, np.int32), count))
    shapes: list[Shape | None] = [None] * count
    shapes[0] = filled.shape if is_spelled else None
    return pa.Table.from_arrays(
        [
            pa.nulls(count, pa.string()),
            pa.repeat(filled.shape.id, count),
            spelled_edges(shapes),
            pa.ListArray.from_arrays(offsets, nodes),
            pa.ListArray.from_arrays(offsets, values),
        ],
        schema=_FOUND,
    )


def _failed(errors: Sequence[str]) -> pa.Table:
    columns = {name: [None] * len(errors) for name in _FOUND.names}
    return pa.table(columns | {"error": errors}, schema=_FOUND)
