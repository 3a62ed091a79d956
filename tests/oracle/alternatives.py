"""What a block asks for under one alternative of the predicates: section 4, `OR`.

The normal form appends every path from a variable (`x/author`) to the step that binds the
variable.  A path that only another alternative compares asks nothing of a document.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from xscl.path import And, Call, Comparison, Condition, Exists, Path, PathValue, StringTest, Value

__all__ = ["is_fresh", "without"]


def is_fresh(variable: str) -> bool:
    """Return whether a variable is a path from a variable: authors' names have no slash."""
    return "/" in variable


def without(path: Path, variables: Set[str]) -> Path:
    """Return the path without the predicates that bind these fresh variables."""
    steps = tuple(
        replace(
            step,
            predicates=tuple(
                _inside(predicate, variables)
                for predicate in step.predicates
                if not _binds(predicate, variables)
            ),
        )
        for step in path.steps
    )
    return Path(steps)


def _binds(predicate: Condition, variables: Set[str]) -> bool:
    match predicate:
        case Exists(Path([*_, last])):
            return last.variable in variables
    return False


def _inside(condition: Condition, variables: Set[str]) -> Condition:
    match condition:
        case Exists(path):
            return Exists(without(path, variables))
        case And(conditions):
            return And(tuple(_inside(each, variables) for each in conditions))
        case Comparison(left=value) as comparison:
            return replace(comparison, left=_inside_value(value, variables))
        case StringTest(value=value) as test:
            return replace(test, value=_inside_value(value, variables))
    return condition


def _inside_value(value: Value, variables: Set[str]) -> Value:
    match value:
        case PathValue(path):
            return PathValue(without(path, variables))
        case Call(arguments=arguments) as call:
            return replace(call, arguments=tuple(_inside_value(a, variables) for a in arguments))
    return value
