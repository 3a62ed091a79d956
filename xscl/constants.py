"""Conditions of steps whose constants and parameters may be data of the values that they test."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator

from xscl.combinations import (
    chain_of,
    combined,
    combined_excerpt,
    compared_as,
    compares_data,
    is_number,
)
from xscl.disjunctions import Disjunction, OperandTest
from xscl.excerpttests import excerpted, selected_in_excerpt
from xscl.hoisting import given_position, hoist, weaker_tests
from xscl.path import (
    Comparison,
    Condition,
    Exists,
    Literal,
    Not,
    Opaque,
    Or,
    Parameter,
    Path,
    PathValue,
    Step,
    StringTest,
    XPathFrame,
    XPathValue,
    condition_parameters,
    conjuncts,
    value_parameters,
)
from xscl.prefilters import Admitted, Prefilter
from xscl.texttests import IN_NO_TEXT, TEXT_TESTS, text_test

__all__ = [
    "Given",
    "admitted_constant",
    "breadth_of_constants",
    "exclude_constants",
    "tested_excerpt",
    "tested_parameter",
    "tested_position",
    "tested_step",
]

Given = tuple[Prefilter, Parameter | XPathFrame | Disjunction]
"""A condition of values, and what an assignment gives for its data."""


def admitted_constant(predicate: Condition) -> Admitted | None:
    """Return a predicate as a condition with a constant that may be data; None if it is none.

    A string that the value of a path must equal is data of the value itself.
    """
    return _admitted(hoist(predicate))


def _admitted(predicate: Condition) -> Admitted | None:
    match predicate:
        case Exists() | Comparison(PathValue(), "=", Literal(str())):
            return None
        case Comparison(operand, operator, Literal(float() as number)):
            return Prefilter((operand,), operator, operator == "!="), number
        case Comparison(operand, operator, Literal(text)) if operator != "=":
            return Prefilter((operand,), operator), text
        case StringTest(function, operand, Literal(str() as text), flags):
            found = text_test(function, flags)
            return (
                (Prefilter((operand,), found), text) if found and IN_NO_TEXT not in text else None
            )
        case Not(Comparison(operand, operator, Literal(float() as number))) if operator in _BEYOND:
            if not math.isfinite(number):
                return None
            return Prefilter((operand,), _BEYOND[operator], holds_of_none=True), number
        case Not(StringTest() as inner):
            found_of = _admitted(inner)
            return found_of and (found_of[0]._replace(is_negated=True), found_of[1])
        case Comparison() | Or() | Not():
            return _written(predicate)
        case Opaque(calculated=(left, operator, right)) if not predicate.parameters:
            chained = chain_of(left, operator, right)
            if chained is not None and isinstance(chained[1], float):
                return chained[0], chained[1]
            return _written(predicate)
    return None


_BEYOND = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
"""Where a number is that is not within a bound."""


def _written(condition: Condition) -> Admitted | None:
    """Return a combination of tests of constants; None with others, or where none is compared."""
    found = combined(condition, ()) if compares_data(condition) else None
    if found is None or not found[1].is_constant:
        return None
    prefilter, either = found
    match either.tests:
        case [OperandTest(_, operator, str() as text)] if operator in TEXT_TESTS:
            return prefilter._replace(operator=operator), text
    return prefilter, either.text({})


def tested_parameter(predicate: Condition, texts: Collection[str]) -> Given | None:
    """Return a predicate as a condition of its node's values with parameters; None if it is none.

    Stage 1 knows nothing of the values of parameters, so of the prefilter only its values are
    asked for.  `texts` are the parameters that stand for strings.
    """
    return _given(hoist(predicate), texts)


def _given(predicate: Condition, texts: Collection[str]) -> Given | None:
    if not any(condition_parameters(predicate)):
        return None
    asked = predicate.condition if isinstance(predicate, Not) else predicate
    match asked:
        case Comparison(left=value) | StringTest(value=value) if any(value_parameters(value)):
            return None
    match predicate:
        case Comparison(XPathValue() as operand, operator, (Parameter() | XPathFrame()) as given):
            # Of numbers as texts: of what is none `!=` holds.
            how = "equals" if operator == "=" else operator
            return Prefilter((compared_as(operand, operator, given, texts),), how), given
        case Comparison(operand, operator, Parameter(name) as given):
            if operator == "=" and name in texts:
                return Prefilter((operand,), "equals"), given
            is_of_numbers = operator == "!=" and name not in texts
            return Prefilter((operand,), operator, is_of_numbers), given
        case StringTest(function, operand, (Parameter() | XPathFrame()) as given, flags):
            found = text_test(function, flags)
            if isinstance(operand, XPathValue) and is_number(given, texts):
                given = XPathFrame("string($v1)", (given,))
            return (Prefilter((operand,), found), given) if found else None
        case Not(Comparison(operand, operator, Parameter() as given)) if operator in _BEYOND:
            return Prefilter((operand,), _BEYOND[operator], holds_of_none=True), given
        case Not(StringTest() | Comparison() as inner):
            tested = _given(inner, texts)
            if tested is not None and tested[0].operator in TEXT_TESTS:
                return tested[0]._replace(is_negated=True), tested[1]
            return combined(predicate, texts)
        case Opaque(calculated=(left, operator, right)):
            chained = chain_of(left, operator, right)
            if chained is not None and isinstance(chained[1], Parameter):
                return chained[0], chained[1]
            return combined(predicate, texts)
        case Or() | Not() | Opaque(frame=XPathFrame()):
            return combined(predicate, texts)
    return None


def tested_position(step: Step, texts: Collection[str]) -> Given | None:
    """Return a given position, the first predicate of a step, as a condition of its node's values.

    What is calculated is asked as it is: solved, it would be two bounds, of which what competes can
    have one.
    """
    position = given_position(step)
    if isinstance(position, Opaque):
        return combined(position, texts)
    return None if position is None else _given(position, texts)


def tested_excerpt(predicate: Condition, texts: Collection[str]) -> Given | None:
    """Return a predicate as a condition of an excerpt; None if it is none.

    `texts` are the parameters that stand for strings.
    """
    if not any(condition_parameters(predicate)):
        return None
    found = excerpted(predicate)
    return None if found is None else combined_excerpt(*found, weaker_tests((predicate,)), texts)


def tested_step(step: Step, texts: Collection[str]) -> Given | None:
    """Return that a node passes the predicates of its step as a condition of an excerpt.

    None if it is none, or they have no parameters.
    """
    if not any(any(condition_parameters(each)) for each in step.predicates):
        return None
    found = selected_in_excerpt(step)
    return None if found is None else combined_excerpt(*found, weaker_tests(step.predicates), texts)


def breadth_of_constants(path: Path) -> int:
    """Return how broad the conditions of a path's steps are that may be data; 0 without any.

    A text has few words; half of the bounds hold of a number.  What must not be there comes last:
    it holds nearly always, and statements mostly differ in what else they ask.
    """
    return max(map(_breadth, _prefilters(path)), default=0) if _has_conditions(path) else 0


def exclude_constants(path: Path) -> bool:
    """Return whether a condition of a path's steps that may be data says what must not be there."""
    return any(
        each.is_negated or each.holds_of_none or each.operator == "!=" for each in _prefilters(path)
    )


def _has_conditions(path: Path) -> bool:
    """Return whether a path asks for more than names, which mostly it does not."""
    for step in path.steps:
        for each in step.predicates:
            if not isinstance(each, Exists) or each.path.has_predicates:
                return True
    return False


def _prefilters(path: Path) -> Iterator[Prefilter]:
    for step in path.steps:
        for predicate in conjuncts(step.predicates) if step.predicates else ():
            if isinstance(predicate, Exists) and not predicate.path.has_predicates:
                continue  # as mostly
            if (admitted := admitted_constant(predicate)) is not None:
                yield admitted[0]
            elif isinstance(predicate, Exists) and any(s.variables() for s in predicate.path.steps):
                yield from _prefilters(predicate.path)


def _breadth(prefilter: Prefilter) -> int:
    if prefilter.is_negated:
        return 1
    return 3 if prefilter.operator[0] in "<>!" or prefilter.chain is not None else 2
