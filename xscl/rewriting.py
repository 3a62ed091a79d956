"""Paths with conditions added at variables, without some predicates, or without any variable."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from xscl.path import (
    And,
    Comparison,
    Condition,
    Exists,
    FunctionValue,
    Not,
    Or,
    Path,
    PathValue,
    Step,
    StringTest,
    Value,
    XPathValue,
    binding_paths,
    counts_positions,
)

__all__ = ["attach", "strip_variables", "without_predicates"]


def attach(path: Path, additions: Mapping[str, tuple[Condition, ...]]) -> Path:
    """Return a path with conditions appended to the steps that bind these variables.

    No position counts otherwise for them: where one stands behind a predicate that a condition is
    added to, what binds there is asked once more, and only then with the condition.  So
    `b[k->v][2]` with `a` at `v` becomes `b[k][2][k[a]->v]`.
    """
    return Path(tuple(_attach_step(step, additions) for step in path.steps))


def _attach_step(step: Step, additions: Mapping[str, tuple[Condition, ...]]) -> Step:
    added = additions.get(step.variable, ()) if step.variable is not None else ()
    if not (added or step.predicates):
        return step
    rewrite = partial(attach, additions=additions)
    predicates = (*_attach_inside(step.predicates, rewrite), *added)
    return Step(step.axis, step.test, step.is_deep, step.variable, predicates, step.span)


def _attach_inside(
    predicates: Sequence[Condition], rewrite: Callable[[Path], Path]
) -> tuple[Condition, ...]:
    """Return the predicates of a step with each path in them rewritten, behind its positions."""
    attached = [_with_paths(each, rewrite) for each in predicates]
    changed = [i for i, each in enumerate(predicates) if attached[i] != each]
    counting = [i for i, each in enumerate(predicates) if counts_positions(each)]
    if not changed or not counting or counting[-1] <= changed[0]:
        return tuple(attached)
    first, behind = changed[0], counting[-1] + 1
    moved = [each for condition in attached[first:behind] for each in _binding(condition)]
    chosen = map(strip_variables, predicates[first:behind])
    return (*predicates[:first], *chosen, *moved, *attached[behind:])


def _binding(condition: Condition) -> Iterator[Condition]:
    """Yield the conjuncts of a condition that bind variables."""
    if isinstance(condition, And):
        for each in condition.conditions:
            yield from _binding(each)
    elif any(any(step.variables()) for path in binding_paths(condition) for step in path.steps):
        yield condition


def without_predicates(path: Path, dropped: frozenset[str]) -> Path:
    """Return a path without the predicates that end in one of some variables, at any depth."""
    if not dropped:
        return path
    rewrite = partial(without_predicates, dropped=dropped)
    return Path(
        tuple(
            replace(
                step,
                predicates=tuple(
                    _with_paths(p, rewrite) for p in step.predicates if not _ends_in(p, dropped)
                ),
            )
            for step in path.steps
        )
    )


def _ends_in(predicate: Condition, variables: frozenset[str]) -> bool:
    if not isinstance(predicate, Exists) or not predicate.path.steps:
        return False
    return predicate.path.steps[-1].variable in variables


def strip_variables(condition: Condition) -> Condition:
    """Return the condition with no variable bound: what it says, whatever it is called."""
    return _with_paths(condition, _strip_path)


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


def _with_paths(condition: Condition, rewrite: Callable[[Path], Path]) -> Condition:
    """Return a condition with each of its paths rewritten, but those in predicates of a path."""
    match condition:
        case Exists(path):
            return Exists(rewrite(path))
        case And(conditions):
            return And(tuple(_with_paths(each, rewrite) for each in conditions))
        case Or(conditions):
            return Or(tuple(_with_paths(each, rewrite) for each in conditions))
        case Not(inner):
            return Not(_with_paths(inner, rewrite))
        case Comparison(left=value):
            return replace(condition, left=_value_with_paths(value, rewrite))
        case StringTest(value=value):
            return replace(condition, value=_value_with_paths(value, rewrite))
    return condition


def _value_with_paths(value: Value, rewrite: Callable[[Path], Path]) -> Value:
    match value:
        case PathValue(path):
            return PathValue(rewrite(path))
        case XPathValue(path):
            return replace(value, path=rewrite(path))
        case FunctionValue(function, arguments):
            return FunctionValue(
                function, tuple(_value_with_paths(each, rewrite) for each in arguments)
            )
    return value
