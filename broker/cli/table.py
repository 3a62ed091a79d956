"""`xscl table`: tables, their rows, and how they are loaded."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any
from xml.sax.saxutils import escape, quoteattr

import click

from broker.cli.connection import BrokerConnection, connect
from broker.cli.csvcells import read_csv, spell_csv
from broker.cli.terminal import Failure, echo_data, emit_rows, format_option, message
from xscl.functions import spell

__all__ = ["table"]

_EXACT = 1 << 53
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
    if output == "table":
        for row in rows:
            row["columns"] = ", ".join(f"{c} {_shown(d)}" for c, d in row["columns"].items())
            row["users"] = ", ".join(row["users"])
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
    rows = [{column: _whole(cell) for column, cell in row.items()} for row in rows]
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
            echo_data(json.dumps({c: _whole(row[c]) for c in columns}, ensure_ascii=False))
        return
    rows = ([row[c] for c in columns] for row in _rows(connection, name, None))
    echo_data(spell_csv(itertools.chain([columns], rows)), nl=False)


@table.command()
@click.argument("name")
@click.argument("file", type=click.File(encoding="utf-8"))
@click.pass_context
def load(context: click.Context, name: str, file: IO[str]) -> None:
    """Set rows of a table from a FILE: CSV with a line of columns, or a JSON object in each line.

    A row sets the columns that it has.  In CSV 2 is a number, and "2" and 02 are texts; `xscl table
    export` writes it so.  Rows become documents of the stream TABLE.NAME, and are set
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
    """Yield the rows of a file, each by its columns."""
    known = [described["key"], *described["columns"]]
    for number, row in enumerate(_rows_in(file.read()), 1):
        wrong = [column for column in row if column not in known]
        if wrong or row.get(described["key"]) is None:
            what = f"no column {wrong[0]!r}" if wrong else f"no {described['key']!r}"
            raise Failure(f"row {number}: {what}", hint=f"the columns are {', '.join(known)}")
        odd = [c for c, v in row.items() if isinstance(v, (bool, list, dict))]
        if odd:
            hint = "a cell is a text, or a number"
            raise Failure(f"row {number}: {odd[0]!r} is {row[odd[0]]!r}", hint=hint)
        yield row


def _rows_in(text: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of JSON lines, or of CSV with a line of columns."""
    try:
        if text.lstrip().startswith("{"):
            yield from (json.loads(line) for line in text.splitlines() if line.strip())
            return
        rows = read_csv(text)
        columns = next(rows, [])
        for number, row in enumerate(rows, 1):
            if len(row) > len(columns):
                hint = "a text with a comma stands in quotes"
                raise Failure(f"row {number}: more cells than columns", hint=hint)
            yield {_text(column): cell for column, cell in zip(columns, row, strict=False)}
    except ValueError as error:
        raise Failure(f"not CSV, nor JSON lines: {error}") from error


def _document(key: str, rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as a document of a load."""
    parts = []
    for row in rows:
        cells = "".join(
            _cell(name, value) for name, value in row.items() if name != key and value is not None
        )
        parts.append(f"<row {key}={quoteattr(_text(row[key]))}>{cells}</row>")
    return f"<rows>{''.join(parts)}</rows>"


def _cell(name: str, value: Any) -> str:
    is_number = "" if isinstance(value, str) else ' type="number"'
    return f"<{name}{is_number}>{escape(_text(value))}</{name}>"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else spell(float(value))


def _shown(default: Any) -> str:
    return repr(default) if isinstance(default, str) else spell(float(default))


def _whole(value: Any) -> Any:
    """Return a number as people write it: without a fraction where it has none."""
    is_whole = isinstance(value, float) and abs(value) < _EXACT and value == int(value)
    return int(value) if is_whole else value
