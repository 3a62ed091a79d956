"""Putting values in the place of a query's parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from types import MappingProxyType
from typing import Any, TypeVar, cast

from xscl.opaque import put_values
from xscl.path import Literal, Opaque, Parameter, Position, Span, XPathFrame
from xscl.query import Absence, Delay, From, Limit, Operator, Query, Repetition, Rows, Window
from xscl.xpath1calls import given_text

__all__ = ["parameters_in", "substitute", "with_parts", "with_values"]

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


def with_parts(
    value: Any, change: Callable[[Any], Any], given: Mapping[str, Any] = MappingProxyType({})
) -> Any:
    """Return a tuple or a dataclass whose parts are changed; anything else as it is.

    Fields that are `given` are taken as they are.
    """
    if isinstance(value, tuple):
        parts = [change(each) for each in value]
        return value._make(parts) if hasattr(value, "_make") else tuple(parts)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    names = [field.name for field in fields(value) if field.name not in given]
    return replace(value, **{name: change(getattr(value, name)) for name in names}, **given)


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
    else:
        result = with_parts(
            value, lambda part: _put(part, values, into_opaque), _lengths(value, values)
        )
    return cast(T, result)


def _lengths(value: object, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a part that are no operands: lengths of time, counts and positions."""
    match value:
        case Operator() | Absence() if isinstance(value.window, Parameter):
            return {"window": Window(values[value.window.name])}
        case Rows(length=Parameter(name)):
            return {"length": Window(values[name])}
        case Limit():
            count = value.count
            is_given = isinstance(count, Parameter)
            return {
                "length": _window(value.length, values),
                "count": values[count.name] if is_given else count,  # type: ignore[union-attr]
            }
        case From() if isinstance(value.within, Parameter):
            return {"within": Window(values[value.within.name])}
        case Repetition() if isinstance(value.gap, Parameter):
            return {"gap": Window(values[value.gap.name])}
        case Delay():
            return {"lengths": tuple(_window(each, values) for each in value.lengths)}
        case Position() if isinstance(value.number, Parameter):
            return {"number": values[value.number.name]}
    return {}


def _window(length: Window | Parameter, values: Mapping[str, Any]) -> Window:
    return Window(values[length.name]) if isinstance(length, Parameter) else length


def _number(number: float | Parameter | None, values: Mapping[str, Any]) -> float | None:
    return float(values[number.name]) if isinstance(number, Parameter) else number
