"""Conditions of a step as comparisons of values that it has, where they are written otherwise.

What compares data may stand deeper: `[entry[@k][contains(title, 'w')]]` asks of an `entry` what
`[contains(entry[@k]/title, 'w')]` asks of its titles.  Both hold if some title of some entry does.
So one condition behind the last position of its step comes out of its brackets, and the values that
it compares are those of all nodes that pass the rest.  Which one, where there are several, is that
in which statements most likely differ.  A number or a text of XPath 1.0 that is held against data,
`[count(tag) > 3]`, is a value of its node as well; and so is where a node stands, `tag[$n] = 'x'`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from xscl.functions import spell
from xscl.opaque import put_positions
from xscl.path import (
    ANY,
    And,
    Axis,
    Comparison,
    Condition,
    Exists,
    FunctionValue,
    Literal,
    Not,
    Opaque,
    Or,
    Parameter,
    Path,
    PathValue,
    Position,
    Step,
    StringTest,
    Value,
    XPathFrame,
    XPathValue,
    conjuncts,
    counts_positions,
    value_paths,
)
from xscl.xpath1numbers import as_number

__all__ = ["disjuncts", "given_position", "hoist", "weaker_tests"]


def hoist(condition: Condition) -> Condition:
    """Return a condition that says the same, as one of values of its node where it can be.

    It may only be asked of conditions that bind nothing.
    """
    match condition:
        case Exists(path):
            return _by_position(path, None) or _out_of(path) or condition
        case Comparison(PathValue(path), _, Literal()) | StringTest(_, PathValue(path), Literal()):
            return _by_position(path, condition) or condition
        case Opaque(compared=StringTest() as test):
            return test
        case Opaque(compared=Comparison(XPathValue() as value, operator, constant)):
            return _compared(value, operator, constant) or condition
        case Or(conditions):
            hoisted = map(hoist, conditions)
            return Or(tuple(one for each in hoisted for one in disjuncts(each)))
        case And(conditions):
            return And(tuple(map(hoist, conditions)))
        case Not(inner):
            return Not(hoist(inner))
    return condition


def weaker_tests(conditions: Iterable[Condition]) -> Iterator[Comparison | StringTest]:
    """Yield comparisons of paths with parameters that hold wherever some conditions do.

    They are asked of more nodes: those that the paths select without predicates.
    """
    for condition in conjuncts(conditions):
        match condition:
            case Exists(path):
                yield from _weaker_below(path)
            case Comparison(left=PathValue(path)):
                if isinstance(condition.right, Parameter):
                    yield replace(condition, left=PathValue(_bare(path.steps)))
                yield from _weaker_below(path)
            case StringTest(value=PathValue(path)):
                if isinstance(condition.argument, Parameter):
                    yield replace(condition, value=PathValue(_bare(path.steps)))
                yield from _weaker_below(path)


def _weaker_below(path: Path) -> Iterator[Comparison | StringTest]:
    for i, step in enumerate(path.steps, 1):
        for each in weaker_tests(step.predicates):
            found = _below(_bare(path.steps[:i]), each)
            assert isinstance(found, (Comparison, StringTest))
            yield found


def _bare(steps: Iterable[Step]) -> Path:
    return Path(tuple(replace(each, variable=None, predicates=()) for each in steps))


def disjuncts(condition: Condition) -> tuple[Condition, ...]:
    """Return conditions of which one must hold."""
    return condition.conditions if isinstance(condition, Or) else (condition,)


def _compared(value: XPathValue, operator: str, constant: Value) -> Comparison | None:
    """Return a comparison in XPath 1.0 as one of ours; None where they differ.

    There `!=` holds of what is no number: so it compares texts, in which equal numbers are equal.
    Of a text `=` compares a text or a number, as its parameter is given.
    """
    is_number = isinstance(constant, Literal) and not isinstance(constant.value, str)
    if value.is_text and operator in ("=", "!=") and not is_number:
        return Comparison(value, operator, constant)
    number = value.as_number()
    if isinstance(constant, Parameter):
        return Comparison(number, operator, constant)
    if not isinstance(constant, Literal):
        return None
    wanted = as_number(constant.value)
    if wanted != wanted:
        return None
    return Comparison(number, operator, Literal(spell(wanted) if operator == "!=" else wanted))


def _by_position(path: Path, asked: Comparison | StringTest | None) -> Comparison | None:
    """Return a path with a given position as a comparison of numbers: where nodes stand.

    `tag[$n] = 'x'` holds if `$n` is the position of some `tag` that is `x`.  It is `asked` what is
    asked of what the path selects, if it is more than to be there.
    """
    given = [i for i, step in enumerate(path.steps) if any(map(_is_given, step.predicates))]
    if len(given) != 1:
        return None
    step, behind = path.steps[given[0]], Path(path.steps[given[0] + 1 :])
    found = given_position(step)
    if not isinstance(found, Comparison):
        return None
    others = [*step.predicates[1:]]
    match asked:
        case Comparison():
            others.append(replace(asked, left=PathValue(behind)))
        case StringTest():
            others.append(replace(asked, value=PathValue(behind)))
        case None if behind.steps:
            others.append(Exists(behind))
    there = Path((*path.steps[: given[0]], replace(step, predicates=tuple(others))))
    return replace(found, left=_value_below(there, found.left))


def given_position(step: Step) -> Comparison | Opaque | None:
    """Return a given position, the first that a step asks for, as a comparison of numbers.

    These are the number of the step's node, and how many it selects beside that.  None where
    another position is counted behind it, among what it has left.
    """
    if not step.predicates or not counts_positions(step.predicates[0]):  # as mostly
        return None
    first, *others = step.predicates
    if any(map(counts_positions, others)):
        return None
    if (siblings := _siblings(step)) is None:
        return None
    place, count = f"count(preceding-sibling::{siblings}) + 1", f"count(../{siblings})"
    match first:
        case Position(operator, Parameter() as given, of_last=False, is_size=is_size):
            number = XPathValue(Path(()), count if is_size else place)
            return Comparison(number, operator, given)
        case Position(operator, Parameter() as given):
            last = FunctionValue("-", (XPathValue(Path(()), count), given))
            compared: tuple[Value, str, Value] = (XPathValue(Path(()), place), operator, last)
            expression = f"position() {operator} last() - ${given.name}"
            return Opaque(expression, parameters=(given,), calculated=compared)
        case Opaque(parameters=(_, *_), calculated=(left, operator, right)):
            sides = (_with_positions(each, f"({place})", count) for each in (left, right))
            left, right = sides
            return replace(first, is_positional=False, calculated=(left, operator, right))
    return None


def _with_positions(value: Value, position: str, last: str) -> Value:
    """Return a side of a comparison with expressions for `position()` and `last()` of its node."""
    match value:
        case XPathValue(path, expression) if not path.steps:
            return replace(value, expression=put_positions(expression, position, last))
        case FunctionValue(function, arguments):
            own = (_with_positions(each, position, last) for each in arguments)
            return FunctionValue(function, tuple(own))
    return value


def _is_given(condition: Condition) -> bool:
    """Return whether a condition compares a position, from the first node, with a parameter."""
    return (
        isinstance(condition, Position)
        and isinstance(condition.number, Parameter)
        and not (condition.of_last or condition.is_size)
    )


def _siblings(step: Step) -> str | None:
    """Return the nodes among which a step counts positions as a test of XPath 1.0, if it can be."""
    name, namespace = step.test.name, step.test.namespace
    if step.axis is not Axis.CHILD or step.test.is_text or "'" in (namespace or ""):
        return None
    asked = [] if name == ANY else [f"local-name() = '{name}'"]
    asked += [] if namespace == ANY else [f"namespace-uri() = '{namespace or ''}'"]
    return f"*[{' and '.join(asked)}]" if asked else "*"


def _out_of(path: Path) -> Condition | None:
    """Return that a path selects a node as a condition of values; None if no data stand in it."""
    found: list[tuple[int, Condition]] = []
    for i, step in enumerate(path.steps):
        own = [*conjuncts(step.predicates)]
        counting = max((k for k, each in enumerate(own) if counts_positions(each)), default=-1)
        for k in range(counting + 1, len(own)):
            hoisted = hoist(own[k])
            if rank := _rank(hoisted):
                rest = (*own[:k], *own[k + 1 :], *_behind(path.steps[i + 1 :]))
                there = Path((*path.steps[:i], replace(step, predicates=rest)))
                found.append((rank, _below(there, hoisted)))
    return max(reversed(found), key=lambda each: each[0])[1] if found else None


def _behind(steps: tuple[Step, ...]) -> tuple[Condition, ...]:
    return (Exists(Path(steps)),) if steps else ()


def _rank(condition: Condition) -> int:
    """Return how likely statements differ in the data of a condition; 0 if it stays where it is."""
    match condition:
        case Comparison(left, operator, right):
            rank = 1 if operator == "=" and _is_string(right) else 2
        case StringTest(_, left, right):
            rank = 3
        case Or(conditions):
            return min(map(_rank, conditions))
        case _:
            return 0
    if len([*value_paths(left)]) != 1:
        return 0  # a function of several paths has values of pairs
    return 4 if isinstance(right, (Parameter, XPathFrame)) else rank


def _is_string(value: Value) -> bool:
    return isinstance(value, Literal) and isinstance(value.value, str)


def _below(path: Path, condition: Condition) -> Condition:
    """Return that a condition holds for the values of some node that a path selects."""
    match condition:
        case Or(conditions):
            return Or(tuple(_below(path, each) for each in conditions))
        case Comparison():
            return replace(condition, left=_value_below(path, condition.left))
        case StringTest():
            return replace(condition, value=_value_below(path, condition.value))
    raise AssertionError(condition)


def _value_below(path: Path, value: Value) -> Value:
    match value:
        case PathValue(own):
            return PathValue(Path((*path.steps, *own.steps)))
        case XPathValue(own):
            return replace(value, path=Path((*path.steps, *own.steps)))
        case FunctionValue(function, arguments):
            return FunctionValue(function, tuple(_value_below(path, each) for each in arguments))
    return value
