"""Conditions of XPath 1.0 with data, as what is asked of values of a node that have none.

`starts-with(concat(title, author), $x)` holds a text of the node against one that is given.
`concat(title, $x) = 'ab'` does not; but it is a frame around `title`, of which the node has a text
whatever `$x`.  So each largest part without parameters is a value, and XPath 1.0 is asked the rest,
of these and of what is given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import Enum

from xscl.opaque import has_parameters, subexpressions
from xscl.path import (
    Comparison,
    Literal,
    Parameter,
    Path,
    PathValue,
    StringTest,
    Value,
    XPathFrame,
    XPathValue,
)
from xscl.syntax import (
    ARITHMETIC,
    COMPARISONS,
    TURNED,
    Binary,
    Expression,
    FunctionCall,
    Junction,
    Negative,
    NumberLiteral,
    ParameterRef,
    PathExpression,
    StepSyntax,
    StringLiteral,
)
from xscl.xpath1 import is_numeric
from xscl.xpath1calls import given_text
from xscl.xpath1numbers import TEXT_OF_NODE, number_of_truth

__all__ = ["PathOf", "TextOf", "framed", "held_against_data"]

TextOf = Callable[[Expression], tuple[str, tuple[tuple[str, str], ...]]]
"""Gives an expression as text of XPath 1.0, and the prefixes that it uses."""

PathOf = Callable[[PathExpression], Path | None]
"""Gives a path as one of the fragment that selects the same nodes; None if there is none."""


class _Type(Enum):
    """What XPath 1.0 makes of an expression; what is given is a text or a number."""

    NODES = "nodes"
    TEXT = "text"
    NUMBER = "number"
    TRUTH = "truth"
    GIVEN = "given"


_TEXTS = frozenset(
    ("string", "concat", "substring", "substring-before", "substring-after", "normalize-space")
) | {"translate", "name", "local-name", "namespace-uri"}
_TRUTHS = frozenset({"boolean", "not", "true", "false", "contains", "starts-with", "lang"})
_OF_CONTEXT = frozenset({"id", "lang"})
"""Functions that read more than their arguments."""


def _type_of(expression: Expression) -> _Type:
    match expression:
        case ParameterRef():
            return _Type.GIVEN
        case StringLiteral():
            return _Type.TEXT
        case Junction():
            return _Type.TRUTH
        case Binary(operator=operator) if operator in COMPARISONS:
            return _Type.TRUTH
        case FunctionCall(name=name) if name in _TRUTHS:
            return _Type.TRUTH
        case FunctionCall(name=name) if name in _TEXTS:
            return _Type.TEXT
    return _Type.NUMBER if is_numeric(expression) else _Type.NODES


def held_against_data(
    expression: Expression, text_of: TextOf, path_of: PathOf
) -> Comparison | StringTest | None:
    """Return a condition that holds what has no parameters against data; None for others.

    A comparison is one of XPath 1.0, which `hoist` says in our terms.
    """
    match expression:
        case FunctionCall(name="boolean", arguments=[inner]) if _type_of(inner) is _Type.TRUTH:
            return held_against_data(inner, text_of, path_of)
        case FunctionCall(name="contains" | "starts-with" as test, arguments=[subject, wanted]):
            word = _data(wanted, text_of, path_of)
            if has_parameters(subject) or word is None:
                return None
            if isinstance(word, Literal) and not isinstance(word.value, str):
                return None
            return StringTest(test, _text(subject, text_of), word)
        case Binary(operator=operator, left=left, right=right) if operator in TURNED:
            data = _data(right, text_of, path_of)
            if data is None:
                left, data, operator = right, _data(left, text_of, path_of), TURNED[operator]
            value = None if has_parameters(left) else _compared(left, text_of, path_of)
            if data is None or value is None:
                return None
            if isinstance(data, XPathFrame) and not (value.is_text and operator in ("=", "!=")):
                return None
            return Comparison(value, operator, data)
    return None


def _data(
    expression: Expression, text_of: TextOf, path_of: PathOf
) -> Literal | Parameter | XPathFrame | None:
    """Return what reads no document: a constant, or a text that is made of parameters or none."""
    match expression:
        case StringLiteral(value=value) | NumberLiteral(value=value):
            return Literal(value)
        case Negative(operand=NumberLiteral(value=value)):
            return Literal(-value)
        case ParameterRef(name=name):
            return Parameter(name)
    if _type_of(expression) is not _Type.TEXT:
        return None
    frame = framed(expression, text_of, path_of)
    if frame is None or not all(isinstance(each, Parameter) for each in frame.arguments):
        return None
    return frame if frame.arguments else Literal(given_text(frame, {}))


def _text(expression: Expression, text_of: TextOf) -> XPathValue:
    """Return the text that XPath 1.0 makes of an expression: of several nodes that of the first."""
    text, namespaces = text_of(expression)
    if _type_of(expression) is not _Type.TEXT:
        text = f"string({text})"
    return XPathValue(Path(()), text, namespaces, is_text=True)


def _compared(expression: Expression, text_of: TextOf, path_of: PathOf) -> XPathValue | None:
    """Return a side of a comparison as a text, a number, or the texts of nodes."""
    match _type_of(expression):
        case _Type.TEXT:
            return _text(expression, text_of)
        case _Type.NUMBER:
            return XPathValue(Path(()), *text_of(expression))
        case _Type.NODES if isinstance(expression, PathExpression):
            path = path_of(expression)
            return None if path is None else XPathValue(path, TEXT_OF_NODE, is_text=True)
    return None


def framed(expression: Expression, text_of: TextOf, path_of: PathOf) -> XPathFrame | None:
    """Return an expression as a frame around what has no parameters; None where they are deeper."""
    frame = _Frame(text_of, path_of)
    try:
        text, _ = text_of(frame.around(expression, _Type.TRUTH))
    except _TooDeepError:
        return None
    return XPathFrame(text, tuple(frame.arguments))


class _TooDeepError(Exception):
    """A parameter stands within a path, or nodes are compared that have no path of ours."""


class _Frame:
    """What is gathered while an expression is looked through."""

    def __init__(self, text_of: TextOf, path_of: PathOf) -> None:
        self._text_of, self._path_of = text_of, path_of
        self.arguments: list[Value] = []

    def around(self, expression: Expression, wanted: _Type) -> Expression:
        """Return an expression with variables for all that it is made of, nodes as is wanted."""
        if not has_parameters(expression):
            return expression if _is_constant(expression) else self._value(expression, wanted)
        match expression:
            case ParameterRef(name=name):
                return self._variable(expression, Parameter(name))
            case FunctionCall(name=name, arguments=arguments) if name not in _OF_CONTEXT:
                own = _Type.TRUTH if name in ("boolean", "not") else _Type.TEXT
                return replace(expression, arguments=[self.around(each, own) for each in arguments])
            case Junction(terms=terms):
                own = _Type.TRUTH
                return replace(expression, terms=[self.around(each, own) for each in terms])
            case Negative(operand=operand):
                return replace(expression, operand=self.around(operand, _Type.TEXT))
            case Binary(operator=operator, left=left, right=right) if operator in ARITHMETIC:
                sides = self.around(left, _Type.TEXT), self.around(right, _Type.TEXT)
                return replace(expression, left=sides[0], right=sides[1])
            case Binary(operator=operator, left=left, right=right) if operator in COMPARISONS:
                # Nodes are compared with a truth by being there, else each by its value.
                is_of_truths = _Type.TRUTH in (_type_of(left), _type_of(right))
                own = _Type.TRUTH if is_of_truths else _Type.NODES
                return replace(
                    expression, left=self.around(left, own), right=self.around(right, own)
                )
        raise _TooDeepError

    def _value(self, expression: Expression, wanted: _Type) -> Expression:
        """Return a variable for what has no parameters; a truth is whether a number is one."""
        found = _type_of(expression)
        if found is _Type.NODES and wanted is _Type.NODES:
            path = self._path_of(expression) if isinstance(expression, PathExpression) else None
            if path is None:
                raise _TooDeepError
            return self._variable(expression, PathValue(path))
        text, namespaces = self._text_of(expression)
        if found is _Type.NUMBER:
            return self._variable(expression, XPathValue(Path(()), text, namespaces))
        if found is _Type.TEXT or (found, wanted) == (_Type.NODES, _Type.TEXT):
            return self._variable(expression, _text(expression, self._text_of))
        truth = XPathValue(Path(()), number_of_truth(text), namespaces)
        one = NumberLiteral(1.0, expression.span)
        return Binary("=", self._variable(expression, truth), one, expression.span)

    def _variable(self, expression: Expression, value: Value) -> ParameterRef:
        if value not in self.arguments:
            self.arguments.append(value)
        return ParameterRef(f"v{self.arguments.index(value) + 1}", expression.span)


def _is_constant(expression: Expression) -> bool:
    """Return whether an expression is the same at every node."""
    return not any(
        isinstance(each, (PathExpression, StepSyntax))
        or (isinstance(each, FunctionCall) and _reads_context(each))
        for each in subexpressions(expression)
    )


def _reads_context(call: FunctionCall) -> bool:
    return call.name in _OF_CONTEXT or not (call.arguments or call.name in ("true", "false"))
