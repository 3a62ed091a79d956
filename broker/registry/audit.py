"""The audit trail: who changed what, when, and what came of it.

An entry is written before the change is tried, and completed afterwards, each flushed to the disk.
So nothing is acknowledged that is not in the trail; an entry that has no outcome is of a change in
whose middle the broker was ended, and which may have been made.

The trail only grows at its end.  The database itself refuses to change what is complete, and to
delete anything but what is older than the newest `ENTRIES_MAX` entries.  Numbers go up by one and
are never given twice: numbers that are missing below the first entry were once there.
"""

from __future__ import annotations

import getpass
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from broker.settings.database import connect, transaction

__all__ = ["AUDIT_FILE", "ENTRIES_MAX", "AuditEntry", "AuditOutcome", "AuditTrail", "local_change"]

AUDIT_FILE = "audit.db"

ENTRIES_MAX = 100_000
"""A hundred changes a day for some three years; about 25 MB."""

_TEXT_MAX = 1_000
"""Characters of a subject, and of each value of a detail: what callers send is theirs to choose."""

_STEPS = (
    f"""
    CREATE TABLE entry (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        time_us INTEGER NOT NULL,
        who TEXT NOT NULL,
        address TEXT,
        action TEXT NOT NULL,
        subject TEXT NOT NULL,
        detail TEXT NOT NULL,
        outcome TEXT);
    CREATE TRIGGER entry_stays BEFORE UPDATE ON entry
        WHEN OLD.outcome IS NOT NULL OR NEW.outcome IS NULL
            OR (NEW.number, NEW.time_us, NEW.who, NEW.action)
                != (OLD.number, OLD.time_us, OLD.who, OLD.action)
        BEGIN SELECT RAISE(ABORT, 'an entry of the audit trail stays as it is'); END;
    CREATE TRIGGER entry_is_kept BEFORE DELETE ON entry
        WHEN OLD.number > (SELECT max(number) FROM entry) - {ENTRIES_MAX}
        BEGIN SELECT RAISE(ABORT, 'an entry of the audit trail is kept'); END;
    """,
)

_COLUMNS = "number, time_us, who, address, action, subject, detail, outcome"


class AuditOutcome(StrEnum):
    """What came of a change."""

    DONE = "done"
    REFUSED = "refused"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One change.

    `who` is the name of a token, `link:` and the purpose of a link, or `local:` and a user of the
    broker's machine; no name of a token has a colon.  `outcome` is None until it is known.
    """

    number: int
    time_us: int
    who: str
    address: str | None
    action: str
    subject: str
    detail: Mapping[str, Any]
    outcome: AuditOutcome | None


class AuditTrail:
    """The trail in one SQLite file.  Safe for several threads and several processes."""

    def __init__(self, path: Path | str, *, now_us: Callable[[], int] | None = None) -> None:
        self._db = connect(path, _STEPS)
        self._lock = threading.Lock()
        self._now_us = now_us or (lambda: time.time_ns() // 1_000)

    def close(self) -> None:
        """Give the file back."""
        with self._lock:
            self._db.close()

    def begin(self, who: str, action: str, subject: str = "", *, address: str | None = None) -> int:
        """Note that a change is about to be tried; return the number of its entry."""
        with self._lock, transaction(self._db):
            made = self._db.execute(
                "INSERT INTO entry (time_us, who, address, action, subject, detail)"
                " VALUES (?, ?, ?, ?, ?, '{}')",
                (self._now_us(), who, address, action, _short(subject)),
            )
            number = made.lastrowid
            assert number is not None
            self._db.execute("DELETE FROM entry WHERE number <= ?", (number - ENTRIES_MAX,))
        return number

    def complete(
        self, number: int, outcome: AuditOutcome, subject: str, detail: Mapping[str, Any]
    ) -> None:
        """Note what came of a change; once for each."""
        kept = json.dumps({name: _short(value) for name, value in detail.items()})
        with self._lock, transaction(self._db):
            self._db.execute(
                "UPDATE entry SET outcome = ?, subject = ?, detail = ? WHERE number = ?",
                (outcome.value, _short(subject), kept, number),
            )

    def entries(
        self,
        *,
        before: int | None = None,
        who: str | None = None,
        subject: str | None = None,
        limit: int = ENTRIES_MAX,
    ) -> list[AuditEntry]:
        """Return entries, newest first, numbered below `before`."""
        wanted = {"number < ?": before, "who = ?": who, "subject = ?": subject}
        given = {condition: value for condition, value in wanted.items() if value is not None}
        where = " AND ".join(given) or "TRUE"
        with self._lock:
            rows = self._db.execute(
                f"SELECT {_COLUMNS} FROM entry WHERE {where} ORDER BY number DESC LIMIT ?",
                (*given.values(), limit),
            ).fetchall()
        return [_entry(*row) for row in rows]


@contextmanager
def local_change(data: Path, action: str, subject: str, **detail: Any) -> Iterator[None]:
    """Note a change that is made in the data directory, where no broker is asked."""
    trail = AuditTrail(data / AUDIT_FILE)
    try:
        number = trail.begin(f"local:{_user()}", action, subject)
        try:
            yield
        except Exception:
            trail.complete(number, AuditOutcome.REFUSED, subject, detail)
            raise
        trail.complete(number, AuditOutcome.DONE, subject, detail)
    finally:
        trail.close()


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user without a name
        return "unknown"


def _short(value: Any) -> Any:
    """Return a value that is kept: text up to a length, a list of texts as one, numbers."""
    if value is None or isinstance(value, int | float):
        return value
    text = value if isinstance(value, str) else " ".join(map(str, value))
    return text if len(text) <= _TEXT_MAX else text[: _TEXT_MAX - 1] + "…"


def _entry(
    number: int,
    time_us: int,
    who: str,
    address: str | None,
    action: str,
    subject: str,
    detail: str,
    outcome: str | None,
) -> AuditEntry:
    known = None if outcome is None else AuditOutcome(outcome)
    return AuditEntry(number, time_us, who, address, action, subject, json.loads(detail), known)
