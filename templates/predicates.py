"""Predicates of plain statements: what is left of them, and all of several.

A choice of alternatives binds some variables of a query (`BoundVariables`).  A comparison that
mentions another one is left out, `exists` of it is false and `empty` true.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from templates.elements import RepeatedUnit, with_elements
from xscl.comparison import UNBOUND, operand_terms
from xscl.path import Literal, Parameter
from xscl.query import (
    INFINITE_US,
    Call,
    Cell,
    Conditional,
    Disjunct,
    Node,
    Operand,
    Operator,
    PathFrom,
    Query,
    Residual,
    Row,
    VariableValue,
    Window,
    operand_parameters,
    operand_variables,
)

__all__ = [
    "BoundVariables",
    "Disjuncts",
    "all_of",
    "at_most",
    "merged",
    "of_document",
    "tested_joins",
    "with_tested_joins",
]

Disjuncts = tuple[Disjunct, ...]


@dataclass(frozen=True, slots=True)
class BoundVariables:
    """The variables that a choice of alternatives binds.

    `paths` are those from variables of the repeated `units`, which need not be there.
    """

    variables: frozenset[str]
    units: tuple[RepeatedUnit, ...]
    paths: Mapping[str, PathFrom]

    def also(self, variables: Iterable[str]) -> BoundVariables:
        """Return these and further variables."""
        return replace(self, variables=self.variables.union(variables))

    def predicate(self, disjuncts: Iterable[Disjunct]) -> Disjuncts:
        """Return a predicate without what mentions variables that are not bound."""
        asked = [with_elements(d, self.units, self.paths) for d in disjuncts]
        return tuple(found for each in asked if (found := self._conjunction(each)) is not None)

    def _conjunction(self, disjunct: Disjunct) -> Disjunct | None:
        """Return what is left of a conjunction, None where it cannot hold."""
        joins = [
            join
            for join in disjunct.value_joins
            if self.variables.issuperset(
                operand_variables(join.left) + operand_variables(join.right)
            )
        ]
        similar = [
            join
            for join in disjunct.similarity_joins
            if self.variables.issuperset(operand_variables(join.measured))
        ]
        residuals = [
            Residual(left, residual.operator, right)
            for residual in disjunct.residuals
            if (left := self.operand(residual.left)) != UNBOUND
            and (right := self.operand(residual.right)) != UNBOUND
        ]
        tests: list[Call] = []
        for test in disjunct.tests:
            arguments = tuple(map(self.operand, test.arguments))
            if test.function in ("exists", "empty") and not _is_open(arguments[0]):
                if (arguments[0] != UNBOUND) != (test.function == "exists"):
                    return None
            elif UNBOUND not in arguments:
                tests.append(replace(test, arguments=arguments))
        return Disjunct(tuple(joins), tuple(residuals), tuple(similar), tuple(tests))

    def operand(self, operand: Operand) -> Operand:
        """Return an operand of bound variables, `UNBOUND` where it rests on others."""
        match operand:
            case VariableValue(variable) | PathFrom(variable):
                return operand if variable in self.variables else UNBOUND
            case Call(function, arguments):
                inner = tuple(map(self.operand, arguments))
                return UNBOUND if UNBOUND in inner else Call(function, inner)
            case Row(key=key):
                return UNBOUND if self.operand(key) == UNBOUND else operand
            case Cell(row=row):
                return UNBOUND if self.operand(row) == UNBOUND else operand
            case Conditional(condition, then, otherwise):
                asked = self.predicate(condition)
                then, otherwise = self.operand(then), self.operand(otherwise)
                whole = Conditional(asked, then, otherwise)
                if asked and Disjunct() not in asked:
                    return whole
                chosen = then if asked else otherwise
                # What the other branch reads is compared as well, and stands in witness tuples.
                reads_all = set(operand_terms(chosen)) == set(operand_terms(whole))
                return chosen if chosen != UNBOUND and reads_all else whole
        return operand


def _is_open(operand: Operand) -> bool:
    """Return whether it depends on a tuple if an operand has a value."""
    return operand != UNBOUND and not isinstance(operand, VariableValue)


def all_of(*predicates: Sequence[Disjunct]) -> Disjuncts:
    """Return the disjuncts of a conjunction of predicates."""
    return tuple(dict.fromkeys(map(merged, product(*predicates))))


def merged(disjuncts: Sequence[Disjunct]) -> Disjunct:
    """Return the conjunction of conjunctions."""
    return Disjunct(
        tuple(dict.fromkeys(join for each in disjuncts for join in each.value_joins)),
        tuple(dict.fromkeys(residual for each in disjuncts for residual in each.residuals)),
        tuple(dict.fromkeys(join for each in disjuncts for join in each.similarity_joins)),
        tuple(dict.fromkeys(test for each in disjuncts for test in each.tests)),
    )


def with_tested_joins(query: Query) -> Query:
    """Return a query of joins alone whose equalities with parameters are tests."""
    if not query.parameters:
        return query
    root = _with_tested_joins(query.root)
    return query if root == query.root else replace(query, root=root)


def _with_tested_joins(node: Node) -> Node:
    if not isinstance(node, Operator):
        return node
    left, right = _with_tested_joins(node.left), _with_tested_joins(node.right)
    return replace(node, left=left, right=right, disjuncts=tuple(map(tested_joins, node.disjuncts)))


def tested_joins(disjunct: Disjunct) -> Disjunct:
    """Return a conjunction whose equalities with parameters are tests: no value stands for them."""
    tests = [
        join
        for join in disjunct.value_joins
        if operand_parameters(join.left) or operand_parameters(join.right)
    ]
    if not tests:
        return disjunct
    return replace(
        disjunct,
        value_joins=tuple(each for each in disjunct.value_joins if each not in tests),
        tests=(*disjunct.tests, *(Call("joins", (each.left, each.right)) for each in tests)),
    )


def at_most(within: Window | Parameter | None) -> tuple[Residual, ...]:
    """Return what WITHIN asks of a tuple."""
    if within is None or within == Window(INFINITE_US):
        return ()
    length = Literal(float(within.length_us)) if isinstance(within, Window) else within
    return (Residual(Call("dur", ()), "<=", length),)


def of_document(root: str, disjuncts: Disjuncts) -> Disjuncts:
    """Return conditions of a block's tuples as conditions of tuples that it is a part of."""
    start, end = (Call(function, (VariableValue(root),)) for function in ("start", "time"))
    times = {"start": start, "end": end, "dur": Call("-", (end, start))}

    def of(operand: Operand) -> Operand:
        match operand:
            case Call(function, ()) if function in times:
                return times[function]
            case Call(function, arguments):
                return Call(function, tuple(map(of, arguments)))
            case Conditional(condition, then, otherwise):
                return Conditional(tuple(map(of_all, condition)), of(then), of(otherwise))
        return operand

    def of_all(disjunct: Disjunct) -> Disjunct:
        return replace(
            disjunct,
            residuals=tuple(
                Residual(of(each.left), each.operator, of(each.right))
                for each in disjunct.residuals
            ),
            tests=tuple(
                replace(test, arguments=tuple(map(of, test.arguments))) for test in disjunct.tests
            ),
        )

    return tuple(map(of_all, disjuncts))
