"""Reads whole texts: statements to queries, with every diagnostic."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import PurePath

from xscl.diagnostics import Diagnostic, XsclError
from xscl.layout import statement_text
from xscl.loads import loading_query
from xscl.normalise import normalise
from xscl.parser import parse_file
from xscl.path import Span
from xscl.query import Query
from xscl.report import Report
from xscl.statement import Statement
from xscl.structural import structural_query
from xscl.support import NOT_RUN, check_support, refused
from xscl.table import Table
from xscl.tables import build_table, check_tables

__all__ = ["TextReading", "check", "is_run", "parse", "read"]

DEFAULT_ID = "query"
"""The stem of the ids of statements in a text that is no file and has no PUBLISH name."""

CACHED_LENGTH = 10_000
"""Characters of a text that is remembered; longer ones would fill the memory."""

TEXT_LIMIT = 1_000_000
"""Characters of one text.  The longest real query file is a thousandth of that."""


@dataclass(frozen=True, slots=True)
class TextReading:
    """What a text says: its queries and tables without errors, and all diagnostics.

    Of a table that it creates there is also the query that loads it.  What a query says of tables
    has not been looked at: these may stand in other texts.
    """

    queries: tuple[Query, ...]
    tables: tuple[Table, ...]
    diagnostics: tuple[Diagnostic, ...]


def parse(
    text: str,
    *,
    id: str | None = None,  # noqa: A002
    path: str | None = None,
) -> list[Query]:
    """Return the queries of a text, in normal form, to be run.

    `id` is the id of a text of one statement; else a query's id is its PUBLISH name, else the
    stem of `path`, with `.1`, `.2`, ... where the text has several statements.  Raise
    `XsclError` with every diagnostic if the text has an error, or says what is not run yet.

    >>> [query] = parse("S//book->x1[author->x2] FOLLOWED BY {x2 = x5, 1 day} S//blog[author->x5]")
    >>> query.text
    'S//book->x1[author->x2] FOLLOWED BY {x2 = x5, 1 day} S//blog[author->x5]'
    """
    queries, found = check(text, id=id, path=path)
    diagnostics = [refused(each) for each in found]
    if any(diagnostic.is_error for diagnostic in diagnostics):
        raise XsclError(diagnostics)
    return queries


def check(
    text: str,
    *,
    id: str | None = None,  # noqa: A002
    path: str | None = None,
) -> tuple[list[Query], list[Diagnostic]]:
    """Return the queries of the statements without errors, and all diagnostics.  Never raise."""
    reading = read(text, id=id, path=path)
    own = [(each, path, text) for each in reading.tables]
    wrong = check_tables([(query, path, text) for query in reading.queries], own, is_all=False)
    diagnostics = sorted((*reading.diagnostics, *wrong), key=lambda each: (each.span, each.code))
    return list(reading.queries), diagnostics


def is_run(query: Query) -> bool:
    """Return whether this broker runs a query, or only reads it."""
    return all(each.code != NOT_RUN for each in read(query.text).diagnostics)


def read(
    text: str,
    *,
    id: str | None = None,  # noqa: A002
    path: str | None = None,
) -> TextReading:
    """Return all that a text says.  Never raise."""
    if len(text) > CACHED_LENGTH:
        return _read_anew(text, id, path)
    return _read_once(text, id, path)


def _read_anew(text: str, given: str | None, path: str | None) -> TextReading:
    structural = structural_query(text, given if given is not None else _stem(path))
    if structural is not None:
        return TextReading((structural,), (), ())
    report = Report(text, path)
    if len(text) > TEXT_LIMIT:
        report.error("XS112", Span(0, 1), f"longer than {TEXT_LIMIT:,} characters", "split it")
        return TextReading((), (), tuple(report.sorted()))
    statements, _ = parse_file(text, report)
    if not statements and not report.errors:
        report.error(
            "XS115", Span(0, 1), "there is no query here", "the shortest is a stream: `blog`"
        )
    queries: list[Query] = []
    tables: list[Table] = []
    for index, statement in enumerate(statements, 1):
        if statement.table is not None:
            table = build_table(statement.table, report)
            check_support(statement, report)
            if table is not None and not statement.is_broken:
                tables.append(table)
                queries.append(loading_query(table, statement_text(statement)))
            continue
        query = normalise(statement, _id(statement, index, len(statements), given, path), report)
        if query is not None and not _has_error(statement, report):
            queries.append(query)
    return TextReading(tuple(queries), tuple(tables), tuple(report.sorted()))


def _has_error(statement: Statement, report: Report) -> bool:
    """Whether an error, one of the lexer perhaps, stands in a statement."""
    span = statement.span
    return report.errors > 0 and any(
        each.is_error and span.start <= each.span.start <= span.end for each in report.diagnostics
    )


_read_once = functools.lru_cache(maxsize=4096)(_read_anew)


def _id(statement: Statement, index: int, count: int, given: str | None, path: str | None) -> str:
    if given is not None and count == 1:
        return given
    if given is None and statement.publish is not None:
        return statement.publish.name
    stem = given or _stem(path)
    return stem if count == 1 else f"{stem}.{index}"


def _stem(path: str | None) -> str:
    return PurePath(path).stem if path else DEFAULT_ID
