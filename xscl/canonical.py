"""The canonical text of expressions, paths and clauses: one spelling for each syntax.

`xscl.layout` sets these into lines and puts the comments back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xscl.durations import render_duration
from xscl.syntax import (
    COMPARISONS,
    Binary,
    DurationSyntax,
    Expression,
    Filter,
    FunctionCall,
    IfExpression,
    Junction,
    LengthLiteral,
    Negative,
    NumberLiteral,
    ParameterRef,
    PathExpression,
    RowSyntax,
    StepSyntax,
    StringLiteral,
    TestSyntax,
)

__all__ = [
    "bound",
    "render_binding",
    "render_expression",
    "render_number",
    "render_predicate",
    "render_row",
    "render_step",
    "render_steps",
    "render_string",
    "render_window",
]

_LEVELS = {"=": 3, "!=": 3, "<": 4, "<=": 4, ">": 4, ">=": 4, "+": 5, "-": 5}
_LEVELS |= {"*": 6, "div": 6, "mod": 6, "|": 8}
_SUM, _UNARY, _PATH = 5, 7, 9


def render_string(value: str) -> str:
    r"""Return a string literal, in single quotes unless the value has some and no double ones.

    >>> render_string("Ann's")
    '"Ann\'s"'
    """
    if "'" in value and '"' not in value:
        return f'"{value}"'
    return "'" + value.replace("'", "''") + "'"


def render_number(value: float) -> str:
    """Return a number, whole ones without a fraction."""
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return repr(value).replace("e+", "e")


def render_expression(expression: Expression, level: int = 0) -> str:
    """Return an expression, in parentheses where its operator binds more loosely than `level`."""
    render = _RENDERERS[type(expression)]
    return render(expression, level)


def render_predicate(expression: Expression, level: int = 0) -> str:
    """Return an operator's predicate: AND and OR are its keywords, in capitals."""
    if isinstance(expression, Binary) and expression.operator in COMPARISONS:
        left, right = (render_expression(x, _SUM) for x in (expression.left, expression.right))
        return f"{left} {expression.operator} {right}"
    if not isinstance(expression, Junction):
        return render_expression(expression, level)
    own = 1 if expression.word == "or" else 2
    joined = f" {expression.word.upper()} ".join(
        render_predicate(term, own + 1) for term in expression.terms
    )
    return f"({joined})" if own < level else joined


def _string(expression: StringLiteral, level: int) -> str:
    return render_string(expression.value)


def _number(expression: NumberLiteral, level: int) -> str:
    text = render_number(expression.value)
    return f"({text})" if text[0] == "-" and level > _UNARY else text


def _parameter(expression: ParameterRef, level: int) -> str:
    return f"${expression.name}"


def _length(expression: LengthLiteral, level: int) -> str:
    return render_duration(expression.length_us)


def _call(expression: FunctionCall, level: int) -> str:
    distinct = "distinct " if expression.is_distinct else ""
    arguments = ", ".join(render_expression(each) for each in expression.arguments)
    return f"{expression.name}({distinct}{arguments})"


def _if(expression: IfExpression, level: int) -> str:
    then, otherwise = (render_expression(x, _SUM) for x in (expression.then, expression.otherwise))
    text = f"if ({render_predicate(expression.condition)}) then {then} else {otherwise}"
    return f"({text})" if level >= _SUM else text  # its last branch takes what follows


def _row(expression: RowSyntax, level: int) -> str:
    return render_row(expression)


def render_row(row: RowSyntax) -> str:
    """Return a row or a cell of a table."""
    text = f"{row.table}[{render_expression(row.key)}]"
    return text if row.column is None else f"{text}.{row.column}"


def _junction(expression: Junction, level: int) -> str:
    own = 1 if expression.word == "or" else 2
    joined = f" {expression.word} ".join(render_expression(t, own + 1) for t in expression.terms)
    return f"({joined})" if own < level else joined


def _binary(expression: Binary, level: int) -> str:
    own = _LEVELS[expression.operator]
    left = render_expression(expression.left, own)
    right = render_expression(expression.right, own + 1)
    text = f"{left} {expression.operator} {right}"
    return f"({text})" if own < level else text


def _negative(expression: Negative, level: int) -> str:
    text = f"-{render_expression(expression.operand, _UNARY + 1)}"
    return f"({text})" if level > _UNARY else text


def _filter(expression: Filter, level: int) -> str:
    return render_expression(expression.primary, _PATH + 1) + "".join(
        f"[{render_expression(each)}]" for each in expression.predicates
    )


def _path(expression: PathExpression, level: int) -> str:
    steps = expression.steps
    if expression.start is not None:
        return render_expression(expression.start, _PATH + 1) + render_steps(steps)
    if expression.is_absolute:
        return render_steps(steps) if steps else _parenthesised("/", level)
    while len(steps) > 1 and _is_plain_self(steps[0]) and not steps[1].is_deep:
        steps = steps[1:]
    return _parenthesised(render_step(steps[0]) + render_steps(steps[1:]), level)


def _parenthesised(text: str, level: int) -> str:
    return f"({text})" if level > _PATH else text


def _is_plain_self(step: StepSyntax) -> bool:
    return (
        step.axis == "self"
        and step.test.kind == "node"
        and step.variable is None
        and not step.predicates
    )


def render_steps(steps: Sequence[StepSyntax]) -> str:
    """Return steps, each with the slash before it."""
    return "".join(("//" if step.is_deep else "/") + render_step(step) for step in steps)


def render_binding(step: StepSyntax) -> str:
    """Return a step's axis, test and variable."""
    test = step.test
    is_plain = step.axis == "child" and test.kind == "name" and test.prefix is None
    text = test.name if is_plain else _axis_and_test(step.axis, test)
    return text if step.variable is None else bound(text, step.variable)


def bound(text: str, variable: str) -> str:
    """Return a text with its variable; a dash at its end must not run into the arrow."""
    return f"{text}{' ' if text[-1] == '-' else ''}->{variable}"


def render_step(step: StepSyntax) -> str:
    """Return a step without the slash before it; its variable stands before its predicates."""
    text = render_binding(step)
    for each in step.predicates:
        text += f"[{render_expression(each)}]"
    return text


def _axis_and_test(axis: str, test: TestSyntax) -> str:
    if test.kind == "node" and axis in ("self", "parent"):
        return "." if axis == "self" else ".."
    text = _render_test(test)
    if axis == "child":
        return text
    return f"@{text}" if axis == "attribute" else f"{axis}::{text}"


def _render_test(test: TestSyntax) -> str:
    if test.kind == "name":
        return test.name if test.prefix is None else f"{test.prefix}:{test.name}"
    return f"{test.kind}({render_string(test.name) if test.name else ''})"


def render_window(window: DurationSyntax) -> str:
    """Return a window's length or its parameter."""
    if window.parameter is not None:
        return f"${window.parameter}"
    assert window.length_us is not None
    return render_duration(window.length_us)


_RENDERERS: dict[type, Callable[..., str]] = {
    StringLiteral: _string,
    NumberLiteral: _number,
    ParameterRef: _parameter,
    LengthLiteral: _length,
    FunctionCall: _call,
    IfExpression: _if,
    RowSyntax: _row,
    Junction: _junction,
    Binary: _binary,
    Negative: _negative,
    Filter: _filter,
    PathExpression: _path,
}
