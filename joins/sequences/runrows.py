"""Runs as instances of a join: rows that others read, each with its run as a value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from joins.memory.instance import INSTANCE_SCHEMA
from joins.memory.tupletable import ClassTuple, Position
from joins.sequences.runparts import DecidedRun, PartRow, Step
from templates.rundecision import (
    Bound,
    DecidedRuns,
    Run,
    RunAtHand,
    compile_disjuncts,
)

__all__ = ["RunRows"]

_ROW = pa.schema(list(INSTANCE_SCHEMA)[1:])


class RunRows:
    """Makes the rows of one class of runs.

    `identity` gives equal numbers to the choices of nodes of a run that are equal, in a batch.
    """

    def __init__(self, number: int, runs: DecidedRuns, shape: int) -> None:
        self._number = number
        self._runs = runs
        self._shape = shape
        self._first = compile_disjuncts((runs.first,))
        self._keys = {each.block: each.keys for each in runs.decision.elements}

    def table(
        self,
        found: list[DecidedRun],
        first: int,
        identity: Callable[[tuple[Any, ...]], int],
    ) -> tuple[pa.Table, list[ClassTuple]]:
        """Return rows of `INSTANCE_SCHEMA` that get numbers from `first` on, and their tuples."""
        rows: list[dict[str, Any]] = []
        tuples: list[ClassTuple] = []
        for one in found:
            position = self._position(one)
            for row in self._rows(one, identity):
                number = first + len(rows)
                rows.append(row)
                tuples.append(ClassTuple(self._number, number, None, 0, (0,), position))
        return pa.Table.from_pylist(rows, _ROW), tuples

    def _position(self, one: DecidedRun) -> Position | None:
        if one.docid is None:
            return None
        parts = one.parts
        end_us = parts[-1].end_us
        watermark_us = max(part.watermark_us for part in parts)
        return Position(
            one.docid,
            1 + max(part.depth for part in parts),
            max(end_us + self._runs.decision.grace_us, watermark_us),
            end_us,
        )

    def _rows(
        self, one: DecidedRun, identity: Callable[[tuple[Any, ...]], int]
    ) -> Iterator[dict[str, Any]]:
        head, parts = one.head, one.parts
        newest = max(parts, key=lambda part: part.position)
        elements = tuple(part.element for part in head.elements if part.element is not None)
        own = {self._runs.run: Bound(0, Run(elements, head.folds).spell())}
        first = elements[0]
        for name, key in zip(self._runs.keys, self._keys[first.block], strict=True):
            own[name] = Bound(0, first.value(key))
        chosen = tuple((part.blocks, part.chosen) for part in head.elements)
        own[self._runs.run] = own[self._runs.run]._replace(node=identity(chosen))
        for row in self._lefts(one):
            terms = {**row.terms, **own}
            carried = [terms[name] for name in self._runs.carried]
            yield {
                "stream": self._runs.stream,
                "key": "",
                "docid": newest.docid,
                "depth": newest.depth,
                "match_id": newest.match_id,
                "docid_min": min(part.docid_min for part in parts),
                "docid_max": max(part.docid_max for part in parts),
                "start_us": parts[0].start_us,
                "end_us": parts[-1].end_us,
                "watermark_us": newest.watermark_us,
                "shape": self._shape,
                "leaves": [leaf for part in parts for leaf in part.leaves],
                "nodes": [0, *(bound.node for bound in carried)],
                "vals": [None, *(bound.value for bound in carried)],
            }

    def _lefts(self, one: DecidedRun) -> Iterator[PartRow]:
        """Yield the rows of what stands before with which the run begins."""
        head = one.head
        if self._runs.left is None or head.left is None:
            yield PartRow({})
            return
        first = head.elements[0]
        run = RunAtHand((), first.element, {})
        for row in head.left.rows.get(self._runs.left.name, ()):
            if self._first(Step(row.terms, head.left.start_us, first.end_us, run)):
                yield row
