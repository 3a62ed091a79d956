"""Which subscription is to be served next.

Each subscription that is delivered to has a *lane*: a cursor over the matches of its topic (its
query under its parameters) and two times: `fresh_us`, from which its next match may be taken up,
None while it has none; and `ready_us`, from which it may be served at all, by a retry that is due
or that next match, None while there is nothing.  A lane does one thing at a time, so first
attempts go out in the order of matches, and no subscriber has two attempts in flight.

    sync     a subscription that changed gets its lane
    scan     new matches in the outbox make the lanes of their topics ready
    take     ready lanes are leased to a worker; the delivery row is made here, not before:
             a match for a million subscribers costs the pipeline nothing
    finish   what came of an attempt is written, and the lane is ready again, or rests

`take` and `finish` are in `broker.delivery.leases`.  Invariants:

- a delivery's id is a function of the subscription and its first match;
- a worker that dies leaves its lanes leased; when the lease runs out, the delivery row that it
  made is there, due, and is tried again under the same id;
- the cursor moves in the transaction that makes the delivery row, so nothing is skipped;
- a lane that rests has nothing committed in front of it: `scan` and `settle` are transactions
  of one file, and whichever comes second sees what the other wrote.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from broker.delivery.attempt import ESCALATION
from broker.pipeline.outbox import Outbox
from broker.registry.cadence import Cadence
from broker.registry.queries import Registry
from broker.registry.subscription import Subscription, SubscriptionState
from broker.settings.database import transaction

__all__ = ["Lanes", "forget", "settle", "settle_unleased"]

_WAKE_MAX = 5_000
"""Lanes woken in one transaction, some 20 ms, so that workers are not kept from theirs."""


class Lanes:
    """Make lanes, and make them ready.  One object serves one thread at a time."""

    def __init__(self, db: sqlite3.Connection, outbox: Outbox, registry: Registry) -> None:
        self._db = db
        self._outbox = outbox
        self._registry = registry

    def sync(self, now_us: int, *, limit: int = 5_000) -> bool:
        """Bring lanes up to the subscriptions that changed; True if there may be more."""
        revision, after = self._db.execute("SELECT revision, subscription FROM scanned").fetchone()
        if self._registry.revision() < revision:
            # It was restored from a copy, and counts from there: all of it is news.
            revision, after = 0, ""
        changed = self._registry.subscriptions.changed_sent(revision, after, limit=limit)
        if not changed:
            return False
        places = {(subscription.topic, subscription.point) for subscription in changed}
        starts = {
            (topic, point): self._outbox.matches.topic_start(*topic, point=point)
            for topic, point in places
        }
        with transaction(self._db):
            for subscription in changed:
                start = starts[subscription.topic, subscription.point]
                self._place(subscription, start, now_us)
            self._db.execute(
                "UPDATE scanned SET revision = ?, subscription = ?",
                (changed[-1].revision, changed[-1].id),
            )
        return len(changed) == limit

    def scan(self, now_us: int, *, limit: int = 1_000) -> bool:
        """Make the lanes of the next matches ready; True if there may be more."""
        seq: int = self._db.execute("SELECT seq FROM scanned").fetchone()[0]
        heads, through = self._outbox.matches.topics(seq, limit=limit)
        for topic, (head, found_us) in heads.items():
            self._wake(topic, head, min(found_us, now_us))
        if through > seq:
            # Last, and only forward: a scan that was cut off is repeated, which changes nothing.
            with transaction(self._db):
                self._db.execute("UPDATE scanned SET seq = max(seq, ?)", (through,))
        return through > seq

    def next_ready_us(self) -> int | None:
        """Return when the first lane is ready, None if all rest."""
        row = self._db.execute("SELECT min(ready_us) FROM lane WHERE ready_us IS NOT NULL")
        earliest: int | None = row.fetchone()[0]
        return earliest

    def _place(self, subscription: Subscription, start: int, now_us: int) -> None:
        if subscription.state is SubscriptionState.REMOVED:
            self._drop(subscription.id, now_us)
            return
        self._db.execute(
            "INSERT INTO lane (subscription, topic, active, cadence, seq)"
            " VALUES (?1, ?2, ?3, ?4, ?5)"
            # Only a change from stopped to active forgives what the endpoint did before.
            " ON CONFLICT DO UPDATE SET active = ?3, cadence = ?4, fresh_us = NULL,"
            " failures = iif(active, failures, 0),"
            " failing_since_us = iif(active, failing_since_us, NULL),"
            " paused_until_us = iif(active, paused_until_us, 0)",
            (
                subscription.id,
                self._topic(subscription),
                subscription.state is SubscriptionState.ACTIVE,
                subscription.options.cadence.render(),
                start,
            ),
        )
        settle_unleased(self._db, subscription.id, now_us)
        if subscription.options.escalate:
            self._place_escalation(subscription, now_us)

    def _place_escalation(self, subscription: Subscription, now_us: int) -> None:
        """Make the second lane, which no match wakes; a first address that is gone stops it not."""
        is_active = subscription.state in (SubscriptionState.ACTIVE, SubscriptionState.DISABLED)
        self._db.execute(
            "INSERT INTO lane (subscription, topic, active, cadence, seq) VALUES (?1, 0, ?2, '', 0)"
            " ON CONFLICT DO UPDATE SET active = ?2",
            (subscription.id + ESCALATION, is_active),
        )
        settle_unleased(self._db, subscription.id + ESCALATION, now_us)

    def _drop(self, subscription_id: str, now_us: int) -> None:
        for lane in (subscription_id, subscription_id + ESCALATION):
            forget(self._db, lane)
            self._db.execute(
                "UPDATE delivery SET state = 'cancelled', next_us = NULL, changed_us = ?"
                " WHERE subscription = ? AND next_us IS NOT NULL",
                (now_us, lane),
            )

    def _topic(self, subscription: Subscription) -> int:
        found = self._db.execute(
            "SELECT number FROM topic WHERE query = ? AND parameters = ?", subscription.topic
        ).fetchone()
        if found:
            return int(found[0])
        made = self._db.execute(
            "INSERT INTO topic (query, parameters, head) VALUES (?, ?, ?)",
            (*subscription.topic, self._outbox.matches.head(*subscription.topic)),
        )
        return int(made.lastrowid or 0)

    def _wake(self, topic: tuple[str, str], head: int, found_us: int) -> None:
        with transaction(self._db):
            found = self._db.execute(
                "UPDATE topic SET head = max(head, ?) WHERE query = ? AND parameters = ?"
                " RETURNING number",
                (head, *topic),
            ).fetchone()
        # A topic without a lane has no row; its first lane reads the head from the outbox.
        for cadence in self._resting(found[0]) if found else ():
            fresh_us = Cadence.parse(cadence).due_us(found_us)
            while self._wake_some(found[0], cadence, fresh_us) == _WAKE_MAX:
                pass

    def _resting(self, topic: int) -> Iterator[str]:
        """Yield each cadence of a topic's lanes that rest: of many lanes, few."""
        cadence: str | None = ""
        while cadence is not None:
            row = self._db.execute(
                "SELECT min(cadence) FROM lane WHERE topic = ? AND cadence > ?"
                " AND fresh_us IS NULL AND active",
                (topic, cadence),
            )
            cadence = row.fetchone()[0]
            if cadence is not None:
                yield cadence

    def _wake_some(self, topic: int, cadence: str, fresh_us: int) -> int:
        with transaction(self._db):
            # A leased lane keeps the end of its lease in `ready_us`; `settle` follows.
            return self._db.execute(
                "UPDATE lane SET fresh_us = ?1, ready_us = iif(owner <> '', ready_us,"
                " max(min(coalesce(ready_us, ?1), ?1), paused_until_us))"
                " WHERE subscription IN (SELECT subscription FROM lane"
                " WHERE topic = ?2 AND cadence = ?3 AND fresh_us IS NULL AND active LIMIT ?4)",
                (fresh_us, topic, cadence, _WAKE_MAX),
            ).rowcount


def forget(db: sqlite3.Connection, subscription_id: str) -> None:
    """Remove a lane.  Part of the caller's transaction."""
    db.execute("DELETE FROM lane WHERE subscription = ?", (subscription_id,))
    db.execute("DELETE FROM snooze WHERE subscription = ?", (subscription_id,))


def settle_unleased(db: sqlite3.Connection, lane: str, now_us: int) -> None:
    """Write when a lane is ready next; what is under a lease is settled when it is finished."""
    leased = "SELECT 1 FROM lane WHERE subscription = ? AND owner <> ''"
    if not db.execute(leased, (lane,)).fetchone():
        settle(db, lane, now_us)


def settle(
    db: sqlite3.Connection, subscription_id: str, now_us: int, not_before_us: int = 0
) -> None:
    """End a lane's lease and write when it is ready next.  Part of the caller's transaction."""
    lane = db.execute(
        "SELECT active, cadence, lane.seq, fresh_us, paused_until_us, coalesce(head, 0),"
        " (SELECT min(next_us) FROM delivery"
        "  WHERE delivery.subscription = lane.subscription AND next_us IS NOT NULL)"
        " FROM lane LEFT JOIN topic ON topic.number = lane.topic WHERE lane.subscription = ?",
        (subscription_id,),
    ).fetchone()
    if lane is None:
        return
    active, cadence, seq, fresh_us, paused_until_us, head, retry_us = lane
    if fresh_us is None and head > seq:
        fresh_us = Cadence.parse(cadence).due_us(now_us)
    times = [time for time in (fresh_us, retry_us) if time is not None]
    ready_us = max(min(times), paused_until_us, not_before_us) if active and times else None
    db.execute(
        "UPDATE lane SET owner = '', fresh_us = ?, ready_us = ? WHERE subscription = ?",
        (fresh_us if active else None, ready_us, subscription_id),
    )
