"""The mail that asks whether an address wants what somebody has subscribed it to."""

from __future__ import annotations

from broker.registry.subscription import Subscription

__all__ = ["confirmation"]


def confirmation(subscription: Subscription, url: str) -> tuple[str, str]:
    """Return the subject and the text; nothing in it comes from a feed."""
    subject = f"Do you want the matches of {subscription.query}?"
    text = (
        f"Somebody, you we hope, has asked to have the matches of the query\n"
        f"{subscription.query} sent to {subscription.destination}.\n\n"
        f"To get them, open this page and press its button:\n\n{url}\n\n"
        "If you do not want them, do nothing: no more is sent to you.\n"
    )
    return subject, text
