"""XPath 1.0, in which conditions outside the fragment are evaluated: its types and its calls."""

from __future__ import annotations

from xscl.report import Report
from xscl.signatures import (
    STRING_TESTS,
    VALUE_FUNCTIONS,
    XPATH1_FUNCTIONS,
    check_arity,
    unknown_function,
)
from xscl.syntax import (
    ARITHMETIC,
    Binary,
    Expression,
    Filter,
    FunctionCall,
    Negative,
    NumberLiteral,
    ParameterRef,
    PathExpression,
    StepSyntax,
)

__all__ = ["check_call", "check_types", "is_numeric"]

_NUMERIC = frozenset(
    {"last", "position", "count", "string-length", "number", "sum", "floor", "ceiling", "round"}
)


def is_numeric(expression: Expression) -> bool:
    """Whether XPath 1.0 gives the expression the type number; a parameter may be one."""
    match expression:
        case NumberLiteral() | Negative() | ParameterRef():
            return True
        case Binary(operator=operator):
            return operator in ARITHMETIC
        case FunctionCall(name=name):
            return name in _NUMERIC
    return False


_OF_NODES = frozenset({"count", "sum", "name", "local-name", "namespace-uri"})


def _has_nodes(expression: Expression) -> bool:
    """Whether XPath 1.0 gives the expression the type node-set; a parameter never is one."""
    match expression:
        case PathExpression() | Filter() | Binary(operator="|") | FunctionCall(name="id"):
            return True
    return False


def check_call(call: FunctionCall, report: Report) -> None:
    """Report a function that XPath 1.0 does not have, or has with other arguments."""
    if call.name in XPATH1_FUNCTIONS:
        check_arity(call, report)
    elif call.name in STRING_TESTS or call.name in VALUE_FUNCTIONS:
        report.error(
            "XS305",
            call.span,
            f"`{call.name}` cannot stand here",
            "XPath 1.0 lacks it: use it only as a path compared with a literal, as in"
            " `lower-case(author) = 'ann'`, or `ends-with(link, '.pdf')`",
        )
    else:
        unknown_function(call, XPATH1_FUNCTIONS.keys() | VALUE_FUNCTIONS, report)


def check_types(expression: Expression | StepSyntax, report: Report) -> None:
    """Report what stands where only nodes can: all else converts, but nothing to nodes."""
    wanted: list[Expression] = []
    match expression:
        case FunctionCall(name=name, arguments=arguments) if name in _OF_NODES:
            wanted = arguments
        case Binary(operator="|", left=left, right=right):
            wanted = [left, right]
        case Filter(primary=primary):
            wanted = [primary]
        case PathExpression(start=start) if start is not None:
            wanted = [start]
    for each in wanted:
        if not _has_nodes(each):
            report.error("XS311", each.span, "this is no node", "a path can stand here")
