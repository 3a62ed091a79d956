"""Elements as parts of runs: made of their rows when a run that has them is found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joins.memory.instance import read_instances
from joins.memory.slots import Ints
from joins.sequences.lockstep.batchrows import BatchRows
from joins.sequences.lockstep.layout import ElementColumn
from joins.sequences.runparts import Part, Parts
from templates.decision import TupleStream

__all__ = ["ElementParts"]


class ElementParts:
    """The rows of the elements of all sources, by batch, and the parts made of them so far.

    `streams` are those that are rows of such elements.
    """

    def __init__(self) -> None:
        self._own: list[TupleStream] = []
        self._roles: list[dict[str, TupleStream]] = []
        self.streams: set[str] = set()
        self.rows: dict[int, BatchRows] = {}
        self.parts: dict[int, Part] = {}
        self._choices: dict[tuple[object, ...], int] = {}
        self._choice_of = np.zeros(0, np.int64)

    def add_source(self, own: TupleStream) -> None:
        """Have rows of a stream be the elements of the next source."""
        self._own.append(own)
        self._roles.append({})
        self.read(len(self._own) - 1, own)

    def read(self, source: int, stream: TupleStream) -> None:
        """Have rows of a stream be rows of the elements of a source."""
        self._roles[source].setdefault(stream.name, stream)
        self.streams.add(stream.name)

    @property
    def have_come(self) -> bool:
        """Whether there are rows."""
        return bool(self.rows)

    def add(self, batch: int, rows: BatchRows) -> Ints:
        """Take the rows of a batch that elements are made of; return where these stand in order."""
        own, kept = rows.only(self.streams)
        if own.num_rows:
            # What is made of the rows of a batch goes with it.
            self.rows[batch] = BatchRows(own)
        return kept

    def keep(self, kept: npt.NDArray[np.bool_], into: Ints, batches: Ints) -> None:
        """Keep the parts of some elements, under new numbers, and the rows of some batches."""
        self.parts = {int(into[each]): part for each, part in self.parts.items() if kept[each]}
        self._choices.clear()
        self._choice_of = np.zeros(0, np.int64)
        for each in self.parts:
            self._note_choice(each)
        came = set(np.unique(batches).tolist())
        self.rows = {batch: rows for batch, rows in self.rows.items() if batch in came}

    def make_parts(self, e: Ints, elements: Iterable[int]) -> None:
        """Make parts of elements that have none yet."""
        wanted = np.array([each for each in elements if each not in self.parts], np.int64)
        came, sources = e[wanted, ElementColumn.CAME], e[wanted, ElementColumn.SOURCE]
        for batch, source in set(zip(came.tolist(), sources.tolist(), strict=True)):
            own = wanted[(came == batch) & (sources == source)]
            for element, part in self._parts_of(
                own, e[own, ElementColumn.ROW], self.rows[batch], source
            ):
                part.settled = int(e[element, ElementColumn.SETTLED])
                part.entered = int(e[element, ElementColumn.ENTERED])
                self.parts[element] = part
                self._note_choice(element)

    def _note_choice(self, element: int) -> None:
        """Number the choice of nodes of an element: equal ones have one number."""
        part = self.parts[element]
        choice = part.blocks, part.chosen
        if element >= len(self._choice_of):
            more = np.zeros(2 * (element + 1), np.int64)
            more[: len(self._choice_of)] = self._choice_of
            self._choice_of = more
        self._choice_of[element] = self._choices.setdefault(choice, len(self._choices))

    def chosen_of(self, elements: Ints) -> Ints:
        """Return numbers of the choices of nodes of elements that have parts."""
        found: Ints = self._choice_of[elements]
        return found

    def _parts_of(
        self, elements: Ints, at: Ints, rows: BatchRows, source: int
    ) -> Iterator[tuple[int, Part]]:
        """Yield elements of a source that came in one batch, each with the part that it is."""
        own = self._own[source]
        wanted = np.unique(rows.documents[at])
        parts = Parts(of_elements=True)
        parts.takes_elements_of(own)
        by_node: dict[tuple[Any, ...], list[int]] = {}
        for stream in self._roles[source].values():
            known = rows.of(stream.name)
            some = known[np.isin(rows.documents[known], wanted)]
            for row in read_instances(rows.table.take(pa.array(some)), some.tolist()):
                parts.add(stream, row)
        first = rows.table.take(pa.array(at))
        for element, row in zip(elements.tolist(), read_instances(first, at.tolist()), strict=True):
            nodes = tuple([row.nodes[1 + own.terms.index(t)] for t in own.chosen])
            data = tuple([row.values[1 + own.terms.index(t)] or "" for t in own.keys])
            by_node.setdefault((row.leaves, nodes, data), []).append(element)
        for part in parts.take_new():
            for element in by_node.get((part.leaves, part.chosen, part.data), ()):
                yield element, part
