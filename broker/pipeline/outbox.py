"""What the pipeline has found, kept: matches, published documents, dead letters, progress.

One transaction of `Outbox.commit` is the commit of a batch.  It moves `through`, the number of
the last segment whose results are here, from where the batch began to where it ended; a batch
that begins anywhere else has been committed already, and changes nothing.

Invariants:
- a match id is here once, whatever is replayed;
- matches are numbered (`seq`, from 1) in the order (position, query, id), however documents
  were grouped into batches, and a number is never used again; what a query that was registered
  to look back finds among earlier documents comes behind;
- what `commit` returned True for survives a power cut.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from broker.documents.document import Document
from broker.matching.costs.budget import Pause, Spent
from broker.matching.outcomes.kept import Note
from broker.matching.outcomes.learned import LEARNED
from broker.matching.stepresult import StepResult
from broker.pipeline.matchids import insert_matches
from broker.pipeline.matchlog import MatchLog
from broker.pipeline.outboxrows import PUBLISHED, STEPS, OutboxRows, published_document, row_change
from broker.settings.database import DatabaseError, connect, transaction, why_unwritten
from broker.tables.store import RowChange
from joins import UNBOUNDED
from xscl.delays import LEARNED_MOST

__all__ = ["DeadLetter", "Outbox"]

log = logging.getLogger(__name__)

_LEARNED_OF = "clause = 'LEARNED' AND query = ?1 AND revision = ?2 AND parameters = ?3"

_MOMENT_US = 5_000_000
_MOMENTS_KEPT_US = 7 * 86_400_000_000
"""When batches were committed is kept to five seconds, and for a week: 120,000 rows at most."""

_PAGE_BYTES = 16 << 10
"""A match line has some 1.4 KB: of pages of 4 KB it is written 6 µs more slowly."""

_CACHE_BYTES = 64 << 20
"""Matches of a batch stand in as many places of the indexes as they have queries and ids: where
these do not fit, a match of 1,000 queries is written at three times the processor time."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A document that could not be evaluated, and why."""

    docid: int
    reason: str
    committed_us: int


class Outbox:
    """The outbox in one SQLite file.  Safe for several threads and several processes."""

    def __init__(self, path: Path | str, *, now_us: Callable[[], int] | None = None) -> None:
        self.path = Path(path)
        self._db = connect(path, STEPS, page_bytes=_PAGE_BYTES, cache_bytes=_CACHE_BYTES)
        self._lock = threading.Lock()
        # Readers have a connection of their own, so that the pipeline waits for none of them.
        self._reader = connect(path, STEPS)
        self._reading = threading.Lock()
        self.matches = MatchLog(self._rows)
        self._now_us = now_us or (lambda: time.time_ns() // 1000)
        self._listeners: list[Callable[[], None]] = []

    def close(self) -> None:
        """Give the file back."""
        with self._lock, self._reading:
            self._db.close()
            self._reader.close()

    def listen(self, listener: Callable[[], None]) -> None:
        """Call `listener`, in the committing thread, after each commit made through this object."""
        self._listeners.append(listener)

    def unlisten(self, listener: Callable[[], None]) -> None:
        """Call `listener` no more."""
        self._listeners.remove(listener)

    def commit(self, *, after: int, through: int, step: StepResult) -> bool:
        """Keep the results of the segments (after, through]; False if they are here already.

        False changes nothing.  A match that is here already, or a document that it published,
        is left as it is.
        """
        rows = OutboxRows.of(step)
        with self._lock:
            try:
                with transaction(self._db):
                    now_us = self._now_us()
                    self._advance(after, through, now_us)
                    self._insert(rows, now_us)
            except _AlreadyCommittedError:
                return False
            except sqlite3.OperationalError as error:
                text = f"{self.path} cannot be written: {error}{why_unwritten(error)}"
                raise DatabaseError(text) from error
        self._announce()
        return True

    def add(self, step: StepResult) -> None:
        """Keep what was found beside the pipeline; what is here already stays as it is."""
        if not step.matches and not step.pauses:
            return
        rows = OutboxRows.of(step)
        with self._lock, transaction(self._db):
            self._insert(rows, self._now_us())
        self._announce()

    def _announce(self) -> None:
        for listener in tuple(self._listeners):
            try:
                listener()
            except Exception:
                # Who listens looks again by itself; the commit is made.
                log.exception("a listener failed")

    def _advance(self, after: int, through: int, now_us: int) -> None:
        moved = self._db.execute(
            "UPDATE progress SET through = ? WHERE through = ?", (through, after)
        )
        if moved.rowcount == 0:
            raise _AlreadyCommittedError
        self._note_moment(after, through, now_us)

    def _note_moment(self, after: int, through: int, now_us: int) -> None:
        """Keep when segments were committed, those within a few seconds as one row."""
        extended = self._db.execute(
            "UPDATE OR REPLACE moment SET through = ?, committed_us = ?"
            " WHERE through = ? AND begun_us > ?",
            (through, now_us, after, now_us - _MOMENT_US),
        )
        if extended.rowcount == 0:
            row = (through, after, now_us, now_us)
            self._db.execute("INSERT OR REPLACE INTO moment VALUES (?, ?, ?, ?)", row)
            self._db.execute(
                "DELETE FROM moment WHERE committed_us < ? AND through IN"
                " (SELECT through FROM moment ORDER BY through LIMIT 2)",
                (now_us - _MOMENTS_KEPT_US,),
            )

    def _insert(self, rows: OutboxRows, now_us: int) -> None:
        insert_matches(self._db, rows.matches, now_us)
        self._db.executemany(
            # Not OR IGNORE, which would also drop rows that are wrong in another way.
            f"INSERT INTO published ({PUBLISHED}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (match_id) DO NOTHING",
            rows.published,
        )
        self._db.executemany(
            f"INSERT INTO dead_letter VALUES (?, ?, {now_us}) ON CONFLICT DO NOTHING",
            rows.dead_letters,
        )
        self._db.executemany(
            f"INSERT INTO pause VALUES (?, ?, ?, ?, {now_us}) ON CONFLICT DO NOTHING",
            rows.pauses,
        )
        self._db.executemany("DELETE FROM table_row WHERE name = ? AND key = ?", rows.removed)
        self._db.executemany(
            "INSERT INTO table_row VALUES (?, ?, ?, ?) ON CONFLICT (name, key)"
            " DO UPDATE SET cells = excluded.cells, docid = excluded.docid",
            rows.rows,
        )
        for query, revision in sorted({(each.query, each.stated_at) for each in rows.notes}):
            self._db.execute(
                "DELETE FROM note WHERE query = ? AND revision != ?", (query, revision)
            )
        self._db.executemany("INSERT INTO note VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows.notes)
        self._forget_delays(rows.notes)
        if rows.notes_since_us is not None:
            self._db.execute("DELETE FROM note WHERE until_us < ?", (rows.notes_since_us,))
        if rows.spent:
            self._db.execute("DELETE FROM spent WHERE block < ?", (rows.spent[0].block,))
        self._db.executemany("INSERT OR REPLACE INTO spent VALUES (?, ?, ?, ?, ?, ?)", rows.spent)

    def _forget_delays(self, notes: Iterable[Note]) -> None:
        """Keep no more delays of a statement than it learns from."""
        learned = (note for note in notes if note.clause == LEARNED)
        for who in sorted({(each.query, each.stated_at, each.parameters) for each in learned}):
            self._db.execute(
                f"DELETE FROM note WHERE {_LEARNED_OF} AND rowid <= (SELECT rowid FROM note"
                f" WHERE {_LEARNED_OF} ORDER BY rowid DESC LIMIT 1 OFFSET {LEARNED_MOST})",
                who,
            )

    def rows(self) -> Iterator[RowChange]:
        """Yield the rows of all tables, where nothing is committed meanwhile."""
        last = "", ""
        while some := self._rows(
            "SELECT name, key, cells, docid FROM table_row WHERE (name, key) > (?, ?)"
            " ORDER BY name, key LIMIT 10000",
            *last,
        ):
            yield from map(row_change, some)
            last = some[-1][:2]

    def rows_of(self, table: str, *, after: str = "", limit: int = 1_000) -> list[RowChange]:
        """Return rows of a table in the order of their keys, those with a larger key."""
        rows = self._rows(
            "SELECT name, key, cells, docid FROM table_row WHERE name = ? AND key > ?"
            " ORDER BY key LIMIT ?",
            table,
            after,
            limit,
        )
        return list(map(row_change, rows))

    def row_of(self, table: str, key: str) -> RowChange | None:
        """Return a row of a table, None where it is not there."""
        rows = self._rows(
            "SELECT name, key, cells, docid FROM table_row WHERE name = ? AND key = ?", table, key
        )
        return row_change(rows[0]) if rows else None

    def row_counts(self) -> dict[str, int]:
        """Return how many rows each table has that has some."""
        return dict(self._rows("SELECT name, count(*) FROM table_row GROUP BY name"))

    def pauses(self) -> list[Pause]:
        """Return the statements of queries that went over their budget, by query."""
        rows = self._rows("SELECT query, revision, docid, reason FROM pause ORDER BY 1, 2")
        return [Pause(*row) for row in rows]

    def spent(self) -> list[Spent]:
        """Return what queries have spent in the last block of documents."""
        return [Spent(*row) for row in self._rows("SELECT * FROM spent")]

    def notes(self) -> list[Note]:
        """Return what statements have given and still look back at, in the order of commits."""
        return [Note(*row) for row in self._rows("SELECT * FROM note ORDER BY rowid")]

    def through(self) -> int:
        """Return the number of the last segment whose results are here; 0 before the first."""
        return int(self._row("SELECT through FROM progress")[0])

    def committed_us(self, segment: int) -> int | None:
        """Return when the results of a segment were committed, to some seconds; for a week."""
        rows = self._rows(
            "SELECT committed_us, after FROM moment WHERE through >= ? ORDER BY through LIMIT 1",
            segment,
        )
        return int(rows[0][0]) if rows and rows[0][1] < segment else None

    def published(
        self, *, after: int = 0, through: int | None = None, stream: str | None = None
    ) -> list[Document]:
        """Return published documents with positions in (after, through], in order of position."""
        rows = self._rows(
            f"SELECT {PUBLISHED} FROM published WHERE docid > ? AND docid <= ?"
            " AND (?3 IS NULL OR stream = ?3) ORDER BY docid, depth, match_id",
            after,
            UNBOUNDED if through is None else through,
            stream,
        )
        return list(map(published_document, rows))

    def latest_published(self, stream: str, *, limit: int) -> list[Document]:
        """Return a published stream's newest documents, newest first."""
        rows = self._rows(
            f"SELECT {PUBLISHED} FROM published WHERE stream = ? ORDER BY seq DESC LIMIT ?",
            stream,
            limit,
        )
        return list(map(published_document, rows))

    def dead_letters(self, *, before: int = UNBOUNDED, limit: int = 1_000) -> list[DeadLetter]:
        """Return documents below number `before` that could not be evaluated, newest first."""
        rows = self._rows(
            "SELECT * FROM dead_letter WHERE docid < ? ORDER BY docid DESC LIMIT ?", before, limit
        )
        return [DeadLetter(*row) for row in rows]

    def is_dead_letter(self, docid: int) -> bool:
        """Return whether a document could not be evaluated."""
        return bool(self._rows("SELECT 1 FROM dead_letter WHERE docid = ? LIMIT 1", docid))

    def dead_letter_count(self) -> int:
        """Return how many documents could not be evaluated."""
        return int(self._row("SELECT count(DISTINCT docid) FROM dead_letter")[0])

    def _row(self, sql: str, *values: object) -> tuple[Any, ...]:
        return self._rows(sql, *values)[0]

    def _rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        with self._reading:
            return self._reader.execute(sql, values).fetchall()


class _AlreadyCommittedError(Exception):
    """The batch begins where progress no longer is."""
