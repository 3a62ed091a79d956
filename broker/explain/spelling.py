"""Paths, conditions and comparisons of the normal form, back in the words of the language."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Protocol

from broker.explain.quantities import (
    Quantity,
    quantity_of,
    quantity_of_both,
    spell_duration,
)
from xscl.calculations import ALL_VALUES, NOT, Calculation, Framed, Side
from xscl.canonical import render_number, render_string
from xscl.comparison import OF_EXCERPT, XPATH_FRAME, XPATH_NUMBER
from xscl.disjunctions import OTHER_NUMBER
from xscl.durations import render_duration
from xscl.excerpttests import read_excerpted
from xscl.functions import spell
from xscl.namespaces import KNOWN_PREFIXES
from xscl.path import (
    ANY,
    And,
    Axis,
    Comparison,
    Condition,
    Excerpt,
    Exists,
    FunctionValue,
    Literal,
    NodeTest,
    Not,
    Opaque,
    Or,
    Parameter,
    Path,
    PathValue,
    Position,
    Step,
    StringTest,
    Value,
    XPathFrame,
    XPathValue,
)
from xscl.prefilters import Prefilter, Values
from xscl.query import (
    ROW_VALUE,
    Cell,
    Conditional,
    Derived,
    Disjunct,
    Elements,
    Operand,
    PathFrom,
    Query,
    Residual,
    Row,
    ValueJoin,
    ValuesFrom,
    VariableValue,
    Window,
)
from xscl.query import Call as DerivedCall
from xscl.solving import Chain
from xscl.syntax import ARITHMETIC
from xscl.texttests import TEXT_TESTS
from xscl.xpath1numbers import NUMBER_OF_TEXT, TEXT_OF_NODE

__all__ = [
    "ParameterLength",
    "ParameterNumber",
    "ParameterText",
    "spell_calculation",
    "spell_comparison",
    "spell_condition",
    "spell_constant",
    "spell_derivation",
    "spell_disjunct",
    "spell_filters",
    "spell_frame",
    "spell_length",
    "spell_operand",
    "spell_operator",
    "spell_path",
    "spell_prefilter",
    "spell_selected",
    "spell_step",
    "spell_test",
    "spell_value",
]

_ROW_VALUE = re.compile(rf"\${re.escape(ROW_VALUE)}(\d+)")

_PREFIXES = {uri: prefix for prefix, uri in KNOWN_PREFIXES.items()}


class ParameterText(str):
    """A string that stands in the place of a parameter, and is spelled without quotes."""


class ParameterNumber(float):
    """A number that stands in the place of a parameter, and is spelled as that."""

    def __new__(cls, name: str, value: float) -> ParameterNumber:
        """Return a number of this value that is spelled `$name`."""
        number = super().__new__(cls, value)
        number.name = name
        return number

    name: str


class ParameterLength(int):
    """A length of time that stands in the place of a parameter, and is spelled as that."""

    def __new__(cls, name: str) -> ParameterLength:
        """Return no time, spelled `$name`."""
        length = super().__new__(cls, 0)
        length.name = name
        return length

    name: str


class _AnyStep(Protocol):
    """What a step of a path and a node of a tree pattern have in common."""

    @property
    def axis(self) -> Axis: ...

    @property
    def test(self) -> NodeTest: ...

    @property
    def is_deep(self) -> bool: ...


def spell_test(test: NodeTest) -> str:
    """Return a node test; a namespace without a known prefix as `Q{uri}name`.

    >>> spell_test(NodeTest("creator", "http://purl.org/dc/elements/1.1/"))
    'dc:creator'
    """
    if test.is_text:
        return "text()"
    if test.namespace is None or (test.namespace == ANY and test.name == ANY):
        return test.name
    if test.namespace == ANY:
        return f"*:{test.name}"
    prefix = _PREFIXES.get(test.namespace)
    return f"{prefix}:{test.name}" if prefix else f"Q{{{test.namespace}}}{test.name}"


def spell_step(step: _AnyStep, *, is_first: bool = False) -> str:
    """Return a step without predicates and variable, as it stands at the start of a path.

    The first step of a block (`is_first`) starts from the document: `/a` or `//a`.
    """
    if step.axis in _UNNAMED:
        return f".//{_UNNAMED[step.axis]}" if step.is_deep else _UNNAMED[step.axis]
    if step.axis is Axis.ANCESTOR:
        return f"ancestor-or-self::{spell_test(step.test)}"
    name = ("@" if step.axis is Axis.ATTRIBUTE else "") + spell_test(step.test)
    if is_first:
        return f"//{name}" if step.is_deep else f"/{name}"
    return f".//{name}" if step.is_deep else name


_UNNAMED = {Axis.SELF: ".", Axis.PARENT: "..", Axis.DOCUMENT: ""}
"""Steps of which no name is asked."""


def spell_path(path: Path) -> str:
    """Return a relative path with its predicates and variables."""
    if not path.steps:
        return "."
    text = ""
    for i, step in enumerate(path.steps):
        if i == 0:
            text = spell_step(step)
        else:
            text += ("//" if step.is_deep else "/") + spell_step(step).removeprefix(".//")
        text += _tail(step)
    return text or "/"


def _tail(step: Step) -> str:
    variable = f"->{step.variable}" if step.variable else ""
    return variable + "".join(f"[{spell_condition(each)}]" for each in step.predicates)


def spell_asked(step: Step) -> str:
    """Return what is asked of an excerpt: conditions of its node, or those of its step."""
    if step.axis is Axis.SELF:
        return " and ".join(map(spell_condition, step.predicates))
    return spell_path(Path((step,)))


def spell_condition(condition: Condition, *, is_inner: bool = False) -> str:
    """Return a condition as it stands between brackets; `is_inner` puts `or` in parentheses."""
    match condition:
        case Exists(path):
            return spell_path(path)
        case Comparison(left, operator, right):
            return f"{spell_value(left)} {operator} {spell_value(right)}"
        case StringTest(function, value, argument):
            flags = f", {render_string(condition.flags)}" if condition.flags else ""
            return f"{function}({spell_value(value)}, {spell_value(argument)}{flags})"
        case Position():
            return _spell_position(condition)
        case And(conditions):
            return " and ".join(spell_condition(each, is_inner=True) for each in conditions)
        case Or(conditions):
            text = " or ".join(spell_condition(each, is_inner=True) for each in conditions)
            return f"({text})" if is_inner else text
        case Not(inner):
            return f"not({spell_condition(inner)})"
        case Opaque(expression):
            return expression


def _spell_position(condition: Position) -> str:
    wanted = condition.number
    number = f"${wanted.name}" if isinstance(wanted, Parameter) else spell_constant(wanted)
    if condition.is_size:
        return f"last() {condition.operator} {number}"
    if not condition.of_last:
        is_plain = condition.operator == "="
        return number if is_plain else f"position() {condition.operator} {number}"
    bound = "last()" if condition.number == 0 else f"last() - {number}"
    return bound if condition.operator == "=" else f"position() {condition.operator} {bound}"


def spell_value(value: Value) -> str:
    """Return one side of a comparison inside a path."""
    match value:
        case PathValue(path):
            return spell_path(path)
        case FunctionValue(function, arguments) if function == ALL_VALUES:
            return f"numbers({', '.join(map(_spell_number, arguments))})"
        case FunctionValue(function, arguments):
            return f"{function}({', '.join(map(spell_value, arguments))})"
        case XPathValue(path, expression) if expression in (TEXT_OF_NODE, NUMBER_OF_TEXT):
            return spell_path(path)
        case XPathValue(path, expression):
            return f"{spell_path(path)}/({expression})" if path.steps else expression
        case Excerpt(paths, texts):
            return f"excerpt({', '.join(map(spell_path, (*paths, *texts)))})"
        case XPathFrame():
            return _spell_frame(value.expression, [*map(spell_value, value.arguments)])
        case Literal() | Parameter():
            return _spell_literal(value)


_STRING_OR_ARGUMENT = re.compile(r"'[^']*'|\"[^\"]*\"|\$v(?P<number>\d+)")


def _spell_frame(expression: str, arguments: Sequence[str]) -> str:
    """Return an expression of XPath 1.0 with its arguments in their places."""

    def argument(found: re.Match[str]) -> str:
        return arguments[int(found["number"]) - 1] if found["number"] else found[0]

    return _STRING_OR_ARGUMENT.sub(argument, expression)


def spell_length(length: Window | Parameter) -> str:
    """Return how long a window is; a parameter, and what stands for one, as that."""
    if isinstance(length, Parameter):
        return f"${length.name}"
    if isinstance(length.length_us, ParameterLength):
        return f"${length.length_us.name}"
    return render_duration(length.length_us)


def spell_constant(value: str | float) -> str:
    """Return a string or a number as it is written; what stands for a parameter, as that."""
    if isinstance(value, ParameterText):
        return str(value)
    if isinstance(value, ParameterNumber | ParameterLength):
        return f"${value.name}"
    if isinstance(value, str) or not math.isfinite(value):
        return render_string(spell(value))
    return render_number(value)


def _spell_literal(constant: Literal | Parameter) -> str:
    if isinstance(constant, Parameter):
        return f"${constant.name}"
    return spell_constant(constant.value)


def spell_operand(operand: Operand | Derived, labels: dict[str, str] | None = None) -> str:
    """Return one side of a comparison in an operator's predicate; `labels` rename variables."""
    match operand:
        case VariableValue(variable):
            return (labels or {}).get(variable, variable)
        case ValuesFrom(variable, values):
            return spell_derivation(values, (labels or {}).get(variable, variable))
        case DerivedCall(function, (Parameter(name),)) if function == XPATH_NUMBER:
            return f"${name}"
        case DerivedCall(function, (Literal(str() as text), *own)) if function == XPATH_FRAME:
            return _spell_frame(text, [spell_operand(each, labels) for each in own])
        case DerivedCall(function, (Literal(str() as text), *_)) if function == OF_EXCERPT:
            return spell_asked(read_excerpted(text).step)
        case PathFrom(variable, path):
            return f"{(labels or {}).get(variable, variable)}/{spell_path(path)}".replace(
                "/.//", "//"
            )
        case DerivedCall(function, arguments) if function in ARITHMETIC:
            sides = _spell_sides(function, arguments, labels)
            return f" {function} ".join(sides) if len(sides) > 1 else f"{function}{sides[0]}"
        case DerivedCall(
            "jaccard", (DerivedCall("words", (left,)), DerivedCall("words", (right,)))
        ):
            return f"similar({spell_operand(left, labels)}, {spell_operand(right, labels)})"
        case DerivedCall("joins", (left, right)):
            return f"{spell_operand(left, labels)} = {spell_operand(right, labels)}"
        case DerivedCall(function, arguments):
            return f"{function}({', '.join(spell_operand(each, labels) for each in arguments)})"
        case Elements():
            return _spell_elements(operand, labels)
        case Conditional(condition, then, otherwise):
            asked = " OR ".join(spell_disjunct(each, labels) for each in condition)
            chosen = f"{spell_operand(then, labels)} else {spell_operand(otherwise, labels)}"
            return f"if ({asked}) then {chosen}"
        case Row(table, key):
            return f"{table}[{spell_operand(key, labels)}]"
        case Cell(row, column):
            return f"{spell_operand(row, labels)}.{column}"
        case Literal() | Parameter():
            return _spell_literal(operand)
    raise AssertionError(f"not run yet: {operand}")


def _spell_elements(operand: Elements, labels: dict[str, str] | None) -> str:
    of = operand.operand
    if operand.function == "fold":
        assert isinstance(of, Literal)
        return str(of.value)
    spelled = [spell_operand(each, labels) for each in (of, operand.otherwise) if each is not None]
    if operand.function in ("candidate", "all"):
        return spelled[0]
    return f"{operand.function}({', '.join(spelled)})"


def _spell_sides(
    function: str, sides: Sequence[Operand], labels: dict[str, str] | None
) -> list[str]:
    """Return the sides of an operation; what is added to a time as a duration."""
    is_time = function in ("+", "-") and any(quantity_of(each).is_time for each in sides)
    return [(is_time and spell_duration(each)) or _spell_side(each, labels) for each in sides]


def _spell_side(operand: Operand, labels: dict[str, str] | None) -> str:
    text = spell_operand(operand, labels)
    is_composed = isinstance(operand, Conditional) or (
        isinstance(operand, DerivedCall) and operand.function in ARITHMETIC
    )
    return f"({text})" if is_composed else text


def spell_disjunct(disjunct: Disjunct, labels: dict[str, str] | None = None) -> str:
    """Return a conjunction of comparisons and tests."""
    similar = [join.residual for join in disjunct.similarity_joins]
    compared: list[ValueJoin | Residual]
    compared = [*disjunct.value_joins, *similar, *disjunct.residuals]
    texts = [spell_comparison(each, labels) for each in compared]
    return " AND ".join([*texts, *(spell_operand(each, labels) for each in disjunct.tests)])


def spell_comparison(comparison: ValueJoin | Residual, labels: dict[str, str] | None = None) -> str:
    """Return a value join or a residual."""
    operator = comparison.operator if isinstance(comparison, Residual) else "="
    sides = (comparison.left, comparison.right)
    is_length = quantity_of_both(*sides) is Quantity.DURATION
    left, right = (
        (is_length and spell_duration(each)) or spell_operand(each, labels) for each in sides
    )
    return f"{left} {operator} {right}"


def spell_operator(operator: str) -> str:
    """Return the operator of a test as a query has it, where it has one."""
    return operator.replace("equals", "=").replace(OTHER_NUMBER, "!=")


def spell_filters(filters: Sequence[Condition]) -> str:
    """Return filters, each between brackets, in their order."""
    return "".join(f"[{spell_condition(each)}]" for each in filters)


def spell_prefilter(prefilter: Prefilter) -> str:
    """Return a condition that holds for the constant of some statement, which `?` stands for."""
    if prefilter.is_negated:
        return f"not({spell_prefilter(prefilter._replace(is_negated=False))})"
    if prefilter.chain is not None:
        return _spell_chain(prefilter.chain, prefilter.operands)
    if prefilter.holds_of_none:
        values = spell_derivation(prefilter.values, "")
        return f"{values} {prefilter.operator} ?"
    operand, operator = _spell_operands(prefilter.operands), prefilter.operator
    if operator == "equals" or operator not in TEXT_TESTS:
        return f"{operand} {spell_operator(operator)} ?"
    function, _, flags = operator.partition("/")
    return f"{function}({operand}, ?, '{flags}')" if flags else f"{function}({operand}, ?)"


def _spell_chain(chain: Chain, operands: Sequence[Value]) -> str:
    """Return a comparison with data within arithmetic, which `?` stands for."""
    (beside,) = operands
    assert isinstance(beside, FunctionValue)
    *own, other = map(_spell_number, beside.arguments)
    text = "?"
    for i, ((step, is_turned), operand) in enumerate(zip(chain.steps, own, strict=True)):
        inner = f"({text})" if i else text
        text = f"{operand} {step} {inner}" if is_turned else f"{inner} {step} {operand}"
    return f"{text} {chain.operator} {other}"


def _spell_number(operand: Value) -> str:
    match operand:
        case XPathValue(path, expression) if expression == NUMBER_OF_TEXT:
            return spell_value(PathValue(path))
    text = spell_value(operand)
    return f"({text})" if " " in text else text


def spell_calculation(asked: Calculation, operand: Value) -> str:
    """Return a comparison of numbers that are calculated with data."""
    assert isinstance(operand, FunctionValue)
    sides = (_spell_calculated(side, operand.arguments) for side in (asked.left, asked.right))
    compared = f" {asked.operator.removeprefix(NOT)} ".join(sides)
    return f"not({compared})" if asked.operator.startswith(NOT) else compared


def spell_frame(asked: Framed, operand: Value) -> str:
    """Return what XPath 1.0 asks of values and of what is given."""
    assert isinstance(operand, FunctionValue)
    text = asked.expression
    for i, each in reversed([*enumerate(asked.arguments, 1)]):
        if isinstance(each, Parameter):
            own = f"${each.name}"
        else:
            own = _spell_number(operand.arguments[each[0]])
        text = text.replace(f"$v{i}", own)
    return text


def _spell_calculated(side: Side, operands: Sequence[Value]) -> str:
    match side:
        case int():
            return _spell_number(operands[side])
        case float():
            return spell_constant(side)
        case Parameter(name):
            return f"${name}"
        case (function, only):
            return f"{function}{_spell_calculated(only, operands)}"
    function, left, right = side
    sides = (_spell_calculated(each, operands) for each in (left, right))
    return f"({f' {function} '.join(sides)})"


def _spell_operands(operands: Sequence[Value]) -> str:
    spelled = " | ".join(map(spell_value, operands))
    return f"({spelled})" if len(operands) > 1 else spelled


def spell_derivation(derivation: Derived | PathFrom | Values, above: str) -> str:
    """Return what a node without a step stands for, below a node that is called so."""
    if isinstance(derivation, Values):
        if derivation.chain is not None:
            asked = _spell_chain(derivation.chain, derivation.operands)
            return f"{derivation.kind.value}({asked})"
        return f"{derivation.kind.value}({_spell_operands(derivation.operands)})"
    return spell_operand(derivation, {".": above})


def spell_selected(text: str, query: Query) -> str:
    """Return an expression of SELECT, values of rows as the statement has them."""
    names = query.rows.names if query.rows is not None else ()
    return _ROW_VALUE.sub(lambda found: names[int(found[1])], text)
