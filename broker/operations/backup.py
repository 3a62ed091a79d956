"""Copy the data of a running broker as it is at one instant.

    kafka/      first, so that it lags: records that are read again are recognised by their keys
    segments    all that are there; this takes longest
    instant     the write locks of all databases are taken, a read transaction is begun on each, the
                newest segment is noted, and the locks are given up: milliseconds, in which the
                broker commits nothing
    databases   copied from these transactions, whatever is committed meanwhile
    segments    what came between the first look and the instant

So no part leads another: what is processed is in the spool, what is delivered is in the outbox,
what feeds call taken was accepted, and every registry version that a segment names is there.  A
broker on the copy sends again what was under way at that instant, and nothing else; it finds what
the original found from there on.

Segments never change, so they are linked where source and copy are on one file system.  They are
copied at two times because the broker may delete one, which is behind every window, in between.
Spark's checkpoint, the plans and the snapshot of what the join remembers are not copied: they are
made again.  Nor is the token of the directory's owner, whose hash is in `tokens.db`.

The copy is read again before it counts: each segment and each database is whole, and they agree.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from broker.documents.head import Segment, SegmentError
from broker.documents.segment import read_rows
from broker.documents.spool import Spool, SpoolError
from broker.operations.copies import (
    CopyError,
    Manifest,
    complete,
    link_or_copy,
    mark,
    sha256_of,
)
from broker.settings.directory import INCOMPLETE_FILE, keep_private

__all__ = ["DATABASES", "back_up"]

DATABASES = ("audit.db", "deliveries.db", "feeds.db", "outbox.db", "registry.db", "tokens.db")
"""All that the broker keeps in SQLite, in the order in which they are locked."""

_KAFKA = "kafka"
_TRIES_MAX = 100
_LOCK_WAIT_S = 0.5


def back_up(data: Path, target: Path) -> Manifest:
    """Copy a broker's data directory to `target`, which must be empty or not be there.

    Raises `CopyError`.  What was broken off is marked, and no broker starts on it.
    """
    if not (data / "spool").is_dir():
        raise CopyError(f"{data} is not the data directory of a broker")
    if target.exists() and any(target.iterdir()):
        raise CopyError(f"{target} is not empty")
    keep_private(target)
    mark(target)
    (target / "spool").mkdir()
    try:
        _copy(data, target)
    except (SegmentError, SpoolError) as error:
        raise CopyError(f"{data} cannot be copied: {error}") from error
    keep_private(target)  # what was linked has the mode of the original
    manifest = _verified(target)
    complete(target, manifest)
    return manifest


def _copy(data: Path, target: Path) -> None:
    _copy_kafka(data / _KAFKA, target / _KAFKA)
    _copy_segments(data / "spool", target / "spool")
    with ExitStack() as stack:
        pinned, newest = _instant(data, stack)
        for name, original in pinned.items():
            _copy_database(original, target / name)
        _copy_segments(data / "spool", target / "spool", newest=newest)


def _copy_kafka(source: Path, target: Path) -> None:
    """Copy how far topics were read: what is done before what was begun, as Spark writes it."""
    paths = [path for path in source.rglob("*") if not path.name.startswith(".")]
    for path in sorted(paths, key=lambda path: (path.parent.name != "commits", path)):
        with suppress(FileNotFoundError, IsADirectoryError):  # old ones go
            copy = target / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)


def _copy_segments(source: Path, target: Path, *, newest: int | None = None) -> None:
    """Copy what is not there yet, up to the segment with the number `newest`."""
    for _ in range(_TRIES_MAX):
        present = Spool(target).last
        # What was merged since the first time is there already, in its parts.
        waiting = [
            segment
            for segment in Spool(source).all_segments()
            if segment.last > present and (newest is None or segment.first <= newest)
        ]
        try:
            for segment in waiting:
                link_or_copy(source / segment.name, target / segment.name)
        except FileNotFoundError:
            continue  # merged meanwhile: its documents are in another file now
        return
    raise CopyError(f"{source} changes all the time")


def _instant(data: Path, stack: ExitStack) -> tuple[dict[str, sqlite3.Connection], int]:
    """Return connections that see the databases as they are now, and the newest segment."""
    spool = Spool(data / "spool")
    error: Exception | None = None
    for _ in range(_TRIES_MAX):
        try:
            with ExitStack() as attempt:
                found = _pinned(data, spool, attempt)
                stack.push(attempt.pop_all())
                return found
        except sqlite3.OperationalError as found_locked:
            error = found_locked
    raise CopyError(f"the databases in {data} cannot be locked: {error}") from error


def _pinned(
    data: Path, spool: Spool, stack: ExitStack
) -> tuple[dict[str, sqlite3.Connection], int]:
    present = [name for name in DATABASES if (data / name).exists()]
    pinned = {name: stack.enter_context(closing(_connection(data / name))) for name in present}
    with ExitStack() as locks:
        for name in present:
            lock = locks.enter_context(closing(_connection(data / name)))
            lock.execute("BEGIN IMMEDIATE")  # closing it gives the lock up
        for original in pinned.values():
            original.execute("BEGIN")
            # A transaction begins with what it first reads.
            original.execute("SELECT count(*) FROM sqlite_master").fetchone()
        spool.refresh()
    return pinned, spool.last


def _connection(path: Path) -> sqlite3.Connection:
    # Who waits here may hold a lock that the broker waits for: it gives up soon, and tries again.
    return sqlite3.connect(path, timeout=_LOCK_WAIT_S, isolation_level=None)


def _copy_database(original: sqlite3.Connection, target: Path) -> None:
    with closing(sqlite3.connect(target)) as copy:
        original.backup(copy)


def _verified(target: Path) -> Manifest:
    """Read everything that was written; raise `CopyError` where it is not whole."""
    try:
        spool = Spool(target / "spool")
        spool.check_gaps()
        segments = spool.all_segments()
        for segment in segments:
            read_rows(target / "spool" / segment.name, is_verified=True)
        through, matches = _checked_databases(target, segments)
    except (SegmentError, SpoolError, sqlite3.Error) as error:
        raise CopyError(f"the copy is not whole: {error}") from error
    files = sorted(path for path in target.rglob("*") if path.is_file())
    return Manifest(
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        documents=sum(segment.documents for segment in segments),
        segments=len(segments),
        docid=spool.last_docid,
        through=through,
        matches=matches,
        files={
            str(path.relative_to(target)): sha256_of(path)
            for path in files
            if path.name != INCOMPLETE_FILE
        },
    )


def _checked_databases(target: Path, segments: Sequence[Segment]) -> tuple[int, int]:
    """Return how far the copy is processed, and the number of its newest match."""
    for name in DATABASES:
        found = _value(target / name, "PRAGMA integrity_check")
        if found not in ("ok", None):
            raise CopyError(f"the copy is not whole: {name}: {found}")
    through = _value(target / "outbox.db", "SELECT through FROM progress")
    seq = _value(target / "outbox.db", "SELECT max(seq) FROM sqlite_sequence WHERE name = 'match'")
    sent = _value(target / "deliveries.db", "SELECT max(seq) FROM lane")
    version = _value(target / "registry.db", "SELECT number FROM revision")
    named = max((segment.registry_version for segment in segments), default=0)
    newest = segments[-1].last if segments else 0
    for state, number, last in (
        ("processed up to segment", through, newest),
        ("delivered up to match", sent, seq),
        ("accepted under registry version", named, version),
    ):
        if None not in (number, last) and number > last:
            raise CopyError(f"the copy is not whole: {state} {number}, and {last} is the newest")
    return through or 0, seq or 0


def _value(path: Path, sql: str) -> Any:
    """Return the first value that a statement finds, None without the database or a row."""
    if not path.exists():
        return None
    with closing(sqlite3.connect(path)) as db:
        row = db.execute(sql).fetchone()
    return None if row is None else row[0]
