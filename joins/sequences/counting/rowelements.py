"""Elements of one stream in columns: those of a batch that are no more than a document each.

Most elements come in order, and are counted by their end and a number.  So their rows stay as the
join has them, and an element becomes an object only where more is asked of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.memory.instance import READ_SCHEMA, Instance, read_instances
from joins.memory.slots import Ints
from joins.sequences.runparts import Part, PartRow
from templates.decision import TupleStream
from templates.rundecision import RunElement, TermNode

__all__ = ["RowElements"]

_NAMES = READ_SCHEMA.names[1:]


class RowElements:
    """Rows of a stream, each of which is an element: a node of a document of its own."""

    def __init__(self, stream: TupleStream, rows: pa.Table) -> None:
        self.stream = stream
        self.rows = rows.combine_chunks()
        numbers = ("docid", "depth", "docid_min", "docid_max", "start_us", "end_us", "watermark_us")
        own = [self.rows.column(name).to_numpy() for name in numbers]
        self.docids, self.depths, self.docids_min, self.docids_max = own[:4]
        self.starts_us, self.ends_us, self.watermarks_us = own[4:]

    @classmethod
    def of(cls, stream: TupleStream, tables: Sequence[pa.Table]) -> RowElements | None:
        """Return rows as columns, None where some are more, or less, than an element."""
        rows = pa.concat_tables([each.select(_NAMES) for each in tables])
        if pc.max(pc.binary_length(rows.column("match_id"))).as_py():
            return None
        lengths = pc.min_max(pc.list_value_length(rows.column("leaves"))).as_py()
        if lengths != {"min": 1, "max": 1}:
            return None
        found = cls(stream, rows)
        leaves = found.leaves
        if (leaves[1:] <= leaves[:-1]).any() and len(np.unique(leaves)) < len(leaves):
            return None
        return found

    def __len__(self) -> int:
        return len(self.docids)

    def instances(self) -> Iterator[Instance]:
        """Yield the rows one by one."""
        return read_instances(self.rows, range(len(self)))

    def take(self, some: Ints) -> RowElements:
        """Return some of them, in this order."""
        return RowElements(self.stream, self.rows.take(pa.array(some)))

    @cached_property
    def leaves(self) -> Ints:
        """The document that each is of."""
        leaves: Ints = pc.list_flatten(self.rows.column("leaves")).to_numpy()
        return leaves

    @cached_property
    def _values(self) -> list[str | None]:
        values: list[str | None] = pc.list_flatten(self.rows.column("vals")).to_pylist()
        return values

    @cached_property
    def _nodes(self) -> list[int]:
        nodes: list[int] = pc.list_flatten(self.rows.column("nodes")).to_pylist()
        return nodes

    def texts(self, term: str) -> list[str | None]:
        """Return the values of a term."""
        size = max(1, len(self._values) // max(1, len(self)))
        return self._values[1 + self.stream.terms.index(term) :: size]

    def _terms(self, row: int) -> dict[str, TermNode]:
        size = len(self._nodes) // len(self)
        own = slice(row * size + 1, row * size + 1 + len(self.stream.terms))
        bound = map(TermNode, self._nodes[own], self._values[own])
        return dict(zip(self.stream.terms, bound, strict=True))

    def element(self, row: int) -> RunElement:
        """Return one as conditions read it."""
        end_us = int(self.ends_us[row])
        return RunElement(self.stream.blocks[0], int(self.starts_us[row]), end_us, self._terms(row))

    def elements(self) -> Iterator[RunElement]:
        """Yield them as conditions read them."""
        return map(self.element, range(len(self)))

    def parts(self) -> Iterator[Part]:
        """Yield them as tuples."""
        return map(self.part, range(len(self)))

    def part(self, row: int) -> Part:
        """Return one as a tuple."""
        element, stream = self.element(row), self.stream
        nodes = {term: bound.node for term, bound in element.terms.items()}
        return Part(
            int(self.docids[row]),
            int(self.depths[row]),
            "",
            int(self.docids_min[row]),
            int(self.docids_max[row]),
            element.start_us,
            element.end_us,
            int(self.watermarks_us[row]),
            stream.blocks,
            (int(self.leaves[row]),),
            tuple([nodes[term] for term in stream.chosen]),
            rows={stream.name: [PartRow(element.terms)]},
            element=element,
        )
