"""What counted runs come to: graphs with what they are made of, or numbers in columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from joins.memory.slots import Ints
from joins.sequences.counting.drawing import Drawing, Label
from joins.sequences.counting.plain import PlainLane
from joins.sequences.counting.rowelements import RowElements
from joins.sequences.counting.spread import PlainElement
from joins.sequences.runparts import Part
from templates.rungraphs import CountedRuns, PathGraph
from templates.runtotals import RunTotals

__all__ = ["EndsInOrder", "FoundGraph"]


@dataclass(slots=True, eq=False)
class FoundGraph:
    """Matches that end at one time and are decided at one document, with what they are made of.

    It never changes, once made.

    `leaves` are their documents, in the order of `runs.places`.  Where `documents` are given, these
    are their documents, and `parts` and `leaves` only say where the matches stand.
    """

    docid: int
    parts: tuple[Part, ...]
    leaves: tuple[int, ...]
    runs: CountedRuns
    start_us: int
    end_us: int
    documents: Callable[[], Sequence[int]] | None = None

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
        )

    @property
    def steps(self) -> int:
        """How many steps the graph has that is handed on."""
        graph = self.runs.graph
        return 0 if graph is None else sum(map(len, graph.behind))


@dataclass(frozen=True)
class EndsInOrder:
    """Ends of runs, each with an element that ended last: how many runs, where it entered.

    `rows` are those of the elements in `columns`.
    """

    lane: PlainLane
    elements: Sequence[PlainElement]
    totals: RunTotals
    columns: RowElements
    rows: Ints
    entered: Ints

    def __len__(self) -> int:
        return len(self.totals)

    def are_too_many(self, bits: int) -> bool:
        """Return whether the last one is of more runs than a number of so many bits says."""
        return len(self) > 0 and self.totals.exceeds(len(self) - 1, bits)

    def before(self, docid: int) -> EndsInOrder:
        """Return the ends before a document."""
        count = int(np.searchsorted(self.entered, docid))
        first = slice(0, count)
        return replace(
            self,
            elements=self.elements[first],
            totals=self.totals.take(range(count)),
            rows=self.rows[first],
            entered=self.entered[first],
        )

    def graphs(self) -> list[FoundGraph]:
        """Return each end as matches with what they are made of."""
        found = []
        totals = self.totals.exact(range(len(self)))
        for own, total, docid in zip(self.elements, totals, self.entered.tolist(), strict=True):
            runs, documents = CountedRuns(total, ()), partial(self.lane.documents_to, own)
            part, end_us = own.part, own.end_us
            found.append(FoundGraph(docid, (part,), part.leaves, runs, end_us, end_us, documents))
        return found

    def places(self, grace_us: int) -> Ints:
        """Return where each stands: docid, newest document, depth, watermark, start, end."""
        own, rows = self.columns, self.rows
        ends_us = own.ends_us[rows]
        watermarks_us = np.maximum(ends_us + grace_us, own.watermarks_us[rows])
        newest, depths = own.docids_max[rows], 1 + own.depths[rows]
        return np.stack([self.entered, newest, depths, watermarks_us, ends_us, ends_us], axis=1)

    def documents(self, row: int) -> list[int]:
        """Return the documents of the runs of one end."""
        return self.lane.documents_to(self.elements[row])
