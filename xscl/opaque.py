"""Conditions outside the fragment, as the text of XPath 1.0 that evaluates them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from xscl.canonical import render_expression, render_number
from xscl.lexer import NAME
from xscl.namespaces import Namespaces
from xscl.path import Opaque, Parameter, Span
from xscl.syntax import (
    Binary,
    Expression,
    Filter,
    FunctionCall,
    Junction,
    Negative,
    ParameterRef,
    PathExpression,
    StepSyntax,
    StringLiteral,
    TestSyntax,
)
from xscl.xpath1 import is_numeric

__all__ = [
    "has_parameters",
    "in_xml",
    "in_xpath1",
    "make_opaque",
    "positions_as_variables",
    "put_positions",
    "put_values",
    "subexpressions",
]


def subexpressions(
    expression: Expression, into_predicates: bool = True
) -> Iterator[Expression | StepSyntax]:
    """Yield the expression and all below it, steps too; those of predicates where asked."""
    yield expression
    match expression:
        case FunctionCall(arguments=children) | Junction(terms=children):
            below = list(children)
        case Binary(left=left, right=right):
            below = [left, right]
        case Negative(operand=operand):
            below = [operand]
        case Filter(primary=primary, predicates=predicates):
            below = [primary, *(predicates if into_predicates else ())]
        case PathExpression(steps=steps, start=start):
            below = [] if start is None else [start]
            for step in steps:
                yield step
                below += step.predicates if into_predicates else ()
        case _:
            return
    for each in below:
        yield from subexpressions(each, into_predicates)


def has_parameters(expression: Expression) -> bool:
    """Return whether a parameter stands anywhere in an expression."""
    return any(isinstance(each, ParameterRef) for each in subexpressions(expression))


def make_opaque(expression: Expression, namespaces: Namespaces) -> Opaque:
    """Return a condition as XPath 1.0, true or false for each context node."""
    used: dict[str, str] = {}
    text = render_expression(_rewrite(expression, namespaces, used))
    if is_numeric(expression):  # a bare number would be a position
        text = f"boolean({text})"
    named = {each.name for each in subexpressions(expression) if isinstance(each, ParameterRef)}
    return Opaque(
        text,
        tuple(sorted(used.items())),
        parameters=tuple(map(Parameter, sorted(named))),
    )


def in_xpath1(
    expression: Expression, namespaces: Namespaces
) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return an expression as the text of XPath 1.0 that evaluates it, and its prefixes."""
    used: dict[str, str] = {}
    return render_expression(_rewrite(expression, namespaces, used)), tuple(sorted(used.items()))


_IN_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NOWHERE = "\U0010fffd"


def in_xml(text: str) -> str:
    """Return a text with one character, for private use, for each that XML has no way to write.

    XPath 1.0 cannot be given those, and no text of a document has them.
    """
    return _IN_NO_XML.sub(_NOWHERE, text)


_STRING_OR_PARAMETER = re.compile(rf"'[^']*'|\"[^\"]*\"|\$(?P<name>{NAME}'*)")


def put_values(expression: str, values: Mapping[str, str | float | int]) -> str:
    """Return the text of an opaque condition with its parameters' values in their places.

    >>> put_values("count(a) > $n and b != '$n'", {"n": 2.0})
    "count(a) > 2 and b != '$n'"
    """

    def literal(found: re.Match[str]) -> str:
        if found["name"] is None or found["name"] not in values:
            return found[0]
        value = values[found["name"]]
        if isinstance(value, str):
            value = in_xml(value)
        if not isinstance(value, str):
            return f"({render_number(float(value))})" if value < 0 else render_number(float(value))
        node = StringLiteral(value, Span(0, 0))
        return render_expression(_string(node) if "'" in value and '"' in value else node)

    return _STRING_OR_PARAMETER.sub(literal, expression)


_STRING_OR_POSITION = re.compile(r"'[^']*'|\"[^\"]*\"|[][]|(?<![\w.-])(?P<name>position|last)\(\)")


def positions_as_variables(expression: str) -> str:
    """Return an opaque condition with `$position` and `$last` for those of its context node.

    Parameters have their values before, so that nothing else is called this.

    >>> positions_as_variables("position() mod 2 = count(a[position() < last()])")
    '$position mod 2 = count(a[position() < last()])'
    """
    return put_positions(expression, "$position", "$last")


def put_positions(expression: str, position: str, last: str) -> str:
    """Return an expression with others for `position()` and `last()` of its context node."""
    depth = 0

    def own(found: re.Match[str]) -> str:
        nonlocal depth
        depth += {"[": 1, "]": -1}.get(found[0], 0)
        if depth or not found["name"]:
            return found[0]
        return position if found["name"] == "position" else last

    return _STRING_OR_POSITION.sub(own, expression)


def _rewrite(expression: Expression, names: Namespaces, used: dict[str, str]) -> Expression:
    """Return the expression with what XPath 1.0 lacks spelled out."""

    def inner(each: Expression) -> Expression:
        return _rewrite(each, names, used)

    match expression:
        case StringLiteral(value=value):
            known = replace(expression, value=in_xml(value))
            return _string(known) if "'" in value and '"' in value else known
        case FunctionCall(arguments=arguments):
            return replace(expression, arguments=[inner(a) for a in arguments])
        case Junction(terms=terms):
            return replace(expression, terms=[inner(term) for term in terms])
        case Binary(left=left, right=right):
            return replace(expression, left=inner(left), right=inner(right))
        case Negative(operand=operand):
            return replace(expression, operand=inner(operand))
        case Filter(primary=primary, predicates=predicates):
            return replace(
                expression, primary=inner(primary), predicates=[inner(p) for p in predicates]
            )
        case PathExpression(steps=steps, start=start):
            return replace(
                expression,
                steps=[_rewrite_step(step, names, used) for step in steps],
                start=None if start is None else inner(start),
            )
    return expression


def _string(literal: StringLiteral) -> FunctionCall:
    """Return a string with both kinds of quotes as a concatenation: 1.0 has no escape."""
    span = literal.span
    pieces: list[Expression] = []
    for index, piece in enumerate(literal.value.split("'")):
        if index:
            pieces.append(StringLiteral("'", span))
        pieces.append(StringLiteral(piece, span))
    return FunctionCall("concat", pieces, span, span)


def _rewrite_step(step: StepSyntax, names: Namespaces, used: dict[str, str]) -> StepSyntax:
    predicates = [_rewrite(each, names, used) for each in step.predicates]
    test = step.test
    if test.kind == "name":
        if test.prefix == "*":
            predicates.insert(0, _local_name_is(test))
            test = replace(test, prefix=None, name="*")
        elif test.prefix is not None:
            used[test.prefix] = names.uri(test.prefix, test.span)
        elif names.default and step.axis != "attribute" and test.name != "*":
            prefix = _default_prefix(names)
            used[prefix] = names.default
            test = replace(test, prefix=prefix)
    elif test.kind == "node" and predicates:
        # `.[a]` is `self::node()[a]`: XPath 1.0 has no predicates behind the dots.
        test = replace(test, kind="name", name="node()")
    return replace(step, test=test, predicates=predicates, variable=None)


def _default_prefix(names: Namespaces) -> str:
    """Return a prefix for the default element namespace, which XPath 1.0 does not have."""
    prefix = "default"
    while prefix in names.declared:
        prefix += "_"
    return prefix


def _local_name_is(test: TestSyntax) -> Binary:
    span = test.span
    call = FunctionCall("local-name", [], span, span)
    return Binary("=", call, StringLiteral(test.name, span), span)
