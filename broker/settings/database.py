"""Open the broker's SQLite files: write-ahead log, a format version, short transactions.

Every file carries its format in `PRAGMA user_version`.  A schema is the list of the steps that
lead from nothing to the newest format; a file that is behind is brought up when it is opened,
one that is ahead is refused, because an older program would misread it.
"""

from __future__ import annotations

import resource
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

__all__ = ["DatabaseError", "connect", "transaction", "why_unwritten"]

_BUSY_TIMEOUT_S = 30.0
"""Longer than any transaction of ours, so that processes wait for one another and do not fail."""

PAGE_BYTES = 4096
"""The page of a file whose rows are short; SQLite's own default."""

CACHE_BYTES = 2 << 20
"""Pages kept of a file that is written in few places at once; SQLite's own default."""


class DatabaseError(RuntimeError):
    """A file of the broker cannot be used as it is.  Its operator can act on it."""


def connect(
    path: Path | str,
    steps: Sequence[str],
    *,
    synchronous: Literal["FULL", "NORMAL"] = "FULL",
    page_bytes: int = PAGE_BYTES,
    cache_bytes: int = CACHE_BYTES,
) -> sqlite3.Connection:
    """Return a connection in autocommit mode to the file, brought up to the newest format.

    `FULL` survives a power cut; with `NORMAL` a power cut (not a killed process) can take back
    the newest transactions.  The connection may change threads, but its user takes care that
    one thread at a time is in a transaction.  A new file gets pages of `page_bytes`, one that is
    there keeps its own.  Up to `cache_bytes` of pages are kept in memory.  Raises `DatabaseError`.
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    try:
        return _connected(path, steps, synchronous, page_bytes, cache_bytes)
    except sqlite3.Error as error:
        raise DatabaseError(f"{path} cannot be used: {error}{why_unwritten(error)}") from error


def why_unwritten(error: sqlite3.Error) -> str:
    """Return what SQLite does not say where it could not write."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code not in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL):
        return ""
    most, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if most != resource.RLIM_INFINITY:
        return f"; a file may have {most:,} bytes at most here: see `ulimit -f`"
    return "; is the disk full?"


def _connected(
    path: Path | str, steps: Sequence[str], synchronous: str, page_bytes: int, cache_bytes: int
) -> sqlite3.Connection:
    db = sqlite3.connect(
        path, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
    try:
        # The write-ahead log makes the file, so this comes first.
        db.execute(f"PRAGMA page_size = {page_bytes}")
        _use_write_ahead_log(db)
        db.execute(f"PRAGMA synchronous = {synchronous}")
        db.execute(f"PRAGMA cache_size = {-(cache_bytes >> 10)}")
        _upgrade(db, path, steps)
    except BaseException:
        db.close()
        raise
    return db


def _use_write_ahead_log(db: sqlite3.Connection) -> None:
    """Switch to the write-ahead log, once nobody else who opens the new file is about to."""
    deadline = time.monotonic() + _BUSY_TIMEOUT_S
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            # For this lock SQLite itself does not wait.
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Run the body in one write transaction: all of it is kept, or none."""
    # IMMEDIATE takes the write lock at once: a transaction that starts as a reader can find the
    # file changed under it when it first writes, and waiting does not help it then.
    db.execute("BEGIN IMMEDIATE")
    try:
        yield db
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    try:
        db.execute("COMMIT")
    except sqlite3.Error:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _upgrade(db: sqlite3.Connection, path: Path | str, steps: Sequence[str]) -> None:
    if _format(db) == len(steps):
        return
    with transaction(db):
        present = _format(db)
        if present > len(steps):
            raise DatabaseError(
                f"{path} has format {present}; this version reads up to {len(steps)}"
            )
        for step in steps[present:]:
            for statement in step.split(";\n"):
                if statement.strip():
                    db.execute(statement)
        db.execute(f"PRAGMA user_version = {len(steps)}")


def _format(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])
