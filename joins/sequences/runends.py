"""Ends of runs of which nothing is asked but how many there are: they become no instances."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from joins.memory.slots import Ints
from joins.sequences.counting.found import EndsInOrder, FoundGraph
from joins.sequences.runrows import GraphRows
from templates.rungraphs import size_of_count

__all__ = ["CountedEnds", "is_plain_end"]


def is_plain_end(one: FoundGraph) -> bool:
    """Return whether runs are a number alone, of documents from outside."""
    return one.documents is not None and not any(part.match_id for part in one.parts)


@dataclass(frozen=True)
class CountedEnds:
    """Runs that end at one time each, how many they are, and what finds out their documents.

    `places` are where each stands: docid, newest document, depth, watermark, start, end.
    `documents` gives the documents of one, by its row.
    """

    places: Ints
    totals: Sequence[int]
    documents: Callable[[int], Sequence[int]]

    @classmethod
    def of(cls, found: Sequence[FoundGraph], rows: GraphRows) -> CountedEnds:
        """Return what has been found, where the rows of its class would stand."""
        documents = [one.documents for one in found if one.documents is not None]
        return cls(
            np.array([rows.place(one) for one in found], np.int64).reshape(-1, 6),
            [one.runs.count for one in found],
            lambda row: documents[row](),
        )

    @classmethod
    def in_order(cls, found: EndsInOrder, rows: GraphRows) -> CountedEnds:
        """Return ends in columns, where the rows of their class would stand."""
        return cls(rows.places(found), found.totals, found.documents)

    def __len__(self) -> int:
        return len(self.totals)

    @property
    def sizes(self) -> Ints:
        """How many characters each is as a text."""
        return np.array([*map(size_of_count, self.totals)], np.int64)
