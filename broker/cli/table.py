"""`xscl table`: tables, their rows, and how they are loaded."""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any
from xml.sax.saxutils import escape, quoteattr

import click

from broker.cli.connection import BrokerConnection, connect
from broker.cli.terminal import Failure, echo_data, emit_rows, format_option, message

__all__ = ["table"]

_ROWS_AT_ONCE = 500
"""Rows in a document of a load."""


@click.group()
def table() -> None:
    """See tables, and load them.

    A file with CREATE TABLE registers one, `xscl remove` removes it.

    \b
    Examples:
      xscl table list
      xscl table show author Ann
    """


@table.command("list")
@format_option
@click.pass_context
def list_tables(context: click.Context, output: str) -> None:
    """List the tables: their columns, how many rows they have, which queries use them.

    \b
    Example:
      xscl table list
    """
    rows = connect(context).get("tables")["tables"]
    emit_rows(rows, ["name", "key", "columns", "rows", "users"], output)
    if not rows and output == "table":
        message("no tables yet; a file with `CREATE TABLE name (id KEY, ...)` registers one")


@table.command()
@click.argument("name")
@click.argument("key", required=False)
@format_option
@click.pass_context
def show(context: click.Context, name: str, key: str | None, output: str) -> None:
    """Show the rows of a table, or the one of a KEY, with the document that changed each last.

    \b
    Examples:
      xscl table show author
      xscl table show author Ann
    """
    connection = connect(context)
    rows = list(_rows(connection, name, key))
    columns = dict.fromkeys(column for row in rows for column in row)
    emit_rows(rows, list(columns), output)
    if not rows and output == "table":
        message(f"no row {key!r}: it has the defaults" if key else "no rows: all have the defaults")


@table.command()
@click.argument("name")
@format_option
@click.pass_context
def export(context: click.Context, name: str, output: str) -> None:
    """Write the rows of a table, so that `xscl table load` can read them: as CSV, or as JSON lines.

    \b
    Examples:
      xscl table export author --format csv > authors.csv
      xscl table export author --format json > authors.jsonl
    """
    connection = connect(context)
    described = _described(connection, name)
    columns = [described["key"], *described["columns"]]
    if output == "json":
        for row in _rows(connection, name, None):
            echo_data(json.dumps({c: row[c] for c in columns}, ensure_ascii=False))
        return
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([row[c] for c in columns] for row in _rows(connection, name, None))
    echo_data(text.getvalue(), nl=False)


@table.command()
@click.argument("name")
@click.argument("file", type=click.File(encoding="utf-8"))
@click.pass_context
def load(context: click.Context, name: str, file: IO[str]) -> None:
    """Set rows of a table from a FILE: CSV with a line of columns, or a JSON object in each line.

    A row sets the columns that it has.  Rows become documents of the stream TABLE.NAME, and are set
    when they are decided, with the grace of the queries that use the table.  `-` is standard input.

    \b
    Examples:
      xscl table load author authors.csv
      xscl table load author - < authors.jsonl
    """
    connection = connect(context)
    described = _described(connection, name)
    count = 0
    rows = iter(_read(file, described))
    while some := list(itertools.islice(rows, _ROWS_AT_ONCE)):
        body = _document(described["key"], some).encode()
        path = ("streams", f"TABLE.{name}", "documents")
        connection.call("POST", *path, body=body, content_type="application/xml")
        count += len(some)
    rows_are = "1 row is" if count == 1 else f"{count:,} rows are"
    message(
        f"{rows_are} accepted, and set when a document or a tick of the clock passes their grace"
    )


def _described(connection: BrokerConnection, name: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = connection.get("tables")["tables"]
    for each in found:
        if each["name"] == name:
            return each
    raise Failure(f"no table {name!r}", hint="`xscl table list` names those there are")


def _rows(connection: BrokerConnection, name: str, key: str | None) -> Iterator[dict[str, Any]]:
    """Yield rows with the key under its column's name."""
    described, after = _described(connection, name), None
    while True:
        page = connection.get("tables", name, "rows", after=after, key=key, limit=1_000)
        for row in page["rows"]:
            cells = {**described["columns"], **row["cells"]}
            yield {described["key"]: row["key"], **cells, "docid": row["docid"]}
        after = page["next"]
        if after is None:
            return


def _read(file: IO[str], described: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    first = file.readline()
    lines: Iterable[str] = itertools.chain([first], file)
    is_json = first.lstrip().startswith("{")
    rows = map(json.loads, lines) if is_json else csv.DictReader(lines)
    known = {described["key"], *described["columns"]}
    for number, row in enumerate(rows, 1):
        wrong = sorted(set(row) - known, key=str)
        if wrong or row.get(described["key"]) is None:
            what = f"no column {wrong[0]!r}" if wrong else f"no {described['key']!r}"
            raise Failure(f"row {number}: {what}", hint=f"the columns are {', '.join(known)}")
        yield row


def _document(key: str, rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as a document of a load."""
    parts = []
    for row in rows:
        cells = "".join(
            f"<{name}>{escape(str(value))}</{name}>"
            for name, value in row.items()
            if name != key and value is not None
        )
        parts.append(f"<row {key}={quoteattr(str(row[key]))}>{cells}</row>")
    return f"<rows>{''.join(parts)}</rows>"
