"""Predicates of operators, read otherwise than they are meant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from support.query_parts import Part, parts, rewritten

from xscl.path import Literal, Step
from xscl.query import (
    Block,
    Disjunct,
    Operator,
    Query,
    Residual,
    ValueJoin,
    Variable,
    VariableValue,
)

__all__ = [
    "HOLDS",
    "common_comparisons",
    "comparisons",
    "has_long_end",
    "has_paths_and_alternatives",
    "residuals_inside",
    "variables_of",
    "with_common_in_last",
    "with_end_in_all",
    "with_one_of_each_path",
    "with_paths_asked_for",
    "without_residuals_inside",
]

HOLDS = Residual(Literal("x"), "=", Literal("x"))


def variables_of(side: Part) -> set[str]:
    return {part.variable for part in parts(side) if isinstance(part, VariableValue)}


def residuals_inside(query: Query) -> set[Residual]:
    """Return the residuals that compare several variables of one of their operator's operands."""
    block_of = {variable.name: variable.block for variable in query.variables}
    found = set()
    for operator in query.operators():
        lefts = (
            list(operator.left.blocks()) if isinstance(operator.left, Operator) else [operator.left]
        )
        for residual in (r for d in operator.disjuncts for r in d.residuals):
            names = variables_of(residual)
            if not names <= block_of.keys():
                continue  # a value of FOLD is of no block
            if len(names) > 1 and len({block_of[name] in lefts for name in names}) == 1:
                found.add(residual)
    return found


def without_residuals_inside(query: Query) -> Query:
    inside = residuals_inside(query)
    changed = rewritten(query, lambda part: HOLDS if part in inside else part) if inside else query
    assert isinstance(changed, Query)
    return changed


def comparisons(disjunct: Disjunct) -> set[ValueJoin | Residual]:
    return {*disjunct.value_joins, *disjunct.residuals}


def common_comparisons(operator: Operator) -> set[ValueJoin | Residual]:
    """Return what all alternatives of a predicate compare: `(a OR b) AND common`."""
    first, *others = map(comparisons, operator.disjuncts)
    return first.intersection(*others) if others else set()


def with_common_in_last(operator: Operator) -> Operator:
    """Read `(a OR b) AND common` as `a OR (b AND common)`."""
    common = common_comparisons(operator)
    *others, last = operator.disjuncts
    return replace(operator, disjuncts=(*(_less(each, common) for each in others), last))


def _less(disjunct: Disjunct, less: set[ValueJoin | Residual]) -> Disjunct:
    return Disjunct(
        tuple(each for each in disjunct.value_joins if each not in less),
        tuple(each for each in disjunct.residuals if each not in less),
    )


def has_long_end(operator: Operator) -> bool:
    """Whether it is `a OR b AND c`, in which nothing is common."""
    is_or = len(operator.disjuncts) > 1 and not common_comparisons(operator)
    return is_or and len(comparisons(operator.disjuncts[-1])) > 1


def with_end_in_all(operator: Operator) -> Operator:
    """Read `a OR b AND c` as `(a OR b) AND c`."""
    *others, last = operator.disjuncts
    joins, residuals = last.value_joins[1:], last.residuals[0 if last.value_joins else 1 :]
    longer = (Disjunct(o.value_joins + joins, o.residuals + residuals) for o in others)
    return replace(operator, disjuncts=(*longer, last))


def _renamed(query: Query, rename: Callable[[str], str]) -> Query:
    """Return a query with other names for its variables, wherever they stand."""

    def change(part: Part) -> Part:
        match part:
            case Step(variable=str(name)):
                return replace(part, variable=rename(name))
            case VariableValue(name):
                return VariableValue(rename(name))
            case Variable(name=name):
                return replace(part, name=rename(name))
            case Block():
                return replace(part, variables=tuple(map(rename, part.variables)))
        return part

    changed = rewritten(query, change)
    assert isinstance(changed, Query)
    return changed


def has_paths_and_alternatives(query: Query) -> bool:
    has_or = any(len(operator.disjuncts) > 1 for operator in query.operators())
    return has_or and any(variable.is_path for variable in query.variables)


def with_paths_asked_for(query: Query) -> Query:
    """Return a query whose paths from variables are variables of the author's: always bound."""
    return _renamed(query, lambda name: name.replace("/", "_"))


def with_one_of_each_path(query: Query) -> Query:
    """Return a query in which a path is the same node wherever it stands."""

    def change(part: Part) -> Part:
        if isinstance(part, VariableValue):
            return VariableValue(part.variable.partition("#")[0])
        return part

    changed = rewritten(query.root, change)
    return replace(query, root=changed)
