"""Complete runs that are only counted: each says by its last head where it stands.

Such a run is a match by itself (`docs/repetition.md`): of its elements nobody is asked before it is
shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from joins.memory.slots import Ints

__all__ = ["HeadEnds"]


@dataclass(frozen=True)
class HeadEnds:
    """Complete runs of one statement, by the documents that decide them, then by end and start.

    `places` are where each stands: docid, newest document, depth, watermark, start, end; `oldest`
    are the oldest documents, `charges` the bytes of tuples that are not made.  `documents` finds
    the documents of one, in the batch in hand.
    """

    places: Ints
    oldest: Ints
    charges: Ints
    documents: Callable[[int], Sequence[int]]
