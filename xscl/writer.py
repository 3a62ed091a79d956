"""Writes lines of pieces, each piece after the comments that stood before it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from xscl.lexer import Comment
from xscl.lines import Line
from xscl.statement import Statement

__all__ = ["Writer"]

StatementLines = Callable[[Statement, Sequence[int]], Iterable[Line]]
"""Sets a statement into lines, given where its `--` comments stand."""


class Writer:
    """Writes the statements of a text in canonical form, with the text's comments."""

    def __init__(self, source: str, comments: Iterable[Comment], lines: StatementLines) -> None:
        self.source = source
        self.lines_of = lines
        self.comments = list(comments)
        self.next = 0
        self.lines: list[str] = []
        self.current = ""
        self.indent = ""

    def file(self, statements: list[Statement]) -> str:
        """Return the text of a file of statements."""
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
        """Write one statement."""
        self.indent = ""
        had_comment = self.comments_before(statement.span.start)
        if had_comment and not self.current and self.has_blank_line(statement.span.start):
            self.blank_line()
        notes = [each.start for each in self.comments if each.text.startswith("--")]
        for number, line in enumerate(self.lines_of(statement, notes)):
            if number:
                self.comments_beside(line.pieces[0].offset)
                self.break_line()
            self.indent = line.indent
            for piece in line.pieces:
                self.comments_before(piece.offset)
                self.put(piece.text)

    def put(self, text: str) -> None:
        """Write a piece behind the last one."""
        if self.current.strip():
            self.current += text
        else:
            self.current = self.indent + text.lstrip(" ")

    def break_line(self) -> None:
        """End the line, unless nothing stands on it."""
        if self.current.strip():
            self.lines.append(self.current.rstrip())
        self.current = ""

    def blank_line(self) -> None:
        """Leave a line empty, once."""
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
        """Write a comment on the line that it stood on, or on one of its own."""
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
