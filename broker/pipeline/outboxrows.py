"""The rows of the outbox: its tables, and the results of a step as rows of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from fractions import Fraction
from typing import Any

from broker.documents.document import Document
from broker.matching.costs.budget import Spent
from broker.matching.match import FoundMatch
from broker.matching.outcomes.kept import Note
from broker.matching.stepresult import StepResult
from broker.pipeline.matchids import ID_NUMBER, NOTE_TOPICS
from broker.tables.store import RowChange

__all__ = ["PUBLISHED", "STEPS", "OutboxRows", "published_document", "row_change"]

STEPS = (
    """
    CREATE TABLE match (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL,
        query TEXT NOT NULL,
        parameters TEXT NOT NULL,
        position INTEGER NOT NULL,
        oldest INTEGER NOT NULL,
        line TEXT NOT NULL,
        committed_us INTEGER NOT NULL);
    CREATE INDEX match_by_query ON match (query, seq);
    CREATE INDEX match_by_topic ON match (query, parameters, seq);
    CREATE TABLE published (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        docid INTEGER NOT NULL,
        depth INTEGER NOT NULL,
        match_id TEXT NOT NULL UNIQUE,
        stream TEXT NOT NULL,
        key TEXT NOT NULL,
        start_us INTEGER NOT NULL,
        end_us INTEGER NOT NULL,
        arrival_us INTEGER NOT NULL,
        watermark_us INTEGER NOT NULL,
        xml BLOB NOT NULL);
    CREATE INDEX published_by_position ON published (docid, depth, match_id);
    CREATE INDEX published_by_stream ON published (stream, seq);
    CREATE TABLE dead_letter (
        docid INTEGER NOT NULL,
        reason TEXT NOT NULL,
        committed_us INTEGER NOT NULL,
        PRIMARY KEY (docid, reason)) WITHOUT ROWID;
    CREATE TABLE progress (one INTEGER PRIMARY KEY CHECK (one = 1), through INTEGER NOT NULL);
    INSERT INTO progress VALUES (1, 0);
    """,
    """
    DROP INDEX match_by_topic;
    CREATE INDEX match_by_topic ON match (query, parameters, seq, oldest, position);
    """,
    """
    CREATE TABLE pause (
        query TEXT NOT NULL,
        revision INTEGER NOT NULL,
        docid INTEGER NOT NULL,
        reason TEXT NOT NULL,
        committed_us INTEGER NOT NULL,
        PRIMARY KEY (query, revision)) WITHOUT ROWID;
    CREATE TABLE spent (
        query TEXT PRIMARY KEY,
        revision INTEGER NOT NULL,
        block INTEGER NOT NULL,
        matches INTEGER NOT NULL) WITHOUT ROWID;
    """,
    "ALTER TABLE spent ADD COLUMN nbytes INTEGER NOT NULL DEFAULT 0;",
    """
    ALTER TABLE spent RENAME TO spent_before;
    CREATE TABLE spent (
        query TEXT NOT NULL,
        revision INTEGER NOT NULL,
        block INTEGER NOT NULL,
        newest_block INTEGER NOT NULL,
        matches INTEGER NOT NULL,
        nbytes INTEGER NOT NULL,
        PRIMARY KEY (query, newest_block)) WITHOUT ROWID;
    INSERT INTO spent SELECT query, revision, block, block, matches, nbytes FROM spent_before;
    DROP TABLE spent_before;
    ALTER TABLE published ADD COLUMN docid_max INTEGER NOT NULL DEFAULT 0;
    """,
    """
    CREATE TABLE table_row (
        name TEXT NOT NULL,
        key TEXT NOT NULL,
        cells TEXT NOT NULL,
        docid INTEGER NOT NULL,
        PRIMARY KEY (name, key)) WITHOUT ROWID;
    """,
    """
    CREATE TABLE note (
        query TEXT NOT NULL,
        revision INTEGER NOT NULL,
        parameters TEXT NOT NULL,
        clause TEXT NOT NULL,
        key TEXT NOT NULL,
        docid INTEGER NOT NULL,
        start_us INTEGER NOT NULL,
        end_us INTEGER NOT NULL,
        until_us INTEGER NOT NULL);
    CREATE INDEX note_by_until ON note (until_us);
    CREATE INDEX note_by_query ON note (query, revision);
    """,
    """
    CREATE INDEX note_learned ON note (query, revision, parameters) WHERE clause = 'LEARNED';
    """,
    "ALTER TABLE published ADD COLUMN confidence TEXT NOT NULL DEFAULT '1';",
    """
    CREATE TABLE moment (
        through INTEGER PRIMARY KEY,
        after INTEGER NOT NULL,
        begun_us INTEGER NOT NULL,
        committed_us INTEGER NOT NULL);
    """,
    """
    DROP INDEX match_by_query;
    CREATE INDEX match_by_assigned ON match (query, seq) WHERE parameters <> '{}';
    """,
    f"""
    CREATE TABLE match_id (number INTEGER PRIMARY KEY, seq INTEGER NOT NULL);
    INSERT INTO match_id
        SELECT number + row_number() OVER (PARTITION BY number ORDER BY seq) - 1, seq
        FROM (SELECT {ID_NUMBER} AS number, seq FROM match);
    """,
    f"""
    CREATE TABLE topic_match (
        query TEXT NOT NULL,
        parameters TEXT NOT NULL,
        seq INTEGER NOT NULL,
        oldest INTEGER NOT NULL,
        position INTEGER NOT NULL,
        PRIMARY KEY (query, parameters, seq)) WITHOUT ROWID;
    {NOTE_TOPICS.replace("?", "0")};
    DROP INDEX match_by_topic;
    """,
)
"""The versions of the tables, each made of the one before.

In the first of them ids of matches were unique.  A file from then keeps that index, which nobody
asks: SQLite drops none that belongs to a constraint.
"""

PUBLISHED = (
    "docid, stream, key, start_us, end_us, arrival_us, watermark_us, xml, depth, match_id,"
    " docid_max, confidence"
)
"""The columns of a published document."""


@dataclass(frozen=True, slots=True)
class OutboxRows:
    """A step's results as rows of the tables, made before the transaction begins."""

    matches: Sequence[FoundMatch]
    published: Sequence[tuple[object, ...]]
    dead_letters: Sequence[tuple[int, str]]
    pauses: Sequence[tuple[object, ...]]
    spent: Sequence[Spent]
    rows: Sequence[tuple[object, ...]]
    removed: Sequence[tuple[str, str]]
    notes: Sequence[Note]
    notes_since_us: int | None

    @classmethod
    def of(cls, step: StepResult) -> OutboxRows:
        """Return the rows of a step, its matches in the order in which they are numbered.

        Rows of tables are as the step has left them, neighbours of the file beside each other.
        """
        left = sorted({(each.table, each.key): each for each in step.rows}.items())
        return cls(
            sorted(step.matches),
            list(map(_published_row, step.published)),
            step.dead_letters,
            list(map(astuple, step.pauses)),
            step.spent,
            [
                (*place, _spell_cells(each.cells), each.docid)
                for place, each in left
                if each.cells is not None
            ],
            [place for place, each in left if each.cells is None],
            step.notes,
            step.notes_since_us,
        )


_spell_cells = json.JSONEncoder(ensure_ascii=False).encode
"""Spells numbers that are none as `NaN` and `Infinity`, which `row_change` reads."""


def row_change(row: tuple[Any, ...]) -> RowChange:
    """Return a row of a table as it was last changed."""
    table, key, cells, docid = row
    return RowChange(table, key, json.loads(cells), docid)


def _published_row(document: Document) -> tuple[object, ...]:
    return (
        document.docid,
        document.stream,
        document.key,
        document.start_us,
        document.end_us,
        document.arrival_us,
        document.watermark_us,
        document.xml,
        document.depth,
        document.match_id,
        document.docid_max,
        str(document.confidence),
    )


def published_document(row: tuple[Any, ...]) -> Document:
    """Return a published document."""
    *own, docid_max, confidence = row
    return replace(Document(*own), docid_max=docid_max, confidence=Fraction(confidence))
