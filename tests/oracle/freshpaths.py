"""Paths from variables, `x/author`, in the predicates of operators: sections 4 and 9.

The normal form appends each of them to a step that binds its variable.  The oracle takes them out
again: a block chooses by its own predicates, positions among them, and only then is each path
that an alternative compares asked of the node that its variable is bound to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

from oracle.paths import Assignment, select
from oracle.values import Atom
from xscl.path import (
    And,
    Comparison,
    Condition,
    Exists,
    FunctionValue,
    Path,
    PathValue,
    StringTest,
    Value,
)

__all__ = ["FreshPath", "fresh_paths", "with_fresh", "without_fresh"]


@dataclass(frozen=True, slots=True)
class FreshPath:
    """A path from the variable `base`, whose nodes `variable` is bound to."""

    base: str
    variable: str
    path: Path


def fresh_paths(path: Path) -> Iterator[FreshPath]:
    """Yield the paths from variables of a block's path."""
    for step in path.steps:
        for predicate in step.predicates:
            variable = _fresh_variable(predicate)
            if variable is not None:
                assert step.variable is not None
                assert isinstance(predicate, Exists)
                yield FreshPath(step.variable, variable, predicate.path)
            else:
                for inner in _paths(predicate):
                    yield from fresh_paths(inner)


def without_fresh(path: Path) -> Path:
    """Return the path that the author wrote: without the paths from variables."""
    steps = tuple(
        replace(
            step,
            predicates=tuple(
                _inside(predicate)
                for predicate in step.predicates
                if _fresh_variable(predicate) is None
            ),
        )
        for step in path.steps
    )
    return Path(steps)


def with_fresh(
    assignment: Assignment, paths: Iterable[FreshPath], parameters: Mapping[str, Atom]
) -> Iterator[Assignment]:
    """Yield an assignment with every choice of a node for each path."""
    nodes = dict(assignment)
    choices = [
        [frozenset([(each.variable, node)]) for node, _ in select(each.path, start, parameters)]
        for each in paths
        for start in [nodes[each.base]]
    ]
    for choice in product(*choices):
        yield assignment.union(*choice)


def _fresh_variable(predicate: Condition) -> str | None:
    """Return the variable of a path from a variable: authors' names have no slash."""
    match predicate:
        case Exists(Path([*_, last])) if last.variable is not None and "/" in last.variable:
            return last.variable
    return None


def _paths(condition: Condition) -> Iterator[Path]:
    match condition:
        case Exists(path):
            yield path
        case And(conditions):
            for each in conditions:
                yield from _paths(each)
        case Comparison(left=value) | StringTest(value=value):
            yield from _value_paths(value)


def _value_paths(value: Value) -> Iterator[Path]:
    match value:
        case PathValue(path):
            yield path
        case FunctionValue(arguments=arguments):
            for each in arguments:
                yield from _value_paths(each)


def _inside(condition: Condition) -> Condition:
    match condition:
        case Exists(path):
            return Exists(without_fresh(path))
        case And(conditions):
            return And(tuple(map(_inside, conditions)))
        case Comparison(left=value) as comparison:
            return replace(comparison, left=_inside_value(value))
        case StringTest(value=value) as test:
            return replace(test, value=_inside_value(value))
    return condition


def _inside_value(value: Value) -> Value:
    match value:
        case PathValue(path):
            return PathValue(without_fresh(path))
        case FunctionValue(arguments=arguments) as call:
            return replace(call, arguments=tuple(map(_inside_value, arguments)))
    return value
