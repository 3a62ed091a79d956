"""The lines of a case file: statements, each with what is indented below it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xscl.path import Span

__all__ = ["CaseLine", "CaseStatement", "read_lines", "statements"]


@dataclass(frozen=True, slots=True)
class CaseLine:
    """One line that says something: where it begins in the text, how far in, and what it says."""

    number: int
    start: int
    indent: int
    text: str

    @property
    def span(self) -> Span:
        """Where its words stand in the text of the file."""
        return Span(self.start, self.start + len(self.text))


@dataclass(frozen=True, slots=True)
class CaseStatement:
    """A line, and the lines that are indented below it, as they stand in the file."""

    line: CaseLine
    body: tuple[CaseLine, ...]

    @property
    def word(self) -> str:
        """The first word, which says what kind of statement it is."""
        return self.line.text.split(maxsplit=1)[0]

    @property
    def rest(self) -> str:
        """What stands behind the first word."""
        return self.line.text[len(self.word) :].strip()

    @property
    def last_line(self) -> int:
        """The number of the last line that belongs to it."""
        return self.body[-1].number if self.body else self.line.number

    def below(self) -> str:
        """Return what is indented below, moved to the left together."""
        return textwrap.dedent("\n".join(" " * line.indent + line.text for line in self.body))


def read_lines(source: str) -> list[CaseLine]:
    """Return all lines of a text."""
    found, start = [], 0
    for number, line in enumerate(source.splitlines(keepends=True), 1):
        indent = len(line) - len(line.lstrip())
        found.append(CaseLine(number, start + indent, indent, line.strip()))
        start += len(line)
    return found


def statements(lines: Sequence[CaseLine], flat: Sequence[str] = ()) -> Iterator[CaseStatement]:
    """Yield the statements; one whose first word is in `flat` has nothing below it.

    Between statements, empty lines and comments (`#`) say nothing; below one they belong to it.
    """
    at = 0
    while at < len(lines):
        head, at = lines[at], at + 1
        if not _says_something(head):
            continue
        end = at
        if head.text.split(maxsplit=1)[0] not in flat:
            while end < len(lines) and (not lines[end].text or lines[end].indent > head.indent):
                end += 1
        body = list(lines[at:end])
        while body and not _says_something(body[-1]):
            body.pop()
        yield CaseStatement(head, tuple(body))
        at = end


def _says_something(line: CaseLine) -> bool:
    return bool(line.text) and not line.text.startswith("#")
