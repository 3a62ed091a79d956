"""The complete runs of a table that are found in a batch: listed, or told by their last heads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import numpy as np

from joins.memory.slots import Ints
from joins.sequences.lockstep.charges import OF_A_RUN
from joins.sequences.lockstep.ends import HeadEnds
from joins.sequences.lockstep.followed import AT_A_TIME, extents_of, runs_of
from joins.sequences.lockstep.found import ColumnChain
from joins.sequences.lockstep.keptelements import KeptElements
from joins.sequences.lockstep.layout import ElementColumn, HeadColumn
from templates.chaindecision import ChainDecision

__all__ = ["CompleteRuns"]

_NONE = np.zeros(0, np.int64)


class CompleteRuns:
    """Complete runs of the batch in hand, by statement; `h` are the heads that they end with."""

    def __init__(self, first: ChainDecision, elements: KeptElements) -> None:
        self._links, self._grace_us = first.links, first.grace_us
        self._elements = elements
        self._h = np.zeros((0, len(HeadColumn)), np.int64)
        self._of_statement: dict[int, Ints] = {}
        self._leaves: dict[int, Sequence[int]] = {}
        self._batch = 0

    def begin_batch(self) -> None:
        """Forget the runs of another batch: heads have other numbers."""
        self._of_statement, self._leaves = {}, {}
        self._batch += 1

    def take(self, h: Ints, first: int) -> None:
        """Take the heads of a table; those from the first new one on that are complete count."""
        complete = first + np.flatnonzero(h[first:, HeadColumn.STEP] == len(self._links) - 1)
        self._h = h
        of = h[complete, HeadColumn.STATEMENT]
        if len(complete):
            order = np.argsort(of, kind="stable")
            numbers, at = np.unique(of[order], return_index=True)
            split = np.split(complete[order], at[1:])
            self._of_statement = dict(zip(numbers.tolist(), split, strict=True))

    @property
    def statements(self) -> Iterable[int]:
        """The statements that have some."""
        return self._of_statement.keys()

    def listed(self, statement: int) -> list[ColumnChain]:
        """Return the runs of a statement."""
        return self._listed(self._of_statement.get(statement, _NONE))

    def ends(self, statement: int) -> tuple[HeadEnds, list[ColumnChain]]:
        """Return the runs of `listed` that are told by their last heads, and the others."""
        heads = self._of_statement.get(statement, _NONE)
        are_told = self._h[heads, HeadColumn.CHARGE] >= 0
        return self._ends(heads[are_told]), self._listed(heads[~are_told])

    def _ends(self, heads: Ints) -> HeadEnds:
        h, e, elements = self._h[heads], self._elements.e, self._elements
        last, first = e[h[:, HeadColumn.ELEMENT]], e[h[:, HeadColumn.FIRST]]
        ends_us, starts_us = last[:, ElementColumn.END], first[:, ElementColumn.START]
        newest = elements.docids[h[:, HeadColumn.NUMBER]]
        docids = np.maximum(newest, last[:, ElementColumn.SETTLED])
        came_us = elements.watermarks_us[h[:, HeadColumn.NUMBER]]
        watermarks_us = np.maximum(ends_us + self._grace_us, came_us)
        depths = np.ones(len(heads), np.int64)
        places = np.stack([docids, newest, depths, watermarks_us, starts_us, ends_us], axis=1)
        order = np.lexsort((starts_us, ends_us, docids))
        runs = sum(link.is_repeated for link in self._links)
        of_runs = runs * (OF_A_RUN + elements.keys.sizes[first[:, ElementColumn.KEY]])
        return HeadEnds(
            places[order],
            elements.docids[h[order, HeadColumn.OLDEST]],
            (h[:, HeadColumn.CHARGE] + of_runs)[order],
            partial(self._leaves_of, heads[order], self._batch),
        )

    def _leaves_of(self, heads: Ints, batch: int, row: int) -> Sequence[int]:
        """Return the documents of one of some runs that have been found in a batch: this one."""
        assert batch == self._batch, "heads have other numbers in other batches"
        head = int(heads[row])
        if head not in self._leaves:
            some = heads[row : row + AT_A_TIME]
            runs, at = runs_of(self._h, some)
            leaves = self._elements.extents[self._h[runs, HeadColumn.ELEMENT], 3]
            own = [each.tolist() for each in np.split(leaves, at[1:-1])]
            self._leaves.update(zip(some.tolist(), own, strict=True))
        return self._leaves[head]

    def _listed(self, heads: Ints) -> list[ColumnChain]:
        found: list[ColumnChain] = []
        for first in range(0, len(heads), AT_A_TIME):
            found += self._chains(heads[first : first + AT_A_TIME])
        return found

    def _chains(self, heads: Ints) -> Iterator[ColumnChain]:
        """Yield the runs of which some heads are the last."""
        h, e, kept_parts = self._h, self._elements.e, self._elements.parts
        runs, at = runs_of(h, heads)
        elements, of_step = h[runs, HeadColumn.ELEMENT], h[runs, HeadColumn.STEP]
        kept_parts.make_parts(e, np.unique(elements).tolist())
        newest = self._elements.docids[h[heads, HeadColumn.NUMBER]]
        settled = e[h[heads, HeadColumn.ELEMENT], ElementColumn.SETTLED]
        steps = len(self._links)
        of_run = np.repeat(np.arange(len(heads)), np.diff(at))
        sizes = np.bincount(of_run * steps + of_step, minlength=len(heads) * steps)
        parts = kept_parts.parts
        extents = extents_of(elements, at, e[elements], self._elements.extents[elements], parts)
        chosen = kept_parts.chosen_of(elements)
        for i, docid in enumerate(np.maximum(newest, settled).tolist()):
            own = slice(at[i], at[i + 1])
            yield ColumnChain(
                elements[own],
                runs[own],
                sizes[i * steps : i * steps + steps].tolist(),
                docid,
                extents[i],
                chosen[own],
                parts,
                self._run_of,
            )

    def _run_of(self, step: int) -> str:
        return self._links[step].run
