"""A match as a message of a bus or a record of a log: the body of a webhook, and who it is for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from broker.delivery.attempt import Attempt
from broker.delivery.payload import notes, render_payload
from broker.delivery.store import delivery_id

__all__ = ["Record", "records"]


@dataclass(frozen=True, slots=True)
class Record:
    """One match of an attempt; its id is the delivery's that the match would have alone."""

    id: str
    content_type: str
    body: bytes
    headers: Mapping[str, str]


def records(attempt: Attempt, alert_url: Callable[[str], str]) -> list[Record]:
    """Return a record for each match; a repeated attempt has the same ones."""
    subscription = attempt.subscription
    headers = {"xscl-subscription": subscription.id, **notes(attempt, alert_url)}
    made = []
    for match in attempt.matches:
        # Two samples within a server's time of deduplication are two.
        id_ = attempt.delivery_id if attempt.is_sample else delivery_id(subscription.id, match.id)
        kind, body = render_payload([match], subscription.options.format, is_batch=False)
        made.append(Record(id_, kind, body, headers))
    return made
