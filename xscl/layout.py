"""Sets the canonical text of statements into lines, and puts the comments back (`xscl fmt`).

A statement is laid out as lines of pieces; each piece knows where it came from, so that a
comment goes before the piece that it stood before.  Where lines break depends on the pieces
alone, and on `--` comments inside an operator's braces, which need lines of their own; not on how
the author broke them.  That makes formatting idempotent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from xscl.canonical import (
    bound,
    render_binding,
    render_expression,
    render_predicate,
    render_string,
    render_window,
)
from xscl.diagnostics import XsclError
from xscl.lexer import Comment
from xscl.parser import parse_file
from xscl.path import Span
from xscl.report import Report
from xscl.selects import item_text
from xscl.syntax import (
    BlockSyntax,
    JoinSyntax,
    Junction,
    NamespaceDeclaration,
    Operand,
    SelectSyntax,
    Statement,
)

__all__ = ["WIDTH", "render", "statement_text"]

WIDTH = 100
"""Columns of a line, where the text has a place to break."""

_INDENT = "  "


class _Piece(NamedTuple):
    text: str
    offset: int


class _Line(NamedTuple):
    indent: str
    pieces: list[_Piece]

    @property
    def width(self) -> int:
        return len(self.indent) + sum(len(piece.text) for piece in self.pieces)


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
    return _Writer(text, comments).file(statements)


def statement_text(statement: Statement) -> str:
    """Return a statement's canonical text, without comments."""
    return "\n".join(
        line.indent + "".join(piece.text for piece in line.pieces) for line in _lines(statement)
    )


def _lines(statement: Statement, notes: Sequence[int] = ()) -> Iterator[_Line]:
    """Yield a statement's lines; `notes` are where `--` comments stand."""
    for declaration in statement.prolog:
        yield _Line("", [_declaration(declaration)])
    assert statement.source is not None
    select, publish = statement.select, statement.publish
    if select is None and publish is None:
        yield from _operand(statement.source, "", "", notes)
        return
    if select is not None and select.span.start > statement.source.span.start:
        notes = ()  # SELECT comes first, and the comments of what stood before it with it
    pieces = _select(select, statement.span.start)
    if select is not None and select.constructor and "\n" in select.constructor.text:
        text = select.constructor.text  # its own lines stay as they are
        yield _Line("", [_Piece("SELECT", select.span.start)])
        pieces = [_Piece(text, select.constructor.span.start)]
        yield _Line(_INDENT, pieces)
    else:
        yield _Line("", pieces)
    yield from _operand(statement.source, "", "FROM ", notes)
    if publish is not None:
        yield _Line("", [_Piece(f"PUBLISH {publish.name}", publish.span.start)])


def _declaration(declaration: NamespaceDeclaration) -> _Piece:
    prefix = declaration.prefix
    what = f"NAMESPACE {prefix}" if prefix else "DEFAULT ELEMENT NAMESPACE"
    text = f"DECLARE {what} = {render_string(declaration.uri)};"
    return _Piece(text, declaration.span.start)


def _select(select: SelectSyntax | None, start: int) -> list[_Piece]:
    if select is None:
        return [_Piece("SELECT *", start)]
    if select.constructor is not None:
        return [_Piece(f"SELECT {select.constructor.text}", select.span.start)]
    if not select.items:
        return [_Piece("SELECT *", select.span.start)]
    pieces = [_Piece(f"SELECT {item_text(select.items[0])}", select.span.start)]
    pieces += [_Piece(f", {item_text(item)}", item.span.start) for item in select.items[1:]]
    return pieces


def _operand(operand: Operand, indent: str, prefix: str, notes: Sequence[int]) -> Iterator[_Line]:
    """Yield an operand on one line if it fits, else with each operator on a line of its own."""
    flat = _flat(operand)
    flat[0] = _Piece(prefix + flat[0].text, flat[0].offset)
    line = _Line(indent, flat)
    fits = line.width <= WIDTH and not _is_noted(operand, notes)
    if fits or isinstance(operand, BlockSyntax):
        yield line
        return
    yield from _operand(operand.left, indent, prefix, notes)
    inner = indent + (_INDENT if prefix else "")
    yield from _broken_operator(operand, inner, notes)
    if isinstance(operand.right, BlockSyntax):
        yield _Line(inner, _block(operand.right))
        return
    yield _Line(inner, [_Piece("(", operand.right.span.start)])
    last = operand.right.span.start
    for line in _operand(operand.right, inner + _INDENT, "", notes):
        last = line.pieces[-1].offset
        yield line
    yield _Line(inner, [_Piece(")", last)])


def _is_noted(operand: Operand, notes: Sequence[int]) -> bool:
    """Whether a note stands beside the predicate of an operator."""
    if not notes or isinstance(operand, BlockSyntax):
        return False
    sides = (operand.left, operand.right)
    return _has_note(operand, notes) or any(_is_noted(side, notes) for side in sides)


def _has_note(join: JoinSyntax, notes: Sequence[int]) -> bool:
    span = join.operator_span
    return join.predicate is not None and any(span.start < note < span.end for note in notes)


def _flat(operand: Operand) -> list[_Piece]:
    if isinstance(operand, BlockSyntax):
        return _block(operand)
    operator, right = _operator(operand), _flat(operand.right)
    operator[0] = _Piece(f" {operator[0].text}", operator[0].offset)
    left, closing = "", ""
    if isinstance(operand.right, JoinSyntax):
        left, closing = "(", ")"
    right[0] = _Piece(f" {left}{right[0].text}", right[0].offset)
    right[-1] = _Piece(f"{right[-1].text}{closing}", right[-1].offset)
    return [*_flat(operand.left), *operator, *right]


def _operator(join: JoinSyntax) -> list[_Piece]:
    pieces = [_Piece(f"{join.keyword} {{", join.operator_span.start)]
    predicate = join.predicate
    if isinstance(predicate, Junction):
        word, level = predicate.word.upper(), 2 if predicate.word == "or" else 3
        for index, term in enumerate(predicate.terms):
            text = render_predicate(term, level)
            pieces.append(_Piece(f" {word} {text}" if index else text, term.span.start))
    elif predicate is not None:
        pieces.append(_Piece(render_predicate(predicate), predicate.span.start))
    pieces.append(_Piece(f", {render_window(join.window)}}}", join.window.span.start))
    return pieces


def _broken_operator(join: JoinSyntax, indent: str, notes: Sequence[int]) -> Iterator[_Line]:
    """Yield an operator on one line if it fits, else with each term on a line of its own."""
    pieces = _operator(join)
    line = _Line(indent, pieces)
    if join.predicate is None or (line.width <= WIDTH and not _has_note(join, notes)):
        yield line
        return
    inner = indent + _INDENT
    yield _Line(indent, pieces[:1])
    *terms, last, window = pieces[1:]
    for term in terms:
        yield _Line(inner, [_Piece(term.text.lstrip(), term.offset)])
    yield _Line(inner, [_Piece(f"{last.text.lstrip()},", last.offset)])
    yield _Line(inner, [_Piece(render_window(join.window), window.offset)])
    yield _Line(indent, [_Piece("}", join.operator_span.end - 1)])


def _block(block: BlockSyntax) -> list[_Piece]:
    if block.variable is not None:
        return [_Piece(bound(block.stream, block.variable), block.span.start)]
    pieces = [_Piece(block.stream, block.span.start)]
    for step in block.steps:
        slash = "//" if step.is_deep else "/"
        pieces.append(_Piece(slash + render_binding(step), step.span.start))
        for each in step.predicates:
            pieces.append(_Piece(f"[{render_expression(each)}]", each.span.start))
    return pieces


class _Writer:
    """Writes pieces one behind the other, each after the comments that stood before it."""

    def __init__(self, source: str, comments: Iterable[Comment]) -> None:
        self.source = source
        self.comments = list(comments)
        self.next = 0
        self.lines: list[str] = []
        self.current = ""
        self.indent = ""

    def file(self, statements: list[Statement]) -> str:
        for index, statement in enumerate(statements):
            if index:
                self.comments_before(statements[index - 1].end)
                self.put(";")
                self.comments_beside(statement.span.start)
                self.break_line()
                self.lines.append("")
            self.statement(statement)
        self.comments_before(len(self.source) + 1)
        self.break_line()
        return "\n".join(self.lines) + "\n"

    def statement(self, statement: Statement) -> None:
        self.indent = ""
        had_comment = self.comments_before(statement.span.start)
        if had_comment and not self.current and self.has_blank_line(statement.span.start):
            self.blank_line()
        notes = [each.start for each in self.comments if each.text.startswith("--")]
        for number, line in enumerate(_lines(statement, notes)):
            if number:
                self.comments_beside(line.pieces[0].offset)
                self.break_line()
            self.indent = line.indent
            for piece in line.pieces:
                self.comments_before(piece.offset)
                self.put(piece.text)

    def put(self, text: str) -> None:
        if self.current.strip():
            self.current += text
        else:
            self.current = self.indent + text.lstrip(" ")

    def break_line(self) -> None:
        if self.current.strip():
            self.lines.append(self.current.rstrip())
        self.current = ""

    def blank_line(self) -> None:
        if self.lines and self.lines[-1]:
            self.lines.append("")

    def has_blank_line(self, offset: int) -> bool:
        """Whether the author left a line empty before this place."""
        return re.search(r"\n[ \t\r]*\n[ \t\r\n]*\Z", self.source[:offset]) is not None

    def comments_beside(self, offset: int) -> None:
        """Write the comments that stand behind what was written, on the same line."""
        while self.next < len(self.comments):
            comment = self.comments[self.next]
            if comment.start >= offset or comment.starts_line or not self.current:
                return
            self.comment(comment)

    def comments_before(self, offset: int) -> bool:
        """Write all comments that stand before a place; say whether there were any."""
        first = self.next
        while self.next < len(self.comments) and self.comments[self.next].start < offset:
            self.comment(self.comments[self.next])
        return self.next > first

    def comment(self, comment: Comment) -> None:
        self.next += 1
        if comment.starts_line:
            self.break_line()
            if self.has_blank_line(comment.start):
                self.blank_line()
        if self.current.strip():
            self.current = f"{self.current.rstrip()} {comment.text}"
        else:
            self.current = self.indent + comment.text
        if comment.ends_line:
            self.break_line()
        else:
            self.current += " "
