"""Matches in a table of DuckDB, a file on the broker's machine.

One process has such a file at a time, so it is opened for each message and closed behind it:
between messages anybody can read it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import duckdb

from broker.delivery.attempt import Attempt, OutcomeKind
from broker.delivery.sinks.rows import create, insert_all, rows
from broker.delivery.sinks.sink import SinkError
from broker.registry.sinkaddress import SinkAddress

__all__ = ["DuckDBSink"]


class DuckDBSink:
    """A table in a file of a directory, which is made when it is first written to."""

    def __init__(self, address: SinkAddress, directory: Path) -> None:
        self._table = address.table
        self._path = directory / address.path

    async def write(self, attempt: Attempt) -> None:
        """Write all matches in one transaction; a sample's is taken back."""
        await asyncio.to_thread(self._write, list(rows(attempt)), attempt.is_sample)

    @property
    def is_open(self) -> bool:
        """It is opened with each message."""
        return True

    async def close(self) -> None:
        """Nothing is kept."""

    def _write(self, values: list[tuple[object, ...]], is_sample: bool) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with duckdb.connect(self._path) as db:
                db.begin()
                db.execute(create(self._table, "json"))
                # As columns: a statement for each row would cost milliseconds.
                db.execute(
                    insert_all(self._table), [list(each) for each in zip(*values, strict=True)]
                )
                if is_sample:
                    db.rollback()
                else:
                    db.commit()
        except duckdb.IOException as error:
            name, reason = self._path.name, _reason(error)
            if "lock" in reason:
                reason = "another program has it open, and DuckDB lets in one at a time"
            detail = f"{name} cannot be opened: {reason}"
            raise SinkError(detail, OutcomeKind.THROTTLED) from error
        except (duckdb.Error, OSError) as error:
            detail = f"{self._path.name} does not take rows of matches: {_reason(error)}"
            raise SinkError(detail) from error


def _reason(error: Exception) -> str:
    return str(error).partition("\n")[0].strip()
