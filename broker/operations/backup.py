"""Copy the data of a running broker, so that a broker on the copy goes on from there.

The parts are copied one after another while the broker works, in an order that keeps the copy
consistent:

    feeds.db        first: an item that it calls taken must be in the spool's copy
    segments        those that are there now
    outbox.db       its progress; every document behind it is in the segments above or below
    segments        those that came meanwhile
    registry.db     last of these: every registry version that a segment names must be there
    tokens.db       who may use the broker may use one on the copy, and nobody else

Segments never change, so they are linked where source and copy are on one file system.  Copying
them twice is needed because the broker may delete a segment that is behind every window of its own
progress, but not of the older progress in the copy.  Spark's checkpoint, the plans and the snapshot
of what the join remembers are not copied: they are made again.

Invariant: what the copy finds afterwards is what the original would have found from there on.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from broker.documents.spool import Spool

__all__ = ["BackupError", "BackupSummary", "back_up"]


_TRIES_MAX = 100


class BackupError(RuntimeError):
    """The data cannot be copied there.  The operator can act on it."""


@dataclass(frozen=True, slots=True)
class BackupSummary:
    """What a copy holds: documents, and the segment up to which they are processed."""

    documents: int
    segments: int
    through: int


def back_up(data: Path, target: Path) -> BackupSummary:
    """Copy a broker's data directory to `target`, which must be empty or not be there.

    To restore, start a broker with `target` as its data directory, or copy it back while none runs.
    """
    if not (data / "spool").is_dir():
        raise BackupError(f"{data} is not the data directory of a broker")
    if target.exists() and any(target.iterdir()):
        raise BackupError(f"{target} is not empty")
    (target / "spool").mkdir(parents=True, exist_ok=True)
    _copy_database(data / "feeds.db", target / "feeds.db")
    _copy_segments(data / "spool", target / "spool")
    _copy_database(data / "outbox.db", target / "outbox.db")
    _copy_segments(data / "spool", target / "spool")
    _copy_database(data / "registry.db", target / "registry.db")
    _copy_database(data / "tokens.db", target / "tokens.db")
    return _summary(target)


def _copy_segments(source: Path, target: Path) -> None:
    for _ in range(_TRIES_MAX):
        newest = Spool(target).last
        # What was merged since the first time is there already, in its parts.
        waiting = [s for s in Spool(source).all_segments() if s.last > newest]
        try:
            for segment in waiting:
                _link_or_copy(source / segment.name, target / segment.name)
        except FileNotFoundError:
            continue  # merged meanwhile: its documents are in another file now
        return
    raise BackupError(f"{source} changes all the time")


def _link_or_copy(path: Path, copy: Path) -> None:
    try:
        os.link(path, copy)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copyfile(path, copy)


def _copy_database(source: Path, target: Path) -> None:
    if not source.exists():
        return
    with (
        closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True)) as original,
        closing(sqlite3.connect(target)) as copy,
    ):
        original.backup(copy)


def _summary(target: Path) -> BackupSummary:
    spool = Spool(target / "spool")
    segments = spool.all_segments()
    with closing(sqlite3.connect(target / "outbox.db")) as outbox:
        [(through,)] = outbox.execute("SELECT through FROM progress").fetchall()
    documents = sum(segment.documents for segment in segments)
    return BackupSummary(documents, len(segments), through)
