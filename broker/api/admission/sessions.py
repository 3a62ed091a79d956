"""Who has logged in to the web page: a cookie's random id, and the token it stands for.

The cookie is not the token, and by itself only opens pages to read.  What changes something, and
the API, wants a *form token* besides: pages carry one, other sites cannot read it, and browsers
send it nowhere by themselves.  Each page has another one, so that a compressed page does not tell
it by its length.  Sessions are in memory: a restart ends them.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable

__all__ = ["COOKIE", "SESSION_S", "Sessions"]

COOKIE = "xscl_session"

SESSION_S = 12 * 3_600
"""A working day; then the token is asked for again."""

_SESSIONS_MAX = 1_000


class Sessions:
    """At most `_SESSIONS_MAX` sessions, the newest; for one thread."""

    def __init__(self, *, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._key = secrets.token_bytes(32)
        self._sessions: OrderedDict[str, tuple[str, float]] = OrderedDict()

    def begin(self, secret: str) -> str:
        """Return the id of a new session of the token with this secret."""
        session = secrets.token_urlsafe(32)
        self._sessions[session] = (secret, self._now_s() + SESSION_S)
        if len(self._sessions) > _SESSIONS_MAX:
            self._sessions.popitem(last=False)
        return session

    def secret(self, session: str) -> str | None:
        """Return the secret that a session stands for, None where it has ended."""
        secret, ends_s = self._sessions.get(session, ("", 0.0))
        return secret if self._now_s() < ends_s else None

    def form_token(self, session: str) -> str:
        """Return what a page of this session says to be allowed to change something."""
        nonce = secrets.token_hex(16)
        return f"{nonce}.{self._signed(session, nonce)}"

    def is_form_token(self, session: str, token: str) -> bool:
        """Whether a page of this session was given that token."""
        nonce, _, signature = token.partition(".")
        # A header may have bytes that are no text.
        given = signature.encode(errors="surrogateescape")
        return hmac.compare_digest(given, self._signed(session, nonce).encode())

    def _signed(self, session: str, nonce: str) -> str:
        return hmac.new(
            self._key, f"{session} {nonce}".encode(errors="surrogateescape"), "sha256"
        ).hexdigest()

    def end(self, session: str) -> None:
        """End a session, if there is one."""
        self._sessions.pop(session, None)
