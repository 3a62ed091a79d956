"""Durable named consumers: a cursor that the broker keeps, and matches that wait for an answer.

A match that was fetched is *pending* until it is acknowledged; unanswered, it is fetched again
when its time is over, at most `deliver_max` times, and then is a dead letter of its subscription.
Answers can come twice, or for what is no longer pending: they change nothing then.

Invariant: each match of the subscription is in front of the cursor, pending, answered, or a
dead letter.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from broker.delivery.store import delivery_id
from broker.pipeline.matchlog import CommittedMatch
from broker.pipeline.outbox import Outbox
from broker.registry.subscription import Subscription
from broker.settings.database import transaction

__all__ = ["ConsumerError", "ConsumerSettings", "Consumers", "DurableConsumer", "Fetched"]


class ConsumerError(LookupError):
    """There is no such consumer, or there is one with other settings."""


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    """What a consumer is made with.  `start` is the match number that it begins behind."""

    start: int
    ack_wait_us: int = 30_000_000
    deliver_max: int = 20
    pending_max: int = 1_000


@dataclass(frozen=True, slots=True)
class DurableConsumer:
    """A consumer as it stands: `seq` is the number of the newest match that it has fetched."""

    number: int
    subscription: str
    name: str
    seq: int
    ack_wait_us: int
    deliver_max: int
    pending_max: int
    created_us: int
    pending: int


@dataclass(frozen=True, slots=True)
class Fetched:
    """A match for a consumer, for the `attempt`-th time."""

    match: CommittedMatch
    attempt: int


class Consumers:
    """The consumers in the file of deliveries.  One object serves one thread at a time."""

    def __init__(self, db: sqlite3.Connection, outbox: Outbox) -> None:
        self._db = db
        self._outbox = outbox

    def create(
        self, subscription: Subscription, name: str, settings: ConsumerSettings, now_us: int
    ) -> DurableConsumer:
        """Make a consumer; one that is there stays where it is, under its own settings."""
        with transaction(self._db):
            self._db.execute(
                "INSERT INTO consumer (subscription, name, seq, ack_wait_us, deliver_max,"
                " pending_max, created_us) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (
                    subscription.id,
                    name,
                    settings.start,
                    settings.ack_wait_us,
                    settings.deliver_max,
                    settings.pending_max,
                    now_us,
                ),
            )
        return self.consumer(subscription.id, name)

    def consumer(self, subscription_id: str, name: str) -> DurableConsumer:
        """Return a consumer, or raise `ConsumerError`."""
        for consumer in self.consumers(subscription_id):
            if consumer.name == name:
                return consumer
        raise ConsumerError(f"no consumer {name!r}")

    def consumers(self, subscription_id: str) -> list[DurableConsumer]:
        """Return a subscription's consumers, by name."""
        rows = self._db.execute(
            "SELECT consumer.*, (SELECT count(*) FROM pending WHERE consumer = consumer.number)"
            " FROM consumer WHERE subscription = ? ORDER BY name",
            (subscription_id,),
        )
        return [DurableConsumer(*row) for row in rows.fetchall()]

    def remove(self, subscription_id: str, name: str) -> None:
        """Forget a consumer and what it has pending."""
        consumer = self.consumer(subscription_id, name)
        with transaction(self._db):
            self._db.execute("DELETE FROM pending WHERE consumer = ?", (consumer.number,))
            self._db.execute("DELETE FROM consumer WHERE number = ?", (consumer.number,))

    def fetch(
        self, subscription: Subscription, name: str, *, limit: int, now_us: int
    ) -> list[Fetched]:
        """Return what is due again and what is new, in order, each pending from now on."""
        consumer = self.consumer(subscription.id, name)
        with transaction(self._db):
            self._bury(consumer, now_us)
            again = self._due(consumer, limit, now_us)
            room = min(limit - len(again), consumer.pending_max - consumer.pending)
            fresh = self._fresh(subscription, consumer, room) if room > 0 else []
            fetched = [*again, *fresh]
            self._db.executemany(
                "INSERT OR REPLACE INTO pending VALUES (?, ?, ?, ?)",
                [
                    (consumer.number, one.match.seq, one.attempt, now_us + consumer.ack_wait_us)
                    for one in fetched
                ],
            )
            if fresh:
                self._db.execute(
                    "UPDATE consumer SET seq = ? WHERE number = ?",
                    (fresh[-1].match.seq, consumer.number),
                )
        return fetched

    def acknowledge(self, subscription_id: str, name: str, seqs: Sequence[int]) -> int:
        """Take matches as done; return how many were pending."""
        consumer = self.consumer(subscription_id, name)
        with transaction(self._db):
            return self._forget(consumer, seqs)

    def put_off(
        self, subscription_id: str, name: str, seqs: Sequence[int], *, until_us: int
    ) -> int:
        """Let matches be fetched again from then on: a refusal (nak), or more time to work."""
        consumer = self.consumer(subscription_id, name)
        with transaction(self._db):
            changed = self._db.executemany(
                "UPDATE pending SET due_us = ? WHERE consumer = ? AND seq = ?",
                [(until_us, consumer.number, seq) for seq in seqs],
            )
            return changed.rowcount

    def terminate(
        self, subscription_id: str, name: str, seqs: Sequence[int], *, reason: str, now_us: int
    ) -> int:
        """Give matches up: they are dead letters, not fetched again."""
        consumer = self.consumer(subscription_id, name)
        with transaction(self._db):
            pending = [seq for seq in seqs if self._attempts(consumer, seq) is not None]
            for seq in pending:
                self._write_dead(consumer, seq, reason, now_us)
            return self._forget(consumer, pending)

    def next_due_us(self, subscription_id: str, name: str) -> int | None:
        """Return when the first pending match is fetched again."""
        consumer = self.consumer(subscription_id, name)
        row = self._db.execute(
            "SELECT min(due_us) FROM pending WHERE consumer = ?", (consumer.number,)
        )
        earliest: int | None = row.fetchone()[0]
        return earliest

    def _due(self, consumer: DurableConsumer, limit: int, now_us: int) -> list[Fetched]:
        rows = self._db.execute(
            "SELECT seq, attempts FROM pending WHERE consumer = ? AND due_us <= ?"
            " ORDER BY seq LIMIT ?",
            (consumer.number, now_us, limit),
        ).fetchall()
        found = ((self._outbox.matches.find(seq - 1, limit=1), attempts) for seq, attempts in rows)
        return [Fetched(matches[0], attempts + 1) for matches, attempts in found if matches]

    def _fresh(
        self, subscription: Subscription, consumer: DurableConsumer, room: int
    ) -> list[Fetched]:
        matches = self._outbox.matches.of_topic(
            *subscription.topic,
            after=consumer.seq,
            point=subscription.point,
            until=subscription.until,
            limit=room,
        )
        return [Fetched(match, 1) for match in matches]

    def _bury(self, consumer: DurableConsumer, now_us: int) -> None:
        rows = self._db.execute(
            "SELECT seq FROM pending WHERE consumer = ? AND due_us <= ? AND attempts >= ?",
            (consumer.number, now_us, consumer.deliver_max),
        ).fetchall()
        for (seq,) in rows:
            reason = f"consumer {consumer.name} did not acknowledge it"
            self._write_dead(consumer, seq, reason, now_us)
        self._forget(consumer, [seq for (seq,) in rows])

    def _attempts(self, consumer: DurableConsumer, seq: int) -> int | None:
        row = self._db.execute(
            "SELECT attempts FROM pending WHERE consumer = ? AND seq = ?", (consumer.number, seq)
        ).fetchone()
        return None if row is None else int(row[0])

    def _forget(self, consumer: DurableConsumer, seqs: Sequence[int]) -> int:
        return self._db.executemany(
            "DELETE FROM pending WHERE consumer = ? AND seq = ?",
            [(consumer.number, seq) for seq in seqs],
        ).rowcount

    def _write_dead(self, consumer: DurableConsumer, seq: int, reason: str, now_us: int) -> None:
        (match,) = self._outbox.matches.find(seq - 1, limit=1)
        attempts = self._attempts(consumer, seq) or 0
        made = self._db.execute(
            "INSERT INTO delivery (id, subscription, first_seq, seq, state, attempts, next_us,"
            " created_us, changed_us) VALUES (?1, ?2, ?3, ?3, 'dead', ?4, NULL, ?5, ?5)"
            " ON CONFLICT (id) DO UPDATE SET attempts = ?4, changed_us = ?5",
            (
                delivery_id(f"{consumer.subscription}/{consumer.name}", match.id),
                consumer.subscription,
                seq,
                attempts,
                now_us,
            ),
        )
        self._db.execute(
            "INSERT OR REPLACE INTO attempt VALUES (?, ?, ?, 'refused', NULL, ?, 0)",
            (made.lastrowid, attempts, now_us, reason),
        )
