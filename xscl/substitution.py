"""Putting values in the place of a query's parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

from xscl.opaque import put_values
from xscl.path import Literal, Opaque, Parameter, Position, Span, XPathFrame
from xscl.query import Absence, Delay, From, Limit, Operator, Query, Repetition, Rows, Window
from xscl.xpath1calls import given_text

__all__ = ["parameters_in", "substitute", "with_values"]

T = TypeVar("T")


def substitute(
    query: Query, values: Mapping[str, str | float | int], *, into_opaque: bool = True
) -> Query:
    """Return the query without parameters, each replaced by its canonical value.

    Durations are microseconds.  Id, text and version stay those of the parameterised query.
    Without `into_opaque`, opaque conditions keep theirs: to be shown, not to be evaluated.
    """
    if not query.parameters:
        return query
    literals = {name: values[name] for name, _ in query.parameters}
    return replace(
        query,
        blocks=_put(query.blocks, literals, into_opaque),
        root=_put(query.root, literals, into_opaque),
        actions=_put(query.actions, literals, into_opaque),
        rows=_put(query.rows, literals, into_opaque),
        limit=_put(query.limit, literals, into_opaque),
        confidence=_number(query.confidence, literals),
        parameters=(),
    )


def parameters_in(value: object) -> Iterator[str]:
    """Yield the names of the parameters in a part of a query."""
    if isinstance(value, Parameter):
        yield value.name
    elif isinstance(value, tuple):
        for each in value:
            yield from parameters_in(each)
    elif is_dataclass(value):
        for field in fields(value):
            yield from parameters_in(getattr(value, field.name))


def with_values(value: T, values: Mapping[str, str | float | int]) -> T:
    """Return a part of a query with the canonical values of all parameters in it."""
    return _put(value, values, True)


def _put(value: T, values: Mapping[str, Any], into_opaque: bool) -> T:
    result: Any = value
    if isinstance(value, Span):
        return value
    if isinstance(value, Parameter):
        result = Literal(values[value.name])
    elif isinstance(value, Opaque):
        if not into_opaque:
            return value
        text = put_values(value.expression, values)
        compared = _put(value.compared, values, into_opaque)
        result = replace(value, expression=text, parameters=(), compared=compared, frame=None)
    elif isinstance(value, XPathFrame):
        result = Literal(given_text(value, values))
    elif isinstance(value, tuple):
        parts: Any = [_put(each, values, into_opaque) for each in value]
        result = value._make(parts) if hasattr(value, "_make") else tuple(parts)
    elif is_dataclass(value) and not isinstance(value, type):
        changes = {f.name: _put(getattr(value, f.name), values, into_opaque) for f in fields(value)}
        if isinstance(value, (Operator, Absence)) and isinstance(value.window, Parameter):
            changes["window"] = Window(values[value.window.name])
        elif isinstance(value, (Rows, Limit)) and isinstance(value.length, Parameter):
            changes["length"] = Window(values[value.length.name])
        elif isinstance(value, From) and isinstance(value.within, Parameter):
            changes["within"] = Window(values[value.within.name])
        elif isinstance(value, Repetition) and isinstance(value.gap, Parameter):
            changes["gap"] = Window(values[value.gap.name])
        elif isinstance(value, Delay):
            changes["lengths"] = tuple(_window(each, values) for each in value.lengths)
        elif isinstance(value, Position) and isinstance(value.number, Parameter):
            changes["number"] = values[value.number.name]
        if isinstance(value, Limit) and isinstance(value.count, Parameter):
            changes["count"] = values[value.count.name]
        result = replace(value, **changes)
    return cast(T, result)


def _window(length: Window | Parameter, values: Mapping[str, Any]) -> Window:
    return Window(values[length.name]) if isinstance(length, Parameter) else length


def _number(number: float | Parameter | None, values: Mapping[str, Any]) -> float | None:
    return float(values[number.name]) if isinstance(number, Parameter) else number
