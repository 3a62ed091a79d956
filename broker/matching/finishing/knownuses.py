"""The uses that a shard knows: chunks that it has read, and reads again only where they changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from broker.matching.fanout import FanOut
from broker.matching.finishing.readers import ClauseOf, Readers, UseRow
from broker.matching.limits import DEFAULT_MATCHING_LIMITS
from broker.matching.uses import Use

__all__ = ["KnownUses"]


class KnownUses:
    """The uses of the latest readers, in a `fan_out`.

    A clause stays the same object for as long as it has its number, in whatever chunk it comes:
    uses of a chunk that has not changed are of it.
    """

    def __init__(self) -> None:
        self.fan_out = FanOut(DEFAULT_MATCHING_LIMITS)
        self._clauses: dict[str, Mapping[int, ClauseOf]] = {}
        self._uses: dict[str, Sequence[Use]] = {}

    def learn(self, readers: Readers, read: Callable[[str], Any]) -> None:
        """Read the chunks that are new, and forget those that are there no more."""
        before = {number: of for chunk in self._clauses.values() for number, of in chunk.items()}
        for name in self._clauses.keys() - set(readers.clauses):
            del self._clauses[name]
        for name in readers.clauses:
            if name not in self._clauses:
                chunk: Mapping[int, ClauseOf] = read(name)
                self._clauses[name] = {n: before.get(n, of) for n, of in chunk.items()}
        for name in self._uses.keys() - set(readers.uses):
            self.fan_out.remove(self._uses.pop(name))
        clauses = {number: of for chunk in self._clauses.values() for number, of in chunk.items()}
        for name in readers.uses:
            if name not in self._uses:
                rows: Sequence[UseRow] = read(name)
                uses = self._uses[name] = [row.use(clauses[row.clause]) for row in rows]
                for _, alike in groupby(uses, attrgetter("clause", "query_class")):
                    self.fan_out.add([*alike])
        self.fan_out.settle()
