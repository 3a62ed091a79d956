"""The outputs of a stratum: what several queries ask for alike is made once.

Queries that select alike find the same pairs of documents, and copies of the same nodes, or the
same constructor on them, give the same text.  What an output costs is kept with it, and each query
that gets it pays as if it had made it: a budget does not depend on what other queries ask for.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import NamedTuple

from broker.matching.trees import DocumentTree

__all__ = ["Output", "Outputs", "Reading"]


class Reading(NamedTuple):
    """What reading a document costs, in bytes: see `DocumentTree`."""

    cost: int
    xpath_cost: int
    nbytes: int

    @classmethod
    def of(cls, tree: DocumentTree) -> Reading:
        """Return the costs of a tree."""
        return cls(tree.cost, tree.xpath_cost, tree.nbytes)


@dataclass(frozen=True, slots=True)
class Output:
    """An output, `spelled` in JSON; `error` is why its constructor failed.

    `cost` is what making it spent, `readings` what its documents cost, one for each block.
    """

    text: str
    spelled: str
    error: str | None
    cost: int
    readings: Sequence[Reading]

    @classmethod
    def of(cls, text: str, error: str | None, cost: int, trees: Sequence[DocumentTree]) -> Output:
        """Return what has been made of trees."""
        return cls(text, encode_basestring(text), error, cost, [*map(Reading.of, trees)])


class Outputs:
    """The outputs used last, by what was asked for, with so many characters, the last one aside."""

    def __init__(self, characters_max: int) -> None:
        self._characters_max = characters_max
        self._outputs: OrderedDict[Hashable, Output] = OrderedDict()
        self._characters = 0

    def get(self, asked: Hashable) -> Output | None:
        """Return an output that was made before, `None` where it was not, or is gone."""
        found = self._outputs.get(asked)
        if found is not None:
            self._outputs.move_to_end(asked)
        return found

    def keep(self, asked: Hashable, output: Output) -> None:
        """Keep an output for those who ask for the same."""
        self._outputs[asked] = output
        self._characters += _characters(output)
        while self._characters > self._characters_max and len(self._outputs) > 1:
            _, gone = self._outputs.popitem(last=False)
            self._characters -= _characters(gone)


def _characters(output: Output) -> int:
    return len(output.text) + len(output.spelled)
