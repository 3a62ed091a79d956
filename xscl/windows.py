"""Reads durations: the windows of operators and the lengths of clauses."""

from __future__ import annotations

import re

from xscl.conditions import ParameterUse
from xscl.durations import UNITS, DurationError, iso_duration_us, to_us, window_us
from xscl.expressions import ExpressionParser
from xscl.lexer import Token
from xscl.path import Parameter, Span
from xscl.sequence import INFINITE_US, Window
from xscl.syntax import DurationSyntax

__all__ = ["NO_WINDOW_HINT", "OR_WITHIN_HINT", "WindowParser", "window_of"]

_SYMBOLIC = re.compile(r"T_?\d*'*")
"""A window as papers print it: `T`, `T1`.  It reads as the parameter of that name."""

NO_WINDOW_HINT = "the window says how far apart in time: `{x2 = x5, 30 days}`, or `INF`"
OR_WITHIN_HINT = f"{NO_WINDOW_HINT}; or bound the whole: `WITHIN 30 days` at its end"


def window_of(syntax: DurationSyntax, uses: list[ParameterUse]) -> Window | Parameter:
    """Return a window's length, or the parameter that gives it, which is added to `uses`."""
    if syntax.parameter is None:
        assert syntax.length_us is not None
        return Window(syntax.length_us)
    uses.append(ParameterUse(syntax.parameter, "duration", syntax.span))
    return Parameter(syntax.parameter)


class WindowParser(ExpressionParser):
    """Adds durations to expressions."""

    def at_length(self) -> bool:
        """Whether a number and a unit of time stand here."""
        return (
            self.token.kind == "number"
            and self.peek().kind == "name"
            and self.peek().text.lower() in UNITS
        )

    def duration(self, *, may_be_zero: bool = False) -> DurationSyntax:
        """Read a window's length, or the parameter that gives it."""
        token = self.token
        if token.kind == "parameter":
            self.advance()
            return DurationSyntax(None, token.text, token.span)
        if token.kind in ("number", "-"):
            return self._counted(may_be_zero)
        if token.kind != "name":
            raise self.unexpected("a window", NO_WINDOW_HINT)
        self.advance()
        if token.text.upper() == "INF":
            return DurationSyntax(INFINITE_US, None, token.span)
        if _SYMBOLIC.fullmatch(token.text):
            return self._symbolic(token)
        if token.text.lower() in UNITS:
            message = f"`{token.text}` is not a duration"
            return self.wrong_duration(
                DurationError("XS403", message, f"write `1 {token.text}`"), token.span
            )
        return self._iso(token.text, token.span, may_be_zero)

    def _counted(self, may_be_zero: bool) -> DurationSyntax:
        start = self.token
        sign = self.advance().text if start.kind == "-" else ""
        if sign and self.token.kind == "name":
            word = self.advance().text
            return self._iso(sign + word, self.span_from(start.start), may_be_zero)
        number = self.expect("number", "a number")
        if self.token.kind != "name":
            raise self.fail(
                "XS404",
                number.span,
                f"`{number.text}` of what? A window has a unit",
                f"write `{number.text} s`, `{number.text} h`, `{number.text} days` ...",
            )
        unit = self.advance()
        span = Span(start.start, unit.end)
        if self.at_length():
            raise self.fail(
                "XS403",
                Span(start.start, self.peek().end),
                "a duration is one number and one unit",
                "add them up, as in `90 min`, or write `PT1H30M`",
            )
        try:
            length_us = to_us(sign + number.text, unit.text)
            text = f"{sign}{number.text} {unit.text}"
            _check_length(length_us, text, may_be_zero=may_be_zero)
        except DurationError as error:
            return self.wrong_duration(error, span)
        return DurationSyntax(length_us, None, span)

    def _iso(self, text: str, span: Span, may_be_zero: bool) -> DurationSyntax:
        try:
            stem = text.removeprefix("-")
            length_us = iso_duration_us(stem) * (1 if stem == text else -1)
            _check_length(length_us, text, may_be_zero=may_be_zero)
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


def _check_length(length_us: int, text: str, *, may_be_zero: bool) -> None:
    """Raise `DurationError` for a length that cannot stand here."""
    if may_be_zero and length_us < 0:
        raise DurationError("XS401", f"`{text}` is negative", "the shortest length here is `0 s`")
    if length_us or not may_be_zero:
        window_us(length_us, text)
