"""Parameters: the type that a query gives each, and the values that a subscription gives them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from xscl.diagnostics import XsclError
from xscl.durations import DurationError, read_duration, window_us
from xscl.path import Span
from xscl.query import Query
from xscl.report import Report
from xscl.spelling import did_you_mean

if TYPE_CHECKING:
    from xscl.conditions import Binding, ParameterUse

__all__ = ["assignment", "parameter_types"]

_WANTED = {
    "string": "a string",
    "number": "a number",
    "duration": "a duration such as `6 h`",
    "value": "a string or a number",
}


def parameter_types(
    uses: Sequence[ParameterUse], bindings: Sequence[Binding], report: Report
) -> tuple[tuple[str, str], ...]:
    """Return each parameter with its type, in the order of the text.

    A place that takes a string or a number alike (`author = $who`) gives the type `value`,
    unless another place says which.  A SELECT clause takes `any` type.
    """
    if not uses:
        return ()
    first: dict[str, ParameterUse] = {}
    for use in sorted(uses, key=lambda use: use.span):
        known = first.setdefault(use.name, use)
        if known.type == "any" or (known.type == "value" and use.type in ("string", "number")):
            first[use.name] = use
        elif use.type == "any":
            continue
        elif use.type != known.type and not (use.type == "value" and known.type != "duration"):
            report.error(
                "XS601",
                use.span,
                f"`${use.name}` is {_WANTED[use.type]} here and {_WANTED[known.type]} elsewhere",
                "use two parameters",
                known.span,
            )
    variables = {binding.name: binding for binding in bindings}
    for use in first.values():
        if use.name in variables:
            report.error(
                "XS206",
                use.span,
                f"`{use.name}` is a parameter and a variable",
                "rename one of them",
                variables[use.name].span,
            )
    return tuple((name, "value" if use.type == "any" else use.type) for name, use in first.items())


def assignment(query: Query, values: Mapping[str, object]) -> dict[str, str | float | int]:
    """Return the canonical values of a query's parameters: strings, floats, microseconds.

    They are by name, so that a match says them in one order, wherever they come from.
    Raise `XsclError` where one is missing, unknown, or of the wrong type.

    >>> from xscl import parse
    >>> [query] = parse("S FOLLOWED BY {, $within} T")
    >>> assignment(query, {"within": "PT6H"}) == assignment(query, {"within": "6 h"})
    True
    """
    report = Report(query.text, query.id)
    types = dict(query.parameters)
    for name in values.keys() - types.keys():
        report.error(
            "XS603",
            _place(query, name),
            f"the query `{query.id}` has no parameter `${name}`",
            did_you_mean(name, types) or _list(types),
        )
    canonical: dict[str, str | float | int] = {}
    for name, wanted in sorted(types.items()):
        if name not in values:
            report.error(
                "XS602", _place(query, name), f"`${name}` has no value", f"give {_WANTED[wanted]}"
            )
            continue
        value = _canonical(values[name], wanted)
        if value is None:
            shown = json.dumps(values[name], ensure_ascii=False, default=str)[:80]
            message = f"`${name}` must be {_WANTED[wanted]}, not {shown}"
            report.error("XS604", _place(query, name), message, _wanted(values[name], wanted))
        else:
            canonical[name] = value
    if report.errors:
        raise XsclError(report.sorted())
    return canonical


def _wanted(value: object, wanted: str) -> str | None:
    """Return what to give in place of a value, where it says what was meant."""
    if wanted == "duration" and isinstance(value, int | float) and not isinstance(value, bool):
        return f'give it a unit, as a string: `"{value:g} s"`'
    if wanted == "duration" and isinstance(value, str):
        try:
            window_us(read_duration(value), value)
        except DurationError as error:
            return error.hint
    if wanted == "number" and isinstance(value, str):
        return "write the number without quotes"
    if wanted == "string" and isinstance(value, int | float):
        return "write it between quotes"
    return None


def _list(types: Mapping[str, str]) -> str:
    if not types:
        return "it has no parameters"
    return "it has " + ", ".join(f"`${name}`" for name in types)


def _place(query: Query, name: str) -> Span:
    found = re.search(rf"\${re.escape(name)}(?![\w.·'-])", query.text)
    start = found.start() if found else 0
    return Span(start, start + len(name) + 1)


def _canonical(value: object, wanted: str) -> str | float | int | None:
    if wanted == "duration":
        return _duration(value)
    if isinstance(value, str):
        return value if wanted != "number" else None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or wanted == "string":
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number + 0.0 if math.isfinite(number) else None


def _duration(value: object) -> int | None:
    if isinstance(value, timedelta):
        length_us = value // timedelta(microseconds=1)
        return length_us if length_us > 0 else None
    if not isinstance(value, str):
        return None
    try:
        length_us = read_duration(value)
        return length_us if value.strip().upper() == "INF" else window_us(length_us, value)
    except DurationError:
        return None
