"""Conditions of a text that could be looser: what a near-miss of it has failed, as edits.

An edit that widens a window, lowers a threshold or takes one condition away gives another query,
which finds what the text has just missed, and by how much.  Every edit is of the text, so whoever
likes what it finds can make it.  A bound that a parameter gives is loosened by another value of it,
wherever it stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from xscl.durations import render_duration
from xscl.editing.mentions import parts
from xscl.parser import parse_file
from xscl.path import Span
from xscl.query import INFINITE_US
from xscl.report import Report
from xscl.statement import FromSyntax, PartSyntax
from xscl.syntax import (
    Binary,
    DurationSyntax,
    Expression,
    FunctionCall,
    Junction,
    NumberLiteral,
    ParameterRef,
)

__all__ = ["Loosening", "loosenings"]

_WIDER = 3
"""A window is made so many times as wide: what is farther off is no near-miss."""

_LOWER = 0.15
"""A threshold is lowered by so much."""

_LOOSENINGS_MAX = 6
_NO_VALUES: Mapping[str, object] = {}
_MEASURES = ("similar", "jaccard", "containment")


@dataclass(frozen=True, slots=True)
class Loosening:
    """A condition and the edit that makes it looser.

    `kind` is `window`, `threshold` or `condition`; `bound` is the window's length in microseconds,
    or the threshold; None of a condition, which is taken away.  `value` is that of `parameter`,
    which `text` would be, where one gives the bound.  A window that `is_whole` is a whole match's.
    """

    kind: str
    condition: str
    span: Span
    text: str
    bound: float | None = None
    parameter: str | None = None
    value: float | None = None
    is_whole: bool = False

    def edited(self, source: str) -> str:
        """Return the text in which the condition is looser; of a parameter, as it is."""
        if self.parameter is not None:
            return source
        return source[: self.span.start] + self.text + source[self.span.end :]


def loosenings(text: str, values: Mapping[str, object] = _NO_VALUES) -> list[Loosening]:
    """Return the loosenings of a text with one statement, those of windows first; at most six.

    `values` are those of its parameters, as `xscl.assignment` gives them.

    >>> [each.text for each in loosenings("S->a JOIN {a/x = b/x AND a/y != b/y, 1 h} S->b")]
    ['3 hours', 'a/x = b/x']
    """
    statements, _ = parse_file(text, Report(text, None))
    if len(statements) != 1:
        return []
    order = ("window", "threshold", "condition")
    found = [
        each
        for kind, of in ((PartSyntax, _of_part), (FromSyntax, _of_from))
        for part in parts(statements[0], kind)
        for each in of(text, part, values)
    ]
    given = {each.parameter: each for each in reversed(found) if each.parameter is not None}
    once = [each for each in found if each.parameter is None or given[each.parameter] is each]
    return sorted(once, key=lambda each: order.index(each.kind))[:_LOOSENINGS_MAX]


def _of_from(text: str, syntax: FromSyntax, values: Mapping[str, object]) -> Iterator[Loosening]:
    if syntax.within is not None:
        yield from _window(text, syntax.within, values, is_whole=True)
    if syntax.where is None or syntax.where_span is None:
        return
    terms = _terms(syntax.where) or [syntax.where]
    yield from _thresholds(text, terms, values)
    joins = (part.braces for part in syntax.parts if isinstance(part, PartSyntax) and part.braces)
    if any(map(_is_equality, (term for each in joins for term in _terms(each.predicate)))):
        for term in terms:
            kept = " AND ".join(_term(text, each) for each in terms if each is not term)
            whole = Span(syntax.where_span.start, syntax.where.span.end)
            span = syntax.where.span if kept else whole
            yield Loosening("condition", _text(text, term.span), span, kept)


def _of_part(text: str, part: PartSyntax, values: Mapping[str, object]) -> Iterator[Loosening]:
    if part.braces is None:
        return
    if part.braces.window is not None:
        yield from _window(text, part.braces.window, values)
    if part.braces.predicate is None:
        return
    terms = _terms(part.braces.predicate)
    yield from _thresholds(text, terms, values)
    equal = list(filter(_is_equality, terms))
    for term in terms:
        rest = [each for each in terms if each is not term]
        if any(each is not term for each in equal) and len(terms) > 1:
            kept = " AND ".join(_term(text, each) for each in rest)
            yield Loosening("condition", _text(text, term.span), part.braces.predicate.span, kept)


def _window(
    text: str, window: DurationSyntax, values: Mapping[str, object], *, is_whole: bool = False
) -> Iterator[Loosening]:
    parameter = window.parameter
    length_us = values.get(parameter) if parameter is not None else window.length_us
    if not isinstance(length_us, int) or not 0 < length_us < INFINITE_US:
        return
    wider, said = length_us * _WIDER, _text(text, window.span)
    yield Loosening(
        "window",
        said if parameter is None else f"${parameter} = {render_duration(length_us)}",
        window.span,
        render_duration(wider),
        length_us,
        parameter,
        None if parameter is None else wider,
        is_whole,
    )


def _thresholds(
    text: str, terms: list[Expression], values: Mapping[str, object]
) -> Iterator[Loosening]:
    for term in terms:
        if not isinstance(term, Binary) or term.operator not in (">=", ">"):
            continue
        left, right = term.left, term.right
        if not isinstance(left, FunctionCall) or left.name not in _MEASURES:
            continue
        parameter = right.name if isinstance(right, ParameterRef) else None
        bound = values.get(parameter) if parameter is not None else None
        bound = right.value if isinstance(right, NumberLiteral) else bound
        if isinstance(bound, int | float) and bound > _LOWER:
            lower = round(max(0.05, bound - _LOWER), 2)
            said = _text(text, term.span) + (f", {bound:g}" if parameter is not None else "")
            value = None if parameter is None else lower
            yield Loosening("threshold", said, right.span, f"{lower:.2f}", bound, parameter, value)


def _is_equality(term: Expression) -> bool:
    return isinstance(term, Binary) and term.operator == "="


def _terms(predicate: Expression | None) -> list[Expression]:
    if predicate is None:
        return []
    if isinstance(predicate, Junction):
        return list(predicate.terms) if predicate.word == "and" else []
    return [predicate]


def _term(text: str, term: Expression) -> str:
    """Return a term of a conjunction as it stands, one of OR in its parentheses."""
    written = _text(text, term.span)
    return f"({written})" if isinstance(term, Junction) else written


def _text(text: str, span: Span) -> str:
    return text[span.start : span.end]
