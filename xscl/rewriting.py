"""Paths with conditions added at variables, without some predicates, or without any variable."""

from __future__ import annotations

from collections.abc import Mapping
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
    Step,
    StringTest,
    Value,
)

__all__ = ["attach", "strip_variables", "without_predicates"]


def attach(path: Path, additions: Mapping[str, tuple[Condition, ...]]) -> Path:
    """Return a path with conditions appended to the steps that bind these variables."""
    return Path(tuple(_attach_step(step, additions) for step in path.steps))


def _attach_step(step: Step, additions: Mapping[str, tuple[Condition, ...]]) -> Step:
    added = additions.get(step.variable, ()) if step.variable is not None else ()
    if not (added or step.predicates):
        return step
    predicates = (*(_attach_condition(each, additions) for each in step.predicates), *added)
    return Step(step.axis, step.test, step.is_deep, step.variable, predicates, step.span)


def _attach_condition(
    condition: Condition, additions: Mapping[str, tuple[Condition, ...]]
) -> Condition:
    match condition:
        case Exists(path):
            return Exists(attach(path, additions))
        case And(conditions):
            return And(tuple(_attach_condition(each, additions) for each in conditions))
        case Comparison(left=value):
            return replace(condition, left=_attach_value(value, additions))
        case StringTest(value=value):
            return replace(condition, value=_attach_value(value, additions))
    return condition


def _attach_value(value: Value, additions: Mapping[str, tuple[Condition, ...]]) -> Value:
    match value:
        case PathValue(path):
            return PathValue(attach(path, additions))
        case Call(arguments=arguments):
            return replace(
                value, arguments=tuple(_attach_value(each, additions) for each in arguments)
            )
    return value


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
