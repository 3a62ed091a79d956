"""Tokens that are good for one thing and one purpose, to stand in links.

The thing is a subscription; for `alert` a message, by its delivery's id.  A token is the id and a
keyed hash of purpose and id: nothing is stored for it, it cannot be made without the broker's key,
and it opens nothing else.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Literal

__all__ = ["Purpose", "link_token", "read_link_token"]

Purpose = Literal["unsubscribe", "confirm", "confirm escalation", "read", "alert"]


def link_token(key: bytes, purpose: Purpose, name: str) -> str:
    """Return the token for a subscription or a message.

    >>> token = link_token(b"key", "read", "sub_1")
    >>> read_link_token(b"key", "read", token)
    'sub_1'
    >>> read_link_token(b"key", "unsubscribe", token) is None
    True
    """
    return f"{name}.{_tag(key, purpose, name)}"


def read_link_token(key: bytes, purpose: Purpose, token: str) -> str | None:
    """Return what a token is for, None if it is not ours."""
    if not token.isascii():
        return None
    name, _, tag = token.rpartition(".")
    expected = _tag(key, purpose, name)
    return name if hmac.compare_digest(tag.encode(), expected.encode()) else None


def _tag(key: bytes, purpose: Purpose, name: str) -> str:
    return hmac.new(key, f"{purpose}\0{name}".encode(), hashlib.sha256).hexdigest()[:40]
