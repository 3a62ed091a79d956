"""The file of the registry: its tables, its revision number, and the broker's own keys.

Invariant: revisions only grow, and one transaction makes one revision, whatever process asks.
"""

from __future__ import annotations

import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from broker.settings.database import connect, transaction

__all__ = ["RegistryError", "RegistryFile"]

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
    """
    ALTER TABLE subscription ADD COLUMN begun INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE subscription ADD COLUMN ended INTEGER;
    ALTER TABLE subscription ADD COLUMN until INTEGER;
    UPDATE subscription SET ended = revision WHERE state = 'removed';
    UPDATE subscription SET begun = coalesce((SELECT max(revision) FROM query
        WHERE id = subscription.query AND state = 'removed' AND revision < (
            SELECT max(revision) FROM query WHERE id = subscription.query AND state = 'active'
            AND revision < subscription.revision)), 0);
    CREATE INDEX subscription_by_beginning ON subscription (begun) WHERE parameters <> '{}';
    CREATE INDEX subscription_by_end ON subscription (ended) WHERE parameters <> '{}';
    """,
    """
    CREATE TABLE backfill_of_statement (
        revision INTEGER NOT NULL,
        query TEXT NOT NULL,
        parameters TEXT NOT NULL,
        point INTEGER NOT NULL,
        through INTEGER NOT NULL,
        PRIMARY KEY (revision, query, parameters, point, through)) WITHOUT ROWID;
    INSERT INTO backfill_of_statement
        SELECT max(revision), query, parameters, backfill.point, through
        FROM backfill JOIN query ON id = query AND query.version = backfill.version
        GROUP BY query, backfill.version, parameters;
    DROP TABLE backfill;
    ALTER TABLE backfill_of_statement RENAME TO backfill;
    """,
    """
    CREATE TABLE source (
        query TEXT PRIMARY KEY,
        version TEXT NOT NULL,
        text TEXT NOT NULL) WITHOUT ROWID;
    """,
    """
    DROP INDEX subscription_by_revision;
    CREATE INDEX subscription_by_revision ON subscription (revision, id) WHERE kind <> 'pull';
    """,
)


class RegistryError(LookupError):
    """There is no such query or subscription, or it cannot change that way."""


class RegistryFile:
    """One SQLite file for all that is registered.  Safe for several threads and processes.

    `lock` holds other threads off where several statements are one reading.
    """

    def __init__(self, path: Path | str, now_us: Callable[[], int] | None = None) -> None:
        self.db = connect(path, _STEPS)
        self.lock = threading.RLock()
        self.now_us = now_us or (lambda: time.time_ns() // 1000)

    def close(self) -> None:
        """Give the file back."""
        with self.lock:
            self.db.close()

    def revision(self) -> int:
        """Return the number of the last change; 0 before the first."""
        return int(self.rows("SELECT number FROM revision")[0][0])

    @contextmanager
    def change(self) -> Iterator[int]:
        """Run the body as one change, which is all kept or not at all; yields its revision."""
        with self.write() as db:
            row = db.execute("UPDATE revision SET number = number + 1 RETURNING number")
            yield int(row.fetchone()[0])

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Run the body in one transaction, for what evaluation and delivery need not follow."""
        with self.lock, transaction(self.db):
            yield self.db

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows of a statement."""
        with self.lock:
            return self.db.execute(sql, values).fetchall()

    def key(self, name: str) -> bytes:
        """Return this broker's secret key of that name, made when it is first asked for."""
        with self.write() as db:
            db.execute(
                "INSERT INTO broker_key VALUES (?, ?) ON CONFLICT DO NOTHING",
                (name, secrets.token_bytes(32)),
            )
        return bytes(self.rows("SELECT value FROM broker_key WHERE name = ?", name)[0][0])
