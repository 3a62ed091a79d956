"""Bounds behind `not` that every number passes, as what is given for them is none."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

from xscl.constants import tested_parameter
from xscl.path import Condition, Not, Parameter, Step, XPathValue, conjuncts
from xscl.query import Query

__all__ = ["without_bounds"]

T = TypeVar("T")


def without_bounds(query: Query, names: Collection[str]) -> Query:
    """Return a query without what holds of all nodes if XPath 1.0 reads no number in parameters.

    >>> from xscl import parse
    >>> [query] = parse("S//a[not(count(b) > $x)][k = $x]", id="q")
    >>> [step] = without_bounds(query, {"x"}).blocks[0].path.steps
    >>> len(step.predicates)
    1
    """
    if not names:
        return query
    return replace(query, blocks=_without(query.blocks, names), root=_without(query.root, names))


def _without(value: T, names: Collection[str]) -> T:
    result: Any = value
    if isinstance(value, tuple):
        parts: Any = [_without(each, names) for each in value]
        result = value._make(parts) if hasattr(value, "_make") else tuple(parts)
    elif is_dataclass(value) and not isinstance(value, type):
        changes = {f.name: _without(getattr(value, f.name), names) for f in fields(value)}
        if isinstance(value, Step):
            asked = conjuncts(changes["predicates"])
            changes["predicates"] = tuple([each for each in asked if not _is_passed(each, names)])
        result = replace(value, **changes)
    return cast(T, result)


def _is_passed(predicate: Condition, names: Collection[str]) -> bool:
    """Return whether a condition says that no number is beyond a bound, which is none."""
    if not isinstance(predicate, Not):
        return False
    tested = tested_parameter(predicate, names)
    if tested is None:
        return False
    prefilter, given = tested
    operand = prefilter.operands[0]
    is_number = isinstance(operand, XPathValue) and not operand.is_text
    is_given = isinstance(given, Parameter) and given.name in names
    return prefilter.holds_of_none and is_number and is_given
