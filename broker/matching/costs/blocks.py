"""Counts in blocks of 1,000 documents: by where tuples stand, and by what is newest behind them.

In a document they are counted by **step** as well: tuples of one stratum after the other, each
before the matches that are made of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from broker.matching.boxes.columns import Ints
from joins import UNBOUNDED

__all__ = [
    "BLOCK_DOCUMENTS",
    "NO_PLACE",
    "Account",
    "BlockCounts",
    "CountPlace",
    "block_of",
    "blocks_of",
]

BLOCK_DOCUMENTS = 1_000

_BLOCKS = 1 << 31
"""A pair of blocks is a number: that of the first times this, and that of the second."""


class CountPlace(NamedTuple):
    """Where something is counted: at a document, in a step."""

    docid: int
    step: int


NO_PLACE = CountPlace(UNBOUNDED, 0)
"""Behind all places."""


def block_of(docid: int) -> int:
    """Return the number of a document's block.

    >>> block_of(1), block_of(1_000), block_of(1_001)
    (0, 0, 1)
    """
    return (docid - 1) // BLOCK_DOCUMENTS


def blocks_of(docids: Ints) -> Ints:
    """Return the numbers of documents' blocks."""
    return (docids - 1) // BLOCK_DOCUMENTS


class Account(NamedTuple):
    """Tuples that count together: where they stand, and the newest outside document behind them.

    Both are one document where nothing was decided.
    """

    docid: int
    newest: int

    @property
    def blocks(self) -> tuple[int, int]:
        """The blocks of both."""
        return block_of(self.docid), block_of(self.newest)


class BlockCounts:
    """A count in blocks of documents, kept by place, before the limit of a query.

    A block is a pair: that of the positions, and that of the newest documents.  `at_limit` is the
    count at the limit.
    """

    def __init__(self, most: int, begun: Mapping[tuple[int, int], int]) -> None:
        self.most = most
        self.by_block = Counter(begun)
        self.at_limit: Counter[tuple[int, int]] = Counter()
        self._by_place: dict[tuple[int, int], Counter[CountPlace]] = defaultdict(Counter)

    def add(self, account: Account, step: int, count: int) -> CountPlace | None:
        """Count more; return the place with which its block goes over the bound."""
        block, last = account.blocks, CountPlace(account.docid, step)
        by_place = self._by_place[block]
        by_place[last] += count
        self.by_block[block] += count
        over = self.by_block[block] - self.most
        if over <= 0:
            return None
        for last in sorted(by_place, reverse=True):
            over -= by_place[last]
            if over <= 0:
                break
        return last

    def has_room(self, docids: Ints, newest: Ints, counts: Ints) -> bool:
        """Return whether no block goes over the bound with so much more."""
        blocks, totals, _ = _by_block(docids, newest, counts)
        return all(
            self.by_block[block] + total <= self.most
            for block, total in zip(blocks, totals, strict=True)
        )

    def add_all(self, docids: Ints, newest: Ints, step: int, counts: Ints) -> None:
        """Count more in a step, for which there is room."""
        blocks, totals, which = _by_block(docids, newest, counts)
        for block, total in zip(blocks, totals, strict=True):
            self.by_block[block] += total
        by_place = [self._by_place[block] for block in blocks]
        rows = zip(*map(np.ndarray.tolist, (which, docids, counts)), strict=True)
        for block, docid, count in rows:
            by_place[block][CountPlace(docid, step)] += count

    def copy(self) -> BlockCounts:
        """Return counts as they are now, which go on by themselves."""
        copied = BlockCounts(self.most, self.by_block)
        copied.at_limit = self.at_limit.copy()
        for block, by_place in self._by_place.items():
            copied._by_place[block] = by_place.copy()
        return copied

    def drop_from(self, place: CountPlace) -> None:
        """Take a place as the limit: from it on nothing counts."""
        self.at_limit = Counter()
        for block, by_place in self._by_place.items():
            self.at_limit[block] = by_place[place]
            for each in [each for each in by_place if each >= place]:
                self.by_block[block] -= by_place.pop(each)

    def over(self, limit: CountPlace) -> tuple[int, int] | None:
        """Return the first block over the bound with what stands at the limit."""
        blocks = {*self.by_block, *self.at_limit}
        found = [
            block
            for block in blocks
            if block[0] == block_of(limit.docid)
            and self.by_block[block] + self.at_limit[block] > self.most
        ]
        return min(found, default=None)


def _by_block(
    docids: Ints, newest: Ints, counts: Ints
) -> tuple[list[tuple[int, int]], list[int], Ints]:
    """Return the blocks of accounts, the sum of each, and which of them each account is in."""
    pairs, which = np.unique(blocks_of(docids) * _BLOCKS + blocks_of(newest), return_inverse=True)
    totals = np.zeros(len(pairs), np.int64)
    np.add.at(totals, which, counts)
    own, other = np.divmod(pairs, _BLOCKS)
    return [*zip(own.tolist(), other.tolist(), strict=True)], totals.tolist(), which
