"""Take what is ready under a lease, and write what came of it.

See `broker.delivery.lanes` for the whole and for what must never happen.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from broker.database import transaction
from broker.delivery.attempt import RESPONSE_KEPT_MAX, Outcome
from broker.delivery.lanes import settle
from broker.delivery.schedule import Fate, Health
from broker.delivery.store import DeliveryState, Finished, Taken, delivery_id
from broker.outbox import CommittedMatch, Outbox
from broker.registry import Registry
from broker.subscription import DestinationKind, Digest, Subscription

__all__ = ["DIGEST_MAX", "Leases"]

DIGEST_MAX = 200
"""Matches in one digest.  What is more follows in the next message, at once."""

_FOREVER = 1 << 62

_STATES = {
    Fate.DELIVERED: DeliveryState.DELIVERED,
    Fate.RETRY: DeliveryState.DUE,
    Fate.DEAD: DeliveryState.DEAD,
}


@dataclass(frozen=True, slots=True)
class _Lane:
    subscription: str
    seq: int
    fresh_us: int | None
    head: int
    health: Health


_Cache = dict[tuple[object, ...], list[CommittedMatch]]


class Leases:
    """One owner's leases.  One object serves one thread at a time; processes may share the file."""

    def __init__(
        self, db: sqlite3.Connection, outbox: Outbox, registry: Registry, owner: str
    ) -> None:
        self._db = db
        self._outbox = outbox
        self._registry = registry
        self._owner = owner

    def take(self, room: int, now_us: int, lease_us: int) -> list[Taken]:
        """Lease at most `room` lanes that are ready, and return what to do for each."""
        with transaction(self._db):
            lanes = self._ready(room, now_us)
            known = self._registry.subscriptions_by_id([lane.subscription for lane in lanes])
            # Lanes of one topic mostly stand at the same match: it is read once.
            cache: _Cache = {}
            taken = []
            for lane in lanes:
                subscription = known.get(lane.subscription)
                work = self._choose(lane, subscription, cache, now_us) if subscription else None
                if work is None:
                    settle(self._db, lane.subscription, now_us)
                else:
                    taken.append(work)
            self._db.executemany(
                "UPDATE lane SET owner = ?, ready_us = ? WHERE subscription = ?",
                [(self._owner, now_us + lease_us, work.subscription.id) for work in taken],
            )
        return taken

    def finish(self, finished: Iterable[Finished], now_us: int) -> None:
        """Write what came of leased work, and make its lanes ready for what is next."""
        with transaction(self._db):
            for one in finished:
                held = self._write_health(one)
                if one.outcome is not None:
                    self._write_attempt(one, one.outcome)
                    # Who lost the lease may be behind another worker; a success is true anyway.
                    if held or one.decision.fate is Fate.DELIVERED:
                        self._write_fate(one, now_us)
                if held:
                    parked_us = one.decision.next_us if one.outcome is None else 0
                    settle(self._db, one.taken.subscription.id, now_us, parked_us)

    def renew(self, until_us: int) -> None:
        """Extend the leases."""
        with transaction(self._db):
            self._db.execute(
                "UPDATE lane SET ready_us = ? WHERE owner = ? AND owner <> ''",
                (until_us, self._owner),
            )

    def release_dead(self, is_dead: Callable[[str], bool], now_us: int) -> None:
        """End the leases of owners that are known to be dead, before they run out."""
        owners = self._db.execute("SELECT DISTINCT owner FROM lane WHERE owner <> ''").fetchall()
        dead = [owner for (owner,) in owners if is_dead(owner)]
        with transaction(self._db):
            self._db.executemany(
                "UPDATE lane SET ready_us = ?, owner = '' WHERE owner = ? AND owner <> ''",
                [(now_us, owner) for owner in dead],
            )

    def _ready(self, room: int, now_us: int) -> list[_Lane]:
        rows = self._db.execute(
            "SELECT subscription, lane.seq, fresh_us, head,"
            " failures, failing_since_us, paused_until_us"
            " FROM lane JOIN topic ON topic.number = lane.topic"
            " WHERE ready_us <= ? ORDER BY ready_us LIMIT ?",
            (now_us, room),
        )
        return [
            _Lane(name, seq, fresh_us, head, Health(*health))
            for name, seq, fresh_us, head, *health in rows.fetchall()
        ]

    def _choose(
        self, lane: _Lane, subscription: Subscription, cache: _Cache, now_us: int
    ) -> Taken | None:
        """Return the retry that is due longest, else the next match, else None."""
        due = self._db.execute(
            "SELECT number, id, attempts, first_seq, seq FROM delivery"
            " WHERE subscription = ? AND next_us <= ? ORDER BY next_us, number LIMIT 1",
            (lane.subscription, now_us),
        ).fetchone()
        if due:
            row, id_, attempts, first, last = due
            matches = self._matches(subscription, first - 1, last, cache)
            return Taken(row, id_, attempts + 1, subscription, matches, lane.health)
        if lane.fresh_us is None or lane.fresh_us > now_us:
            return None
        matches = self._matches(subscription, lane.seq, _FOREVER, cache)
        if not matches:
            self._advance(lane, max(lane.seq, lane.head), None)
            return None
        id_ = delivery_id(subscription.id, matches[0].id)
        row = self._make(id_, subscription, matches, now_us)
        rest = len(matches) == DIGEST_MAX and subscription.options.digest is not Digest.IMMEDIATE
        self._advance(lane, matches[-1].seq, now_us if rest else None)
        return Taken(row, id_, 1, subscription, matches, lane.health)

    def _matches(
        self, subscription: Subscription, after: int, through: int, cache: _Cache
    ) -> Sequence[CommittedMatch]:
        limit = _limit(subscription) if through == _FOREVER else _FOREVER
        key = (subscription.topic, after, through, subscription.point, limit)
        if key not in cache:
            cache[key] = self._outbox.topic_matches(
                *subscription.topic,
                after=after,
                through=through,
                point=subscription.point,
                limit=limit,
            )
        return cache[key]

    def _make(
        self, id_: str, subscription: Subscription, matches: Sequence[CommittedMatch], now_us: int
    ) -> int:
        made = self._db.execute(
            "INSERT INTO delivery (id, subscription, first_seq, seq, state, attempts, next_us,"
            " created_us, changed_us) VALUES (?1, ?2, ?3, ?4, 'due', 0, ?5, ?5, ?5)",
            (id_, subscription.id, matches[0].seq, matches[-1].seq, now_us),
        )
        return int(made.lastrowid or 0)

    def _advance(self, lane: _Lane, seq: int, fresh_us: int | None) -> None:
        self._db.execute(
            "UPDATE lane SET seq = ?, fresh_us = ? WHERE subscription = ?",
            (seq, fresh_us, lane.subscription),
        )

    def _write_health(self, one: Finished) -> bool:
        """Keep the record of the endpoint; return whether the lease is still held."""
        health = one.decision.health
        updated = self._db.execute(
            "UPDATE lane SET failures = ?, failing_since_us = ?, paused_until_us = ?"
            " WHERE subscription = ? AND owner = ?",
            (
                health.failures,
                health.failing_since_us,
                health.paused_until_us,
                one.taken.subscription.id,
                self._owner,
            ),
        )
        return updated.rowcount > 0

    def _write_attempt(self, one: Finished, outcome: Outcome) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO attempt VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                one.taken.row,
                one.taken.number,
                one.at_us,
                outcome.kind,
                outcome.status,
                outcome.detail[:RESPONSE_KEPT_MAX],
                outcome.elapsed_us,
            ),
        )

    def _write_fate(self, one: Finished, now_us: int) -> None:
        fate = one.decision.fate
        self._db.execute(
            "UPDATE delivery SET state = ?, attempts = ?, next_us = ?, changed_us = ?"
            " WHERE number = ? AND state <> 'cancelled'",
            (
                _STATES[fate],
                one.taken.number,
                one.decision.next_us if fate is Fate.RETRY else None,
                now_us,
                one.taken.row,
            ),
        )


def _limit(subscription: Subscription) -> int:
    if subscription.options.digest is not Digest.IMMEDIATE:
        return DIGEST_MAX
    if subscription.destination.kind is DestinationKind.WEBHOOK:
        return subscription.options.batch_max
    return 1
