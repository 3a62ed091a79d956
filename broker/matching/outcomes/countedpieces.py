"""Ends of counted runs of one batch, as columns of which matches can be made later.

Of most ends a row needs no more than how many runs there are, or is not given at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from broker.matching.boxes.columns import Ints
from broker.matching.outcomes.matched import ClauseReader, Matched, MatchedDocuments
from broker.matching.rendering.matchnodes import MatchNodes
from broker.matching.uses import Topic
from templates.rungraphs import CountedRuns
from templates.runtotals import RunTotals

__all__ = ["CountedPiece"]

_NOTHING = MatchNodes((), (), None)


@dataclass(frozen=True, slots=True, eq=False)
class CountedPiece:
    """Ends that one topic has: where each stands, and how many runs it stands for.

    `leaves_of` finds out of which documents an end is, by its place among `rows`.  Where they
    `are_matches` each is one that is told by these, and stands for no other.
    """

    topic: Topic
    reader: ClauseReader
    documents: MatchedDocuments
    places: Ints
    totals: RunTotals
    rows: Sequence[int]
    leaves_of: Callable[[int], Sequence[int]]
    are_matches: bool

    def __len__(self) -> int:
        return len(self.totals)

    def match(self, at: int) -> Matched:
        """Return an end as the matches that it stands for."""
        place = self.places[at].tolist()
        runs = None if self.are_matches else CountedRuns(self.totals[at], ())
        found = Matched(place, _NOTHING, self.topic, self.reader, self.documents, runs)
        found.find_leaves = partial(self.leaves_of, self.rows[at])
        return found

    def cuts(self) -> Ints:
        """Return the places between which they end at one time, the first and the last too."""
        ends_us = self.places[:, 5]
        at = np.flatnonzero(ends_us[1:] != ends_us[:-1]) + 1
        return np.concatenate([[0], at, [len(self)]])

    def matches(self) -> list[Matched]:
        """Return all of them as matches."""
        self.totals.exact(range(len(self)))
        return [self.match(at) for at in range(len(self))]
