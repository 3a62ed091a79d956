"""The outputs of a pair of documents: what several queries ask for alike is made once.

Queries that select alike find the same pairs of documents, and copies of the same nodes, or the
same constructor on them, give the same text.  What an output costs is kept with it, and each query
that gets it pays as if it had made it: a budget does not depend on what other queries ask for.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from json.encoder import encode_basestring
from typing import NamedTuple

from broker.matching.rendering.trees import DocumentTree
from xscl.meter import size

__all__ = ["Output", "Outputs", "ReadingCost"]


class ReadingCost(NamedTuple):
    """What reading a document costs, in bytes (see `DocumentTree`): the first time, and again.

    All matches of one account pay for it together; each that has a constructor pays for its text
    again, as it may go through all of it.
    """

    first: int
    again: int

    @classmethod
    def of(cls, tree: DocumentTree, *, is_constructed: bool) -> ReadingCost:
        """Return the costs of a tree."""
        if is_constructed:
            return cls(tree.nbytes + tree.cost + tree.xpath_cost, tree.nbytes)
        return cls(tree.cost, 0)


class Output(NamedTuple):
    """An output of `nbytes`, `spelled` in JSON; `error` is why its constructor failed.

    `cost` is what making it spent, `readings` what its documents cost, one for each block, and
    `most` is what both come to where nothing has been read before.
    """

    spelled: str
    error: str | None
    nbytes: int
    cost: int
    readings: Sequence[ReadingCost]
    most: int

    @classmethod
    def of(cls, text: str, error: str | None, cost: int, readings: Sequence[ReadingCost]) -> Output:
        """Return what has been made of documents."""
        most = cost + sum([reading.first for reading in readings])
        return cls(encode_basestring(text), error, size(text), cost, readings, most)

    @property
    def text(self) -> str:
        """The output itself."""
        text: str = json.loads(self.spelled)
        return text


class Outputs:
    """The outputs made of the documents used last, by what was asked for."""

    def __init__(self) -> None:
        self._leaves: tuple[int, ...] = ()
        self._outputs: dict[Hashable, Output] = {}

    def of(self, leaves: tuple[int, ...]) -> dict[Hashable, Output]:
        """Return the outputs made of some documents; those of others are forgotten."""
        if leaves != self._leaves:
            self._leaves, self._outputs = leaves, {}
        return self._outputs
