"""Ends of runs of which nothing is asked but how many there are: they become no instances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from joins.memory.slots import Ints
from joins.sequences.counting.counted import FoundGraph
from joins.sequences.runrows import Documents, GraphRows
from templates.rungraphs import CountedRuns

__all__ = ["CountedEnds", "is_plain_end"]


def is_plain_end(one: FoundGraph) -> bool:
    """Return whether runs are a number alone, of documents from outside."""
    return one.documents is not None and not any(part.match_id for part in one.parts)


@dataclass(frozen=True)
class CountedEnds:
    """Runs that end at one time each, how many they are, and what finds out their documents.

    `places` are where each stands: docid, newest document, depth, watermark, start, end.
    """

    places: Ints
    runs: Sequence[CountedRuns]
    documents: Sequence[Documents]

    @classmethod
    def of(cls, found: Sequence[FoundGraph], rows: GraphRows) -> CountedEnds:
        """Return what has been found, where the rows of its class would stand."""
        return cls(
            np.array([rows.place(one) for one in found], np.int64).reshape(-1, 6),
            [one.runs for one in found],
            [one.documents for one in found if one.documents is not None],
        )

    def __len__(self) -> int:
        return len(self.runs)
