"""For whom shards finish tuples: queries that have all of a match in one tuple's shard.

A query is one of them with all its classes, and a class with all who use it: then nothing that such
a query finds comes back as a tuple, and all that it is charged with in a batch comes at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from broker.matching.costs.budget import Budget, bound_of
from broker.matching.fanout import FanOut
from broker.matching.limits import MatchingLimits
from broker.matching.uses import Topic, Use
from joins import Processor
from joins.shards.driver import ShardedProcessor
from joins.shards.orders import Asked

__all__ = ["Finishing", "Readers"]


@dataclass(frozen=True, slots=True, eq=False)
class Readers:
    """Uses of classes, with nothing that is known to the driver alone.

    `bytes_max` are the bytes that the matches of one document may read and write.
    """

    uses: Sequence[Use]
    limits: MatchingLimits
    bytes_max: int

    @classmethod
    def of(cls, uses: Iterable[Use], limits: MatchingLimits, bytes_max: int) -> Readers:
        """Return those of some uses, which are all that there are, for whom shards can finish."""
        uses = list(uses)
        topics = Counter(use.topic for use in uses)
        left = [use for use in uses if _is_alone(use) and topics[use.topic] == 1]
        while len(left) < len(uses):
            others = set(uses).difference(left)
            queries = {use.topic.query.id for use in others}
            classes = {use.query_class for use in others}
            kept = [
                use
                for use in left
                if use.topic.query.id not in queries and use.query_class not in classes
            ]
            if len(kept) == len(left):
                break
            left = kept
        return cls(left, limits, bytes_max)


def _is_alone(use: Use) -> bool:
    """Return whether a match of a use is in tuples of its class, whatever else is found."""
    clause = use.clause
    return (
        clause.query_class.stratum == 0
        and not clause.stream
        and not clause.deciding
        and all(source.below is None for source in clause.sources)
        and _is_given_as_found(use.topic)
    )


def _is_given_as_found(topic: Topic) -> bool:
    query = topic.query
    return query.is_plain and not query.has_confidence and query.publish is None


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
        self._fan_out = fan_out
        self._limits = limits
        self._bytes_max = bound_of(budget.bytes_per_document)
        self._changes = -1
        self._wait = self._waiting = 0
        self._readers: Readers | None = None

    @classmethod
    def by(
        cls, join: Processor, fan_out: FanOut, limits: MatchingLimits, budget: Budget
    ) -> Finishing | None:
        """Return that of a join; None where it has no shards, or these finish nothing."""
        if isinstance(join, ShardedProcessor) and join.can_finish:
            return cls(join, fan_out, limits, budget)
        return None

    def begin(
        self,
        take: Callable[[Sequence[Any]], bool],
        documents: Callable[[Iterable[int]], Mapping[int, bytes]],
    ) -> None:
        """Have tuples of this batch finished; `take` and `documents` are as in `Asked`."""
        if self._waiting:
            self._waiting -= 1
            return
        if self._changes != self._fan_out.changes:
            self._changes = self._fan_out.changes
            uses = self._fan_out.uses() if self._are_few() else ()
            self._readers = Readers.of(uses, self._limits, self._bytes_max)
        if self._readers is not None and self._readers.uses:
            self._shards.finish(Asked(self._readers, partial(self._taken, take), documents))

    def _taken(self, take: Callable[[Sequence[Any]], bool], parts: Sequence[Any]) -> bool:
        holds = take(parts)
        self._wait = 0 if holds else min(_WAIT_MAX, 2 * self._wait + 1)
        self._waiting = self._wait
        return holds

    def _are_few(self) -> bool:
        """Return whether the uses are so few that each worker can have them."""
        limits = self._limits
        is_small = len(self._fan_out) <= limits.finished_uses
        return is_small and self._fan_out.clauses <= limits.finished_clauses
