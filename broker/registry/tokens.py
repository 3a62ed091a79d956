"""Access tokens: who may use the API, and for what.

A token is `xscl_`, the id of its row, and 256 random bits.  The file keeps a SHA-256 hash of it:
random bits need no slower hash, and whoever reads the file cannot use the broker.

A scope may be narrowed to names: `publish:news` is good for one stream, and with
`subscribe:stories` a caller subscribes by itself to one query.  What it subscribes belongs to the
token, which sees it and ends it; an admin names the subscriptions of other tokens when they are
made.

Invariant: a broker is closed to whoever has no token.  Revoking the last one, or its end, opens
nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import re
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from broker.settings.database import connect, transaction

__all__ = ["TOKEN_PREFIX", "AccessToken", "TokenError", "TokenScope", "Tokens", "check_scopes"]

TOKEN_PREFIX = "xscl_"
"""What every secret begins with, so that leaked ones can be searched for."""

_STEPS = (
    """
    CREATE TABLE token (
        name TEXT PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        hash BLOB NOT NULL,
        scopes TEXT NOT NULL,
        subscriptions TEXT NOT NULL,
        created_us INTEGER NOT NULL,
        expires_us INTEGER,
        used_us INTEGER) WITHOUT ROWID;
    CREATE TABLE closed (one INTEGER PRIMARY KEY CHECK (one = 1));
    """,
    """
    ALTER TABLE token ADD COLUMN streams TEXT NOT NULL DEFAULT '';
    ALTER TABLE token ADD COLUMN queries TEXT NOT NULL DEFAULT '';
    """,
)

_COLUMNS = "name, scopes, subscriptions, created_us, expires_us, used_us, streams, queries"
_SCOPES = "they are admin, publish, publish:STREAM, subscribe, subscribe:QUERY and metrics"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,99}")
_SECRET = re.compile(TOKEN_PREFIX + r"[0-9a-f]{12}_[A-Za-z0-9_-]{43}")
_NOTED_EVERY_US = 60_000_000
"""Last use is kept to the minute, so that not every request writes."""


class TokenError(ValueError):
    """A token cannot be made or revoked as asked."""


class TokenScope(StrEnum):
    """What a token is good for.  `ADMIN` is good for everything."""

    ADMIN = "admin"
    PUBLISH = "publish"
    SUBSCRIBE = "subscribe"
    METRICS = "metrics"


_NARROWED = (TokenScope.PUBLISH, TokenScope.SUBSCRIBE)
"""Scopes that may be for some names only."""


@dataclass(frozen=True, slots=True)
class AccessToken:
    """What is known of a token; its secret is not.

    It reads `subscriptions`, publishes to `streams`, to all where there are none, and subscribes by
    itself to `queries`.
    """

    name: str
    scopes: frozenset[TokenScope]
    subscriptions: frozenset[str]
    created_us: int
    expires_us: int | None = None
    used_us: int | None = None
    streams: frozenset[str] = frozenset()
    queries: frozenset[str] = frozenset()

    @property
    def narrowed_scopes(self) -> list[str]:
        """The scopes as they are asked for, each with its name where it has one."""
        names = {TokenScope.PUBLISH: self.streams, TokenScope.SUBSCRIBE: self.queries}
        return sorted(
            text
            for scope in self.scopes
            for text in [f"{scope}:{name}" for name in names.get(scope, ())] or [scope.value]
        )


class Tokens:
    """The tokens in one SQLite file.  Safe for several threads and several processes."""

    def __init__(self, path: Path | str, *, now_us: Callable[[], int] | None = None) -> None:
        self._db = connect(path, _STEPS)
        self._lock = threading.Lock()
        self._now_us = now_us or (lambda: time.time_ns() // 1_000)

    def close(self) -> None:
        """Give the file back."""
        with self._lock:
            self._db.close()

    def create(
        self,
        name: str,
        scopes: Iterable[str],
        *,
        subscriptions: Iterable[str] = (),
        expires_us: int | None = None,
    ) -> tuple[AccessToken, str]:
        """Return a new token and its secret, which is not kept.

        A scope is one of `TokenScope`, `publish:` and a stream, or `subscribe:` and a query's id.
        """
        granted = _granted(scopes)
        token = AccessToken(
            name,
            frozenset(granted),
            frozenset(subscriptions),
            self._now_us(),
            expires_us,
            streams=frozenset(granted.get(TokenScope.PUBLISH, ())),
            queries=frozenset(granted.get(TokenScope.SUBSCRIBE, ())),
        )
        _check(token)
        token_id, rest = secrets.token_hex(6), secrets.token_urlsafe(32)
        secret = f"{TOKEN_PREFIX}{token_id}_{rest}"
        with self._lock, transaction(self._db):
            if TokenScope.ADMIN not in token.scopes and not self._has_admin(token.created_us):
                raise TokenError(
                    "make a token with the scope 'admin' first: once there are tokens, nobody "
                    "without one can manage the broker"
                )
            self._insert(token, token_id, _hash(secret))
        return token, secret

    def find(self, secret: str) -> AccessToken | None:
        """Return the token with that secret, None if there is none or it has expired."""
        if _SECRET.fullmatch(secret) is None:
            return None
        token_id = secret.split("_")[1]
        rows = self._rows(f"SELECT {_COLUMNS}, hash FROM token WHERE id = ?", token_id)
        kept = rows[0][-1] if rows else bytes(32)
        if not hmac.compare_digest(kept, _hash(secret)) or not rows:
            return None
        token, now_us = _token(rows[0][:-1]), self._now_us()
        if token.expires_us is not None and token.expires_us <= now_us:
            return None
        if token.used_us is None or now_us - token.used_us >= _NOTED_EVERY_US:
            self._note_use(token.name, now_us)
        return token

    def tokens(self) -> list[AccessToken]:
        """Return all tokens that are not revoked, by name."""
        return [_token(row) for row in self._rows(f"SELECT {_COLUMNS} FROM token ORDER BY name")]

    def named(self, name: str) -> AccessToken | None:
        """Return the token of that name, None where it was revoked."""
        rows = self._rows(f"SELECT {_COLUMNS} FROM token WHERE name = ?", name)
        return _token(rows[0]) if rows else None

    def assign(self, name: str, subscriptions: Iterable[str]) -> None:
        """Make these, and no others, the subscriptions of a token, if it is not revoked."""
        with self._lock, transaction(self._db):
            self._db.execute(
                "UPDATE token SET subscriptions = ? WHERE name = ?",
                (" ".join(sorted(subscriptions)), name),
            )

    def revoke(self, name: str) -> None:
        """Make a token worthless from now on."""
        with self._lock, transaction(self._db):
            gone = self._db.execute("DELETE FROM token WHERE name = ?", (name,))
            if gone.rowcount == 0:
                raise TokenError(f"no token is called {name!r}")

    def _has_admin(self, now_us: int) -> bool:
        rows = self._db.execute(
            "SELECT scopes FROM token WHERE expires_us IS NULL OR expires_us > ?", (now_us,)
        )
        return any(TokenScope.ADMIN in scopes.split() for (scopes,) in rows)

    def _insert(self, token: AccessToken, token_id: str, hashed: bytes) -> None:
        try:
            self._db.execute(
                "INSERT INTO token VALUES (?, ?, ?, ?, ?, ?, ?, NULL, ?, ?)",
                (
                    token.name,
                    token_id,
                    hashed,
                    " ".join(sorted(token.scopes)),
                    " ".join(sorted(token.subscriptions)),
                    token.created_us,
                    token.expires_us,
                    " ".join(sorted(token.streams)),
                    " ".join(sorted(token.queries)),
                ),
            )
        except sqlite3.IntegrityError as error:
            raise TokenError(f"a token is called {token.name!r} already") from error
        # What earlier versions look at: without it, one on this file would admit everybody.
        self._db.execute("INSERT INTO closed VALUES (1) ON CONFLICT DO NOTHING")

    def _note_use(self, name: str, now_us: int) -> None:
        # A disk that is full keeps nobody out.
        with (
            contextlib.suppress(sqlite3.OperationalError),
            self._lock,
            transaction(self._db),
        ):
            self._db.execute("UPDATE token SET used_us = ? WHERE name = ?", (now_us, name))

    def _rows(self, statement: str, *values: Any) -> list[Any]:
        with self._lock:
            return self._db.execute(statement, values).fetchall()


def check_scopes(scopes: Iterable[str]) -> None:
    """Raise `TokenError` where a scope is none, or two do not go together."""
    _granted(scopes)


def _granted(scopes: Iterable[str]) -> dict[TokenScope, list[str]]:
    """Return the names that each scope is narrowed to, none where it is not."""
    granted: dict[TokenScope, list[str]] = {}
    whole = set()
    for text in scopes:
        kind, colon, name = text.partition(":")
        if kind not in list(TokenScope):
            raise TokenError(f"{text!r} is not a valid Scope: {_SCOPES}")
        scope = TokenScope(kind)
        names = granted.setdefault(scope, [])
        if not colon:
            whole.add(scope)
        elif scope not in _NARROWED or not name or name.split() != [name]:
            raise TokenError(f"{text!r} is no scope: {_SCOPES}")
        else:
            names.append(name)
    if TokenScope.PUBLISH in whole and granted[TokenScope.PUBLISH]:
        raise TokenError("'publish' is for all streams: leave it out, or the names of streams")
    return granted


def _check(token: AccessToken) -> None:
    if not _NAME.fullmatch(token.name):
        raise TokenError(
            f"{token.name!r} is no name: use letters, digits and . _ @ - (100 at most)"
        )
    if not token.scopes:
        raise TokenError("a token has a scope: admin, publish, subscribe or metrics")
    if token.queries and token.subscriptions:
        raise TokenError("a token that subscribes by itself names no subscriptions")
    reads = TokenScope.SUBSCRIBE in token.scopes and not token.queries
    if reads != bool(token.subscriptions):
        raise TokenError("a token with the scope 'subscribe', and no other, names subscriptions")
    if any(not each or " " in each for each in token.subscriptions):
        raise TokenError("the id of a subscription has no space in it")
    if token.expires_us is not None and token.expires_us <= token.created_us:
        raise TokenError("a token cannot end before it begins")


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def _token(row: tuple[Any, ...]) -> AccessToken:
    name, scopes, subscriptions, created_us, expires_us, used_us, streams, queries = row
    return AccessToken(
        name,
        frozenset(map(TokenScope, scopes.split())),
        frozenset(subscriptions.split()),
        created_us,
        expires_us,
        used_us,
        frozenset(streams.split()),
        frozenset(queries.split()),
    )
