"""From text to tokens.  Comments are kept aside for `fmt`; an element constructor is one token.

Lexing never fails: what cannot be a token is reported once and stands in the list as a `bad`
token, which the parser steps over without saying anything more about it.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from xscl.habits import CHARACTERS, CURLY_QUOTES
from xscl.path import Span
from xscl.report import Report

__all__ = ["NAME", "Comment", "Token", "is_name", "tokenise"]

NAME = r"[^\W\d](?:[\w.\u00b7]|-(?!>))*"
"""A name without prefix.  A `-` that begins an arrow is no part of it: `a-b->x` binds `a-b`."""

_NAME = re.compile(NAME)

_SPACE = r"[ \t\r\n\ufeff]"

_KINDS = rf"""
    (?P<name>{NAME}(?::(?:{NAME}|\*))?'*)
  | (?P<comment>\(:|--(?=[ \t\r\n]|$))
  | (?P<arrow>-+>+)
  | (?P<string>'(?:[^']|'')*'|"(?:[^"]|"")*")
  | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+(?![\w]))?)
  | (?P<parameter>\$(?:{NAME}'*)?)
  | (?P<wild>\*:{NAME})
  | (?P<mark>//|::|\.\.|!=|<=|>=|[/.,:@=>*+|-])
  | (?P<bracket>[\[\](){{}};<])
"""
"""What a token can be.  The marks are punctuation that says nothing about what may follow it."""

_TOKEN = re.compile(rf"{_SPACE}* (?:{_KINDS} | (?P<end>\Z))", re.VERBOSE)
_READABLE = re.compile(rf"{_SPACE} | {_KINDS}", re.VERBOSE)
_SPACES = re.compile(rf"{_SPACE}*")

NUMBER_LIMIT = 300
"""Digits of a number: the largest double has 309 before its point."""

_OPERATOR_NAMES = frozenset({"and", "or", "div", "mod"})
_COMMENT_EDGE = re.compile(r"\(:|:\)")
_OPENING = frozenset("[({")
_CLOSING = frozenset("])}")


def is_name(text: str) -> bool:
    """Return whether a query can name a stream like this.

    >>> [is_name(text) for text in ("news-2026", "s.a_b", "zürich", "bad stream", "2nd", "")]
    [True, True, True, False, False, False]
    """
    return _NAME.fullmatch(text) is not None


def _binds(text: str, name: str) -> bool:
    """Return whether a text seems to bind a variable of this name.

    >>> _binds("SELECT disjoint FROM S -> disjoint", "disjoint")
    True
    """
    return re.search(rf"(?:->|\b(?i:as)\s)\s*{re.escape(name)}(?![\w.'-])", text) is not None


class Token(NamedTuple):
    """One token; the `text` of a string is its value.

    `kind` is `name`, `number`, `string`, `parameter`, `constructor`, `bad`, `end`, or for
    punctuation the text itself.
    """

    kind: str
    text: str
    start: int
    end: int

    @property
    def span(self) -> Span:
        """Where it stands."""
        return Span(self.start, self.end)


class Comment(NamedTuple):
    """A comment with its delimiters, and whether it had a line of its own before or after it."""

    text: str
    start: int
    end: int
    starts_line: bool
    ends_line: bool


def tokenise(text: str, report: Report) -> tuple[list[Token], list[Comment]]:
    """Return the tokens of a text, an `end` token last, and its comments."""
    return _Lexer(text, report).run()


class _Lexer:
    def __init__(self, text: str, report: Report) -> None:
        self.text = text
        self.report = report
        self.tokens: list[Token] = []
        self.comments: list[Comment] = []
        self.depth = 0

    def run(self) -> tuple[list[Token], list[Comment]]:
        text, tokens, match = self.text, self.tokens, _TOKEN.match
        position = 0
        while True:
            found = match(text, position)
            if found is None:
                position = self.unreadable(position)
                continue
            kind = found.lastgroup
            assert kind is not None
            start, position = found.span(kind)
            word = text[start:position]
            if kind == "mark":
                tokens.append(Token(word, word, start, position))
            elif kind == "name":
                if word[-1] in "-'":
                    position = self.name(word, start)
                else:
                    tokens.append(Token("name", word, start, position))
            elif kind == "bracket":
                position = self.bracket(word, start)
            elif kind == "comment":
                position = self.comment(start)
            else:
                self.other(kind, word, start, position)
            if kind == "end":
                return tokens, self.comments

    def bracket(self, text: str, start: int) -> int:
        if text in _OPENING:
            self.depth += 1
        elif text in _CLOSING:
            self.depth = max(0, self.depth - 1)
        elif text == ";":
            self.depth = 0
        elif self.at_constructor(start):
            return self.constructor(start)
        self.tokens.append(Token(text, text, start, start + 1))
        return start + 1

    def name(self, text: str, start: int) -> int:
        """Add a name that ends in a dash or in primes, which may belong to what follows."""
        if text.rstrip("'").lower() in _OPERATOR_NAMES:
            text = text.rstrip("'")
        end = start + len(text)
        if text[-1] == "-" and self.text.startswith("->", end):
            stem = text.rstrip("-")
            arrow = end
            while self.text.startswith((">", "->"), end):
                end += 1
            self.arrow_run(start + len(stem), end)
            self.tokens.append(Token("name", stem, start, start + len(stem)))
            self.tokens.append(Token("->", "->", arrow, end))
            return end
        self.tokens.append(Token("name", text, start, end))
        return end

    def arrow_run(self, start: int, end: int) -> None:
        self.report.error(
            "XS105",
            Span(start, end),
            f"`{self.text[start:end]}` is not an arrow",
            "a variable is bound with exactly `->`, as in `book->x1`",
        )

    def other(self, kind: str, text: str, start: int, end: int) -> None:
        if kind == "arrow":
            if text != "->":
                self.arrow_run(start, end)
            kind = text = "->"
        elif kind == "string":
            text = text[1:-1].replace(text[0] * 2, text[0])
        elif kind == "parameter":
            text = text[1:]
            if not text:
                self.report.error(
                    "XS104", Span(start, end), "a `$` without a name", "write `$name`"
                )
                kind = "bad"
        elif kind == "wild":
            kind = "name"
        elif kind == "number" and (len(text) > NUMBER_LIMIT or math.isinf(float(text))):
            self.report.error(
                "XS116", Span(start, end), "this number is too large or has too many digits"
            )
            kind = "bad"
        self.tokens.append(Token(kind, text, start, end))

    def comment(self, start: int) -> int:
        end = self.comment_end(start)
        line = self.text.rfind("\n", 0, start) + 1
        after = re.compile(r"[ \t\r]*(?:\n|$)").match(self.text, end)
        self.comments.append(
            Comment(
                self.text[start:end].rstrip(),
                start,
                end,
                not self.text[line:start].strip(),
                after is not None,
            )
        )
        return end

    def comment_end(self, start: int) -> int:
        if self.text[start] == "-":
            end = self.text.find("\n", start)
            return len(self.text) if end < 0 else end
        depth, position = 0, start
        for edge in _COMMENT_EDGE.finditer(self.text, start):
            if edge.start() < position:
                continue
            depth += 1 if edge.group() == "(:" else -1
            position = edge.end()
            if depth == 0:
                return position
        self.report.error(
            "XS103",
            Span(start, start + 2),
            "this comment is never closed",
            "close it with `:)`; comments nest, so each `(:` needs its own",
        )
        return len(self.text)

    def unreadable(self, start: int) -> int:
        found = _SPACES.match(self.text, start)
        start = start if found is None else found.end()
        character = self.text[start]
        if character in "'\"":
            line_end = self.text.find("\n", start)
            end = len(self.text) if line_end < 0 else line_end
            self.report.error(
                "XS102",
                Span(start, start + 1),
                f"this string is never closed: no second {character} follows",
                f"close it with {character}; inside it, a {character} is written twice",
            )
        elif character.isspace():
            return self.odd_space(start)
        elif (end := self.curly_end(start)) > start:
            return self.curly_string(start, end)
        else:
            end = start + 1
            while end < len(self.text) and self.is_unreadable(end):
                end += 1
            self.report.error(
                "XS104",
                Span(start, end),
                f"`{self.text[start:end]}` has no meaning in XSCL",
                CHARACTERS.get(character),
            )
        self.tokens.append(Token("bad", self.text[start:end], start, end))
        return end

    def is_unreadable(self, place: int) -> bool:
        return _READABLE.match(self.text, place) is None and not self.text[place].isspace()

    def odd_space(self, start: int) -> int:
        """Report white space such as a no-break space, which separates tokens nevertheless."""
        end = start + 1
        while end < len(self.text) and self.text[end] == self.text[start]:
            end += 1
        self.report.error(
            "XS104",
            Span(start, end),
            f"this white space, U+{ord(self.text[start]):04X}, has no meaning in XSCL",
            "write a plain space in its place",
        )
        return end

    def curly_end(self, start: int) -> int:
        """Return where the string between curly quotes ends that begins here, or `start`."""
        closing = CURLY_QUOTES.get(self.text[start], "")
        line_end = self.text.find("\n", start)
        line = self.text[start + 1 : line_end if line_end >= 0 else len(self.text)]
        places = [line.find(each) for each in closing if each in line]
        return start + min(places) + 2 if places else start

    def curly_string(self, start: int, end: int) -> int:
        """Report a string between curly quotes, and read it as one between plain quotes."""
        text = self.text[start + 1 : end - 1]
        quote = "'" if "'" not in text else '"'
        self.report.error(
            "XS104",
            Span(start, end),
            f"`{self.text[start]}` and `{self.text[end - 1]}` are no quotes in XSCL",
            f"write {quote}{text}{quote}",
        )
        self.tokens.append(Token("string", text, start, end))
        return end

    def at_constructor(self, start: int) -> bool:
        """Whether a `<` opens an element constructor: after SELECT, outside all brackets."""
        if self.depth > 0 or not self.tokens:
            return False
        words = [
            each.text.lower() if each.kind == "name" else each.kind for each in self.tokens[-3:]
        ]
        if words[-1] == "disjoint" and not _binds(self.text, self.tokens[-1].text):
            del words[-1]
        if words[-1:] != ["select"]:
            return False
        if _NAME.match(self.text, start + 1):
            return words[-3:-1] != ["]", "."]  # `t[x].select <y` compares a column
        return words[-2:-1] in ([], [";"])

    def constructor(self, start: int) -> int:
        from xscl.constructor import constructor_end

        end = constructor_end(self.text, start, self.report)
        self.tokens.append(Token("constructor", self.text[start:end], start, end))
        return end
