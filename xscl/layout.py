"""Sets the canonical text of statements into lines, and puts the comments back (`xscl fmt`).

A statement is laid out as lines of pieces (`xscl.lines`); where they break does not depend on how
the author broke them.  That makes formatting idempotent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xscl.canonical import render_expression, render_row, render_string, render_window
from xscl.diagnostics import XsclError
from xscl.lines import INDENT, WIDTH, Line, LinePiece, from_lines, joined, predicate_pieces
from xscl.parser import parse_file
from xscl.path import Span
from xscl.report import Report
from xscl.selects import item_text
from xscl.statement import (
    ActionSyntax,
    ColumnSyntax,
    NamespaceDeclaration,
    SelectSyntax,
    Statement,
    TableSyntax,
)
from xscl.syntax import Expression
from xscl.writer import Writer

__all__ = ["render", "statement_text"]


def render(text: str, *, path: str | None = None) -> str:
    r"""Return the canonical text of a file of statements, with its comments.

    Raise `XsclError` where the text cannot be read; what it means is not looked at.

    >>> render("s//a  as x followed by{x/t=y/t,PT1H} s//b->y -- pairs")
    's//a->x FOLLOWED BY {x/t = y/t, 1 hour} s//b->y -- pairs\n'
    """
    report = Report(text, path)
    statements, comments = parse_file(text, report)
    if not statements and not report.errors:
        report.error("XS115", Span(0, 1), "there is no query here")
    if report.errors:
        raise XsclError(report.sorted())
    return Writer(text, comments, _lines).file(statements)


def statement_text(statement: Statement) -> str:
    """Return a statement's canonical text, without comments."""
    return "\n".join(
        [line.indent + "".join([piece.text for piece in line.pieces]) for line in _lines(statement)]
    )


def _lines(statement: Statement, notes: Sequence[int] = ()) -> Iterator[Line]:
    """Yield a statement's lines; `notes` are where `--` comments stand."""
    for declaration in statement.prolog:
        yield Line("", [_declaration(declaration)])
    if statement.table is not None:
        yield from _table(statement.table)
        return
    assert statement.source is not None
    select, publish = statement.select, statement.publish
    if select is None and publish is None:
        yield from from_lines(statement.source, "", "", notes)
        yield from _clauses(statement)
        return
    if select is not None and select.span.start > statement.source.span.start:
        notes = ()  # SELECT comes first, and the comments of what stood before it with it
    yield from _select_lines(select, statement.span.start)
    yield from from_lines(statement.source, "", "FROM ", notes)
    yield from _clauses(statement)
    if publish is not None:
        yield Line("", [LinePiece(f"PUBLISH {publish.name}", publish.span.start)])


def _declaration(declaration: NamespaceDeclaration) -> LinePiece:
    prefix = declaration.prefix
    what = f"NAMESPACE {prefix}" if prefix else "DEFAULT ELEMENT NAMESPACE"
    text = f"DECLARE {what} = {render_string(declaration.uri)};"
    return LinePiece(text, declaration.span.start)


def _table(table: TableSyntax) -> Iterator[Line]:
    start = LinePiece(f"CREATE TABLE {table.name} (", table.span.start)
    columns = [LinePiece(_column(each), each.span.start) for each in table.columns]
    flat = [start, columns[0], *(LinePiece(f", {each.text}", each.offset) for each in columns[1:])]
    line = Line("", [*flat[:-1], LinePiece(f"{flat[-1].text})", flat[-1].offset)])
    if line.width <= WIDTH:
        yield line
        return
    yield Line("", [start])
    for each in columns[:-1]:
        yield Line(INDENT, [LinePiece(f"{each.text},", each.offset)])
    yield Line(INDENT, columns[-1:])
    yield Line("", [LinePiece(")", table.span.end - 1)])


def _column(column: ColumnSyntax) -> str:
    if column.default is None:
        return f"{column.name} KEY"
    return f"{column.name} DEFAULT {render_expression(column.default)}"


def _select_lines(select: SelectSyntax | None, start: int) -> Iterator[Line]:
    if select is None:
        yield Line("", [LinePiece("SELECT *", start)])
        return
    keyword = f"SELECT {select.kind}".rstrip()
    offset = select.span.start
    constructor = select.constructor
    if constructor is not None and "\n" in constructor.text:  # its own lines stay as they are
        yield Line("", [LinePiece(keyword, offset)])
        yield Line(INDENT, [LinePiece(constructor.text, constructor.span.start)])
    elif constructor is not None:
        yield Line("", [LinePiece(f"{keyword} {constructor.text}", offset)])
    elif not select.items:
        yield Line(
            "", [LinePiece(keyword if select.kind == "COMPRESSED" else f"{keyword} *", offset)]
        )
    else:
        pieces = [LinePiece(f"{keyword} {item_text(select.items[0])}", offset)]
        pieces += [LinePiece(f", {item_text(item)}", item.span.start) for item in select.items[1:]]
        yield Line("", pieces)


def _clauses(statement: Statement) -> Iterator[Line]:
    """Yield what stands behind a statement's from, each clause on a line of its own."""
    window, limit = statement.window, statement.limit
    if window is not None:
        text = f"WINDOW {render_window(window.length)}"
        pieces = [LinePiece(text, window.span.start), *_by(window.keys)]
        if window.having is not None and window.having_span is not None:
            having = [LinePiece("HAVING", window.having_span.start)]
            pieces = joined(pieces, joined(having, predicate_pieces(window.having)))
        yield Line("", pieces)
    if limit is not None:
        text = f"LIMIT {render_expression(limit.count)} PER {render_window(limit.length)}"
        yield Line("", [LinePiece(text, limit.span.start), *_by(limit.keys)])
    if statement.confidence is not None and statement.confidence_span is not None:
        text = f"CONFIDENCE {render_expression(statement.confidence)}"
        yield Line("", [LinePiece(text, statement.confidence_span.start)])
    if statement.grace is not None and statement.grace_span is not None:
        text = f"GRACE {render_window(statement.grace)}"
        yield Line("", [LinePiece(text, statement.grace_span.start)])
    if statement.actions and statement.actions_span is not None:
        yield Line("", _actions(statement.actions, statement.actions_span.start))


def _by(keys: Sequence[Expression]) -> list[LinePiece]:
    return [
        LinePiece(f"{', ' if index else ' BY '}{item_text(key)}", key.span.start)
        for index, key in enumerate(keys)
    ]


def _actions(actions: Sequence[ActionSyntax], start: int) -> list[LinePiece]:
    pieces = [LinePiece("ON MATCH ", start)]
    for index, action in enumerate(actions):
        target = render_row(action.target)
        if action.value is None:
            text = f"DELETE {target}"
        else:
            text = f"SET {target} = {render_expression(action.value, 5)}"
        pieces.append(LinePiece(f"{', ' if index else ''}{text}", action.span.start))
    return pieces
