"""Elements of a chain that come in order, as columns: rows of the join until they are numbers.

A batch of them is read step by step, put in order together, and counted; an element becomes a tuple
only where more is asked of it.  Where one is late, has two ways, or is of more than its document,
all are given back, to be taken one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.memory.instance import Instance
from joins.memory.slots import Ints
from joins.sequences.clock import WatermarkSteps
from joins.sequences.counting.chaingraph import ChainNode
from joins.sequences.counting.chainreading import NodeReading
from joins.sequences.counting.found import EndPlaces
from joins.sequences.counting.inorder import ElementsInOrder, WaitingColumns
from joins.sequences.runparts import Part
from templates.chaindecision import ChainDecision

__all__ = ["NodesInOrder", "WaitingNodes"]


@dataclass(frozen=True)
class NodesInOrder:
    """Elements in the order in which they enter, each at a step; `entered` says where.

    `docids` are those of their documents, `stand` is where each would stand alone.
    """

    nodes: list[ChainNode]
    entered: Ints
    docids: Ints
    stand: EndPlaces

    def are_behind(self, docid: int) -> bool:
        """Return whether each is newer than those before it, and than a document, and ends last."""
        docids, ends_us = self.docids, self.stand.ends_us
        ascend = [(each[1:] >= each[:-1]).all() for each in (docids, ends_us)]
        return bool(docids[0] >= docid and all(ascend))

    def take(self, some: Sequence[int]) -> NodesInOrder:
        """Return some of them, in this order."""
        rows = np.array(some, np.int64)
        return NodesInOrder(
            [self.nodes[row] for row in some],
            self.entered[rows],
            self.docids[rows],
            self.stand.take(rows),
        )


class _NodeColumns(NamedTuple):
    """Elements in columns: where they enter, when they end, their steps, where they stand."""

    entered: Ints
    ends_us: Ints
    steps: Ints
    leaves: Ints
    docids: Ints
    newest: Ints
    watermarks_us: Ints


class WaitingNodes:
    """Elements of one chain that have not entered."""

    def __init__(
        self, decision: ChainDecision, reading: NodeReading, point: int, lateness_us: int
    ) -> None:
        self._reading = reading
        self._lateness_us = lateness_us
        streams = [link.elements[0].stream for link in decision.links]
        self._steps = [WaitingColumns(each, decision.grace_us, point) for each in streams]
        # Of steps that read one stream it is given back by the first.
        self._first_of = {each.name: at for at, each in reversed([*enumerate(streams)])}
        self._taken: dict[int, ElementsInOrder] = {}

    @property
    def due_us(self) -> Sequence[int]:
        """The first time that must be settled before an element enters, if any waits."""
        return [each for step in self._steps for each in step.due_us]

    def __len__(self) -> int:
        return sum(map(len, self._steps))

    def add(self, rows: pa.Table) -> None:
        """Take rows of the streams of the chain."""
        streams = rows.column("stream")
        for step in self._steps:
            own = rows.filter(pc.equal(streams, step.stream.name))
            if len(own):
                step.add(own)

    def entering(
        self, clock: WatermarkSteps, parts: Sequence[tuple[int, Part]]
    ) -> NodesInOrder | None:
        """Return the elements that count from documents of the batch on, with some tuples.

        These have entered, and are given with their steps.  None says that all have to be taken one
        by one: they are to be given back.
        """
        self._taken = {}
        for number, step in enumerate(self._steps):
            if not step.is_empty:
                own = step.entering(clock)
                if own is None:
                    return None
                self._taken[number] = own
        several = [self._of_columns(*each) for each in self._taken.items()]
        several.append(self._of_parts(parts))
        nodes: list[ChainNode] = []
        columns: list[Ints] = []
        for each in several:
            if each is None:
                return None
            nodes += each[0]
            columns.append(each[1])
        own_columns = _NodeColumns(*np.concatenate(columns, axis=1))
        entered, ends_us, steps, leaves, docids, newest, watermarks_us = own_columns
        order = np.lexsort((leaves, steps, ends_us, entered))
        stand = EndPlaces(newest, np.zeros(len(nodes), np.int64), watermarks_us, ends_us)
        in_order = [nodes[row] for row in order.tolist()]
        return NodesInOrder(in_order, entered[order], docids[order], stand.take(order))

    def _of_columns(
        self, number: int, elements: ElementsInOrder
    ) -> tuple[list[ChainNode], Ints] | None:
        """Return elements of a step as nodes, with what is `_NodeColumns` of them."""
        columns, entered = self._reading.keyed(number, elements)
        ends_us, watermarks_us = columns.ends_us, columns.watermarks_us
        if (
            (columns.starts_us < ends_us).any()
            or (ends_us < watermarks_us - self._lateness_us).any()
            or columns.depths.any()
        ):
            return None
        nodes = self._reading.nodes(number, columns)
        if nodes is None:
            return None
        steps = np.full(len(nodes), number)
        docids = columns.docids, columns.docids_max
        return nodes, np.stack([entered, ends_us, steps, columns.leaves, *docids, watermarks_us])

    def _of_parts(self, parts: Sequence[tuple[int, Part]]) -> tuple[list[ChainNode], Ints] | None:
        """Return tuples as nodes, with what is `_NodeColumns` of them."""
        if len({(step, part.leaves) for step, part in parts}) < len(parts):
            return None
        nodes: list[ChainNode] = []
        rows: list[tuple[int, ...]] = []
        for step, part in parts:
            if part.start_us < part.end_us or part.depth or part.match_id or len(part.leaves) > 1:
                return None
            node = self._reading.node(step, part)
            if node is None:
                continue
            if not node.is_in_time:
                return None
            nodes.append(node)
            docids = part.leaves[0], part.docid, part.docid_max
            rows.append((part.entered, part.end_us, step, *docids, part.watermark_us))
        return nodes, np.array(rows, np.int64).reshape(-1, len(_NodeColumns._fields)).T

    def give_back(self) -> Iterator[tuple[str, Instance]]:
        """Yield all that was entering in the batch or waits as rows, and forget it."""
        taken, self._taken = self._taken, {}
        for number, step in enumerate(self._steps):
            rows = [*step.give_back()]
            if self._first_of[step.stream.name] == number:
                if number in taken:
                    for row in taken[number].columns.instances():
                        yield step.stream.name, row
                for row in rows:
                    yield step.stream.name, row
