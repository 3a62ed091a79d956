"""What tests of all sinks do: hand matches to a channel, or have a worker do it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oracle.lines import render

from broker.delivery.attempt import Attempt
from broker.delivery.sinks.channel import SinkChannel
from broker.delivery.worker import DeliveryEventKind
from broker.pipeline.matchlog import CommittedMatch
from broker.registry.subscription import Destination, Options, Subscription
from support.subscribers import IMPATIENT, Broker, found, until

__all__ = ["attempt", "delivered"]


def attempt(
    address: str, *numbers: int, name: str = "sub_1", output: str = "", **options: Any
) -> Attempt:
    destination = Destination.parse(address)
    subscription = Subscription(name, "Q1", "{}", destination, 0, options=Options(**options))
    matches = [
        CommittedMatch(number, match.id, "Q1", "{}", number, 1, render(match), 0)
        for number, match in ((n, found(n, output=output)) for n in numbers)
    ]
    return Attempt("msg_1", 1, subscription, matches, 0)


async def delivered(
    broker: Broker, channel: SinkChannel, address: str, numbers: Sequence[int]
) -> str:
    """Have matches delivered, and answer the subscription's id."""
    made = broker.subscribe(address)
    kind = made.destination.kind
    async with broker.delivering(channels={kind: channel}, policy=IMPATIENT):
        for number in numbers:
            broker.commit(found(number))
        await until(
            lambda: (
                len(numbers)
                <= sum(
                    len(e.matches) for e in broker.events if e.kind is DeliveryEventKind.DELIVERED
                )
            )
        )
    return made.id
