"""Paths from variables that need not be there: of an operand, behind UNLESS and NOT.

The normal form binds a path from a variable in the variable's block, so that a document without
it has no binding.  Here such a variable becomes the optional path that it stands for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from xscl.path import Exists, Path, binding_paths
from xscl.query import (
    Call,
    Conditional,
    Disjunct,
    Operand,
    PathFrom,
    Query,
    Residual,
    ValueJoin,
    VariableValue,
)
from xscl.rewriting import strip_variables

__all__ = ["fresh_paths", "with_optional"]


def fresh_paths(query: Query) -> dict[str, PathFrom]:
    """Return what each variable that stands for a path in a predicate is, by its name."""
    names = {variable.name for variable in query.variables if variable.is_path}
    found: dict[str, PathFrom] = {}

    def look(path: Path) -> None:
        for step in path.steps:
            for inner in (each for p in step.predicates for each in binding_paths(p)):
                last = inner.steps[-1].variable if inner.steps else None
                if last in names and step.variable is not None:
                    stripped = strip_variables(Exists(inner))
                    assert isinstance(stripped, Exists)
                    found[last] = PathFrom(step.variable, stripped.path)
                else:
                    look(inner)

    for block in query.blocks if names else ():
        look(block.path)
    return found


def with_optional(
    disjunct: Disjunct, fresh: Mapping[str, PathFrom], own: Collection[str]
) -> Disjunct:
    """Return a conjunction in which paths are optional, but for variables in `own`."""

    def of(operand: Operand) -> Operand:
        match operand:
            case VariableValue(variable) if variable in fresh and variable not in own:
                return fresh[variable]
            case Call(function, arguments):
                return Call(function, tuple(map(of, arguments)))
            case Conditional(condition, then, otherwise):
                return Conditional(tuple(map(of_all, condition)), of(then), of(otherwise))
        return operand

    def of_all(each: Disjunct) -> Disjunct:
        return replace(
            each,
            value_joins=tuple(ValueJoin(of(j.left), of(j.right)) for j in each.value_joins),  # type: ignore[arg-type]
            residuals=tuple(Residual(of(r.left), r.operator, of(r.right)) for r in each.residuals),
            similarity_joins=tuple(
                replace(join, left=of(join.left), right=of(join.right))  # type: ignore[arg-type]
                for join in each.similarity_joins
            ),
            tests=tuple(
                replace(test, arguments=tuple(map(of, test.arguments))) for test in each.tests
            ),
        )

    return of_all(disjunct)
