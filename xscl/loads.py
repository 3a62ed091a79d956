"""The statement that CREATE TABLE stands for: documents of the stream `TABLE.name` write the table.

    <rows><row id="w7"><status>warning</status><n type="number">3</n></row><delete id="w9"/></rows>

sets a row and removes one, where `id` is the key's column.  A cell is a string, or a number where
it says so.  So loads have a place in the order of documents, and need nothing of their own.
"""

from __future__ import annotations

from dataclasses import replace

from xscl.normalise import normalise, query_version
from xscl.parser import parse_file
from xscl.query import Query
from xscl.report import Report
from xscl.table import Table

__all__ = ["load_stream", "load_text", "loading_query"]


def load_stream(table: str) -> str:
    """Return the stream whose documents write a table."""
    return f"TABLE.{table}"


def load_text(table: Table) -> str:
    """Return the statement that loads a table."""
    key, *columns = (column.name for column in table.columns)
    stream, name = load_stream(table.name), table.name
    actions = [f"SET {name}[key].{each} = {_cell(each)}" for each in columns]
    actions.append(f"DELETE {name}[gone]")
    unit = f"( {stream}//row[@{key}->key]->row | {stream}//delete[@{key}->gone] )"
    return f"{unit} ON MATCH {', '.join(actions)}"


def _cell(column: str) -> str:
    """Return the value of a cell in the row of a load."""
    return f"if (row/{column}/@type = 'number') then row/{column} + 0 else row/{column}"


def loading_query(table: Table, text: str) -> Query:
    """Return the query that loads a table; `text` is the canonical text of CREATE TABLE."""
    report = Report(load_text(table), None)
    (statement,), _ = parse_file(report.source, report)
    query = normalise(statement, table.name, report)
    assert query is not None, report.sorted()
    created = replace(table, text=text)
    return replace(query, text=text, version=query_version(text), table=created)
