"""What counted runs come to: graphs with what they are made of, or numbers in columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from joins.memory.slots import Ints
from joins.sequences.counting.drawing import Drawing, Label
from joins.sequences.runparts import Part
from templates.rungraphs import CountedRuns, PathGraph
from templates.runtotals import RunTotals

__all__ = ["EndPlaces", "EndsInOrder", "FoundGraph"]


@dataclass(slots=True, eq=False)
class FoundGraph:
    """Matches that end at one time and are decided at one document, with what they are made of.

    It never changes, once made.

    `leaves` are their documents, in the order of `runs.places`.  Where `documents` are given, these
    are their documents, and `parts` and `leaves` only say where the matches stand.  `data` are the
    values of SAME that are held against data.
    """

    docid: int
    parts: tuple[Part, ...]
    leaves: tuple[int, ...]
    runs: CountedRuns
    start_us: int
    end_us: int
    documents: Callable[[], Sequence[int]] | None = None
    data: tuple[str, ...] = ()

    @classmethod
    def of_drawing(
        cls,
        docid: int,
        end_us: int,
        keys: tuple[str, ...],
        drawn: Drawing,
        runs: PathGraph[Label],
        *,
        has_steps: bool,
        data: tuple[str, ...] = (),
    ) -> FoundGraph:
        """Return the paths `runs` of a drawing; with `has_steps` the graph is handed on, too."""
        labels = sorted(set(runs.labels), key=drawn.place_of)
        graph = None
        if has_steps:
            small, place = runs.minimal(), {label: i for i, label in enumerate(labels)}
            graph = PathGraph(
                tuple(map(place.__getitem__, small.labels)), small.behind, small.first
            )
        parts = {id(part): part for part in map(drawn.part_of, labels)}
        places = tuple((label.block, label.nodes[0]) for label in labels)
        return cls(
            docid,
            tuple(parts.values()),
            tuple(label.leaf for label in labels),
            CountedRuns(runs.count(), keys, places, graph),
            min(drawn.part_of(runs.labels[node]).start_us for node in runs.first),
            end_us,
            data=data,
        )

    @property
    def steps(self) -> int:
        """How many steps the graph has that is handed on."""
        graph = self.runs.graph
        return 0 if graph is None else sum(map(len, graph.behind))


class EndPlaces(NamedTuple):
    """Where ends stand: their newest documents, depths, watermarks and times."""

    newest: Ints
    depths: Ints
    watermarks_us: Ints
    ends_us: Ints

    def take(self, some: Ints | slice) -> EndPlaces:
        """Return those of some ends."""
        return EndPlaces(*[each[some] for each in self])


class _Ending(Protocol):
    """An element with which runs end."""

    @property
    def part(self) -> Part:
        """What it is in the join."""


E = TypeVar("E", bound=_Ending)


def _no_data(_: object) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True)
class EndsInOrder(Generic[E]):
    """Ends of runs, each with an element that ended last: how many runs, where it entered.

    `documents_to` gives the documents of the runs that end with an element, `data_of` the values
    of SAME that are held against data.
    """

    elements: Sequence[E]
    totals: RunTotals
    entered: Ints
    stand: EndPlaces
    documents_to: Callable[[E], list[int]]
    data_of: Callable[[E], tuple[str, ...]] = _no_data

    def __len__(self) -> int:
        return len(self.totals)

    def are_too_many(self, bits: int) -> bool:
        """Return whether the last one is of more runs than a number of so many bits says."""
        return len(self) > 0 and self.totals.exceeds(len(self) - 1, bits)

    def before(self, docid: int) -> EndsInOrder[E]:
        """Return the ends before a document."""
        count = int(np.searchsorted(self.entered, docid))
        first = slice(0, count)
        return replace(
            self,
            elements=self.elements[first],
            totals=self.totals.take(range(count)),
            entered=self.entered[first],
            stand=self.stand.take(first),
        )

    def graphs(self) -> list[FoundGraph]:
        """Return each end as matches with what they are made of."""
        found = []
        totals = self.totals.exact(range(len(self)))
        for own, total, docid in zip(self.elements, totals, self.entered.tolist(), strict=True):
            runs, documents = CountedRuns(total, ()), partial(self.documents_to, own)
            part = own.part
            end_us, data = part.end_us, self.data_of(own)
            found.append(
                FoundGraph(docid, (part,), part.leaves, runs, end_us, end_us, documents, data)
            )
        return found

    def places(self, grace_us: int) -> Ints:
        """Return where each stands: docid, newest document, depth, watermark, start, end."""
        newest, depths, watermarks_us, ends_us = self.stand
        watermarks_us = np.maximum(ends_us + grace_us, watermarks_us)
        return np.stack([self.entered, newest, 1 + depths, watermarks_us, ends_us, ends_us], axis=1)

    def documents(self, row: int) -> list[int]:
        """Return the documents of the runs of one end."""
        return self.documents_to(self.elements[row])
