"""Element constructors: `<alert by="{x5}">{x1/title}</alert>`, as XQuery writes them.

`constructor_end` finds where one ends in a text; `read_constructor` makes its tree.  Whitespace
between tags and enclosed expressions only is layout and dropped, as in XQuery.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html.entities import name2codepoint

from xscl.path import Span
from xscl.report import Report

__all__ = [
    "Attribute",
    "ConstructedElement",
    "ConstructorError",
    "Content",
    "Enclosed",
    "constructor_end",
    "read_constructor",
]

DEPTH_LIMIT = 60
"""Elements within elements of a constructor; recursion over them stays bounded."""


@dataclass(frozen=True, slots=True)
class Enclosed:
    """`{expression}`; `start` is where the expression begins in the constructor's text."""

    expression: str
    start: int


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute with its value in parts; `xmlns` declarations are not among them."""

    name: str
    parts: tuple[str | Enclosed, ...]


@dataclass(frozen=True, slots=True)
class ConstructedElement:
    """A constructed element; `namespaces` are the declarations on it."""

    name: str
    namespaces: tuple[tuple[str, str], ...]
    attributes: tuple[Attribute, ...]
    content: tuple[Content, ...]
    start: int


Content = str | Enclosed | ConstructedElement


class ConstructorError(ValueError):
    """The text is no element constructor; `start` and `end` say where in it."""

    def __init__(self, message: str, start: int, end: int, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.start = start
        self.end = end
        self.hint = hint


def constructor_end(text: str, start: int, report: Report) -> int:
    """Return where the constructor that begins at `start` ends; report what is wrong in it."""
    reader = _Reader(text, start)
    try:
        reader.element(0)
    except ConstructorError as failure:
        report.error("XS111", Span(failure.start, failure.end), failure.message, failure.hint)
        return _resume(text, failure.end)
    return reader.position


_CLAUSE = re.compile(r"\b(?:FROM|PUBLISH)\s+[\w*(]|;[ \t]*(?=\r?\n|$)", re.IGNORECASE)


def _resume(text: str, position: int) -> int:
    """Return where the statement goes on behind a constructor that cannot be read."""
    clause = _CLAUSE.search(text, position)
    return clause.start() if clause else len(text)


def read_constructor(text: str) -> ConstructedElement:
    """Return the tree of a constructor's text, which `constructor_end` has accepted."""
    return _Reader(text, 0).element(0)


_NAME = re.compile(r"[^\W\d][\w.\u00b7-]*(?::[^\W\d][\w.\u00b7-]*)?")
_SPACE = re.compile(r"[ \t\r\n]*")
_TEXT = re.compile(r"[^<{}&]+")
_REFERENCE = re.compile(r"&(?:#(\d{1,7})|#x([0-9a-fA-F]{1,6})|([A-Za-z]+));")
_OPERATORS = "and|or|div|idiv|mod|eq|ne|lt|le|gt|ge|is|to|return|then|else|in|satisfies|union"
_EXPRESSION_PART = re.compile(
    rf"""'[^']*'|"[^"]*"|\(:|[{{}}]
    |(?:{_OPERATORS})(?=')         # a string follows
    |\$?[^\W\d][\w.\u00b7-]*'*     # a variable may end in primes
    |[^'"{{}}(]|\(""",
    re.VERBOSE,
)
"""What an enclosed expression is made of, as far as finding its end needs to know."""

_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}


class _Reader:
    def __init__(self, text: str, position: int) -> None:
        self.text = text
        self.position = position

    def fail(
        self, message: str, hint: str | None = None, start: int | None = None
    ) -> ConstructorError:
        at = self.position if start is None else start
        return ConstructorError(
            message, at, min(max(at + 1, self.position), len(self.text) + 1), hint
        )

    def take(self, text: str) -> bool:
        if not self.text.startswith(text, self.position):
            return False
        self.position += len(text)
        return True

    def space(self) -> None:
        found = _SPACE.match(self.text, self.position)
        assert found is not None
        self.position = found.end()

    def name(self, what: str) -> str:
        found = _NAME.match(self.text, self.position)
        if found is None:
            raise self.fail(f"expected {what}")
        self.position = found.end()
        return found.group()

    def element(self, depth: int) -> ConstructedElement:
        start = self.position
        if depth > DEPTH_LIMIT:
            raise self.fail(f"elements nested more than {DEPTH_LIMIT} levels deep")
        self.position += 1
        name = self.name("an element name behind `<`")
        namespaces, attributes = self.attributes(name)
        content: tuple[Content, ...] = ()
        if not self.take("/>"):
            if not self.take(">"):
                raise self.fail(f"expected `>` to end the tag `<{name}`", start=start)
            content = self.content(name, start, depth)
        return ConstructedElement(name, namespaces, attributes, content, start)

    def attributes(self, owner: str) -> tuple[tuple[tuple[str, str], ...], tuple[Attribute, ...]]:
        namespaces: list[tuple[str, str]] = []
        attributes: dict[str, Attribute] = {}
        while True:
            self.space()
            start = self.position
            if self.text[start : start + 1] in (">", "/", ""):
                return tuple(namespaces), tuple(attributes.values())
            name = self.name(f"an attribute or `>` in the tag `<{owner}`")
            self.space()
            if not self.take("="):
                raise self.fail(
                    f"the attribute `{name}` has no value", f'write `{name}="..."`', start
                )
            self.space()
            parts = self.attribute_value(name)
            if name == "xmlns" or name.startswith("xmlns:"):
                namespaces.append((name[6:], self.plain(parts, name, start)))
            elif name in attributes:
                raise self.fail(f"the attribute `{name}` stands twice on one element", start=start)
            else:
                attributes[name] = Attribute(name, parts)

    def plain(self, parts: tuple[str | Enclosed, ...], name: str, start: int) -> str:
        if any(isinstance(part, Enclosed) for part in parts):
            raise self.fail(f"`{name}` must be a plain string, without `{{}}`", start=start)
        return "".join(str(part) for part in parts)

    def attribute_value(self, name: str) -> tuple[str | Enclosed, ...]:
        quote = self.text[self.position : self.position + 1]
        start = self.position
        if quote not in ("'", '"') or not quote:
            raise self.fail(f"the value of `{name}` stands in quotes", f'write `{name}="{{...}}"`')
        self.position += 1
        parts: list[str | Enclosed] = []
        while True:
            if self.position >= len(self.text):
                self.position = start + 1
                raise self.fail(f"the value of `{name}` is never closed", start=start)
            if self.take(quote * 2):
                parts.append(quote)
            elif self.take(quote):
                return _merged(parts)
            else:
                parts.append(self.piece(f"[^<{{}}&{quote}]+"))

    def piece(self, pattern: str) -> str | Enclosed:
        """Read a stretch of text, a reference, a doubled brace or an enclosed expression."""
        found = re.compile(pattern).match(self.text, self.position)
        if found is not None:
            self.position = found.end()
            return re.sub(r"\r\n?", "\n", found.group())
        for brace in ("{", "}"):
            if self.take(brace * 2):
                return brace
        character = self.text[self.position]
        if character == "&":
            return self.reference()
        if character == "{":
            return self.enclosed()
        if character == "}":
            raise self.fail("a `}` without a `{`", "a brace that is meant as text is written `}}`")
        raise self.fail(f"`{character}` cannot stand here", "write it `&lt;`")

    def reference(self) -> str:
        found = _REFERENCE.match(self.text, self.position)
        if found is None:
            raise self.fail("an `&` that begins no reference", "write it `&amp;`")
        decimal, hexadecimal, named = found.groups()
        code = int(decimal) if decimal else int(hexadecimal, 16) if hexadecimal else 0
        if named and named not in _NAMED:
            known = f"write `&#{name2codepoint[named]};`" if named in name2codepoint else None
            raise self.fail(f"`&{named};` is not known here", known)
        if not named and not _is_xml_character(code):
            raise self.fail(f"`{found.group()}` is not a character of XML")
        self.position = found.end()
        return _NAMED[named] if named else chr(code)

    def enclosed(self) -> Enclosed:
        start = self.position
        self.position += 1
        depth = 1
        while depth:
            found = _EXPRESSION_PART.match(self.text, self.position)
            if found is None:
                self.position = start + 1
                raise self.fail(
                    "this `{` is never closed", "a brace meant as text is written `{{`", start
                )
            part = found.group()
            self.position = found.end()
            if part == "(:":
                self.comment(found.start())
            depth += (part == "{") - (part == "}")
        expression = self.text[start + 1 : self.position - 1]
        if not expression.strip():
            raise self.fail("nothing stands between these braces", "write `{x1/title}`", start)
        return Enclosed(expression, start + 1)

    def comment(self, start: int) -> None:
        depth = 1
        for edge in re.compile(r"\(:|:\)").finditer(self.text, self.position):
            depth += 1 if edge.group() == "(:" else -1
            if depth == 0:
                self.position = edge.end()
                return
        raise self.fail("this comment is never closed", start=start)

    def content(self, name: str, start: int, depth: int) -> tuple[Content, ...]:
        parts: list[Content] = []
        pending: list[tuple[str, bool]] = []  # text, and whether it is more than layout

        def flush() -> None:
            text = "".join(piece for piece, _ in pending)
            if any(solid for _, solid in pending) or text.strip(" \t\r\n"):
                parts.append(text)
            pending.clear()

        while not self.text.startswith("</", self.position):
            if self.position >= len(self.text):
                self.position = start + 1 + len(name)
                raise self.fail(f"`<{name}>` is never closed", f"write `</{name}>`", start)
            if self.take("<!--"):
                self.until("-->", "comment")
            elif self.take("<![CDATA["):
                pending.append((self.until("]]>", "CDATA section"), True))
            elif self.text.startswith("<", self.position):
                flush()
                parts.append(self.element(depth + 1))
            else:
                is_text = _TEXT.match(self.text, self.position) is not None
                piece = self.piece(_TEXT.pattern)
                if isinstance(piece, str):
                    pending.append((piece, not is_text))
                else:
                    flush()
                    parts.append(piece)
        flush()
        self.end_tag(name)
        return tuple(parts)

    def until(self, mark: str, what: str) -> str:
        end = self.text.find(mark, self.position)
        if end < 0:
            raise self.fail(f"this {what} is never closed", f"close it with `{mark}`")
        text = self.text[self.position : end]
        self.position = end + len(mark)
        return text

    def end_tag(self, name: str) -> None:
        start = self.position
        self.position += 2
        closing = self.name("the name of the element to close")
        self.space()
        if closing != name:
            raise self.fail(f"`</{closing}>` closes `<{name}>`", f"write `</{name}>`", start)
        if not self.take(">"):
            raise self.fail(f"expected `>` behind `</{closing}`", start=start)


def _merged(parts: list[str | Enclosed]) -> tuple[str | Enclosed, ...]:
    merged: list[str | Enclosed] = []
    for part in parts:
        if isinstance(part, str) and merged and isinstance(merged[-1], str):
            merged[-1] += part
        else:
            merged.append(part)
    return tuple(merged)


def _is_xml_character(code: int) -> bool:
    return (
        code in (0x9, 0xA, 0xD)
        or 0x20 <= code <= 0xD7FF
        or 0xE000 <= code <= 0xFFFD
        or 0x10000 <= code <= 0x10FFFF
    )
