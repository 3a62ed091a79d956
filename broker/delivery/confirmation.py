"""The mails that ask whether addresses want what somebody has subscribed them to.

A subscription waits until every address that it would be mailed to has said yes: its own, then that
of its escalation.  The second is asked when the first has said yes, and is named in the reason of
the subscription from then on; so who has the second's link needs no record of the first's answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from broker.delivery.links import Purpose
from broker.registry.subscription import Destination, DestinationKind, Subscription

__all__ = ["ConfirmationQuestion", "questions", "waiting_for"]


@dataclass(frozen=True, slots=True)
class ConfirmationQuestion:
    """What one address is asked, and the purpose of the link with which it says yes."""

    address: str
    purpose: Purpose
    subject: str
    offer: str

    def text(self, url: str) -> str:
        """Return the mail; nothing in it comes from a feed."""
        return (
            f"Somebody, you we hope, has asked to have {self.offer}\n"
            f"sent to {self.address}.\n\n"
            f"To get them, open this page and press its button:\n\n{url}\n\n"
            "If you do not want them, do nothing: no more is sent to you.\n"
        )


def questions(subscription: Subscription) -> list[ConfirmationQuestion]:
    """Return what is to be asked before anything is mailed, in this order."""
    return list(_questions(subscription))


def waiting_for(subscription: Subscription) -> ConfirmationQuestion:
    """Return which question of an unconfirmed subscription has not been answered."""
    asked = questions(subscription)
    return asked[-1] if subscription.reason else asked[0]


def _questions(subscription: Subscription) -> Iterator[ConfirmationQuestion]:
    own, query = subscription.destination, subscription.query
    if own.kind is DestinationKind.EMAIL:
        subject = f"Do you want the matches of {query}?"
        yield ConfirmationQuestion(
            own.address, "confirm", subject, f"the matches of the query {query}"
        )
    second = subscription.options.escalate and Destination.parse(subscription.options.escalate)
    if second and second.kind is DestinationKind.EMAIL and second != own:
        subject = f"Do you want the matches of {query} that nobody acknowledges?"
        offer = f"what nobody acknowledges of the matches of the query {query}"
        yield ConfirmationQuestion(second.address, "confirm escalation", subject, offer)
