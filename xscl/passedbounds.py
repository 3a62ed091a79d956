"""Bounds behind `not` that every number passes, as what is given for them is none."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any, TypeVar, cast

from xscl.constants import tested_parameter
from xscl.path import Condition, Not, Parameter, Step, XPathValue, conjuncts
from xscl.query import Query
from xscl.substitution import with_parts

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
    result: Any = with_parts(value, lambda part: _without(part, names))
    if isinstance(result, Step):
        asked = conjuncts(result.predicates)
        kept = tuple([each for each in asked if not _is_passed(each, names)])
        result = replace(result, predicates=kept)
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
