"""Paths and conditions with something left out: variables, or the predicates that bind some."""

from __future__ import annotations

from dataclasses import replace

from xscl.path import (
    And,
    Call,
    Comparison,
    Condition,
    Exists,
    Not,
    Or,
    Path,
    PathValue,
    StringTest,
    Value,
)

__all__ = ["strip_variables", "without_predicates"]


def without_predicates(path: Path, dropped: frozenset[str]) -> Path:
    """Return a path without the predicates that end in one of some variables, at any depth."""
    if not dropped:
        return path
    return Path(
        tuple(
            replace(
                step,
                predicates=tuple(
                    _prune(p, dropped) for p in step.predicates if not _ends_in(p, dropped)
                ),
            )
            for step in path.steps
        )
    )


def _prune(condition: Condition, dropped: frozenset[str]) -> Condition:
    match condition:
        case Exists(path):
            return Exists(without_predicates(path, dropped))
        case And(conditions):
            return And(tuple(_prune(each, dropped) for each in conditions))
        case Comparison(left=left):
            return replace(condition, left=_prune_value(left, dropped))
        case StringTest(value=value):
            return replace(condition, value=_prune_value(value, dropped))
    return condition


def _prune_value(value: Value, dropped: frozenset[str]) -> Value:
    match value:
        case PathValue(path):
            return PathValue(without_predicates(path, dropped))
        case Call(function, arguments):
            return Call(function, tuple(_prune_value(each, dropped) for each in arguments))
    return value


def _ends_in(predicate: Condition, variables: frozenset[str]) -> bool:
    if not isinstance(predicate, Exists) or not predicate.path.steps:
        return False
    return predicate.path.steps[-1].variable in variables


def strip_variables(condition: Condition) -> Condition:
    """Return the condition with no variable bound: what it says, whatever it is called."""
    match condition:
        case Exists(path):
            return Exists(_strip_path(path))
        case Comparison(left, operator, right):
            return Comparison(_strip_value(left), operator, right)
        case StringTest(function, value, argument, flags):
            return StringTest(function, _strip_value(value), argument, flags)
        case And(conditions):
            return And(tuple(map(strip_variables, conditions)))
        case Or(conditions):
            return Or(tuple(map(strip_variables, conditions)))
        case Not(inner):
            return Not(strip_variables(inner))
    return condition


def _strip_value(value: Value) -> Value:
    match value:
        case PathValue(path):
            return PathValue(_strip_path(path))
        case Call(function, arguments):
            return Call(function, tuple(map(_strip_value, arguments)))
    return value


def _strip_path(path: Path) -> Path:
    return Path(
        tuple(
            replace(
                step,
                variable=None,
                predicates=tuple(map(strip_variables, step.predicates)),
                span=None,
            )
            for step in path.steps
        )
    )
