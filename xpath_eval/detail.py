"""What the steps and filters of a definition look at, beside the names of elements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from xpath_eval.structure import Detail
from xscl.comparison import PathFrom
from xscl.path import (
    And,
    Axis,
    Comparison,
    Condition,
    Exists,
    NodeTest,
    Not,
    Or,
    Path,
    StringTest,
    value_paths,
)
from xscl.pattern import PatternNode, Values

__all__ = ["detail_of"]


def detail_of(node: PatternNode) -> Detail:
    """Return how much of a structure a node's step, filters and values can tell apart."""
    asked = [*node.filters]
    operands = [each for prefilter in node.prefilters for each in prefilter.operands]
    if isinstance(node.derivation, PathFrom):
        asked.append(Exists(node.derivation.path))
    elif isinstance(node.derivation, Values):
        operands += node.derivation.operands
    asked += [Exists(path) for operand in operands for path in value_paths(operand)]
    return max(
        _step_detail(node.axis, node.test, node.is_deep),
        max(map(_condition_detail, asked), default=Detail.NAMES),
    )


def _step_detail(axis: Axis, test: NodeTest, is_deep: bool) -> Detail:
    if test.is_text or (axis is Axis.SELF and is_deep):
        return Detail.TEXTS
    return Detail.ATTRIBUTES if axis is Axis.ATTRIBUTE else Detail.NAMES


def _condition_detail(condition: Condition) -> Detail:
    details: Iterable[Detail] = ()
    match condition:
        case Exists(path):
            details = _path_details(path)
        case Comparison(left=value) | StringTest(value=value):
            details = (detail for path in value_paths(value) for detail in _path_details(path))
        case And(conditions) | Or(conditions):
            details = map(_condition_detail, conditions)
        case Not(inner):
            return _condition_detail(inner)
    return max(details, default=Detail.NAMES)


def _path_details(path: Path) -> Iterator[Detail]:
    for step in path.steps:
        yield _step_detail(step.axis, step.test, step.is_deep)
        yield from map(_condition_detail, step.predicates)
