"""The subscriptions of a broker, with the keys that their webhooks are signed with.

A subscription has one row, which names the revision of its last change; who sends matches asks
for what has changed since it last looked.  Subscriptions that pull are none of its business, and
of a million there may be no other.

It is in force at the revisions in [begun, ended), and so for the documents of the segments that
name one of them.  Whoever removes a subscription ends it and wants nothing more.  The removal of a
query ends its subscriptions too, without a change of theirs: a query may have a million.  They stay
for what they have not got yet, the matches of documents up to the newest one of then, `until`.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from functools import lru_cache
from typing import Any

from broker.registry.file import RegistryError, RegistryFile
from broker.registry.subscription import (
    Destination,
    DestinationKind,
    Options,
    Secret,
    Subscription,
    SubscriptionState,
)
from joins import UNBOUNDED

__all__ = ["Subscriptions"]

_COLUMNS = (
    "id, query, parameters, kind, address, point, state, reason, options, created_us, revision"
)

_REMOVAL = (
    "FROM query WHERE query.id = subscription.query AND query.state = 'removed'"
    " AND query.revision > begun"
)
# Of the removal of its query, where that came first.
_UNTIL = f"coalesce(until, (SELECT effective {_REMOVAL} ORDER BY query.revision LIMIT 1))"
_SUBSCRIPTION = f"{_COLUMNS}, {_UNTIL}"

# At revision ?1, `UNBOUNDED` for now: a query that was removed before has others since.
_IN_FORCE = (
    "begun <= ?1 AND (ended IS NULL OR ended > ?1) AND begun >= (SELECT coalesce(max(revision), 0)"
    " FROM query WHERE id = {query} AND state = 'removed' AND revision <= ?1)"
)

_REMOVED_MAX = 5_000
"""Subscriptions removed in one transaction, so that others are not kept from theirs."""


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
            f"INSERT INTO subscription ({_COLUMNS}, begun)"
            " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?11)"
            " ON CONFLICT (id) DO NOTHING",
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
        if inserted and any(kind.is_signed for kind in _kinds(subscription)):
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
        """Return subscriptions that are not removed, by id, without their signing keys.

        Subscriptions that their query's removal has ended are among them.
        """
        rows = self._file.rows(
            f"SELECT {_SUBSCRIPTION} FROM subscription WHERE id > ?1 AND state <> 'removed'"
            " AND (?2 IS NULL OR query = ?2) ORDER BY id LIMIT ?3",
            after,
            query,
            limit,
        )
        return [_subscription(row, ()) for row in rows]

    def counts(self) -> dict[str, int]:
        """Return the number of subscriptions in force of each query that has any."""
        return dict(
            self._file.rows(
                "SELECT query, count(*) FROM subscription LEFT JOIN (SELECT id AS removed,"
                "  max(revision) AS over FROM query WHERE state = 'removed' GROUP BY id)"
                " ON removed = query WHERE ended IS NULL AND begun >= coalesce(over, 0)"
                " GROUP BY query"
            )
        )

    def count(self, query_id: str) -> int:
        """Return the number of subscriptions of one query that are in force."""
        rows = self._file.rows(
            "SELECT count(*) FROM subscription"
            f" WHERE query = ?2 AND {_IN_FORCE.format(query='?2')}",
            UNBOUNDED,
            query_id,
        )
        return int(rows[0][0])

    def changed_sent(
        self, revision: int, after: str = "", *, limit: int = 5_000
    ) -> list[Subscription]:
        """Return subscriptions by (revision, id) that come behind this pair, without their keys.

        Those that pull are passed over.
        """
        rows = self._file.rows(
            f"SELECT {_SUBSCRIPTION} FROM subscription WHERE kind <> 'pull'"
            " AND (revision, id) > (?, ?) ORDER BY revision, id LIMIT ?",
            revision,
            after,
            limit,
        )
        return [_subscription(row, ()) for row in rows]

    def assignments(self, query_id: str, *, as_of: int | None = None) -> Iterator[tuple[str, int]]:
        """Yield each assignment that someone subscribes to, with its earliest registration point.

        Now, or as of a revision.  Disabled and paused subscriptions count: they get what they
        missed when they resume.
        """
        yield from self._file.rows(
            "SELECT parameters, min(point) FROM subscription"
            f" WHERE query = ?2 AND {_IN_FORCE.format(query='?2')}"
            " GROUP BY parameters ORDER BY parameters",
            UNBOUNDED if as_of is None else as_of,
            query_id,
        )

    def first_point(self, query_id: str, parameters: str) -> int | None:
        """Return the earliest registration point of an assignment, None if nobody has it now."""
        rows = self._file.rows(
            "SELECT point FROM subscription WHERE query = ?2 AND parameters = ?3"
            f" AND {_IN_FORCE.format(query='?2')} ORDER BY point LIMIT 1",
            UNBOUNDED,
            query_id,
            parameters,
        )
        return int(rows[0][0]) if rows else None

    def changed_assignments(
        self, before: int, version: int
    ) -> Iterator[tuple[str, str, int | None]]:
        """Yield each (query, assignment) that may differ between two revisions.

        With it comes its earliest registration point at `version`, None where nobody subscribes to
        it then.
        """
        yield from self._file.rows(
            "SELECT query, parameters, (SELECT point FROM subscription AS present"
            "  WHERE present.query = changed.query AND present.parameters = changed.parameters"
            f"  AND {_IN_FORCE.format(query='changed.query')} ORDER BY point LIMIT 1)"
            " FROM (SELECT query, parameters FROM subscription"
            "  WHERE begun > ?2 AND begun <= ?3 AND parameters <> '{}'"
            "  UNION SELECT query, parameters FROM subscription"
            "  WHERE ended > ?2 AND ended <= ?3 AND parameters <> '{}') AS changed",
            version,
            *sorted((before, version)),
        )

    def set_state(
        self, subscription_id: str, state: SubscriptionState, *, reason: str = ""
    ) -> None:
        """Pause, resume or disable a subscription."""
        with self._file.change() as revision:
            self._set_state(subscription_id, state, reason, revision)

    def confirm(self, subscription_id: str) -> bool:
        """Have an unconfirmed subscription delivered; return whether it was unconfirmed."""
        with self._file.change() as revision:
            changed = self._file.db.execute(
                "UPDATE subscription SET state = ?, reason = '', revision = ?"
                " WHERE id = ? AND state = ?",
                (
                    SubscriptionState.ACTIVE,
                    revision,
                    subscription_id,
                    SubscriptionState.UNCONFIRMED,
                ),
            )
            return changed.rowcount > 0

    def remove(self, subscription_id: str, *, until: int, reason: str = "") -> None:
        """Remove a subscription: it ends with document `until`, the newest one, if not before."""
        with self._file.change() as revision:
            self._set_state(subscription_id, SubscriptionState.REMOVED, reason, revision)
            self._file.db.execute(
                f"UPDATE subscription SET ended = ?, until = coalesce({_UNTIL}, ?) WHERE id = ?",
                (revision, until, subscription_id),
            )

    def remove_ended(self, *, before_us: int) -> None:
        """Remove subscriptions of queries removed before then, even if they did not get all.

        `before_us` is compared with the time at which the query was removed.
        """
        after = ""
        while ids := self._ended(before_us, after):
            after = ids[-1]
            with self._file.change() as revision:
                self._file.db.executemany(
                    "UPDATE subscription SET state = ?, revision = ? WHERE id = ?",
                    [(SubscriptionState.REMOVED, revision, id_) for id_ in ids],
                )

    def _ended(self, before_us: int, after: str) -> list[str]:
        rows = self._file.rows(
            "SELECT id FROM subscription WHERE id > ? AND state <> 'removed'"
            f" AND EXISTS (SELECT 1 {_REMOVAL} AND changed_us < ?) ORDER BY id LIMIT ?",
            after,
            before_us,
            _REMOVED_MAX,
        )
        return [id_ for (id_,) in rows]

    def _set_state(
        self, subscription_id: str, state: SubscriptionState, reason: str, revision: int
    ) -> None:
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


def _kinds(subscription: Subscription) -> set[DestinationKind]:
    """Return the kinds of destinations that a subscription is sent to."""
    second = subscription.options.escalate
    first = {subscription.destination.kind}
    return first | {Destination.parse(second).kind} if second else first


def _new_secret() -> str:
    """Return a fresh signing key as Standard Webhooks writes it."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


# Most subscribers choose the same few.
_options = lru_cache(maxsize=1_024)(Options.parse)


def _subscription(row: tuple[Any, ...], keys: tuple[Secret, ...]) -> Subscription:
    (id_, query, parameters, kind, address, point, state, reason, options, *rest) = row
    created, revision, until = rest
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
        until=until,
        secrets=keys,
    )
