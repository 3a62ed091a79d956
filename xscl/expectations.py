"""Warnings about comparisons that are right but hardly meant: what is compared with what."""

from __future__ import annotations

from xscl.kinds import kind_of
from xscl.path import Span
from xscl.report import Report
from xscl.syntax import TURNED, Binary, Expression, FunctionCall, NumberLiteral, StringLiteral

__all__ = ["check_comparison"]

_LOW = {"jaccard": 0.3, "similar": 0.3, "containment": 0.3, "overlap": 2.0}
"""Thresholds below which nearly everything is similar."""

_SECOND_US = 1_000_000


def check_comparison(syntax: Binary, report: Report) -> None:
    """Warn of a comparison whose literal does not suit its other side."""
    for left, operator, right in (
        (syntax.left, syntax.operator, syntax.right),
        (syntax.right, TURNED[syntax.operator], syntax.left),
    ):
        if isinstance(left, FunctionCall) and isinstance(right, NumberLiteral):
            _check_threshold(left.name, operator, right, report)
        if isinstance(right, NumberLiteral | StringLiteral):
            _check_time(left, right, report)


def _check_threshold(measure: str, operator: str, bound: NumberLiteral, report: Report) -> None:
    least = _LOW.get(measure)
    if least is None or operator not in (">", ">="):
        return
    if bound.value < least:
        report.warning(
            "XS506",
            bound.span,
            f"nearly everything is as similar as this: `{measure}` below {least:g}",
            "0.5 and more tells texts apart" if least < 1 else "ask for more words in common",
        )
    elif least < 1 and (bound.value > 1 or (bound.value == 1 and operator == ">")):
        report.warning(
            "XS502",
            bound.span,
            f"this can never hold: `{measure}` is a number from 0 to 1",
            "write `>= 0.8` for 80 %",
        )


def _check_time(side: Expression, literal: NumberLiteral | StringLiteral, report: Report) -> None:
    """Warn of a time or a duration that is compared with a text, or with a bare number."""
    kind = kind_of(side)
    if kind not in ("duration", "instant"):
        return
    if isinstance(literal, StringLiteral):
        if not _is_number(literal):
            _report_text(kind, literal.value, literal.span, report)
    elif kind == "duration" and _is_in_us(side) and 0 < literal.value < _SECOND_US:
        report.warning(
            "XS510",
            literal.span,
            f"a duration is compared with {literal.value:g} microseconds",
            f"write the unit: `{literal.value:g} s`, `{literal.value:g} h` ...",
        )


def _is_in_us(side: Expression) -> bool:
    """Whether a duration is as it is read, and not divided by the length of some unit."""
    return isinstance(side, FunctionCall) or (isinstance(side, Binary) and side.operator == "-")


def _is_number(literal: Expression) -> bool:
    assert isinstance(literal, StringLiteral)
    try:
        float(literal.value)
    except ValueError:
        return False
    return True


def _report_text(kind: str, text: str, span: Span, report: Report) -> None:
    hint = (
        "write it without quotes: `2 h`"
        if kind == "duration"
        else "compare times with each other: `time(b) - time(a) > 2 h`"
    )
    report.warning("XS502", span, f"a time is a number, and `{text}` is none", hint)
