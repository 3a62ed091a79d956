"""What the reader of the language tells the author of a query: diagnostics and their text.

A diagnostic has a stable code (`docs/diagnostics.md` has an entry for each), a severity, the
span of the text it speaks of, a message, and where possible a hint that says what to write.
"""

from __future__ import annotations

import enum
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xscl.path import Span

__all__ = ["Diagnostic", "Location", "Severity", "XsclError", "locate", "render_diagnostics"]


class Severity(enum.Enum):
    """An error refuses the query; a warning does not."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding about a text.

    `related` is a second place that the message speaks of (the first binding of a variable).
    `path` is the file, `None` for a text without one; `source` is the whole text of it.
    """

    code: str
    severity: Severity
    span: Span
    message: str
    hint: str | None = None
    related: Span | None = None
    path: str | None = None
    source: str = ""

    @property
    def is_error(self) -> bool:
        """Whether this finding refuses the query."""
        return self.severity is Severity.ERROR

    def __str__(self) -> str:
        return render_diagnostics([self])


class XsclError(ValueError):
    """A text is not a query, or values do not fit it.  Its author can act on the diagnostics.

    `diagnostics` has all findings, warnings among them; `str` is their text with carets.
    """

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__(diagnostics)
        self.diagnostics = tuple(diagnostics)

    def __str__(self) -> str:
        return render_diagnostics(self.diagnostics)


@dataclass(frozen=True, slots=True)
class Location:
    """A place as editors count it: line and column from 1, and the text of the line."""

    line: int
    column: int
    text: str


def locate(source: str, offset: int) -> Location:
    r"""Return the line and column of a character of a text.

    >>> locate("S//a\nT//b", 6)
    Location(line=2, column=2, text='T//b')
    """
    offset = min(offset, len(source))
    start = source.rfind("\n", 0, offset) + 1
    end = source.find("\n", offset)
    text = source[start : len(source) if end < 0 else end]
    return Location(source.count("\n", 0, offset) + 1, offset - start + 1, text.rstrip("\r"))


_RED, _YELLOW, _BLUE, _BOLD, _RESET = "\x1b[31m", "\x1b[33m", "\x1b[34m", "\x1b[1m", "\x1b[0m"


def render_diagnostics(diagnostics: Iterable[Diagnostic], *, color: bool = False) -> str:
    """Return the diagnostics as text for people, each with its line and a caret under it."""
    text = "\n\n".join(_render(each) for each in diagnostics)
    return text if color else _without_color(text)


def _without_color(text: str) -> str:
    for code in (_RED, _YELLOW, _BLUE, _BOLD, _RESET):
        text = text.replace(code, "")
    return text


def _render(diagnostic: Diagnostic) -> str:
    tint = _RED if diagnostic.is_error else _YELLOW
    code, message = diagnostic.code, diagnostic.message
    lines = [
        f"{_BOLD}{tint}{diagnostic.severity.value}[{code}]{_RESET}{_BOLD}: {message}{_RESET}",
    ]
    if diagnostic.source or diagnostic.path:
        lines += _excerpt(diagnostic, diagnostic.span, tint, "")
    if diagnostic.related is not None:
        lines += _excerpt(diagnostic, diagnostic.related, _BLUE, "the other place")
    if diagnostic.hint:
        lines.append(f"  {_BLUE}help:{_RESET} {diagnostic.hint}")
    return "\n".join(lines)


def _excerpt(diagnostic: Diagnostic, span: Span, tint: str, label: str) -> list[str]:
    place = locate(diagnostic.source, span.start)
    where = f"{diagnostic.path or '<text>'}:{place.line}:{place.column}"
    shown, offset = _clip(place.text, place.column - 1)
    marked = shown[offset : offset + max(1, span.end - span.start)]
    width = max(1, sum(map(_columns, marked)))
    gutter = " " * len(str(place.line))
    pad = "".join("\t" if each == "\t" else " " * _columns(each) for each in shown[:offset])
    mark = f"{tint}{'^' * width}{_RESET}" + (f" {label}" if label else "")
    return [
        f"{gutter}{_BLUE}-->{_RESET} {where}",
        f"{_BLUE}{place.line} |{_RESET} {shown}",
        f"{_BLUE}{gutter} |{_RESET} {pad}{mark}",
    ]


def _columns(character: str) -> int:
    """Return how many columns of a terminal a character takes."""
    if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Me", "Mn"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


EXCERPT_COLUMNS = 160
"""A longer line is shown around the caret only: a terminal would fold it away from the caret."""


def _clip(text: str, offset: int) -> tuple[str, int]:
    if len(text) <= EXCERPT_COLUMNS:
        return text, offset
    start = max(0, offset - EXCERPT_COLUMNS // 2)
    return text[start : start + EXCERPT_COLUMNS], offset - start
