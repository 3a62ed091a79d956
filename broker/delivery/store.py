"""The file of deliveries: what subscribers are owed, were sent, and answered.

It is apart from the outbox, so that deliveries never make the pipeline wait, and is written
without a disk flush for each transaction: a power cut repeats deliveries, under their ids, and
loses none, because what a subscriber is owed follows from the outbox and the registry.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from broker.delivery.attempt import Outcome
from broker.delivery.schedule import Consequence, EndpointHealth
from broker.pipeline.matchlog import CommittedMatch
from broker.registry.subscription import Subscription
from broker.settings.database import connect

__all__ = [
    "DeliveryState",
    "Finished",
    "Taken",
    "delivery_id",
    "open_deliveries",
]

_STEPS = (
    """
    CREATE TABLE scanned (one INTEGER PRIMARY KEY CHECK (one = 1),
        seq INTEGER NOT NULL, revision INTEGER NOT NULL, subscription TEXT NOT NULL);
    INSERT INTO scanned VALUES (1, 0, 0, '');
    CREATE TABLE topic (
        number INTEGER PRIMARY KEY,
        query TEXT NOT NULL,
        parameters TEXT NOT NULL,
        head INTEGER NOT NULL DEFAULT 0,
        UNIQUE (query, parameters));
    CREATE TABLE lane (
        subscription TEXT PRIMARY KEY,
        topic INTEGER NOT NULL,
        active INTEGER NOT NULL,
        digest TEXT NOT NULL,
        seq INTEGER NOT NULL,
        fresh_us INTEGER,
        ready_us INTEGER,
        owner TEXT NOT NULL DEFAULT '',
        failures INTEGER NOT NULL DEFAULT 0,
        failing_since_us INTEGER,
        paused_until_us INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
    CREATE INDEX lane_ready ON lane (ready_us) WHERE ready_us IS NOT NULL;
    CREATE INDEX lane_resting ON lane (topic, digest) WHERE fresh_us IS NULL AND active;
    CREATE INDEX lane_leased ON lane (owner) WHERE owner <> '';
    CREATE TABLE delivery (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        subscription TEXT NOT NULL,
        first_seq INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        state TEXT NOT NULL,
        attempts INTEGER NOT NULL,
        next_us INTEGER,
        created_us INTEGER NOT NULL,
        changed_us INTEGER NOT NULL);
    CREATE INDEX delivery_due ON delivery (subscription, next_us) WHERE next_us IS NOT NULL;
    CREATE INDEX delivery_by_subscription ON delivery (subscription, number);
    CREATE INDEX delivery_dead ON delivery (state, number) WHERE state = 'dead';
    CREATE TABLE attempt (
        delivery INTEGER NOT NULL,
        number INTEGER NOT NULL,
        at_us INTEGER NOT NULL,
        outcome TEXT NOT NULL,
        status INTEGER,
        detail TEXT NOT NULL,
        elapsed_us INTEGER NOT NULL,
        PRIMARY KEY (delivery, number, at_us)) WITHOUT ROWID;
    """,
    """
    CREATE TABLE consumer (
        number INTEGER PRIMARY KEY,
        subscription TEXT NOT NULL,
        name TEXT NOT NULL,
        seq INTEGER NOT NULL,
        ack_wait_us INTEGER NOT NULL,
        deliver_max INTEGER NOT NULL,
        pending_max INTEGER NOT NULL,
        created_us INTEGER NOT NULL,
        UNIQUE (subscription, name));
    CREATE TABLE pending (
        consumer INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        attempts INTEGER NOT NULL,
        due_us INTEGER NOT NULL,
        PRIMARY KEY (consumer, seq)) WITHOUT ROWID;
    CREATE INDEX pending_due ON pending (consumer, due_us);
    """,
    """
    ALTER TABLE lane RENAME COLUMN digest TO cadence;
    ALTER TABLE delivery ADD COLUMN key TEXT;
    ALTER TABLE delivery ADD COLUMN seqs TEXT;
    ALTER TABLE delivery ADD COLUMN begun_us INTEGER;
    ALTER TABLE delivery ADD COLUMN reason TEXT NOT NULL DEFAULT '';
    ALTER TABLE delivery ADD COLUMN withheld INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE delivery ADD COLUMN origin TEXT;
    ALTER TABLE delivery ADD COLUMN acknowledged_us INTEGER;
    CREATE INDEX delivery_following ON delivery (origin) WHERE origin IS NOT NULL;
    ALTER TABLE lane ADD COLUMN snoozed_until_us INTEGER NOT NULL DEFAULT 0;
    CREATE TABLE snooze (
        subscription TEXT NOT NULL,
        key TEXT NOT NULL,
        until_us INTEGER NOT NULL,
        PRIMARY KEY (subscription, key)) WITHOUT ROWID;
    CREATE INDEX delivery_keyed ON delivery (subscription, key, begun_us) WHERE key IS NOT NULL;
    """,
)


class DeliveryState(StrEnum):
    """Where a delivery stands; `DEAD` ones are the dead letters.

    `SUPPRESSED` ones were held back, `COLLECTED` ones are of a subscription that does not send.
    """

    DUE = "due"
    DELIVERED = "delivered"
    DEAD = "dead"
    CANCELLED = "cancelled"
    SUPPRESSED = "suppressed"
    COLLECTED = "collected"


@dataclass(frozen=True, slots=True)
class Taken:
    """One thing to do now, under a lease: attempt `number` (from 1) of a delivery.

    `matches` is empty if they are no longer kept.  `withheld` messages of its key were suppressed
    since the one before it.
    """

    row: int
    delivery_id: str
    number: int
    subscription: Subscription
    matches: Sequence[CommittedMatch]
    health: EndpointHealth
    withheld: int = 0


@dataclass(frozen=True, slots=True)
class Finished:
    """What came of it.  Without an outcome it was not tried, and waits until `decision.next_us`."""

    taken: Taken
    at_us: int
    outcome: Outcome | None
    decision: Consequence


def delivery_id(subscription_id: str, match_id: str) -> str:
    """Return the id under which a match goes to a subscriber, in every attempt."""
    digest = hashlib.blake2b(f"{subscription_id}\0{match_id}".encode(), digest_size=16)
    return "msg_" + digest.hexdigest()


def open_deliveries(path: Path | str) -> sqlite3.Connection:
    """Return a connection to the file, made if it is not there."""
    return connect(path, _STEPS, synchronous="NORMAL")
