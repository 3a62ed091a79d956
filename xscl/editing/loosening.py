"""Conditions of a text that could be looser: what a near-miss of it has failed, as edits.

An edit that widens a window, lowers a threshold or takes one condition away gives another query,
which finds what the text has just missed, and by how much.  Every edit is of the text, so whoever
likes what it finds can make it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xscl.durations import render_duration
from xscl.editing.mentions import parts
from xscl.parser import parse_file
from xscl.path import Span
from xscl.query import INFINITE_US
from xscl.report import Report
from xscl.statement import PartSyntax
from xscl.syntax import Binary, Expression, FunctionCall, Junction, NumberLiteral

__all__ = ["Loosening", "loosenings"]

_WIDER = 3
"""A window is made so many times as wide: what is farther off is no near-miss."""

_LOWER = 0.15
"""A threshold is lowered by so much."""

_LOOSENINGS_MAX = 6
_MEASURES = ("similar", "jaccard", "containment")


@dataclass(frozen=True, slots=True)
class Loosening:
    """A condition and the edit that makes it looser.

    `kind` is `window`, `threshold` or `condition`; `bound` is the window's length in microseconds,
    or the threshold; None of a condition, which is taken away.
    """

    kind: str
    condition: str
    span: Span
    text: str
    bound: float | None = None

    def edited(self, source: str) -> str:
        """Return the text in which the condition is looser."""
        return source[: self.span.start] + self.text + source[self.span.end :]


def loosenings(text: str) -> list[Loosening]:
    """Return the loosenings of a text with one statement, those of windows first; at most six.

    >>> [each.text for each in loosenings("S->a JOIN {a/x = b/x AND a/y != b/y, 1 h} S->b")]
    ['3 hours', 'a/x = b/x']
    """
    statements, _ = parse_file(text, Report(text, None))
    if len(statements) != 1:
        return []
    order = ("window", "threshold", "condition")
    found = [each for part in parts(statements[0], PartSyntax) for each in _of_part(text, part)]
    return sorted(found, key=lambda each: order.index(each.kind))[:_LOOSENINGS_MAX]


def _of_part(text: str, part: PartSyntax) -> Iterator[Loosening]:
    if part.braces is None:
        return
    window = part.braces.window
    if window is not None and window.length_us and window.length_us < INFINITE_US:
        wider = render_duration(window.length_us * _WIDER)
        written = _text(text, window.span)
        yield Loosening("window", written, window.span, wider, window.length_us)
    if part.braces.predicate is None:
        return
    terms = _terms(part.braces.predicate)
    yield from _thresholds(text, terms)
    equal = [term for term in terms if isinstance(term, Binary) and term.operator == "="]
    for term in terms:
        rest = [each for each in terms if each is not term]
        if any(each is not term for each in equal) and len(terms) > 1:
            kept = " AND ".join(_term(text, each) for each in rest)
            yield Loosening("condition", _text(text, term.span), part.braces.predicate.span, kept)


def _thresholds(text: str, terms: list[Expression]) -> Iterator[Loosening]:
    for term in terms:
        if not isinstance(term, Binary) or term.operator not in (">=", ">"):
            continue
        left, right = term.left, term.right
        is_score = isinstance(left, FunctionCall) and left.name in _MEASURES
        if is_score and isinstance(right, NumberLiteral) and right.value > _LOWER:
            lower = f"{max(0.05, right.value - _LOWER):.2f}"
            yield Loosening("threshold", _text(text, term.span), right.span, lower, right.value)


def _terms(predicate: Expression) -> list[Expression]:
    if isinstance(predicate, Junction):
        return list(predicate.terms) if predicate.word == "and" else []
    return [predicate]


def _term(text: str, term: Expression) -> str:
    """Return a term of a conjunction as it stands, one of OR in its parentheses."""
    written = _text(text, term.span)
    return f"({written})" if isinstance(term, Junction) else written


def _text(text: str, span: Span) -> str:
    return text[span.start : span.end]
