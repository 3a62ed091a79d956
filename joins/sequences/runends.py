"""Ends of runs of which nothing is asked but how many there are: they become no instances."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from joins.memory.slots import Ints
from joins.sequences.counting.found import EndsInOrder, FoundGraph
from joins.sequences.lockstep.ends import HeadEnds
from joins.sequences.runrows import GraphRows
from templates.rungraphs import size_of_count
from templates.runtotals import RunTotals

__all__ = ["CountedEnds", "is_plain_end"]

END_SIZE = size_of_count((1 << 64) - 1)
"""The bytes that each end is charged, however many runs it stands for: that need not be known."""


def is_plain_end(one: FoundGraph) -> bool:
    """Return whether runs are a number alone, of documents from outside."""
    is_number = one.documents is not None and not one.runs.keys
    return is_number and not any(part.match_id for part in one.parts)


@dataclass(frozen=True)
class CountedEnds:
    """Runs that end at one time each, how many they are, and what finds out their documents.

    `places` are where each stands: docid, newest document, depth, watermark, start, end.
    `documents` gives the documents of one, by its row.  `sizes` are the bytes that each is charged.
    Where `oldest` are given, the oldest documents, each stands for one match with
    these documents in this order, and not for matches that are never told apart.
    """

    places: Ints
    totals: RunTotals
    documents: Callable[[int], Sequence[int]]
    sizes: Ints
    oldest: Ints | None = None

    @classmethod
    def of(cls, found: Sequence[FoundGraph], rows: GraphRows) -> CountedEnds:
        """Return what has been found, where the rows of its class would stand."""
        documents = [one.documents for one in found if one.documents is not None]
        totals = [one.runs.count for one in found]
        return cls(
            np.array([rows.place(one) for one in found], np.int64).reshape(-1, 6),
            RunTotals.of(totals),
            lambda row: documents[row](),
            np.full(len(totals), END_SIZE),
        )

    @classmethod
    def in_order(cls, found: EndsInOrder[Any], rows: GraphRows) -> CountedEnds:
        """Return ends in columns, where the rows of their class would stand."""
        sizes = np.full(len(found), END_SIZE)
        return cls(rows.places(found), found.totals, found.documents, sizes)

    @classmethod
    def of_heads(cls, found: HeadEnds, limit: int | None) -> CountedEnds:
        """Return complete runs, each a match by itself, before a document if one is given."""
        count = len(found.oldest)
        if limit is not None:
            count = int(np.searchsorted(found.places[:, 0], limit))
        return cls(
            found.places[:count],
            RunTotals.single(count),
            found.documents,
            found.charges[:count],
            found.oldest[:count],
        )

    def __len__(self) -> int:
        return len(self.totals)
