"""What the conjunctions of a decided query ask: look-ups, tables, variables, and the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from templates.clause import Guard
from templates.decision import ALWAYS, Conjunction
from templates.derived import as_derived
from templates.elements import of_elements
from templates.hadtests import given_values
from templates.ordered import asked_of_elements, predicates_of
from xscl.comparison import operands_below
from xscl.evaluation import compile_condition
from xscl.query import (
    Call,
    Disjunct,
    Operand,
    Query,
    Residual,
    Row,
    ValueJoin,
    VariableValue,
    operand_parameters,
    operand_terms,
    term,
)
from xscl.table import DeleteRow, SetCell

__all__ = [
    "asked_behind",
    "compared_in",
    "conjunction_of",
    "elements_behind",
    "parameters_in",
    "split",
    "values_asked",
]


def asked_behind(statement: Query) -> list[Operand]:
    """Return what actions, rows and limits of a statement read of its tuples."""
    found: list[Operand] = list(statement.outcome_operands)
    for action in statement.actions:
        match action:
            case SetCell(cell, value):
                found += [cell, value]
            case DeleteRow(row):
                found.append(row)
    return found


def elements_behind(statement: Query) -> list[Operand]:
    """Return what actions, rows and limits of a statement ask of elements."""
    return [*of_elements(asked_behind(statement))]


def values_asked(statements: Iterable[Query]) -> frozenset[str]:
    """Return the variables whose values plain statements ask for, of elements too."""
    found: list[Operand] = []
    for statement in statements:
        found += [each for d in predicates_of(statement.root) for each in d.operands()]
        found += [*asked_of_elements(statement.root), *elements_behind(statement)]
        found += asked_behind(statement)
    read = {each for operand in found for each in operand_terms(operand)}
    return frozenset(each.variable for each in read if isinstance(each, VariableValue))


def split(where: Disjunct) -> tuple[tuple[Residual, ...], tuple[Call, ...], Guard | None]:
    """Split a conjunction into what asks no table, and the guard of the rest."""
    residuals = [(each, _rows_in(each.left, each.right)) for each in where.residuals]
    tests = [(each, _rows_in(each)) for each in where.tests]
    rows = tuple(dict.fromkeys(row for _, own in (*residuals, *tests) for row in own))
    asked = tuple(each for each, own in residuals if own)
    tested = tuple(each for each, own in tests if own)
    condition = compile_condition(asked, tested)
    return (
        tuple(each for each, own in residuals if not own),
        tuple(each for each, own in tests if not own),
        Guard(condition, rows, asked, tested) if rows else None,
    )


def _rows_in(*operands: Operand) -> list[Row]:
    below = (each for operand in operands for each in operands_below(operand))
    return [each for each in below if isinstance(each, Row)]


def parameters_in(disjunct: Disjunct) -> set[str]:
    """Return the names of the parameters of a conjunction."""
    return {p.name for operand in disjunct.operands() for p in operand_parameters(operand)}


def conjunction_of(
    disjunct: Disjunct, known: Mapping[str, str], also: Conjunction = ALWAYS
) -> Conjunction:
    """Split a conjunction into equalities of terms, which are looked up, and the rest.

    Terms that are equal to data stand for its parameters, if `known` has all of them.  What is
    asked beside such terms is asked, `also`.
    """
    joins: list[tuple[str, str]] = []
    others: list[ValueJoin] = []
    for join in disjunct.value_joins:
        left, right = as_derived(join.left), as_derived(join.right)
        if left is None or right is None:
            others.append(join)
        else:
            joins.append((term(left), term(right)))
    rest = replace(disjunct, value_joins=tuple(others))
    given = given_values(parameters_in(disjunct), known) or ()
    return replace(also, joins=tuple(joins), rest=rest, given=given)


def compared_in(disjunct: Disjunct) -> frozenset[str]:
    """Return the variables whose values a conjunction compares."""
    read = {each for operand in disjunct.operands() for each in operand_terms(operand)}
    return frozenset(each.variable for each in read if isinstance(each, VariableValue))
