"""What the broker has been asked for: queries with their history, and subscriptions.

A query's row is never changed.  Each change - a new version, a pause, a removal - adds a row
under the next revision, so that the registry can be read as it was at any revision: a segment
of the spool names the revision that its documents are evaluated with.

A subscription has one row, which names the revision of its last change; readers ask for what
has changed since they last looked.

Invariant: revisions only grow, and one transaction makes one revision, whatever process asks.
"""

from __future__ import annotations

import base64
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from datetime import timedelta
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any

from broker.budget import Pause
from broker.database import connect, transaction
from broker.subscription import (
    Destination,
    DestinationKind,
    Options,
    Secret,
    Subscription,
    SubscriptionState,
    parameters_key,
)

__all__ = ["Backfill", "QueryState", "RegisteredText", "Registry", "RegistryError", "new_secret"]

_STEPS = (
    """
    CREATE TABLE revision (one INTEGER PRIMARY KEY CHECK (one = 1), number INTEGER NOT NULL);
    INSERT INTO revision VALUES (1, 0);
    CREATE TABLE query (
        revision INTEGER NOT NULL,
        id TEXT NOT NULL,
        version TEXT NOT NULL,
        text TEXT NOT NULL,
        state TEXT NOT NULL,
        point INTEGER NOT NULL,
        effective INTEGER NOT NULL,
        reason TEXT NOT NULL,
        changed_us INTEGER NOT NULL,
        PRIMARY KEY (id, revision)) WITHOUT ROWID;
    CREATE TABLE subscription (
        id TEXT PRIMARY KEY,
        query TEXT NOT NULL,
        parameters TEXT NOT NULL,
        kind TEXT NOT NULL,
        address TEXT NOT NULL,
        point INTEGER NOT NULL,
        state TEXT NOT NULL,
        reason TEXT NOT NULL,
        options TEXT NOT NULL,
        created_us INTEGER NOT NULL,
        revision INTEGER NOT NULL) WITHOUT ROWID;
    CREATE INDEX subscription_by_topic ON subscription (query, parameters);
    CREATE INDEX subscription_by_revision ON subscription (revision);
    CREATE TABLE secret (
        subscription TEXT NOT NULL,
        created_us INTEGER NOT NULL,
        value TEXT NOT NULL,
        expires_us INTEGER,
        PRIMARY KEY (subscription, created_us, value)) WITHOUT ROWID;
    """,
    """
    CREATE TABLE suppressed (
        address TEXT PRIMARY KEY,
        reason TEXT NOT NULL,
        at_us INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE broker_key (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
    """,
    """
    CREATE TABLE backfill (
        query TEXT NOT NULL,
        version TEXT NOT NULL,
        parameters TEXT NOT NULL,
        point INTEGER NOT NULL,
        through INTEGER NOT NULL,
        PRIMARY KEY (query, version, parameters)) WITHOUT ROWID;
    """,
    """
    CREATE INDEX query_by_revision ON query (revision);
    DROP INDEX subscription_by_topic;
    CREATE INDEX subscription_by_topic ON subscription (query, parameters, point);
    """,
)

_log = logging.getLogger(__name__)

_QUERY = "id, version, text, state, point, effective, reason, changed_us"
_SUBSCRIPTION = (
    "id, query, parameters, kind, address, point, state, reason, options, created_us, revision"
)


@dataclass(frozen=True, slots=True)
class Backfill:
    """A registration that looks back: documents in (point, through] have yet to be matched.

    `parameters` is the key of one assignment; a query without parameters has the empty one's.
    """

    query: str
    version: str
    parameters: str
    point: int
    through: int


class RegistryError(LookupError):
    """There is no such query or subscription, or it cannot change that way."""


class QueryState(StrEnum):
    """Whether a query is evaluated."""

    ACTIVE = "active"
    PAUSED = "paused"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class RegisteredText:
    """One state of a query.  It sees documents with docids above `point`.

    The state holds from the document after `effective`, the newest accepted when it was made.
    """

    id: str
    version: str
    text: str
    state: QueryState
    point: int
    effective: int
    reason: str
    changed_us: int
    revision: int


def new_secret() -> str:
    """Return a fresh signing key as Standard Webhooks writes it."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


class Registry:
    """The registry in one SQLite file.  Safe for several threads and several processes."""

    def __init__(self, path: Path | str, *, now_us: Callable[[], int] | None = None) -> None:
        self._db = connect(path, _STEPS)
        self._lock = threading.RLock()
        self._now_us = now_us or (lambda: time.time_ns() // 1000)

    def close(self) -> None:
        """Give the file back."""
        with self._lock:
            self._db.close()

    def revision(self) -> int:
        """Return the number of the last change; 0 before the first."""
        return int(self._rows("SELECT number FROM revision")[0][0])

    # A registration point comes from the caller: only who numbers documents knows the newest.

    def register(
        self, query_id: str, text: str, *, version: str, point: int, since: int | None = None
    ) -> RegisteredText:
        """Add a query, or a new version of one.

        It sees documents above `point`, the newest one, or, looking back, above `since`.  The very
        same version and text changes nothing, unless it looks further back than before.
        """
        since = point if since is None else since
        with self._change() as revision:
            present = self._present(query_id)
            is_same = present and _says(present) == (QueryState.ACTIVE, version, text)
            if present and is_same and since >= present.point:
                return present
            if since < point:
                self._look_back(query_id, version, since, point)
            row = (version, text, QueryState.ACTIVE, since, point, "")
            return self._append(query_id, revision, row)

    def _look_back(self, query_id: str, version: str, since: int, point: int) -> None:
        assigned = dict(self.assignments(query_id)) or {parameters_key({}): since}
        for parameters, first in assigned.items():
            self._add_backfill(query_id, version, parameters, max(since, first), point)

    def _add_backfill(
        self, query_id: str, version: str, parameters: str, point: int, through: int
    ) -> None:
        self._db.execute(
            "INSERT INTO backfill VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
            " point = min(point, excluded.point), through = max(through, excluded.through)",
            (query_id, version, parameters, point, through),
        )

    def backfills(self) -> list[Backfill]:
        """Return the registrations that look back and wait for it, by query."""
        return [Backfill(*row) for row in self._rows("SELECT * FROM backfill ORDER BY 1, 2, 3")]

    def finish_backfills(self, backfills: Iterable[Backfill]) -> None:
        """Take backfills away, unless they have been asked to look further back meanwhile."""
        with self._lock, transaction(self._db):
            self._db.executemany(
                "DELETE FROM backfill WHERE (query, version, parameters, point, through)"
                " = (?, ?, ?, ?, ?)",
                [astuple(each) for each in backfills],
            )

    def set_state(
        self, query_id: str, state: QueryState, *, effective: int, reason: str = ""
    ) -> RegisteredText:
        """Pause, resume or remove a query from the document after `effective` on."""
        with self._change() as revision:
            present = self._present(query_id)
            if present is None or present.state is QueryState.REMOVED:
                raise RegistryError(f"no query {query_id!r}")
            row = (present.version, present.text, state, present.point, effective, reason)
            return self._append(query_id, revision, row)

    def pause(self, pauses: Iterable[Pause]) -> list[RegisteredText]:
        """Pause queries that went over their budget, and return those that were not yet.

        One that has been stated anew since, paused or removed, is left as it is.
        """
        paused = []
        for pause in pauses:
            if self._states(pause):
                with self._change() as revision:
                    # Another process may have changed it meanwhile.
                    if present := self._states(pause):
                        stated = (present.version, present.text, QueryState.PAUSED, present.point)
                        row = (*stated, pause.docid - 1, pause.reason)
                        paused.append(self._append(pause.query, revision, row))
        return paused

    def _states(self, pause: Pause) -> RegisteredText | None:
        present = self._present(pause.query)
        return present if present and present.revision == pause.revision else None

    def queries(
        self, *, states: Iterable[QueryState] = (QueryState.ACTIVE,), as_of: int | None = None
    ) -> list[RegisteredText]:
        """Return the queries in any of the states, by id, as they were at revision `as_of`."""
        wanted = set(states)
        rows = self._rows(
            f"SELECT {_QUERY}, max(revision) FROM query WHERE revision <= ? GROUP BY id",
            1 << 62 if as_of is None else as_of,
        )
        return [query for query in map(_registered, rows) if query.state in wanted]

    def changed_queries(
        self, before: int, version: int
    ) -> tuple[list[RegisteredText], frozenset[str]]:
        """Return what leads from the active queries of one revision to those of another.

        That is the queries with a change between the two, as they are at `version`, and the ids of
        those that are not active then.
        """
        low, high = sorted((before, version))
        rows = self._rows(
            f"SELECT {_QUERY}, max(revision) FROM query WHERE revision <= ?3 AND id IN"
            " (SELECT id FROM query WHERE revision > ?1 AND revision <= ?2) GROUP BY id",
            *(low, high, version),
        )
        changed = self._rows(
            "SELECT DISTINCT id FROM query WHERE revision > ? AND revision <= ?", low, high
        )
        active = [q for q in map(_registered, rows) if q.state is QueryState.ACTIVE]
        return active, frozenset(id_ for (id_,) in changed) - {query.id for query in active}

    def query(self, query_id: str) -> RegisteredText:
        """Return a query as it is now; raise `RegistryError` if there has never been one."""
        present = self._present(query_id)
        if present is None:
            raise RegistryError(f"no query {query_id!r}")
        return present

    def history(self, query_id: str) -> list[RegisteredText]:
        """Return every state that a query has had, oldest first."""
        rows = self._rows(
            f"SELECT {_QUERY}, revision FROM query WHERE id = ? ORDER BY revision", query_id
        )
        return [_registered(row) for row in rows]

    def subscribe(
        self,
        query_id: str,
        destination: Destination,
        *,
        point: int,
        since: int | None = None,
        parameters: Mapping[str, Any] | None = None,
        options: Options | None = None,
    ) -> Subscription:
        """Add a subscription and return it, with its signing key if it is a webhook.

        It gets matches of documents above `point`, the newest one, or, looking back, above
        `since`, but not above the query's own point.
        """
        if since is not None:
            query = self.query(query_id)
            point, newest = min(max(since, query.point), point), point
        made = Subscription(
            id="sub_" + secrets.token_hex(10),
            query=query_id,
            parameters=parameters_key(parameters or {}),
            destination=destination,
            point=point,
            options=options or Options(),
        )
        with self._change() as revision:
            self._insert(made, self._now_us(), revision)
            if since is not None and parameters and point < newest:
                self._add_backfill(query_id, query.version, made.parameters, point, newest)
        return self.subscription(made.id)

    def add(self, subscriptions: Iterable[Subscription]) -> int:
        """Add subscriptions in one transaction and return how many; webhooks get a signing key.

        Ids that are there already are left as they are, so that a load can be repeated.
        """
        added = 0
        with self._change() as revision:
            now_us = self._now_us()
            for subscription in subscriptions:
                added += self._insert(subscription, now_us, revision)
        return added

    def subscription(self, subscription_id: str) -> Subscription:
        """Return one subscription, or raise `RegistryError`."""
        found = self.subscriptions_by_id([subscription_id])
        if not found:
            raise RegistryError(f"no subscription {subscription_id!r}")
        return found[subscription_id]

    def subscriptions_by_id(self, ids: Sequence[str]) -> dict[str, Subscription]:
        """Return those subscriptions that exist, with the signing keys in force."""
        marks = ",".join("?" * len(ids))
        with self._lock:
            rows = self._rows(
                f"SELECT {_SUBSCRIPTION} FROM subscription WHERE id IN ({marks})", *ids
            )
            keys = self._secrets(ids)
        return {row[0]: _subscription(row, keys.get(row[0], ())) for row in rows}

    def subscriptions(
        self, *, query: str | None = None, after: str = "", limit: int = 1_000
    ) -> list[Subscription]:
        """Return subscriptions that are not removed, by id, without their signing keys."""
        rows = self._rows(
            f"SELECT {_SUBSCRIPTION} FROM subscription WHERE id > ?1 AND state <> 'removed'"
            " AND (?2 IS NULL OR query = ?2) ORDER BY id LIMIT ?3",
            after,
            query,
            limit,
        )
        return [_subscription(row, ()) for row in rows]

    def subscription_counts(self) -> dict[str, int]:
        """Return the number of subscriptions of each query that has any; removed ones are not."""
        return dict(
            self._rows(
                "SELECT query, count(*) FROM subscription WHERE state <> 'removed' GROUP BY query"
            )
        )

    def subscription_count(self, query_id: str) -> int:
        """Return the number of subscriptions of one query; removed ones are not."""
        rows = self._rows(
            "SELECT count(*) FROM subscription WHERE query = ? AND state <> 'removed'", query_id
        )
        return int(rows[0][0])

    def changed_subscriptions(
        self, revision: int, after: str = "", *, limit: int = 5_000
    ) -> list[Subscription]:
        """Return subscriptions by (revision, id) that come behind this pair, without their keys."""
        rows = self._rows(
            f"SELECT {_SUBSCRIPTION} FROM subscription WHERE (revision, id) > (?, ?)"
            " ORDER BY revision, id LIMIT ?",
            revision,
            after,
            limit,
        )
        return [_subscription(row, ()) for row in rows]

    def assignments(self, query_id: str) -> Iterator[tuple[str, int]]:
        """Yield each assignment that someone subscribes to, with its earliest registration point.

        Disabled and paused subscriptions count: they get what they missed when they resume.
        """
        yield from self._rows(
            "SELECT parameters, min(point) FROM subscription"
            " WHERE query = ? AND state <> 'removed' GROUP BY parameters ORDER BY parameters",
            query_id,
        )

    def changed_assignments(self, revision: int) -> Iterator[tuple[str, str, int | None]]:
        """Yield each (query, assignment) of the subscriptions that have changed since a revision.

        With it comes its earliest registration point, None where nobody subscribes to it any more.
        """
        yield from self._rows(
            "SELECT query, parameters, (SELECT point FROM subscription AS present"
            "  WHERE present.query = changed.query AND present.parameters = changed.parameters"
            "  AND state <> 'removed' ORDER BY point LIMIT 1)"
            " FROM (SELECT DISTINCT query, parameters FROM subscription"
            "  WHERE revision > ? AND parameters <> '{}') AS changed",
            revision,
        )

    def set_subscription_state(
        self, subscription_id: str, state: SubscriptionState, *, reason: str = ""
    ) -> None:
        """Pause, resume, disable or remove a subscription."""
        with self._change() as revision:
            changed = self._db.execute(
                "UPDATE subscription SET state = ?, reason = ?, revision = ?"
                " WHERE id = ? AND state <> 'removed'",
                (state, reason, revision, subscription_id),
            )
            if changed.rowcount == 0:
                raise RegistryError(f"no subscription {subscription_id!r}")

    def rotate_secret(self, subscription_id: str, *, overlap: timedelta) -> str:
        """Return a new signing key; messages carry signatures of the old ones too until then."""
        self.subscription(subscription_id)
        value = new_secret()
        with self._change():
            now_us = self._now_us()
            until_us = now_us + overlap // timedelta(microseconds=1)
            self._db.execute(
                "UPDATE secret SET expires_us = ?1 WHERE subscription = ?2"
                " AND (expires_us IS NULL OR expires_us > ?1)",
                (until_us, subscription_id),
            )
            self._db.execute("DELETE FROM secret WHERE expires_us <= ?", (now_us,))
            self._add_secret(subscription_id, now_us, value)
        return value

    def suppress(self, address: str, *, reason: str) -> None:
        """Write to an e-mail address no more, whoever subscribes it."""
        with self._lock, transaction(self._db):
            self._db.execute(
                "INSERT INTO suppressed VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                (address.lower(), reason, self._now_us()),
            )

    def allow(self, address: str) -> bool:
        """Take an address off the suppression list; return whether it was there."""
        with self._lock, transaction(self._db):
            gone = self._db.execute("DELETE FROM suppressed WHERE address = ?", (address.lower(),))
            return gone.rowcount > 0

    def is_suppressed(self, address: str) -> bool:
        """Return whether an address is on the suppression list."""
        return bool(self._rows("SELECT 1 FROM suppressed WHERE address = ?", address.lower()))

    def suppressed(self) -> list[tuple[str, str, int]]:
        """Return the suppression list: address, reason, and since when."""
        return self._rows("SELECT address, reason, at_us FROM suppressed ORDER BY address")

    def key(self, name: str) -> bytes:
        """Return this broker's secret key of that name, made when it is first asked for."""
        with self._lock, transaction(self._db):
            self._db.execute(
                "INSERT INTO broker_key VALUES (?, ?) ON CONFLICT DO NOTHING",
                (name, secrets.token_bytes(32)),
            )
        return bytes(self._rows("SELECT value FROM broker_key WHERE name = ?", name)[0][0])

    @contextmanager
    def _change(self) -> Iterator[int]:
        with self._lock, transaction(self._db):
            row = self._db.execute("UPDATE revision SET number = number + 1 RETURNING number")
            yield int(row.fetchone()[0])

    def _present(self, query_id: str) -> RegisteredText | None:
        rows = self._rows(
            f"SELECT {_QUERY}, revision FROM query WHERE id = ? ORDER BY revision DESC LIMIT 1",
            query_id,
        )
        return _registered(rows[0]) if rows else None

    def _append(self, query_id: str, revision: int, row: tuple[Any, ...]) -> RegisteredText:
        now_us = self._now_us()
        self._db.execute(
            f"INSERT INTO query ({_QUERY}, revision) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (query_id, *row, now_us, revision),
        )
        registered = _registered((query_id, *row, now_us, revision))
        fields = {"stage": "registry", "query": query_id, "version": registered.version}
        _log.info(
            "the query is %s from document %d on",
            registered.state.value,
            registered.effective + 1,
            extra=fields,
        )
        return registered

    def _insert(self, subscription: Subscription, now_us: int, revision: int) -> int:
        destination = subscription.destination
        inserted = self._db.execute(
            f"INSERT INTO subscription ({_SUBSCRIPTION})"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
            (
                subscription.id,
                subscription.query,
                subscription.parameters,
                destination.kind,
                destination.address,
                subscription.point,
                subscription.state,
                subscription.reason,
                subscription.options.render(),
                subscription.created_us or now_us,
                revision,
            ),
        ).rowcount
        if inserted and destination.kind is DestinationKind.WEBHOOK:
            given = subscription.secrets or (Secret(new_secret()),)
            for secret in given:
                self._add_secret(subscription.id, now_us, secret.value)
        return inserted

    def _add_secret(self, subscription_id: str, now_us: int, value: str) -> None:
        self._db.execute(
            "INSERT INTO secret (subscription, created_us, value) VALUES (?, ?, ?)",
            (subscription_id, now_us, value),
        )

    def _secrets(self, ids: Sequence[str]) -> dict[str, tuple[Secret, ...]]:
        """Return the keys in force, newest first."""
        marks = ",".join("?" * len(ids))
        rows = self._rows(
            f"SELECT subscription, value, expires_us FROM secret WHERE subscription IN ({marks})"
            f" AND (expires_us IS NULL OR expires_us > {self._now_us()})"
            " ORDER BY subscription, expires_us IS NOT NULL, created_us DESC",
            *ids,
        )
        keys: dict[str, tuple[Secret, ...]] = {}
        for owner, value, expires_us in rows:
            keys[owner] = (*keys.get(owner, ()), Secret(value, expires_us))
        return keys

    def _rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._db.execute(sql, values).fetchall()


def _says(query: RegisteredText) -> tuple[QueryState, str, str]:
    return (query.state, query.version, query.text)


def _registered(row: tuple[Any, ...]) -> RegisteredText:
    query_id, version, text, state, *rest = row
    return RegisteredText(query_id, version, text, QueryState(state), *rest)


# Most subscribers choose the same few.
_options = lru_cache(maxsize=1_024)(Options.parse)


def _subscription(row: tuple[Any, ...], keys: tuple[Secret, ...]) -> Subscription:
    (id_, query, parameters, kind, address, point, state, reason, options, created, revision) = row
    return Subscription(
        id=id_,
        query=query,
        parameters=parameters,
        destination=Destination(DestinationKind(kind), address),
        point=point,
        state=SubscriptionState(state),
        reason=reason,
        options=_options(options),
        created_us=created,
        revision=revision,
        secrets=keys,
    )
