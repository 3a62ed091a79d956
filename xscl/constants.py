"""Conditions of steps whose constants and parameters may be data of the values that they test.

What is asked of texts with `or` is one regular expression: `[c = 'a' or contains(c, 'b')]` is
`[matches(c, '^a$|b')]`.  Of several operands each value has a character in front that says whose it
is, and the expression asks for it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Sequence

from xscl.functions import spell
from xscl.hoisting import hoist
from xscl.path import (
    Comparison,
    Condition,
    Exists,
    Literal,
    Not,
    Or,
    Parameter,
    Path,
    PathValue,
    StringTest,
    Value,
    XPathNumber,
    condition_parameters,
    conjuncts,
)
from xscl.prefilters import OPERANDS_MAX, Admitted, Prefilter, tag
from xscl.texttests import IN_NO_TEXT, TEXT_TESTS, text_test

__all__ = [
    "admitted_constant",
    "breadth_of_constants",
    "exclude_constants",
    "tested_parameter",
]


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
    return None


def _negated(condition: Condition) -> Admitted | None:
    """Return that a test of texts holds for no value, or that no number is within a bound."""
    match condition:
        case Comparison(operand, operator, Literal(float() as number)) if operator in _BEYOND:
            if not math.isfinite(number):
                return None
            return Prefilter((operand,), _BEYOND[operator], holds_of_none=True), number
        case StringTest():
            found = _admitted(condition)
        case _:
            found = _choice(_disjuncts(condition))
    return None if found is None else (found[0]._replace(is_negated=True), found[1])


_BEYOND = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
"""Where a number is that is not within a bound."""


def _disjuncts(condition: Condition) -> Sequence[Condition]:
    return condition.conditions if isinstance(condition, Or) else (condition,)


def tested_parameter(
    predicate: Condition, texts: Collection[str]
) -> tuple[Prefilter, Parameter] | None:
    """Return a predicate as a condition of its node's values with a parameter; None if it is none.

    Stage 1 knows nothing of the values of parameters, so of the prefilter only its values are
    asked for.  `texts` are the parameters that stand for strings.
    """
    predicate = hoist(predicate)
    if len([*condition_parameters(predicate)]) != 1:
        return None
    match predicate:
        case Comparison(XPathNumber() as operand, operator, Parameter() as given):
            # Of numbers as texts: of what is none `!=` holds.
            return Prefilter((operand,), "equals" if operator == "=" else operator), given
        case Comparison(operand, operator, Parameter(name) as given):
            if operator == "=" and name in texts:
                return Prefilter((operand,), "equals"), given
            is_of_numbers = operator == "!=" and name not in texts
            return Prefilter((operand,), operator, is_of_numbers), given
        case StringTest(function, operand, Parameter() as given, flags):
            found = text_test(function, flags)
            return (Prefilter((operand,), found), given) if found else None
        case Not(Comparison(operand, operator, Parameter() as given)) if operator in _BEYOND:
            return Prefilter((operand,), _BEYOND[operator], holds_of_none=True), given
        case Not(StringTest() | Comparison(operator="=") as inner):
            tested = tested_parameter(inner, texts)
            if tested is None or tested[0].operator not in TEXT_TESTS:
                return None
            return tested[0]._replace(is_negated=True), tested[1]
    return None


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
        for predicate in conjuncts(step.predicates):
            if (admitted := admitted_constant(predicate)) is not None:
                yield admitted[0]


def _breadth(prefilter: Prefilter) -> int:
    if prefilter.is_negated:
        return 1
    return 3 if prefilter.operator[0] in "<>!" else 2


def _choice(conditions: Sequence[Condition]) -> Admitted | None:
    """Return tests of texts, one of which must hold, as one expression; None with others."""
    tests = [_text_test(each) for each in conditions]
    match tests:
        case [(operand, "=", text)]:
            return Prefilter((operand,), "equals"), text
    operands = tuple(sorted({test[0] for test in tests if test is not None}, key=repr))
    parts: list[str] = []
    for test in tests:
        if test is None or len(operands) > OPERANDS_MAX:
            return None
        operand, function, text = test
        if function == "matches" and len(operands) > 1:
            return None
        in_front = tag(operands.index(operand)) if len(operands) > 1 else ""
        parts.append(_expression(function, text, in_front))
    # With flag s a dot is any character.
    operator = "matches/s" if len(operands) > 1 else "matches"
    return Prefilter(operands, operator), "|".join(sorted(set(parts)))


def _text_test(condition: Condition) -> tuple[Value, str, str] | None:
    """Return the operand, function and text of a test of texts without flags."""
    match condition:
        case Comparison(operand, "=", Literal(str() as text)):
            function = "="
        case Comparison(XPathNumber() as operand, "=", Literal(float() as number)):
            function, text = "=", spell(number)
        case StringTest(function, operand, Literal(str() as text), ""):
            pass
        case _:
            return None
    return None if IN_NO_TEXT in text else (operand, function, text)


def _expression(function: str, text: str, in_front: str) -> str:
    """Return an expression that fits what passes a test, with something in front."""
    if function == "matches":
        return f"(?:{text})"
    literal = re.sub(r"[\\|.?*+{}()\[\]^$]", r"\\\g<0>", text)
    start = f"^{in_front}" if in_front or function in ("=", "starts-with") else ""
    between = ".*" if in_front and function in ("contains", "ends-with") else ""
    end = "$" if function in ("=", "ends-with") else ""
    return start + between + literal + end
