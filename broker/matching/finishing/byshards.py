"""Has the shards of a join finish the tuples of a batch, for whom they can and while it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from broker.matching.costs.budget import Budget, bound_of
from broker.matching.fanout import FanOut
from broker.matching.finishing.readers import ReaderCatalog, Readers
from broker.matching.limits import MatchingLimits
from broker.matching.uses import Use
from joins import Processor
from joins.shards.driver import ShardedProcessor
from joins.shards.orders import Asked

__all__ = ["Finishing"]

_WAIT_MAX = 64
"""Batches in which shards are asked for tuples at once, after what they made was refused again."""


class Finishing:
    """Has the shards of a join finish tuples for whom they can of a fan-out.

    Where what they have made did not hold, they are asked for tuples for a while: it may be so for
    each batch of this stream, and would be found and made twice.
    """

    def __init__(
        self, shards: ShardedProcessor, fan_out: FanOut, limits: MatchingLimits, budget: Budget
    ) -> None:
        self._shards = shards
        self._limits = limits
        self._bytes_max = bound_of(budget.bytes_per_document)
        self._changes = -1
        self._wait = self._waiting = 0
        self._readers: Readers | None = None
        # None while there are more uses than each worker can have.
        self._catalog: ReaderCatalog | None = None
        self._take_up(fan_out)
        fan_out.tell(self)

    @classmethod
    def by(
        cls, join: Processor, fan_out: FanOut, limits: MatchingLimits, budget: Budget
    ) -> Finishing | None:
        """Return that of a join; None where it has no shards, or these finish nothing."""
        if isinstance(join, ShardedProcessor) and join.can_finish:
            return cls(join, fan_out, limits, budget)
        return None

    def came(self, uses: Sequence[Use]) -> None:
        """Hear of uses that have come."""
        if self._catalog is None:
            return
        limits = self._limits
        if self._catalog.uses + len(uses) <= limits.finished_uses:
            for use in uses:
                self._catalog.add(use)
            if self._catalog.clauses <= limits.finished_clauses:
                return
        self._shards.forget(self._catalog.names)
        self._catalog = None

    def went(self, uses: Sequence[Use]) -> None:
        """Hear of uses that are to go."""
        if self._catalog is not None:
            for use in uses:
                self._catalog.remove(use)

    def begin(
        self,
        fan_out: FanOut,
        take: Callable[[Sequence[Any]], bool],
        documents: Callable[[Iterable[int]], Mapping[int, bytes]],
    ) -> None:
        """Have tuples of a batch finished for these; `take` and `documents` are as in `Asked`."""
        if self._waiting:
            self._waiting -= 1
            return
        if self._changes != fan_out.changes:
            self._changes = fan_out.changes
            if self._catalog is None:
                self._take_up(fan_out)
            self._readers = None if self._catalog is None else self._catalog.readers(self._shards)
        if self._readers is not None:
            self._shards.finish(Asked(self._readers, partial(self._taken, take), documents))

    def _taken(self, take: Callable[[Sequence[Any]], bool], parts: Sequence[Any]) -> bool:
        holds = take(parts)
        self._wait = 0 if holds else min(_WAIT_MAX, 2 * self._wait + 1)
        self._waiting = self._wait
        return holds

    def _take_up(self, fan_out: FanOut) -> None:
        """Take up all uses, if they are clearly few enough: one more would have all dropped."""
        uses_max, clauses_max = self._limits.finished_uses, self._limits.finished_clauses
        if 10 * len(fan_out) <= 9 * uses_max and 10 * fan_out.clauses <= 9 * clauses_max:
            self._catalog = ReaderCatalog(self._limits, self._bytes_max)
            for use in fan_out.uses():
                self._catalog.add(use)
