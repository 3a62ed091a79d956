"""The subscriptions of a broker, with the keys that their webhooks are signed with.

A subscription has one row, which names the revision of its last change; readers ask for what
has changed since they last looked.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from functools import lru_cache
from typing import Any

from broker.registryfile import RegistryError, RegistryFile
from broker.subscription import (
    Destination,
    DestinationKind,
    Options,
    Secret,
    Subscription,
    SubscriptionState,
)

__all__ = ["Subscriptions"]

_SUBSCRIPTION = (
    "id, query, parameters, kind, address, point, state, reason, options, created_us, revision"
)


class Subscriptions:
    """The subscriptions in a registry's file."""

    def __init__(self, file: RegistryFile) -> None:
        self._file = file

    def add(self, subscriptions: Iterable[Subscription]) -> int:
        """Add subscriptions in one transaction and return how many; webhooks get a signing key.

        Ids that are there already are left as they are, so that a load can be repeated.
        """
        with self._file.change() as revision:
            return sum(self.insert(subscription, revision) for subscription in subscriptions)

    def insert(self, subscription: Subscription, revision: int) -> int:
        """Add a subscription as part of a change; return 1, or 0 where its id is there already."""
        destination = subscription.destination
        now_us = self._file.now_us()
        inserted = self._file.db.execute(
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
            given = subscription.secrets or (Secret(_new_secret()),)
            for secret in given:
                self._add_secret(subscription.id, now_us, secret.value)
        return inserted

    def get(self, subscription_id: str) -> Subscription:
        """Return one subscription, or raise `RegistryError`."""
        found = self.by_id([subscription_id])
        if not found:
            raise RegistryError(f"no subscription {subscription_id!r}")
        return found[subscription_id]

    def by_id(self, ids: Sequence[str]) -> dict[str, Subscription]:
        """Return those subscriptions that exist, with the signing keys in force."""
        marks = ",".join("?" * len(ids))
        with self._file.lock:
            rows = self._file.rows(
                f"SELECT {_SUBSCRIPTION} FROM subscription WHERE id IN ({marks})", *ids
            )
            keys = self._secrets(ids)
        return {row[0]: _subscription(row, keys.get(row[0], ())) for row in rows}

    def find(
        self, *, query: str | None = None, after: str = "", limit: int = 1_000
    ) -> list[Subscription]:
        """Return subscriptions that are not removed, by id, without their signing keys."""
        rows = self._file.rows(
            f"SELECT {_SUBSCRIPTION} FROM subscription WHERE id > ?1 AND state <> 'removed'"
            " AND (?2 IS NULL OR query = ?2) ORDER BY id LIMIT ?3",
            after,
            query,
            limit,
        )
        return [_subscription(row, ()) for row in rows]

    def counts(self) -> dict[str, int]:
        """Return the number of subscriptions of each query that has any; removed ones are not."""
        return dict(
            self._file.rows(
                "SELECT query, count(*) FROM subscription WHERE state <> 'removed' GROUP BY query"
            )
        )

    def count(self, query_id: str) -> int:
        """Return the number of subscriptions of one query; removed ones are not."""
        rows = self._file.rows(
            "SELECT count(*) FROM subscription WHERE query = ? AND state <> 'removed'", query_id
        )
        return int(rows[0][0])

    def changed(self, revision: int, after: str = "", *, limit: int = 5_000) -> list[Subscription]:
        """Return subscriptions by (revision, id) that come behind this pair, without their keys."""
        rows = self._file.rows(
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
        yield from self._file.rows(
            "SELECT parameters, min(point) FROM subscription"
            " WHERE query = ? AND state <> 'removed' GROUP BY parameters ORDER BY parameters",
            query_id,
        )

    def changed_assignments(self, revision: int) -> Iterator[tuple[str, str, int | None]]:
        """Yield each (query, assignment) of the subscriptions that have changed since a revision.

        With it comes its earliest registration point, None where nobody subscribes to it any more.
        """
        yield from self._file.rows(
            "SELECT query, parameters, (SELECT point FROM subscription AS present"
            "  WHERE present.query = changed.query AND present.parameters = changed.parameters"
            "  AND state <> 'removed' ORDER BY point LIMIT 1)"
            " FROM (SELECT DISTINCT query, parameters FROM subscription"
            "  WHERE revision > ? AND parameters <> '{}') AS changed",
            revision,
        )

    def set_state(
        self, subscription_id: str, state: SubscriptionState, *, reason: str = ""
    ) -> None:
        """Pause, resume, disable or remove a subscription."""
        with self._file.change() as revision:
            changed = self._file.db.execute(
                "UPDATE subscription SET state = ?, reason = ?, revision = ?"
                " WHERE id = ? AND state <> 'removed'",
                (state, reason, revision, subscription_id),
            )
            if changed.rowcount == 0:
                raise RegistryError(f"no subscription {subscription_id!r}")

    def rotate_secret(self, subscription_id: str, *, overlap: timedelta) -> str:
        """Return a new signing key; messages carry signatures of the old ones too until then."""
        self.get(subscription_id)
        value = _new_secret()
        with self._file.change():
            now_us = self._file.now_us()
            until_us = now_us + overlap // timedelta(microseconds=1)
            self._file.db.execute(
                "UPDATE secret SET expires_us = ?1 WHERE subscription = ?2"
                " AND (expires_us IS NULL OR expires_us > ?1)",
                (until_us, subscription_id),
            )
            self._file.db.execute("DELETE FROM secret WHERE expires_us <= ?", (now_us,))
            self._add_secret(subscription_id, now_us, value)
        return value

    def _add_secret(self, subscription_id: str, now_us: int, value: str) -> None:
        self._file.db.execute(
            "INSERT INTO secret (subscription, created_us, value) VALUES (?, ?, ?)",
            (subscription_id, now_us, value),
        )

    def _secrets(self, ids: Sequence[str]) -> dict[str, tuple[Secret, ...]]:
        """Return the keys in force, newest first."""
        marks = ",".join("?" * len(ids))
        rows = self._file.rows(
            f"SELECT subscription, value, expires_us FROM secret WHERE subscription IN ({marks})"
            f" AND (expires_us IS NULL OR expires_us > {self._file.now_us()})"
            " ORDER BY subscription, expires_us IS NOT NULL, created_us DESC",
            *ids,
        )
        keys: dict[str, tuple[Secret, ...]] = {}
        for owner, value, expires_us in rows:
            keys[owner] = (*keys.get(owner, ()), Secret(value, expires_us))
        return keys


def _new_secret() -> str:
    """Return a fresh signing key as Standard Webhooks writes it."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


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
