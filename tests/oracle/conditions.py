"""What comparisons and tests say of a tuple: sections 4, 5 and 13.

An operand has values, or says nothing: where it mentions a variable that the tuple does not bind
(13.2).  Of an `if` that is asked of its condition and of the branch that is chosen.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Protocol

from broker.documents.document import Document
from oracle import similarity
from oracle.paths import select
from oracle.tree import Node
from oracle.values import (
    OPERATORS,
    Atom,
    apply,
    calculate,
    compare_operands,
    number,
    passes,
    string,
)
from xscl.path import Literal, Parameter
from xscl.query import (
    Call,
    Cell,
    Conditional,
    Disjunct,
    Operand,
    PathFrom,
    Residual,
    Row,
    SimilarityJoin,
    ValueJoin,
    VariableValue,
    operand_variables,
)

__all__ = [
    "Facts",
    "TableRows",
    "all_of",
    "applied",
    "can_have_a_value",
    "compared",
    "compared_in",
    "holds",
    "values_of",
    "variables_of",
]

ARITHMETIC = ("+", "-", "*", "div", "mod")
NO_NUMBER = float("nan")


class TableRows(Protocol):
    """Rows of tables, as conditions read them."""

    def cell(self, table: str, key: str, column: str) -> Atom:
        """Return a cell."""

    def has(self, table: str, key: str) -> bool:
        """Return whether a row is there."""


@dataclass(frozen=True, slots=True)
class Facts:
    """A tuple, or two together: what its variables are bound to, and its interval.

    `owners` has for each variable that is bound the document that binds it, also where nothing asks
    for its node.  `elements` has for each variable of a complete repetition its elements, `before`
    those of a repetition that goes on, before the candidate; None where there is none.  `rows` are
    those of tables, `setting` is the row that is being set, with its key.
    """

    nodes: Mapping[str, Node]
    owners: Mapping[str, Document]
    start_us: int
    end_us: int
    parameters: Mapping[str, Atom]
    elements: Mapping[str, tuple[Facts, ...]] = field(default_factory=dict)
    before: tuple[Facts, ...] | None = None
    folds: Mapping[str, tuple[Atom, ...]] = field(default_factory=dict)
    rows: TableRows | None = None
    setting: tuple[Row, str] | None = None


def holds(disjunct: Disjunct, facts: Facts) -> bool:
    """Return whether what a conjunction does not join holds of a tuple."""
    similar = map(_as_residual, disjunct.similarity_joins)
    return all(_compares(each, facts) for each in (*similar, *disjunct.residuals)) and all(
        _test(each, facts) for each in disjunct.tests
    )


def _as_residual(join: SimilarityJoin) -> Residual:
    sets = (join.right, join.left) if join.is_turned else (join.left, join.right)
    return Residual(Call(join.measure, sets), join.operator, join.threshold)


def _compares(residual: Residual, facts: Facts) -> bool:
    measured = [_scores(side, facts) for side in (residual.left, residual.right)]
    left, right = values_of(residual.left, facts), values_of(residual.right, facts)
    if left is None or right is None:
        return True
    if any(each is not None for each in measured):
        sides = [m or v for m, v in zip(measured, (left, right), strict=True)]
        numbers = [[similarity.as_number(value) for value in side] for side in sides]
        return any(
            a is not None and b is not None and bool(OPERATORS[residual.operator](a, b))
            for a, b in product(*numbers)
        )
    return any(
        compare_operands(
            [a], residual.operator, [b], with_number=isinstance(a, float) or isinstance(b, float)
        )
        for a in left
        for b in right
    )


def _scores(operand: Operand, facts: Facts) -> list[Fraction] | None:
    """Return the exact values of an operand that is a measure of sets, else None."""
    match operand:
        case Call(measure, (Call() as left, Call() as right)) if measure in similarity.MEASURES:
            lefts, rights = _sets(left, facts), _sets(right, facts)
            if lefts is None or rights is None:
                return None
            return similarity.scores(measure, lefts, rights)
    return None


def _sets(call: Call, facts: Facts) -> list[set[str]] | None:
    given = [values_of(each, facts) for each in call.arguments]
    known = [each for each in given if each is not None]
    return similarity.sets(call, known[0], known[1:]) if len(known) == len(given) else None


def _test(test: Call, facts: Facts) -> bool:
    found = [values_of(argument, facts) for argument in test.arguments]
    if test.function in ("exists", "empty"):
        return bool(found[0]) == (test.function == "exists")
    known = [each for each in found if each is not None]
    if len(known) < len(found):
        return True
    return any(
        passes(test.function, value, argument, *map(str, flags))
        for value, argument, *flags in product(*known)
    )


def values_of(operand: Operand, facts: Facts) -> list[Atom] | None:
    """Return the values of an operand, None where a variable in it is not bound."""
    match operand:
        case VariableValue(variable) if variable in facts.folds:
            return list(facts.folds[variable])
        case VariableValue(variable) | PathFrom(variable) if variable in facts.elements:
            found = [values_of(operand, each) for each in facts.elements[variable]]
            known = [each for each in found if each is not None]
            return [value for each in known for value in each] if known else None
        case VariableValue(variable):
            return [facts.nodes[variable].value] if variable in facts.owners else None
        case PathFrom(variable, path):
            if variable not in facts.owners:
                return None
            nodes = {node for node, _ in select(path, facts.nodes[variable], facts.parameters)}
            return [node.value for node in sorted(nodes, key=lambda node: node.number)]
        case Row(table, key):
            assert facts.rows is not None
            keys = values_of(key, facts)
            known = [string(each) for each in keys or ()]
            return None if keys is None else [k for k in known if facts.rows.has(table, k)]
        case Cell(row, column):
            assert facts.rows is not None
            if facts.setting is not None and facts.setting[0] == row:
                return [facts.rows.cell(row.table, facts.setting[1], column)]
            keys = values_of(row.key, facts)
            if keys is None:
                return None
            each_once = dict.fromkeys(map(string, keys))
            return [facts.rows.cell(row.table, key, column) for key in each_once]
        case Literal(value):
            return [value]
        case Parameter(name):
            given = facts.parameters[name]
            return [float(given) if isinstance(given, int) else given]
        case Conditional(condition, then, otherwise):
            is_so = any(all_of(each, facts) for each in condition)
            return values_of(then if is_so else otherwise, facts)
        case Call("prev" | "first" | "last" | "count" | "sum" | "avg" | "min" | "max"):
            return _of_elements(operand, facts)
        case Call("time", (VariableValue(variable),)) if variable in facts.elements:
            return values_of(operand, facts.elements[variable][-1])
        case Call("time", (VariableValue(variable),)):
            owner = facts.owners.get(variable)
            return None if owner is None else [float(owner.end_us)]
        case Call("revision", (VariableValue(variable),)) if variable in facts.elements:
            return [
                float(each.owners[variable].revision)
                for each in facts.elements[variable]
                if variable in each.owners
            ] or None
        case Call("revision", (VariableValue(variable),)):
            owner = facts.owners.get(variable)
            return None if owner is None else [float(owner.revision)]
        case Call("start"):
            return [float(facts.start_us)]
        case Call("end"):
            return [float(facts.end_us)]
        case Call("dur"):
            return [float(facts.end_us - facts.start_us)]
        case Call(measure) if measure in similarity.MEASURES:
            found_scores = _scores(operand, facts)
            return None if found_scores is None else list(map(float, found_scores))
        case Call(function, arguments):
            return _call(function, [values_of(each, facts) for each in arguments])
    raise AssertionError(operand)


# -- elements of repetitions: 16 -----------------------------------------------------------------


def _of_elements(call: Call, facts: Facts) -> list[Atom] | None:
    """Return what a function of elements gives: of those before the candidate, or of all."""
    if not call.arguments:
        assert facts.before is not None
        return [float(len(facts.before))]
    of, *further = call.arguments
    variables = operand_variables(of)
    complete = [facts.elements[name] for name in variables if name in facts.elements]
    elements = complete[0] if complete else facts.before
    assert elements is not None
    match call.function:
        case "prev":
            if elements:
                return values_of(of, elements[-1])
            return values_of(further[0], facts) if further else None
        case "first":
            return values_of(of, elements[0] if elements else facts)
        case "last":
            return values_of(of, elements[-1])
    found = [values_of(of, each) for each in elements]
    values = [value for each in found if each is not None for value in each]
    numbers = [_number(value) for value in values]
    if call.function == "count":
        return [float(len(values))]
    if call.function == "sum":
        return [_sum(numbers)]
    if not numbers:
        return None
    if call.function == "avg":
        return [_sum(numbers) / len(numbers)]
    if any(math.isnan(each) for each in numbers):
        return [NO_NUMBER]
    return [min(numbers) if call.function == "min" else max(numbers)]


def _sum(numbers: Sequence[float]) -> float:
    """Return a sum, taken from the first to the last: rounding depends on it."""
    total = 0.0
    for each in numbers:
        total += each
    return total


def _call(function: str, arguments: Sequence[list[Atom] | None]) -> list[Atom] | None:
    known = [each for each in arguments if each is not None]
    if len(known) < len(arguments):
        return None
    if function not in ARITHMETIC:
        return apply(function, known)
    numbers = [[_number(value) for value in each] for each in known]
    if len(numbers) == 1:
        return [calculate("*", -1.0, value) for value in numbers[0]]
    return [calculate(function, a, b) for a, b in product(*numbers)]


def _number(value: Atom) -> float:
    found = number(value)
    return NO_NUMBER if found is None else found


def all_of(disjunct: Disjunct, facts: Facts) -> bool:
    """Return whether a conjunction holds of a tuple, value joins and all."""
    for join in disjunct.value_joins:
        left, right = values_of(join.left, facts), values_of(join.right, facts)
        if left is not None and right is not None and not set(left) & set(right) - {""}:
            return False
    return holds(disjunct, facts)


# -- what applies: 13.2 ------------------------------------------------------------------------


def applied(disjunct: Disjunct, bound: Collection[str]) -> Disjunct | None:
    """Return what of a conjunction applies where these variables are bound, None if it is false."""
    for test in disjunct.tests:
        if test.function == "exists" and not can_have_a_value(test.arguments[0], bound):
            return None
        if test.function == "empty" and test.arguments[0] in map(VariableValue, bound):
            return None
    return Disjunct(
        tuple(j for j in disjunct.value_joins if _rests_on(bound, j.left, j.right)),
        tuple(
            Residual(_chosen(r.left, bound), r.operator, _chosen(r.right, bound))
            for r in disjunct.residuals
            if _rests_on(bound, r.left, r.right)
        ),
        tuple(j for j in disjunct.similarity_joins if _rests_on(bound, j.left, j.right)),
        tuple(
            Call(test.function, tuple(_chosen(each, bound) for each in test.arguments))
            for test in disjunct.tests
            if _rests_on(bound, *test.arguments)
        ),
    )


def _rests_on(bound: Collection[str], *operands: Operand) -> bool:
    return all(can_have_a_value(each, bound) for each in operands)


def can_have_a_value(operand: Operand, bound: Collection[str]) -> bool:
    """Return whether all variables are bound, those within an `if` left aside."""
    match operand:
        case VariableValue(variable) | PathFrom(variable):
            return variable in bound
        case Call(_, arguments):
            return _rests_on(bound, *arguments)
        case Row(_, key) | Cell(Row(_, key), _):
            return can_have_a_value(key, bound)
    return True


def _chosen(operand: Operand, bound: Collection[str]) -> Operand:
    """Return an operand with what applies of the conditions in it."""
    match operand:
        case Call(function, arguments):
            return Call(function, tuple(_chosen(each, bound) for each in arguments))
        case Conditional(condition, then, otherwise):
            known = (applied(each, bound) for each in condition)
            return Conditional(
                tuple(each for each in known if each is not None),
                _chosen(then, bound),
                _chosen(otherwise, bound),
            )
    return operand


# -- what is compared --------------------------------------------------------------------------


def compared_in(disjunct: Disjunct) -> set[str]:
    """Return the variables that a conjunction compares: those whose values are looked at.

    A time and a revision are of a document, and a path that need not be there has no node.
    """
    return {variable for operand in _sides(disjunct) for variable in compared(operand)}


def variables_of(disjunct: Disjunct) -> set[str]:
    """Return the variables whose nodes are needed, those that optional paths lead from too."""
    optional = {p for operand in _sides(disjunct) for p in _optional(operand)}
    return compared_in(disjunct) | optional


def _sides(disjunct: Disjunct) -> Iterator[Operand]:
    comparisons: list[ValueJoin | Residual | SimilarityJoin] = [
        *disjunct.value_joins,
        *disjunct.residuals,
        *disjunct.similarity_joins,
    ]
    for each in comparisons:
        yield from (each.left, each.right)
    yield from disjunct.tests


def compared(operand: Operand) -> Iterator[str]:
    """Yield the variables whose values an operand looks at."""
    match operand:
        case VariableValue(variable):
            yield variable
        case Call("time" | "revision" | "start"):
            return
        case Call("exists" | "empty", (VariableValue(),)):
            return
        case Call(_, arguments):
            for each in arguments:
                yield from compared(each)
        case Row(_, key) | Cell(Row(_, key), _):
            yield from compared(key)
        case Conditional(condition, then, otherwise):
            for each in condition:
                yield from compared_in(each)
            yield from compared(then)
            yield from compared(otherwise)


def _optional(operand: Operand) -> Iterator[str]:
    match operand:
        case PathFrom(variable):
            yield variable
        case Call("exists" | "empty", (VariableValue(variable),)):
            yield variable
        case Call(_, arguments):
            for each in arguments:
                yield from _optional(each)
        case Row(_, key) | Cell(Row(_, key), _):
            yield from _optional(key)
        case Conditional(condition, then, otherwise):
            for disjunct in condition:
                for side in _sides(disjunct):
                    yield from _optional(side)
            yield from _optional(then)
            yield from _optional(otherwise)
