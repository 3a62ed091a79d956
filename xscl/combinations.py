"""What `and`, `or` and `not` combine, and what is calculated, as data of the values of a node.

All of it is one text (`xscl.disjunctions`): conditions of which one must hold, each a test, or
tests that hold together while others do not.  Of several operands each value has a character in
front that says whose it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import product

from xscl.calculations import CALCULATED, Calculation, Framed, calculation, framed_by
from xscl.disjunctions import OTHER_NUMBER, DataForm, Disjunction, OperandTest, Together
from xscl.excerpttests import Excerpted
from xscl.functions import spell
from xscl.path import (
    And,
    Comparison,
    Condition,
    Excerpt,
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
    value_parameters,
)
from xscl.pattern import INEQUALITIES
from xscl.prefilters import CHAINED, OPERANDS_MAX, Prefilter
from xscl.solving import BESIDE, LARGEST_SOLVED, STEPS_MAX, Chain
from xscl.syntax import TURNED
from xscl.texttests import EITHER, text_test
from xscl.xpath1numbers import number_of_truth

__all__ = [
    "Chained",
    "chain_of",
    "combined",
    "combined_excerpt",
    "compared_as",
    "compares_data",
    "is_number",
]

ALTERNATIVES_MAX = 32
"""So many conditions, of which one must hold, may be made of a combination."""

Chained = tuple[Prefilter, Parameter | float]
"""A comparison to be solved for its datum, and that."""

_Data = str | float | Parameter | XPathFrame | Calculation | Framed | Excerpted

_Asked = tuple[Value, str, _Data, DataForm]
"""An operand, and what is asked of it."""

_Together = tuple[tuple[_Asked, bool], ...]
"""What must hold together: tests, each with whether it does or must not."""


def compares_data(condition: Condition) -> bool:
    """Return whether a combination compares something with data."""
    match condition:
        case And(conditions) | Or(conditions):
            return any(map(compares_data, conditions))
        case Not(inner):
            return compares_data(inner)
        case Comparison() | StringTest():
            return True
        case Opaque(calculated=calculated):
            return calculated is not None
    return False


def combined(condition: Condition, texts: Collection[str]) -> tuple[Prefilter, Disjunction] | None:
    """Return a combination of tests of values as data of them; None where something is none.

    `texts` are the parameters that stand for strings.  What would hold of a node without values is
    the opposite of what does not.
    """
    found = _alternatives(condition, texts, is_wanted=True)
    is_negated = found is not None and not all(
        any(is_wanted for _, is_wanted in each) for each in found
    )
    if is_negated:
        found = _alternatives(condition, texts, is_wanted=False)
    if found is None:
        return None
    asked = [test for each in found for test, _ in each]
    operands = tuple(sorted({operand for operand, *_ in asked}, key=repr))
    if len(operands) > OPERANDS_MAX:
        return None
    places = {each: i if len(operands) > 1 else -1 for i, each in enumerate(operands)}
    tests = tuple(_together(each, places) for each in found)
    return Prefilter(operands, EITHER, is_negated=is_negated), Disjunction(tests)


def combined_excerpt(
    excerpt: Excerpt, asked: Excerpted, weaker: Iterable[Condition], texts: Collection[str]
) -> tuple[Prefilter, Disjunction]:
    """Return what is asked of an excerpt as data of it, and of what `weaker` conditions compare.

    These hold wherever it does: who is found by one is asked.
    """
    found: list[_Asked] = [(excerpt, CALCULATED, asked, DataForm.PLAIN)]
    found += [own for each in weaker if (own := _asked(each, texts)) is not None]
    found = found[:OPERANDS_MAX]
    operands = tuple(sorted({operand for operand, *_ in found}, key=repr))
    places = {each: i if len(operands) > 1 else -1 for i, each in enumerate(operands)}
    together = tuple((each, True) for each in dict.fromkeys(found))
    return Prefilter(operands, EITHER), Disjunction((_together(together, places),))


def _together(each: _Together, places: dict[Value, int]) -> OperandTest | Together:
    wanted, unwanted = (
        [
            OperandTest(places[asked[0]], *asked[1:])
            for asked, is_wanted in each
            if is_wanted == side
        ]
        for side in (True, False)
    )
    if len(wanted) == 1 and not unwanted:
        return wanted[0]
    return Together(tuple(sorted(wanted, key=_narrowness, reverse=True)), tuple(unwanted))


def _narrowness(test: OperandTest) -> int:
    """Return how little a test likely holds of: words of parameters differ most."""
    rank = 0 if test.operator in ("!=", OTHER_NUMBER, CALCULATED) else 1
    return 2 * (rank + (test.operator not in INEQUALITIES and rank)) + (not test.is_constant)


def _alternatives(
    condition: Condition, texts: Collection[str], *, is_wanted: bool
) -> list[_Together] | None:
    """Return conditions of which one holds exactly if another does, or does not."""
    match condition:
        case Not(inner):
            return _alternatives(inner, texts, is_wanted=not is_wanted)
        case And(conditions) | Or(conditions):
            parts: list[list[_Together]] = []
            for each in conditions:
                part = _alternatives(each, texts, is_wanted=is_wanted)
                if part is None:
                    return None
                parts.append(part)
            if isinstance(condition, And) == is_wanted:
                return _all_of(parts)
            either = [each for part in parts for each in part]
            return either if len(either) <= ALTERNATIVES_MAX else None
    asked = _asked(condition, texts)
    if asked is None:
        return None
    operand, operator, data, form = asked
    if not is_wanted and isinstance(data, (Calculation, Framed)) and any(data.parameters()):
        # Each is asked, so who looks for the opposite is found as well.
        asked, is_wanted = (operand, operator, data.opposite(), form), True
    return [((asked, is_wanted),)]


def _all_of(parts: Sequence[list[_Together]]) -> list[_Together] | None:
    made: list[_Together] = [()]
    for part in parts:
        if len(made) * len(part) > ALTERNATIVES_MAX:
            return None
        made = [tuple(dict.fromkeys((*one, *other))) for one, other in product(made, part)]
    return made


def compared_as(
    operand: XPathValue, operator: str, given: Parameter | XPathFrame, texts: Collection[str]
) -> XPathValue:
    """Return a text that is compared with data as a number, if it is with these."""
    is_text = operator in ("=", "!=") and not is_number(given, texts)
    return operand if is_text else operand.as_number()


def is_number(given: Parameter | XPathFrame, texts: Collection[str]) -> bool:
    """Return whether what is given is a number."""
    return isinstance(given, Parameter) and given.name not in texts


def _asked(condition: Condition, texts: Collection[str]) -> _Asked | None:
    """Return the operand of a condition, and what is asked of it; None if it is no test."""
    form = DataForm.PLAIN
    match condition:
        case Comparison(left=value) | StringTest(value=value) if any(value_parameters(value)):
            return None
        case Comparison(XPathValue() as operand, operator, (Parameter() | XPathFrame()) as data):
            operand = compared_as(operand, operator, data, texts)
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
        case Opaque(is_positional=False, calculated=(left, operator, right)):
            of_node, compared = calculation(left, operator, right)
            return of_node, CALCULATED, compared, form
        case Opaque(is_positional=False, frame=XPathFrame() as frame, parameters=(_, *_)):
            of_values, asked = framed_by(frame)
            return of_values, CALCULATED, asked, form
    return None if any(condition_parameters(condition)) else _truth(condition)


def _truth(condition: Condition) -> _Asked | None:
    """Return a condition without data as a test of a number of the node."""
    match condition:
        case Exists(path):
            length = FunctionValue("string-length", (PathValue(path),))
            return length, ">=", 0.0, DataForm.PLAIN
        case Opaque(expression, namespaces, is_positional=False):
            truth = XPathValue(Path(()), number_of_truth(expression), namespaces)
            return truth, "equals", "1", DataForm.PLAIN
    return None


def chain_of(
    left: Value, operator: str, right: Value
) -> tuple[Prefilter, Parameter | float] | None:
    """Return a comparison of numbers to be solved for the one datum within, and that.

    It is the parameter, or the only number that is written on its side.
    """
    return _chained(left, operator, right) or _chained(right, TURNED[operator], left)


def _chained(side: Value, operator: str, other: Value) -> Chained | None:
    parameters = [*value_parameters(side), *value_parameters(other)]
    if len(parameters) > 1 or operator == "!=" or not isinstance(other, (XPathValue, Literal)):
        return None

    def has_data(value: Value) -> bool:
        return any(value_parameters(value)) if parameters else not isinstance(value, XPathValue)

    steps: list[tuple[str, bool]] = []
    operands: list[Value] = []
    own: Value
    while isinstance(side, FunctionValue):
        match side.arguments:
            case (inner,):
                own, is_turned = Literal(0.0), True
            case (inner, own) if has_data(inner):
                is_turned = False
            case (own, inner):
                is_turned = side.function == "-"
        if side.function == "mod" or (side.function == "div" and side.arguments[0] is own):
            return None
        if not isinstance(own, (XPathValue, Literal)):
            return None
        steps.append((side.function, is_turned))
        operands.append(own)
        side = inner
    if not 0 < len(steps) <= STEPS_MAX:
        return None
    match side:
        case Parameter():
            data: Parameter | float = side
        case Literal(float() as number) if abs(number) <= LARGEST_SOLVED:
            data = number
        case _:
            return None
    chain = Chain(tuple(reversed(steps)), operator)
    beside = FunctionValue(BESIDE, (*reversed(operands), other))
    return Prefilter((beside,), CHAINED, chain=chain), data
