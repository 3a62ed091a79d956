"""What one attempt to hand a delivery over needs, and what can come of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

from broker.pipeline.matchlog import CommittedMatch
from broker.registry.subscription import Destination, Subscription

__all__ = [
    "ESCALATION",
    "RESPONSE_KEPT_MAX",
    "Attempt",
    "Channel",
    "Notifier",
    "Outcome",
    "OutcomeKind",
]

RESPONSE_KEPT_MAX = 1_024
"""How much of an endpoint's answer is kept to be looked at, in characters."""


_SECRET_SHOWN_MAX = 3
"""Characters of a secret that may be shown at the end of an answer, as they say nothing."""


ESCALATION = "/escalation"
"""Behind a subscription's id: its second lane, to which its messages are escalated."""


class OutcomeKind(StrEnum):
    """What came of an attempt.

    `FAILED` is tried again; `THROTTLED` too, and until then the endpoint is left in peace.
    `REFUSED` ends this delivery only; `GONE` says that the destination wants no more of any.
    """

    DELIVERED = "delivered"
    FAILED = "failed"
    THROTTLED = "throttled"
    REFUSED = "refused"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an endpoint answered.  `status` is that of HTTP or SMTP, None where none came."""

    kind: OutcomeKind
    status: int | None = None
    detail: str = ""
    retry_after_us: int | None = None
    elapsed_us: int = 0

    def hiding(self, secrets: Iterable[str]) -> Outcome:
        """Return the outcome as it may be shown: an answer can have in it what was asked."""
        detail = self.detail
        for secret in secrets:
            detail = _hidden(detail, secret)
        return replace(self, detail=detail)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One delivery on its way.  The id is the same in every attempt; `number` counts from 1.

    `withheld` messages of its key were suppressed since the one before it.
    """

    delivery_id: str
    number: int
    subscription: Subscription
    matches: Sequence[CommittedMatch]
    now_us: int
    withheld: int = 0

    @property
    def is_escalation(self) -> bool:
        """Whether it goes to the second address, because nobody has acknowledged a message."""
        return self.subscription.id.endswith(ESCALATION)

    @property
    def is_sample(self) -> bool:
        """Whether this delivers a sample: matches in the outbox are numbered from 1."""
        return any(match.seq == 0 for match in self.matches)


class Channel(Protocol):
    """A way to reach subscribers.  `send` answers, it does not raise."""

    async def refusal(self, destination: Destination) -> str | None:
        """Return why nothing can ever be sent to a destination, None where it can be tried."""
        ...

    async def send(self, attempt: Attempt) -> Outcome:
        """Hand the matches over once."""
        ...

    async def close(self) -> None:
        """Give connections back."""
        ...


class Notifier(Protocol):
    """A way to tell the owner of a subscription what became of it."""

    async def notify(self, address: str, subject: str, text: str) -> Outcome:
        """Send a message of the broker's own, once."""
        ...


def _hidden(text: str, secret: str) -> str:
    """Return a text without a secret, nor the beginning of one at its end: answers are cut.

    >>> _hidden("no tok-1234 here", "tok-1234"), _hidden("there is no tok-1", "tok-1234")
    ('no ... here', 'there is no ...')
    """
    text = text.replace(secret, "...")
    beginnings = (secret[:length] for length in range(len(secret) - 1, _SECRET_SHOWN_MAX, -1))
    cut = next((each for each in beginnings if text.endswith(each)), None)
    return text if cut is None else f"{text.removesuffix(cut)}..."
