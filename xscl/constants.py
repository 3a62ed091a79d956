"""Conditions of steps whose constants and parameters may be data of the values that they test.

What is asked with `or` is one text that says all of it (`xscl.disjunctions`).  Of several operands
each value has a character in front that says whose it is.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence

from xscl.disjunctions import OTHER_NUMBER, DataForm, Disjunction, OperandTest
from xscl.functions import spell, to_double
from xscl.hoisting import disjuncts, hoist
from xscl.path import (
    Comparison,
    Condition,
    Exists,
    FunctionValue,
    Literal,
    Not,
    Opaque,
    Or,
    Parameter,
    Path,
    PathValue,
    StringTest,
    Value,
    XPathFrame,
    XPathValue,
    condition_parameters,
    conjuncts,
)
from xscl.prefilters import CHAINED, OPERANDS_MAX, Admitted, Prefilter
from xscl.solving import BESIDE, LARGEST_SOLVED, STEPS_MAX, Chain
from xscl.syntax import TURNED
from xscl.texttests import EITHER, IN_NO_TEXT, TEXT_TESTS, text_test

__all__ = [
    "Given",
    "admitted_constant",
    "breadth_of_constants",
    "exclude_constants",
    "tested_parameter",
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
        case Comparison():
            return _choice((predicate,))
        case Or(conditions):
            return _choice(conditions)
        case Not(inner):
            return _negated(inner)
        case Opaque(calculated=(left, operator, right)) if not predicate.parameters:
            return _chained(left, operator, right) or _chained(right, TURNED[operator], left)
    return None


def _chained(side: Value, operator: str, other: Value) -> Admitted | None:
    """Return a comparison with a number, the only literal on a side, to be solved for it."""
    steps: list[tuple[str, bool]] = []
    operands: list[Value] = []
    while isinstance(side, FunctionValue):
        match side.arguments:
            case (inner,):
                own, is_turned = Literal(0.0), True
            case (XPathValue() as own, inner):
                is_turned = side.function == "-"
            case (inner, own):
                is_turned = False
        steps.append((side.function, is_turned))
        operands.append(own)
        side = inner
    if not (isinstance(side, Literal) and 0 < len(steps) <= STEPS_MAX):
        return None
    number = to_double(side.value)
    if not abs(number) <= LARGEST_SOLVED:
        return None
    chain = Chain(tuple(reversed(steps)), operator)
    beside = FunctionValue(BESIDE, (*reversed(operands), other))
    return Prefilter((beside,), CHAINED, chain=chain), number


def _negated(condition: Condition) -> Admitted | None:
    """Return that a test of texts holds for no value, or that no number is within a bound."""
    match condition:
        case Comparison(operand, operator, Literal(float() as number)) if operator in _BEYOND:
            if not math.isfinite(number):
                return None
            return Prefilter((operand,), _BEYOND[operator], holds_of_none=True), number
        case StringTest():
            found = _admitted(condition)
        case Comparison() | Or():
            found = _choice(disjuncts(condition))
        case _:
            return None
    return None if found is None else (found[0]._replace(is_negated=True), found[1])


_BEYOND = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
"""Where a number is that is not within a bound."""


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
        case Comparison(left=value) | StringTest(value=value) if _has_parameters(value):
            return None
    match predicate:
        case Comparison(XPathValue() as operand, operator, (Parameter() | XPathFrame()) as given):
            # Of numbers as texts: of what is none `!=` holds.
            how = "equals" if operator == "=" else operator
            return Prefilter((_compared_as(operand, operator, given, texts),), how), given
        case Comparison(operand, operator, Parameter(name) as given):
            if operator == "=" and name in texts:
                return Prefilter((operand,), "equals"), given
            is_of_numbers = operator == "!=" and name not in texts
            return Prefilter((operand,), operator, is_of_numbers), given
        case StringTest(function, operand, (Parameter() | XPathFrame()) as given, flags):
            found = text_test(function, flags)
            if isinstance(operand, XPathValue) and _is_number(given, texts):
                given = XPathFrame("string($v1)", (given,))
            return (Prefilter((operand,), found), given) if found else None
        case Or(conditions):
            return _either(conditions, texts)
        case Not(Comparison(operand, operator, Parameter() as given)) if operator in _BEYOND:
            return Prefilter((operand,), _BEYOND[operator], holds_of_none=True), given
        case Not(StringTest() | Comparison() | Or() as inner):
            tested = _given(inner, texts)
            if tested is not None and tested[0].operator not in TEXT_TESTS:
                tested = _either((inner,), texts)
            return None if tested is None else (tested[0]._replace(is_negated=True), tested[1])
    return None


def _compared_as(
    operand: XPathValue, operator: str, given: Parameter | XPathFrame, texts: Collection[str]
) -> XPathValue:
    """Return a text that is compared with data as a number, if it is with these."""
    is_text = operator in ("=", "!=") and not _is_number(given, texts)
    return operand if is_text else operand.as_number()


def _is_number(given: Parameter | XPathFrame, texts: Collection[str]) -> bool:
    return isinstance(given, Parameter) and given.name not in texts


def breadth_of_constants(path: Path) -> int:
    """Return how broad the conditions of a path's steps are that may be data; 0 without any.

    A text has few words; half of the bounds hold of a number.  What must not be there comes last:
    it holds nearly always, and statements mostly differ in what else they ask.
    """
    return max(map(_breadth, _prefilters(path)), default=0)


def exclude_constants(path: Path) -> bool:
    """Return whether a condition of a path's steps that may be data says what must not be there."""
    return any(
        each.is_negated or each.holds_of_none or each.operator == "!=" for each in _prefilters(path)
    )


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


def _choice(conditions: Sequence[Condition]) -> Admitted | None:
    """Return tests of constants, one of which must hold, as one; None with others."""
    found = _either(conditions, ())
    if found is None or not found[1].is_constant:
        return None
    prefilter, either = found
    match either.tests:
        case [OperandTest(_, operator, str() as text)] if operator in TEXT_TESTS:
            return prefilter._replace(operator=operator), text
    return prefilter, either.text({})


def _either(
    conditions: Sequence[Condition], texts: Collection[str]
) -> tuple[Prefilter, Disjunction] | None:
    """Return tests of values, one of which must hold, as data of them; None with others."""
    tests = [_operand_test(each, texts) for each in conditions]
    known = [test for test in tests if test is not None]
    operands = tuple(sorted({operand for operand, *_ in known}, key=repr))
    if len(known) < len(tests) or len(operands) > OPERANDS_MAX:
        return None
    places = {each: i if len(operands) > 1 else -1 for i, each in enumerate(operands)}
    asked = [OperandTest(places[each[0]], *each[1:]) for each in known]
    return Prefilter(operands, EITHER), Disjunction(tuple(asked))


def _has_parameters(value: Value) -> bool:
    return any(condition_parameters(Comparison(value, "=", Literal(""))))


_Asked = tuple[Value, str, str | float | Parameter | XPathFrame, DataForm]


def _operand_test(condition: Condition, texts: Collection[str]) -> _Asked | None:
    """Return the operand of a comparison or test with data, and what is asked of it."""
    form = DataForm.PLAIN
    match condition:
        case Comparison(left=value) | StringTest(value=value) if _has_parameters(value):
            return None
    match condition:
        case Comparison(XPathValue() as operand, operator, (Parameter() | XPathFrame()) as data):
            operand = _compared_as(operand, operator, data, texts)
            form = DataForm.PLAIN if operand.is_text else DataForm.XPATH_NUMBER
            return operand, "equals" if operator == "=" else operator, data, form
        case Comparison(XPathValue() as operand, "=", Literal(float() as number)):
            return operand, "equals", spell(number), form
        case Comparison(operand, ("=" | "!=") as operator, Literal(data) | (Parameter() as data)):
            is_text = data.name in texts if isinstance(data, Parameter) else isinstance(data, str)
            if operator == "=":
                return operand, "equals" if is_text else "=", data, form
            return operand, "!=" if is_text else OTHER_NUMBER, data, form
        case Comparison(operand, operator, Literal(data) | (Parameter() as data)):
            return operand, operator, data, form
        case StringTest(
            function, operand, Literal(str() as data) | (Parameter() | XPathFrame() as data), flags
        ):
            found = text_test(function, flags)
            return (operand, found, data, form) if found else None
    return None
