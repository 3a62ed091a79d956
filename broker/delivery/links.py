"""Tokens that are good for one subscription and one purpose, to stand in links.

A token is the subscription's id and a keyed hash of purpose and id: nothing is stored for it, it
cannot be made without the broker's key, and it opens nothing else.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Literal

__all__ = ["Purpose", "link_token", "read_link_token"]

Purpose = Literal["unsubscribe", "confirm", "read"]


def link_token(key: bytes, purpose: Purpose, subscription_id: str) -> str:
    """Return the token for a subscription.

    >>> token = link_token(b"key", "read", "sub_1")
    >>> read_link_token(b"key", "read", token)
    'sub_1'
    >>> read_link_token(b"key", "unsubscribe", token) is None
    True
    """
    return f"{subscription_id}.{_tag(key, purpose, subscription_id)}"


def read_link_token(key: bytes, purpose: Purpose, token: str) -> str | None:
    """Return the subscription that a token is for, None if it is not ours."""
    if not token.isascii():
        return None
    subscription_id, _, tag = token.rpartition(".")
    expected = _tag(key, purpose, subscription_id)
    return subscription_id if hmac.compare_digest(tag.encode(), expected.encode()) else None


def _tag(key: bytes, purpose: Purpose, subscription_id: str) -> str:
    return hmac.new(key, f"{purpose}\0{subscription_id}".encode(), hashlib.sha256).hexdigest()[:40]
