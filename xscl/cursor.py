"""The place in the token list, and how the parser gets past an error to find the next one."""

from __future__ import annotations

from xscl.habits import LIST_HINT
from xscl.lexer import Token, tokenise
from xscl.path import Span
from xscl.report import Report

__all__ = ["RESERVED", "STEP_LIMIT", "Cursor", "UnreadableError", "describe"]

RESERVED = frozenset(
    [
        "NOT",
        "UNLESS",
        "NEXT",
        "FOLD",
        "WHILE",
        "WITHIN",
        "SAME",
        "MATCH",
        "WHERE",
        "ON",
        "CONFIDENCE",
        "GRACE",
        "LOSS",
        "WINDOW",
        "HAVING",
        "LIMIT",
    ]
)
"""Words of the language at the places where an operator or a clause can stand."""

NESTING_LIMIT = 40
"""Brackets within brackets.  Real queries stay under ten; the bound keeps recursion bounded."""

STEP_LIMIT = 256
"""Steps behind one another, with those before the bracket that a path stands in: no document that
the broker accepts is nested deeper."""

_OPENING = {"[": "]", "(": ")", "{": "}"}
_CLOSING = frozenset(_OPENING.values())


class UnreadableError(Exception):
    """The construct at hand cannot be read on; what is wrong has been reported."""


def describe(token: Token) -> str:
    """Return how a message names a token."""
    if token.kind == "end":
        return "the end of the text"
    if token.kind == "string":
        return "a string"
    if token.kind == "parameter":
        return f"`${token.text}`"
    if token.kind == "constructor":
        return "an element constructor"
    return f"`{token.text}`"


class Cursor:
    """Reads tokens one by one; `token` is the next one."""

    def __init__(self, text: str, report: Report) -> None:
        self.text = text
        self.report = report
        self.tokens, self.comments = tokenise(text, report)
        self.index = 0
        self.token = self.tokens[0]
        self.nesting = 0
        self.steps_deep = 0
        self.is_broken = False
        self.statement_start = 0

    def advance(self) -> Token:
        """Return the next token and step over it; the `end` token stays."""
        token = self.token
        if token.kind != "end":
            self.index += 1
            self.token = self.tokens[self.index]
        return token

    def peek(self, distance: int = 1) -> Token:
        """Return a token behind the next one."""
        return self.tokens[min(self.index + distance, len(self.tokens) - 1)]

    @property
    def last(self) -> Token:
        """The token before the next one."""
        return self.tokens[self.index - 1] if self.index else self.token

    def at_word(self, word: str) -> bool:
        """Whether the next token is this keyword, in any case."""
        token = self.token
        return token.kind == "name" and token.text.upper() == word

    def span_from(self, start: int) -> Span:
        """Return the span from a character to the end of the last token."""
        return Span(start, max(start, self.last.end))

    def fail(self, code: str, span: Span, message: str, hint: str | None = None) -> UnreadableError:
        """Report an error; the caller raises what this returns to give up the construct."""
        self.is_broken = True
        self.report.error(code, span, message, hint)
        return UnreadableError()

    def unexpected(self, wanted: str, hint: str | None = None) -> UnreadableError:
        """Report that the next token cannot stand here; the caller raises the result."""
        self.is_broken = True
        if self.token.kind != "bad":  # that one has been reported already
            self.report.error(
                "XS101",
                self.here(),
                f"expected {wanted}, found {describe(self.token)}",
                hint,
            )
        return UnreadableError()

    def here(self) -> Span:
        """Return the span of the next token; at the end of the text, of the last character."""
        if self.token.kind == "end":
            return Span(self.last.end, self.last.end + 1) if self.index else Span(0, 1)
        return self.token.span

    def expect(self, kind: str, wanted: str, hint: str | None = None) -> Token:
        """Step over a token of this kind, or give up."""
        if self.token.kind != kind:
            raise self.unexpected(wanted, hint)
        return self.advance()

    def close(self, opening: Token, closing: str) -> None:
        """Step over a closing bracket, or give up pointing at the opening one too."""
        if self.token.kind == closing:
            self.advance()
            return
        self.is_broken = True
        if self.token.kind != "bad":
            self.report.error(
                "XS110",
                self.here(),
                f"expected `{closing}` before {describe(self.token)}",
                self._list_hint(opening)
                or f"it closes the `{opening.text}` that is the other place",
                opening.span,
            )
        raise UnreadableError

    def at_list(self) -> bool:
        """Whether the next tokens ask, as SQL does, whether a value is one of several."""
        is_not = self.at_word("NOT") and self.peek().text.upper() == "IN"
        return is_not or self.at_word("IN")

    def _list_hint(self, opening: Token) -> str | None:
        """Return what to write where several values stand in parentheses, or behind `in`."""
        is_second = opening.text == "(" and self.token.text == ","
        is_compared = self.tokens[max(0, self.tokens.index(opening) - 1)].text in ("=", "!=")
        return LIST_HINT if self.at_list() or (is_second and is_compared) else None

    def deeper(self) -> None:
        """Count one more level of nesting, or give up."""
        self.nesting += 1
        if self.nesting > NESTING_LIMIT:
            raise self.fail(
                "XS112",
                self.here(),
                f"nested more than {NESTING_LIMIT} levels deep",
                "split the query, or bind the inner steps on the main path",
            )

    def skip_to(self, *kinds: str) -> bool:
        """Skip to a token of these kinds outside brackets opened on the way.

        Stop before anything that begins a new part of the statement.  Return whether such a
        token was found.
        """
        self.is_broken = True
        depth = 0
        unmatched: int | None = None
        while self.token.kind not in ("end", ";"):
            kind = self.token.kind
            if depth == 0 and kind in kinds:
                return True
            if depth == 0 and kind == ")" and "]" in kinds:  # of the part that was given up
                unmatched = self.index if unmatched is None else unmatched
                self.advance()
                continue
            if self.at_operator() or (depth == 0 and kind in _CLOSING):
                break
            if kind in _OPENING:
                depth += 1
            elif kind in _CLOSING:
                depth -= 1
            self.advance()
        if unmatched is not None:  # it closes something further out after all
            self.go_back(unmatched)
        return False

    def go_back(self, index: int) -> None:
        """Read on from an earlier token."""
        self.index = index
        self.token = self.tokens[index]

    def binds(self, name: str) -> bool:
        """Whether the statement at hand binds a variable of this name, read yet or not."""
        for place in range(self.statement_start + 1, len(self.tokens)):
            token, before = self.tokens[place], self.tokens[place - 1]
            if token.kind == ";" and token.start > self.token.start:
                return False
            if token.text == name and (before.kind == "->" or before.text.upper() == "AS"):
                return True
        return False

    def matching(self, index: int) -> int:
        """Return the index of the bracket that closes the one at an index; of the last token."""
        depth = 0
        for place in range(index, len(self.tokens)):
            kind = self.tokens[place].kind
            if kind == ";":
                return place
            depth += (kind in _OPENING) - (kind in _CLOSING)
            if depth == 0:
                return place
        return len(self.tokens) - 1

    def at_operator(self) -> bool:
        """Whether a join operator stands here, misspelt perhaps; nothing else looks like one."""
        if self.token.kind != "name":
            return False
        following = self.peek()
        if following.kind == "{":
            return True
        if following.kind != "name":
            return False
        if following.text == "_":
            return self.peek(2).kind == "{"
        return following.text.upper() in ("BY", "BY_") and (
            self.token.text.upper() == "FOLLOWED" or self.peek(2).text in ("{", "_")
        )
