"""Reads what stands between an operator's braces: `{predicate, window}`."""

from __future__ import annotations

import re

from xscl.cursor import UnreadableError, describe
from xscl.durations import UNITS, DurationError, iso_duration_us, to_us, window_us
from xscl.expressions import ExpressionParser
from xscl.lexer import Token
from xscl.path import Span
from xscl.query import INFINITE_US
from xscl.signatures import STRING_TESTS
from xscl.syntax import Binary, DurationSyntax, Expression, FunctionCall, Junction

__all__ = ["PredicateParser"]

_COMPARISONS = frozenset({"=", "!=", "<", "<=", ">", ">="})
_SYMBOLIC = re.compile(r"T_?\d*'*")
"""A window as papers print it: `T`, `T1`.  It reads as the parameter of that name."""

NO_WINDOW_HINT = "the window says how far apart in time: `{x2 = x5, 30 days}`, or `INF`"


class PredicateParser(ExpressionParser):
    """Adds operators' predicates and windows to expressions."""

    def braces(self) -> tuple[Expression | None, DurationSyntax]:
        """Read `{predicate, window}`; what cannot be read is left out."""
        opening = self.advance()
        predicate: Expression | None = None
        window: DurationSyntax | None = None
        errors = self.report.errors
        try:
            if self.token.kind not in (",", "}") and not self._at_duration():
                predicate = self._disjunction()
            if self.token.kind != "}" or self.report.errors == errors:
                window = self._window(opening)
            self.close(opening, "}")
        except UnreadableError:
            if self.token.kind == "," or (window is None and self.skip_to(",", "}")):
                window = window or self._window_after_failure()
            failure = self.index
            if self.skip_to("}"):
                self.advance()
            elif window is not None:  # only the brace is missing: the right operand stands here
                self.go_back(failure)
        unknown = DurationSyntax(INFINITE_US, None, opening.span)
        return predicate, window or unknown

    def _window_after_failure(self) -> DurationSyntax | None:
        if self.token.kind != ",":
            return None
        self.advance()
        try:
            return self.duration()
        except UnreadableError:
            return None

    def _window(self, opening: Token) -> DurationSyntax:
        if self.token.kind == ",":
            self.advance()
            return self.duration()
        if self._at_duration():
            return self._window_without_comma()
        if self.token.kind != "}":
            raise self.unexpected("`AND`, `OR`, or `,` and a window", NO_WINDOW_HINT)
        raise self.fail(
            "XS107", Span(opening.start, self.token.end), "no window here", NO_WINDOW_HINT
        )

    def _window_without_comma(self) -> DurationSyntax:
        self.is_broken = True
        span = Span(self.token.start, self.peek().end)
        hint = f"write `{{..., {self.text[span.start : span.end]}}}`"
        self.report.error("XS107", span, "a window stands behind a comma", hint)
        return self.duration()

    # -- predicates ----------------------------------------------------------------------------

    def _disjunction(self) -> Expression | None:
        return self.terms("or")

    def terms(self, word: str) -> Expression | None:
        """Read terms joined by one word; those with an error in them are left out."""
        found: list[Expression] = []
        start = self.token.start
        while True:
            term = self.terms("and") if word == "or" else self._term_or_nothing()
            if term is not None:
                found.append(term)
            if not (self.token.kind == "name" and self.token.text.lower() == word):
                break
            self.advance()
        if len(found) < 2:
            return found[0] if found else None
        return Junction(word, found, self.span_from(start))

    def _term_or_nothing(self) -> Expression | None:
        try:
            return self._term()
        except UnreadableError:
            if not self.skip_to_next_term():
                raise
            return None

    def skip_to_next_term(self) -> bool:
        """Skip to AND, OR, `,`, `)` or `}` outside brackets; say whether one was found."""
        depth = 0
        while self.token.kind not in ("end", ";") and not self.at_operator():
            kind = self.token.kind
            word = self.token.text.lower() if kind == "name" else ""
            if depth == 0 and (kind in (",", "}", ")") or word in ("and", "or")):
                return True
            depth += (kind in ("(", "[", "{")) - (kind in (")", "]", "}"))
            self.advance()
        return False

    def _term(self) -> Expression | None:
        if self.token.kind == "(":
            opening = self.advance()
            self.deeper()
            inner = self._disjunction()
            self.close(opening, ")")
            self.nesting -= 1
            return inner
        return self._comparison()

    def _at_duration(self) -> bool:
        return (
            self.token.kind == "number"
            and self.peek().kind == "name"
            and self.peek().text.lower() in UNITS
        )

    def _comparison(self) -> Expression:
        left = self.level(2)
        token = self.token
        if token.kind not in _COMPARISONS:
            raise self._no_comparison(left)
        self.advance()
        if self.token.kind == "=" and token.kind == "=":
            raise self.fail("XS101", Span(token.start, self.token.end), "`==` is written `=`")
        right = self.level(2)
        if self.token.kind in _COMPARISONS:
            raise self.fail(
                "XS101",
                self.token.span,
                f"a second comparison `{self.token.kind}` in a row",
                "join two comparisons with AND",
            )
        return Binary(token.kind, left, right, Span(left.span.start, self.last.end))

    def _no_comparison(self, left: Expression) -> UnreadableError:
        if self.token.kind == "bad":
            return self.unexpected("a comparison")
        negation = isinstance(left, FunctionCall) and left.name == "not"
        if negation or self.text[left.span.start : left.span.end].upper() == "NOT":
            hint = (
                "turn the comparison around, `!=` or `>=`; `not(...)` stands in predicates of steps"
            )
            return self.fail(
                "XS108", left.span, "NOT is reserved for a later version of XSCL", hint
            )
        if isinstance(left, FunctionCall) and left.name in STRING_TESTS:
            hint = f"put it on a step: `[{left.name}(title, 'x')]`; here two values are compared"
            message = f"`{left.name}` cannot stand in an operator's predicate"
            return self.fail("XS305", left.span, message, hint)
        return self.fail(
            "XS101",
            self.here(),
            f"expected a comparison, found {describe(self.token)}",
            f"compare `{self.text[left.span.start : left.span.end]}` with something:"
            " `= != < <= > >=`",
        )

    # -- windows -------------------------------------------------------------------------------

    def duration(self) -> DurationSyntax:
        """Read a window's length, or the parameter that gives it."""
        token = self.token
        if token.kind == "parameter":
            self.advance()
            return DurationSyntax(None, token.text, token.span)
        if token.kind in ("number", "-"):
            return self._counted()
        if token.kind != "name":
            raise self.unexpected("a window", NO_WINDOW_HINT)
        self.advance()
        if token.text.upper() == "INF":
            return DurationSyntax(INFINITE_US, None, token.span)
        if _SYMBOLIC.fullmatch(token.text):
            return self._symbolic(token)
        return self._iso(token.text, token.span)

    def _counted(self) -> DurationSyntax:
        start = self.token
        sign = self.advance().text if start.kind == "-" else ""
        if sign and self.token.kind == "name":
            word = self.advance().text
            return self._iso(sign + word, self.span_from(start.start))
        number = self.expect("number", "a number")
        if self.token.kind != "name":
            raise self.fail(
                "XS404",
                number.span,
                f"`{number.text}` of what? A window has a unit",
                f"write `{number.text} h`, `{number.text} days` ...",
            )
        unit = self.advance()
        span = Span(start.start, unit.end)
        try:
            length_us = to_us(sign + number.text, unit.text)
            text = f"{sign}{number.text} {unit.text}"
            return DurationSyntax(window_us(length_us, text), None, span)
        except DurationError as error:
            return self.wrong_duration(error, span)

    def _iso(self, text: str, span: Span) -> DurationSyntax:
        try:
            stem = text.removeprefix("-")
            length_us = iso_duration_us(stem) * (1 if stem == text else -1)
            window_us(length_us, text)
        except DurationError as error:
            return self.wrong_duration(error, span)
        return DurationSyntax(length_us, None, span)

    def wrong_duration(self, error: DurationError, span: Span) -> DurationSyntax:
        """Report a length that cannot be, and go on: nothing else is wrong with the text."""
        self.is_broken = True
        self.report.error(error.code, span, error.message, error.hint)
        return DurationSyntax(INFINITE_US, None, span)

    def _symbolic(self, token: Token) -> DurationSyntax:
        self.report.warning(
            "XS405",
            token.span,
            f"`{token.text}` is read as the parameter `${token.text}`",
            f"write `${token.text}`, or a length such as `30 days`",
        )
        return DurationSyntax(None, token.text, token.span)
