"""CREATE TABLE: from syntax to a table, and what queries say of tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from xscl.comparison import Cell, Conditional, Disjunct, Residual, operands_below
from xscl.diagnostics import Diagnostic, Severity
from xscl.path import Literal, Span
from xscl.query import Query
from xscl.report import Report
from xscl.sequence import From
from xscl.spelling import did_you_mean
from xscl.statement import ColumnSyntax, TableSyntax
from xscl.syntax import ParameterRef
from xscl.table import Action, SetCell, Table, TableColumn, TableUse

__all__ = ["build_table", "check_graces", "check_tables"]


def build_table(syntax: TableSyntax, report: Report) -> Table | None:
    """Return the table that a statement creates; `None` when it has an error, which is reported."""
    errors = report.errors
    keys = [each for each in syntax.columns if each.default is None]
    if len(keys) != 1:
        report.error(
            "XS904",
            keys[1].span if keys else syntax.name_span,
            f"the table `{syntax.name}` has {'no key' if not keys else 'a second key'}",
            "one column is the key, as in `(id KEY, status DEFAULT 'safe')`",
        )
    first: dict[str, ColumnSyntax] = {}
    for column in syntax.columns:
        other = first.setdefault(column.name, column)
        if other is not column:
            report.error(
                "XS905",
                column.span,
                f"the column `{column.name}` stands here a second time",
                "choose another name",
                other.span,
            )
    columns = tuple(_column(each, report) for each in sorted(syntax.columns, key=_is_no_key))
    if report.errors > errors:
        return None
    return Table(syntax.name, columns, report.source, syntax.name_span)


def _is_no_key(column: ColumnSyntax) -> bool:
    return column.default is not None


def _column(syntax: ColumnSyntax, report: Report) -> TableColumn:
    default = syntax.default
    if isinstance(default, ParameterRef):
        report.error(
            "XS605", default.span, "a table has no parameters", "write a literal: `DEFAULT 0`"
        )
        return TableColumn(syntax.name, Literal(""))
    return TableColumn(syntax.name, None if default is None else Literal(default.value))


Located = tuple[Query, str | None, str]
"""A query with its file and its text."""


def check_tables(
    queries: Sequence[Located], tables: Sequence[tuple[Table, str | None, str]], *, is_all: bool
) -> list[Diagnostic]:
    """Return what is wrong with tables, and with what queries say of them.

    `is_all` says that no other texts go with these: a table that none of them creates is warned of.
    """
    found: list[Diagnostic] = []
    known: dict[str, Table] = {}
    for table, file, text in tables:
        if table.name in known:
            span = table.span or Span(0, 0)
            message = f"the table `{table.name}` is created already"
            hint = "choose another name, or remove one of the statements"
            found.append(Diagnostic("XS705", Severity.ERROR, span, message, hint, None, file, text))
        known.setdefault(table.name, table)
    for query, path, source in queries:
        for use in query.tables if query.table is None else ():
            for severity, code, message, advice in _wrong_use(use, known, is_all):
                found.append(
                    Diagnostic(code, severity, use.span, message, advice, None, path, source)
                )
        for use, text in _numbers_beside_texts(query, known) if query.tables else ():
            message = f"`{use.table}[...].{use.column}` is a number where no row says otherwise"
            advice = f"of a number neither `= {text}` nor `!= {text}` holds: compare it with one"
            found.append(
                Diagnostic("XS916", Severity.WARNING, use.span, message, advice, None, path, source)
            )
    return found


def _numbers_beside_texts(query: Query, known: dict[str, Table]) -> Iterator[tuple[TableUse, str]]:
    """Yield cells that have a number by default and are compared with a text, with the text."""
    having = () if query.rows is None else query.rows.having or ()
    where = query.root.where or () if isinstance(query.root, From) else ()
    for residual in _residuals((*where, *having), query.actions):
        for cell, text in ((residual.left, residual.right), (residual.right, residual.left)):
            is_text = isinstance(text, Literal) and isinstance(text.value, str)
            if not is_text or not isinstance(cell, Cell) or cell.row.table not in known:
                continue
            columns = {each.name: each.default for each in known[cell.row.table].columns}
            default = columns.get(cell.column)
            if default is not None and isinstance(default.value, float):
                for use in query.tables:
                    if (use.table, use.column) == (cell.row.table, cell.column):
                        yield use, repr(text.value)  # type: ignore[union-attr]
                        break


def _residuals(asked: Iterable[Disjunct], actions: Iterable[Action]) -> Iterator[Residual]:
    """Yield the comparisons of conditions and of `if` in values that are set."""
    disjuncts = list(asked)
    values = [each.value for each in actions if isinstance(each, SetCell)]
    for value in values:
        for below in operands_below(value):
            if isinstance(below, Conditional):
                disjuncts += below.condition
    for disjunct in disjuncts:
        yield from (each for each in disjunct.residuals if each.operator in ("=", "!="))


def check_graces(queries: Sequence[Located]) -> list[Diagnostic]:
    """Return where a statement says another grace than the largest of the statements of a table."""
    publishers = {query.publish: query for query, _, _ in queries if query.publish is not None}

    def grace_us(query: Query) -> float:
        own = math.inf if query.grace is None else query.grace
        read = (publishers.get(block.stream) for block in query.blocks)
        return max([own, *(grace_us(each) for each in read if each is not None)])

    users = [each for each in queries if each[0].tables and each[0].table is None]
    largest: dict[str, tuple[float, str]] = {}
    for query, _, _ in users:
        for name in query.table_names:
            largest[name] = max((grace_us(query), query.id), largest.get(name, (-1.0, "")))
    found: list[Diagnostic] = []
    for query, path, source in users:
        own_us = grace_us(query)
        name = max(query.table_names, key=lambda name: (largest[name][0], name))
        most_us, other = largest[name]
        if own_us < most_us:
            said = "no GRACE" if most_us == math.inf else f"GRACE {most_us / 1e6:g} s"
            message = f"`{other}` uses `{name}` too, with {said}: that is this statement's, too"
            hint = "statements of one table have the largest of their graces: say the same"
            span = query.tables[0].span
            found.append(
                Diagnostic("XS707", Severity.WARNING, span, message, hint, None, path, source)
            )
    return found


def _wrong_use(
    use: TableUse, known: dict[str, Table], is_all: bool
) -> Iterator[tuple[Severity, str, str, str | None]]:
    table = known.get(use.table)
    if table is None:
        if is_all:
            yield (
                Severity.WARNING,
                "XS912",
                f"no text here creates the table `{use.table}`",
                did_you_mean(use.table, known) or f"`CREATE TABLE {use.table} (id KEY, ...)` does",
            )
        return
    if use.column is None:
        return
    names = [column.name for column in table.columns]
    if use.column not in names:
        hint = did_you_mean(use.column, names) or "it has " + ", ".join(f"`{n}`" for n in names)
        message = f"the table `{use.table}` has no column `{use.column}`"
        yield Severity.ERROR, "XS906", message, hint
    elif use.is_written and use.column == names[0]:
        message = f"`{use.column}` is the key of `{use.table}`, and cannot be set"
        yield Severity.ERROR, "XS913", message, "a row has the key that it was found by"
