"""A match as a row of a table.

The table is made where there is none and the user may make one.  A table of one's own needs these
columns, and the primary key; others must have defaults.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from broker.delivery.attempt import Attempt
from broker.delivery.store import delivery_id

__all__ = ["COLUMNS", "create", "insert", "insert_all", "quoted", "rows"]

COLUMNS = {
    "delivery": "text PRIMARY KEY",
    "subscription": "text NOT NULL",
    "query": "text NOT NULL",
    "seq": "bigint NOT NULL",
    "match": "text NOT NULL",
    "start_time": "timestamptz NOT NULL",
    "end_time": "timestamptz NOT NULL",
    "line": "{json} NOT NULL",
}
"""What is known of a match, and the types of both databases; they differ in that of JSON."""

_NAMES = ", ".join(f'"{name}"' for name in COLUMNS)
_ONCE = 'ON CONFLICT ("delivery") DO NOTHING'


def rows(attempt: Attempt) -> Iterator[tuple[object, ...]]:
    """Yield a row for each match; its id is the delivery's that the match would have alone."""
    subscription = attempt.subscription.id
    for match in attempt.matches:
        line = json.loads(match.line)
        yield (
            delivery_id(subscription, match.id),
            subscription,
            match.query,
            match.seq,
            match.id,
            line["start"],
            line["end"],
            match.line,
        )


def create(table: str, json_type: str) -> str:
    """Return the statement that makes the table, with its schema where one is named."""
    columns = ", ".join(f'"{name}" {kind}' for name, kind in COLUMNS.items())
    return f"CREATE TABLE IF NOT EXISTS {quoted(table)} ({columns})".format(json=json_type)


def insert(table: str) -> str:
    """Return the statement of PostgreSQL that adds a row unless it is there."""
    marks = ", ".join(["%s"] * len(COLUMNS))
    return f"INSERT INTO {quoted(table)} ({_NAMES}) VALUES ({marks}) {_ONCE}"


def insert_all(table: str) -> str:
    """Return the statement of DuckDB that adds rows unless they are there, given as columns."""
    values = ", ".join(f"unnest(${at + 1})" for at in range(len(COLUMNS)))
    return f"INSERT INTO {quoted(table)} ({_NAMES}) SELECT {values} {_ONCE}"


def quoted(table: str) -> str:
    """Return the name of a table, with its schema where one is named, as SQL has it."""
    return ".".join(f'"{name}"' for name in table.split("."))
