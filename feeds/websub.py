"""The subscriber side of WebSub, decisions only: when to ask a hub, what to believe it.

A feed that names a hub and a topic can be pushed.  The lease of one feed goes

    pending   asked; the hub has not verified yet
    active    verified; renewed at half the lease, with the same callback and secret
    denied    the hub refused; asked again after a long while

Invariants: a push is believed only with the right signature; the secret never changes while a
subscription may still use it; whatever a push brings, the backup check stays where it is.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Literal

__all__ = [
    "Lease",
    "Verified",
    "ask_at_us",
    "asked",
    "is_signed",
    "is_working",
    "missed",
    "new_lease",
    "parse_lease",
    "pushed",
    "render_lease",
    "subscription_form",
    "verified",
]

LEASE_S = 10 * 86_400
"""What we ask for; a hub may give less or more."""
LEASE_S_MIN = 300
LEASE_S_MAX = 14 * 86_400
PENDING_S = 3_600
"""A hub that has not verified within an hour is asked again."""
DENIED_S = 7 * 86_400
ASK_BACKOFF_S_MAX = 86_400
MISSES_MAX = 3
"""Polls that found what the hub had not pushed; then the hub does not work until it pushes."""
_DIGESTS = ("sha1", "sha256", "sha384", "sha512")
_SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True)
class Lease:
    """What is agreed with the hub of one feed.  `token` makes the callback unguessable."""

    hub: str
    topic: str
    token: str
    secret: str
    state: Literal["pending", "active", "denied"] = "pending"
    asked_us: int = 0
    refusals: int = 0
    expires_us: int = 0
    renew_us: int = 0
    last_push_us: int = 0
    misses: int = 0
    error: str = ""

    def __repr__(self) -> str:
        return f"Lease({self.hub!r}, {self.topic!r}, {self.state})"


@dataclass(frozen=True, slots=True)
class Verified:
    """The answer to a hub's verification of intent, and the lease after it."""

    lease: Lease
    status: int
    body: str = ""


def new_lease(hub: str, topic: str) -> Lease:
    """Return a lease to be asked for, with a callback and a secret of its own."""
    return Lease(hub, topic, secrets.token_urlsafe(24), secrets.token_urlsafe(32))


def ask_at_us(lease: Lease) -> int:
    """Return when the hub is to be asked (again) for this lease."""
    if lease.state == "active":
        return max(lease.renew_us, lease.asked_us + _pause_us(lease))
    if lease.state == "denied":
        return lease.asked_us + DENIED_S * _SECOND_US
    return lease.asked_us + _pause_us(lease) if lease.asked_us else 0


def _pause_us(lease: Lease) -> int:
    return min(PENDING_S << min(lease.refusals, 10), ASK_BACKOFF_S_MAX) * _SECOND_US


def asked(lease: Lease, now_us: int, error: str = "") -> Lease:
    """Return the lease after the hub was asked; `error` says why it did not take the request.

    An active lease stays active while it is being renewed.
    """
    refusals = lease.refusals + 1 if error else 0
    state: Literal["pending", "active"] = "pending"
    if lease.state == "active" and now_us < lease.expires_us:
        state = "active"
    return replace(lease, state=state, asked_us=now_us, refusals=refusals, error=error)


def subscription_form(lease: Lease, callback: str, *, mode: str = "subscribe") -> dict[str, str]:
    """Return the form that asks the hub."""
    form = {"hub.callback": callback, "hub.mode": mode, "hub.topic": lease.topic}
    if mode == "subscribe":
        form |= {"hub.secret": lease.secret, "hub.lease_seconds": str(LEASE_S)}
    return form


def verified(lease: Lease, query: Mapping[str, str], now_us: int) -> Verified:
    """Return the answer to a hub that wants to know whether we meant it.

    Only a subscription to our own topic is confirmed; a request to unsubscribe is not ours,
    because we never send one while the feed is followed.
    """
    mode, topic = query.get("hub.mode", ""), query.get("hub.topic", "")
    if mode == "denied" and topic in ("", lease.topic):
        reason = query.get("hub.reason", "the hub gave no reason")[:200]
        denied = replace(lease, state="denied", asked_us=now_us, error=f"denied: {reason}")
        return Verified(denied, 200)
    challenge = query.get("hub.challenge", "")
    if mode != "subscribe" or topic != lease.topic or not challenge or not lease.asked_us:
        return Verified(lease, 404)
    lease_s = _lease_s(query.get("hub.lease_seconds", ""))
    active = replace(
        lease,
        state="active",
        expires_us=now_us + lease_s * _SECOND_US,
        renew_us=now_us + lease_s * _SECOND_US // 2,
        refusals=0,
        error="",
    )
    return Verified(active, 200, challenge)


def _lease_s(text: str) -> int:
    lease_s = int(text) if text.isdecimal() and len(text) < 12 else LEASE_S
    return min(max(lease_s, LEASE_S_MIN), LEASE_S_MAX)


def is_signed(lease: Lease, signature: str, body: bytes) -> bool:
    """Return whether `signature` (X-Hub-Signature) is this lease's on `body`, in constant time."""
    method, _, digest = signature.strip().partition("=")
    if method.lower() not in _DIGESTS:
        return False
    right = hmac.new(lease.secret.encode(), body, getattr(hashlib, method.lower())).hexdigest()
    return hmac.compare_digest(right.encode(), digest.strip().lower().encode())


def pushed(lease: Lease, now_us: int) -> Lease:
    """Return the lease after a believed push: the hub works, whatever it missed before."""
    return replace(lease, last_push_us=now_us, misses=0)


def missed(lease: Lease) -> Lease:
    """Return the lease after a poll found entries that the hub should have pushed."""
    return replace(lease, misses=lease.misses + 1)


def is_working(lease: Lease, now_us: int) -> bool:
    """Return whether the hub can be relied on so far that polling becomes a backup.

    It must have pushed at least once, and not have been caught missing since.
    """
    is_current = lease.state == "active" and now_us < lease.expires_us
    return is_current and lease.last_push_us > 0 and lease.misses < MISSES_MAX


def render_lease(lease: Lease) -> str:
    """Return the lease as JSON, secret included: it goes into the store only."""
    return json.dumps(asdict(lease))


def parse_lease(text: str) -> Lease:
    """Return the lease that `render_lease` gave."""
    return Lease(**json.loads(text))
