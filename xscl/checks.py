"""Warnings about queries that are right but hardly meant: their cost, or that nothing fits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from xscl.functions import compare, to_double
from xscl.path import (
    And,
    Axis,
    Comparison,
    Condition,
    Exists,
    Literal,
    Parameter,
    Path,
    PathValue,
    Position,
    Span,
    Step,
    StringTest,
)
from xscl.query import (
    Call,
    Disjunct,
    Node,
    Operand,
    Operator,
    OperatorKind,
    PathFrom,
    Query,
    Residual,
    VariableValue,
)
from xscl.report import Report
from xscl.sequence import Absence, From, Repetition, blocks_below, is_chain, nodes_below
from xscl.textjoins import text_join

__all__ = ["check_query"]

_Bound = tuple[str, Literal]


def check_query(query: Query, span: Span, report: Report) -> None:
    """Report warnings about a query in normal form; `span` is its statement's."""
    nodes = list(nodes_below(query.root))
    is_keyed = any(isinstance(node, From) and node.keys for node in nodes)
    repeated = {b for node in nodes if isinstance(node, Repetition) for b in blocks_below(node)}
    of_elements = [v.name for v in query.variables if v.block in repeated] if repeated else []
    several = frozenset(of_elements)
    # Under MATCH NEXT, PARTITION and STRICT a run looks for one document: it tries no pairs.
    chains = [each for node in nodes if is_chain(node) for each in nodes_below(node)]
    decided = {id(each) for each in chains if isinstance(each, Operator)}
    decided_pairs = [each.operand for each in nodes if isinstance(each, Absence)]
    for operator in query.operators():
        is_next = operator.kind is OperatorKind.NEXT or id(operator) in decided
        if not (is_keyed or is_next):
            _check_cost(query, operator, report, operator.span or span, decided_pairs)
        _check_alternatives(operator, several, report, operator.span or span)
    for block in query.blocks:
        _check_path(block.path, report, block.span or span)


def _check_cost(
    query: Query, operator: Operator, report: Report, span: Span, decided: Sequence[Node]
) -> None:
    """Warn where pairs are not looked up: those that are not `decided` are by texts of tuples."""
    has_runs = any(isinstance(each, Repetition) for each in (operator.left, operator.right))
    makes_texts = not (has_runs or any(operator is each for each in decided))
    block_of = {variable.name: variable.block for variable in query.variables}
    sides = {*blocks_below(operator.left)}, {*blocks_below(operator.right)}

    def is_looked_up(asked: Disjunct) -> bool:
        if asked.value_joins or asked.similarity_joins:
            return True
        compared = asked.residuals if makes_texts else ()
        return any(text_join(each, block_of, sides) is not None for each in compared)

    if not all(map(is_looked_up, operator.disjuncts)):
        report.warning(
            "XS501",
            span,
            "nothing of one side must equal something of the other: each pair of documents within"
            " the window is tried",
            "add an equality, as in `{x2 = x5, 6 h}`, or keep the window short",
        )


def _check_alternatives(
    operator: Operator, several: frozenset[str], report: Report, span: Span
) -> None:
    """Warn of what cannot hold; `several` are variables that have a node for each element."""
    dead = [each for each in operator.disjuncts if _never_holds(each, several)]
    if dead:
        whole = len(dead) == len(operator.disjuncts)
        report.warning(
            "XS502",
            span,
            "this predicate can never hold" if whole else "an alternative of it can never hold",
            "a comparison in it is false, or two of them contradict each other",
        )


def _never_holds(disjunct: Disjunct, several: frozenset[str]) -> bool:
    by_operand: dict[Operand, list[_Bound]] = {}
    for residual in disjunct.residuals:
        is_one = not _has_several_values(residual.left, several)
        if is_one and _is_false(residual):
            return True
        if isinstance(residual.right, Literal) and is_one:
            by_operand.setdefault(residual.left, []).append((residual.operator, residual.right))
    return any(_contradict(bounds) for bounds in by_operand.values())


def _has_several_values(operand: Operand, several: frozenset[str]) -> bool:
    if isinstance(operand, VariableValue):
        return operand.variable in several
    if not isinstance(operand, Call):
        return isinstance(operand, PathFrom)
    return operand.function == "tokenize" or any(
        _has_several_values(each, several) for each in operand.arguments
    )


def _is_false(residual: Residual) -> bool:
    """Whether a comparison of two literals, or of a value with itself, is false."""
    left, operator, right = residual.left, residual.operator, residual.right
    if isinstance(left, Literal) and isinstance(right, Literal):
        return not compare([left.value], operator, [right.value])
    return left == right and operator in ("!=", "<", ">") and not hasattr(left, "arguments")


def _contradict(bounds: Iterable[_Bound]) -> bool:
    """Whether no single value can pass all of the comparisons."""
    bounds = list(bounds)
    equals = [literal for operator, literal in bounds if operator == "="]
    for candidate in equals:
        if not all(_passes(candidate, operator, literal) for operator, literal in bounds):
            return True
    low = max((_number(b) for o, b in bounds if o in (">", ">=")), default=-math.inf)
    high = min((_number(b) for o, b in bounds if o in ("<", "<=")), default=math.inf)
    is_open = any(o in ("<", ">") and _number(b) == low == high for o, b in bounds)
    return low > high or is_open


def _passes(candidate: Literal, operator: str, literal: Literal) -> bool:
    if isinstance(candidate.value, float) and isinstance(literal.value, str) and operator == "=":
        return True  # `x = 1 AND x = '1.0'` holds for the text 1.0
    if isinstance(candidate.value, float) and isinstance(literal.value, str):
        return operator == "!=" or compare([candidate.value], operator, [literal.value])
    return compare([candidate.value], operator, [literal.value])


def _number(literal: Literal) -> float:
    return to_double(literal.value)


def _check_path(path: Path, report: Report, span: Span) -> None:
    before: Step | None = None
    for step in path.steps:
        if before is not None and step.axis is not Axis.SELF and _is_leaf(before):
            report.warning(
                "XS504",
                step.span or span,
                "this step never selects anything: attributes and texts have nothing below them",
            )
        before = step
        for predicate in step.predicates:
            _check_condition(predicate, _is_leaf(step), report, step.span or span)


def _is_leaf(step: Step) -> bool:
    return step.axis is Axis.ATTRIBUTE or step.test.is_text


def _check_condition(condition: Condition, of_leaf: bool, report: Report, span: Span) -> None:
    if isinstance(condition, Position) and _is_nowhere(condition):
        report.warning(
            "XS505", span, "no position is like that: positions are whole numbers from 1"
        )
    if isinstance(condition, And):
        for each in condition.conditions:
            _check_condition(each, of_leaf, report, span)
        if _contradict(_own_value(condition.conditions)):
            report.warning("XS502", span, "this predicate can never hold")
    for path in _paths(condition):
        if of_leaf and path.steps and path.steps[0].axis is not Axis.SELF:
            report.warning(
                "XS504",
                path.steps[0].span or span,
                "this path never selects anything: attributes and texts have nothing below them",
            )
        _check_path(path, report, span)


def _is_nowhere(position: Position) -> bool:
    number = position.number
    if position.operator != "=" or isinstance(number, Parameter):
        return False
    return number != int(number) or (number < 0 if position.of_last else number < 1)


def _own_value(conditions: Iterable[Condition]) -> Iterator[_Bound]:
    """Yield comparisons of the context node's own value: there is one, so they can contradict."""
    own = PathValue(Path(()))
    for each in conditions:
        if isinstance(each, Comparison) and each.left == own and isinstance(each.right, Literal):
            yield each.operator, each.right


def _paths(condition: Condition) -> Iterator[Path]:
    match condition:
        case Exists(path):
            yield path
        case Comparison(left=PathValue(path)) | StringTest(value=PathValue(path)):
            yield path
