"""Conditions of blocks with parameters, as conditions of tuples that have values of the node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from dataclasses import replace
from functools import partial, reduce

from templates.comparisons import both
from xscl.comparison import OF_EXCERPT, XPATH_FRAME, XPATH_NUMBER
from xscl.constants import tested_parameter
from xscl.disjunctions import Disjunction
from xscl.excerpttests import excerpted
from xscl.hoisting import hoist
from xscl.path import (
    And,
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
    Position,
    StringTest,
    Value,
    XPathFrame,
    XPathValue,
    binding_paths,
    condition_parameters,
    value_parameters,
)
from xscl.prefilters import Values, ValuesKind
from xscl.query import (
    Call,
    Conditional,
    Disjunct,
    Operand,
    Residual,
    ValuesFrom,
)
from xscl.rewriting import strip_variables
from xscl.xpath1numbers import as_number, number_of_truth

__all__ = ["Ask", "asked_of_node", "asked_of_values"]

Ask = Callable[[str], Disjunct]
"""Gives what is asked of the values of a variable's node."""


def asked_of_values(condition: Condition, texts: Set[str]) -> Ask | None:
    """Return a condition of a block as one of tuples; None if it is none, or its data are a box's.

    `texts` are the parameters that stand for strings.
    """
    if not any(condition_parameters(condition)) or _binds(condition):
        return None
    condition = strip_variables(condition)
    given = tested_parameter(condition, texts)
    # Where each would be asked, it is better asked of tuples that pass all else.
    if given is not None and not (isinstance(given[1], Disjunction) and not given[1].is_found):
        return None
    match condition:
        case Opaque(calculated=(left, operator, right)) if not (
            operator == "!=" or (operator == "=" and (_is_of_nodes(left) or _is_of_nodes(right)))
        ):
            # Of several numbers the one that passes if any does.
            kinds = ValuesKind.GREATEST, ValuesKind.LEAST
            kinds = kinds if operator[0] == ">" else kinds[::-1]

            def ask(variable: str) -> Disjunct:
                sides = (_side(e, variable, k) for e, k in zip((left, right), kinds, strict=True))
                return _compared(operator, *sides)

            return ask
    return partial(_asked, condition) if _is_asked_of_values(condition) else None


def asked_of_node(variable: str, condition: Condition) -> Disjunct | None:
    """Return a condition of a variable's node as one of its values; None if it is none."""
    condition = strip_variables(condition)
    hoisted = hoist(condition)
    if _is_asked_of_values(hoisted):
        return _asked(hoisted, variable)
    if (found := excerpted(condition)) is None:
        return None
    excerpt, asked = found
    given = dict.fromkeys(asked.parameters())
    truth = Call(OF_EXCERPT, (Literal(asked.written()), _all(excerpt, variable), *given))
    return _compared("=", truth, Literal(1.0))


def _binds(condition: Condition) -> bool:
    return any(any(step.variables()) for path in binding_paths(condition) for step in path.steps)


def _is_asked_of_values(condition: Condition) -> bool:
    """Return whether what a condition asks, with its data, is a matter of values without data."""
    match condition:
        case And(conditions) | Or(conditions):
            return all(map(_is_asked_of_values, conditions))
        case Not(inner):
            return _is_asked_of_values(inner)
        case Position():
            return False
        case Comparison(left=value) | StringTest(value=value):
            return not any(value_parameters(value))
        case Opaque(is_positional=True):
            return False
        case Opaque(compared=compared, calculated=calculated, frame=frame) if (
            compared or calculated or frame
        ):
            return True
    return not any(condition_parameters(condition))


def _asked(condition: Condition, variable: str) -> Disjunct:
    """Return a condition as one of values of a variable's node, each of which there may be many."""
    match condition:
        case And(conditions):
            return reduce(both, [_asked(each, variable) for each in conditions])
        case Or(conditions):
            return _holds(tuple(_asked(each, variable) for each in conditions))
        case Not(inner):
            return _holds((_asked(inner, variable),), is_negated=True)
        case Comparison(left, operator, (Literal() | Parameter()) as right):
            return _compared(operator, _all(left, variable), right)
        case StringTest(function, value, (Literal() | Parameter()) as argument, flags):
            test = Call(function, (_all(value, variable), argument, Literal(flags)))
            return Disjunct(tests=(test,))
        case Exists(path):
            return Disjunct(tests=(Call("exists", (_all(PathValue(path), variable),)),))
        case Opaque(parameters=(_, *_), calculated=(left, "!=", right)):
            return _holds((*_unequal(left, right, variable),))
        case Opaque(parameters=(_, *_), calculated=(left, operator, right)):
            sides = (_side(each, variable, ValuesKind.EACH) for each in (left, right))
            return _compared(operator, *sides)
        case Opaque(
            compared=Comparison(
                XPathValue(is_text=False) as number, operator, (Literal() | Parameter()) as constant
            )
        ):
            given, of_node = _number_given(constant), _all(number, variable)
            if operator == "!=":  # of what is no number it holds
                return _holds((_compared("=", of_node, given),), is_negated=True)
            return _compared(operator, of_node, given)
        case Opaque(frame=XPathFrame(expression, arguments)):
            own = [e if isinstance(e, Parameter) else _all(e, variable) for e in arguments]
            framed = Call(XPATH_FRAME, (Literal(expression), *own))
            return _compared("=", framed, Literal(1.0))
        case Opaque(expression, namespaces):
            truth = XPathValue(Path(()), number_of_truth(expression), namespaces)
            return _compared("=", _all(truth, variable), Literal(1.0))
    raise AssertionError(condition)


def _unequal(left: Value, right: Value, variable: str) -> Iterator[Disjunct]:
    """Yield conditions of which one holds if `!=` does in XPath 1.0, also of what is no number."""
    one, two = (_side(each, variable, ValuesKind.EACH) for each in (left, right))
    yield _compared("!=", one, two)
    for side, number, other in ((left, one, right), (right, two, left)):
        if isinstance(side, XPathValue):
            is_none = replace(side, expression="number({0} != {0})".format(f"({side.expression})"))
            yield _compared("=", _all(is_none, variable), Literal(1.0))
            continue
        none = _holds((_compared("=", number, number),), is_negated=True)
        if isinstance(other, XPathValue) and _is_of_nodes(other):
            none = both(none, _asked(Exists(other.path), variable))
        yield none


def _compared(operator: str, left: Operand, right: Operand) -> Disjunct:
    return Disjunct(residuals=(Residual(left, operator, right),))


def _holds(disjuncts: tuple[Disjunct, ...], *, is_negated: bool = False) -> Disjunct:
    """Return that one of some conjunctions holds, or that none does."""
    truth = Conditional(disjuncts, Literal(1.0), Literal(0.0))
    return _compared("=", truth, Literal(0.0 if is_negated else 1.0))


def _all(value: Value, variable: str) -> Operand:
    return ValuesFrom(variable, Values((value,), ValuesKind.EACH))


def _number_given(value: Literal | Parameter) -> Operand:
    """Return data as the number that XPath 1.0 reads in them."""
    if isinstance(value, Parameter):
        return Call(XPATH_NUMBER, (value,))
    return Literal(as_number(value.value))


def _is_of_nodes(side: Value) -> bool:
    return isinstance(side, XPathValue) and bool(side.path.steps)


def _side(value: Value, variable: str, kind: ValuesKind) -> Operand:
    """Return a side of a comparison that is calculated."""
    match value:
        case FunctionValue(function, arguments):
            return Call(function, tuple(_side(each, variable, kind) for each in arguments))
        case Parameter():
            return _number_given(value)
        case Literal():
            return value
    return ValuesFrom(variable, Values((value,), kind))
