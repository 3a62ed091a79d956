"""What one transaction of `take` reads once, and what it writes at its end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from broker.delivery.schedule import EndpointHealth
from broker.delivery.store import DeliveryState
from broker.pipeline.matchlog import CommittedMatch
from broker.pipeline.outbox import Outbox
from broker.registry.subscription import DestinationKind, Subscription
from joins import UNBOUNDED

__all__ = ["DIGEST_MAX", "Lane", "Message", "Taking", "message_max"]

DIGEST_MAX = 200
"""Matches in one message that gathers.  What is more follows in the next, at once."""


@dataclass(frozen=True, slots=True)
class Lane:
    """A lane as it is found; `due_us` is when the first of its deliveries is due, if it has one."""

    subscription: str
    seq: int
    fresh_us: int | None
    head: int
    due_us: int | None
    snoozed_until_us: int
    health: EndpointHealth


@dataclass(slots=True)
class Message:
    """A delivery as its row has it, or is to have it.

    `seqs` are its matches' numbers.  It grows until it is begun, and never after.  `key` is None
    where the lane tells no messages apart.
    """

    row: int
    id: str
    subscription: str
    seqs: list[int]
    due_us: int
    key: str | None = None
    begun_us: int | None = None
    attempts: int = 0
    state: DeliveryState = DeliveryState.DUE
    reason: str = ""
    withheld: int = 0
    is_new: bool = False

    def numbers(self) -> str | None:
        """Return the numbers as they are kept; None for all of the topic from first to last."""
        return None if self.key is None or len(self.seqs) == 1 else json.dumps(self.seqs)

    @property
    def next_us(self) -> int | None:
        """When it is tried next."""
        return self.due_us if self.state is DeliveryState.DUE else None


@dataclass(slots=True)
class Taking:
    """One transaction of `take` in the making.

    Lanes of one topic mostly stand at the same match, so matches that were read are kept.
    """

    outbox: Outbox
    now_us: int
    next_row: int
    lanes: Sequence[str]
    pages: dict[tuple[object, ...], Sequence[CommittedMatch]] = field(default_factory=dict)
    found: dict[tuple[object, ...], Sequence[Any]] = field(default_factory=dict)
    snoozed: dict[str, dict[str, int]] | None = None
    keyed: frozenset[str] | None = None
    made: list[Message] = field(default_factory=list)
    changed: list[Message] = field(default_factory=list)
    moved: list[tuple[object, ...]] = field(default_factory=list)

    def number(self) -> int:
        """Return the number of a new row."""
        self.next_row += 1
        return self.next_row - 1

    def matches(
        self,
        subscription: Subscription,
        after: int,
        through: int = UNBOUNDED,
        limit: int = UNBOUNDED,
    ) -> Sequence[CommittedMatch]:
        """Return a subscription's matches numbered in (after, through], at most `limit`."""
        point, until = subscription.point, subscription.until
        key = (subscription.topic, after, through, point, until, limit)
        if key not in self.pages:
            self.pages[key] = self.outbox.matches.of_topic(
                *subscription.topic,
                after=after,
                through=through,
                point=point,
                until=until,
                limit=limit,
            )
        return self.pages[key]

    def numbered(self, seqs: Sequence[int]) -> Sequence[CommittedMatch]:
        """Return the matches of these numbers."""
        key = tuple(seqs)
        if key not in self.pages:
            self.pages[key] = self.outbox.matches.numbered(seqs)
        return self.pages[key]


def message_max(subscription: Subscription) -> int:
    """Return how many matches one message has at most."""
    options = subscription.options
    match subscription.destination.kind:
        case DestinationKind.EMAIL:
            return DIGEST_MAX
        case kind if options.batch_max > 1 and kind.is_signed:
            return options.batch_max
        case kind if kind.is_sink:
            return options.batch_max if options.batch_max > 1 else DIGEST_MAX
        case _:
            return DIGEST_MAX if options.gathers else 1
