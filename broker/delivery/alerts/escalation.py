"""A message that nobody acknowledges in time goes to a second address.

An escalation is a delivery with the matches of another, its *origin*, made in the transaction that
begins that one and due when the time is over; to acknowledge is to cancel it.  It is of a second
lane of the subscription, which has no topic and so no matches of its own: an endpoint that fails
holds up its own lane only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from broker.delivery.attempt import ESCALATION
from broker.delivery.store import delivery_id
from broker.delivery.taking import Message
from broker.registry.subscription import Destination, Options, Subscription

__all__ = ["escalated", "escalations", "is_escalation"]


def is_escalation(lane: str) -> bool:
    """Return whether a lane is a subscription's second one."""
    return lane.endswith(ESCALATION)


def escalated(subscription: Subscription) -> Subscription:
    """Return a subscription as its second lane serves it: a message looks as it did."""
    first = subscription.options
    options = Options(
        digest=first.digest, group=first.group, batch_max=first.batch_max, format=first.format
    )
    destination = Destination.parse(first.escalate)
    lane = subscription.id + ESCALATION
    return replace(subscription, id=lane, destination=destination, options=options)


def _escalation(message: Message, options: Options, now_us: int) -> Message:
    """Return what becomes of a message that is begun now, unless it is acknowledged."""
    return Message(
        row=0,
        id=delivery_id(message.id, "escalation"),
        subscription=message.subscription + ESCALATION,
        seqs=message.seqs,
        due_us=now_us + options.escalate_after_us,
        key=message.key,
        begun_us=now_us + options.escalate_after_us,
        is_new=True,
    )


def escalations(
    messages: Iterable[Message], known: Mapping[str, Subscription], now_us: int
) -> list[tuple[Message, Message]]:
    """Return each message that is begun now and may have to be escalated, with its escalation."""
    return [
        (message, _escalation(message, known[message.subscription].options, now_us))
        for message in messages
        if message.begun_us == now_us and known[message.subscription].options.escalate
    ]
