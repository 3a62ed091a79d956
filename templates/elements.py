"""Elements of repetitions in conditions: which operand speaks of a candidate, of a run, of neither.

Variables of a repeated unit have no one value in a tuple.  In the conditions of the repetition they
are the candidate's, elsewhere they are those of all elements (semantics, section 16).  Here each
operand with such a variable becomes an `Elements`, and a value join with one becomes a test.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from xscl.comparison import operands_below
from xscl.path import Literal
from xscl.query import (
    Call,
    Cell,
    Conditional,
    Disjunct,
    Elements,
    Operand,
    PathFrom,
    Query,
    Repetition,
    Residual,
    Row,
    ValueJoin,
    VariableValue,
    operand_variables,
)
from xscl.sequence import blocks_below, nodes_below

__all__ = [
    "RepeatedUnit",
    "element_operands",
    "of_candidate",
    "of_elements",
    "operand_with_elements",
    "repeated_units",
    "with_elements",
]

_FUNCTIONS = frozenset({"prev", "first", "last", "count", "sum", "avg", "min", "max"})


@dataclass(frozen=True, slots=True)
class RepeatedUnit:
    """A unit that is repeated: its blocks, and the names of its variables and FOLD values."""

    blocks: tuple[int, ...]
    variables: frozenset[str]
    folds: frozenset[str]

    @property
    def first(self) -> int:
        """The block that stands for the unit."""
        return self.blocks[0]

    @property
    def run(self) -> str:
        """The term under which a tuple carries a run."""
        return f"+{self.first}"

    def key(self, number: int) -> str:
        """Return the term under which a tuple carries the value of a key of SAME."""
        return f"+{self.first}.{number}"


def repeated_units(query: Query) -> tuple[RepeatedUnit, ...]:
    """Return the units of a query that are repeated, in the order of the text."""
    found: list[RepeatedUnit] = []
    for node in nodes_below(query.root):
        if isinstance(node, Repetition):
            blocks = tuple(blocks_below(node))
            names = frozenset(v.name for v in query.variables if v.block in blocks)
            found.append(RepeatedUnit(blocks, names, frozenset(f.name for f in node.folds)))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Rewriting:
    units: tuple[RepeatedUnit, ...]
    paths: Mapping[str, PathFrom]
    at_hand: RepeatedUnit | None

    def of(self, operand: Operand) -> Operand:
        """Return an operand that says what is of elements."""
        match operand:
            case VariableValue(variable):
                unit = self._unit(variable)
                if unit is None:
                    return self.paths.get(variable, operand)
                if variable in unit.folds:
                    return Elements(self._run(unit), "fold", Literal(variable))
                return self._bare(unit, self.paths.get(variable, operand))
            case PathFrom(variable):
                unit = self._unit(variable)
                return operand if unit is None else self._bare(unit, operand)
            case Call("time", (VariableValue(variable),)) if (
                unit := self._unit(variable)
            ) is not None:
                run = self._run(unit)
                return Elements(run, "candidate" if run is None else "last", operand)
            case Call("revision", (VariableValue(variable),)) if (
                unit := self._unit(variable)
            ) is not None:
                return self._bare(unit, operand)
            case Call("exists" | "empty", (VariableValue(variable) as only,)) if (
                unit := self._unit(variable)
            ) is None and only.variable not in self.paths:
                return operand
            case Call(function, arguments) if function in _FUNCTIONS:
                return self._call(function, arguments)
            case Call(function, arguments):
                return Call(function, tuple(map(self.of, arguments)))
            case Row(table, key):
                return self._row(table, key)
            case Cell(row, column):
                return Cell(self._row(row.table, row.key), column)
            case Conditional(condition, then, otherwise):
                return Conditional(
                    tuple(map(self.conjunction, condition)), self.of(then), self.of(otherwise)
                )
        return operand

    def _row(self, table: str, key: Operand) -> Row:
        return Row(table, self.of(key))

    def _unit(self, variable: str) -> RepeatedUnit | None:
        named = (u for u in self.units if variable in u.variables or variable in u.folds)
        return next(named, None)

    def _run(self, unit: RepeatedUnit) -> str | None:
        return None if unit == self.at_hand else unit.run

    def _bare(self, unit: RepeatedUnit, operand: Operand) -> Elements:
        run = self._run(unit)
        return Elements(run, "candidate" if run is None else "all", operand)

    def _call(self, function: str, arguments: tuple[Operand, ...]) -> Operand:
        """Return a function of elements; what it is of speaks of one of them."""
        if not arguments:
            return Elements(None, function)
        of, *further = arguments
        units = [unit for v in operand_variables(of) if (unit := self._unit(v)) is not None]
        otherwise = self.of(further[0]) if further else None
        return Elements(self._run(units[0]), function, self._of_element(of), otherwise)

    def _of_element(self, operand: Operand) -> Operand:
        match operand:
            case VariableValue(variable):
                return self.paths.get(variable, operand)
            case Call(function, arguments):
                return Call(function, tuple(map(self._of_element, arguments)))
        return operand

    def conjunction(self, disjunct: Disjunct) -> Disjunct:
        """Return a conjunction that says what is of elements."""
        joins: list[ValueJoin] = []
        tests = [replace(test, arguments=self._arguments(test)) for test in disjunct.tests]
        for join in disjunct.value_joins:
            left, right = self.of(join.left), self.of(join.right)
            if any(
                isinstance(e, (Elements, PathFrom))
                for s in (left, right)
                for e in operands_below(s)
            ):
                tests.append(Call("joins", (left, right)))
            else:
                joins.append(join)
        measured = {join: self._residual(join.residual) for join in disjunct.similarity_joins}
        of_elements = [each for each in measured.values() if _has_elements(each)]
        residuals = [*map(self._residual, disjunct.residuals), *of_elements]
        similar = [join for join, each in measured.items() if not _has_elements(each)]
        return Disjunct(tuple(joins), tuple(residuals), tuple(similar), tuple(tests))

    def _residual(self, residual: Residual) -> Residual:
        return Residual(self.of(residual.left), residual.operator, self.of(residual.right))

    def _arguments(self, test: Call) -> tuple[Operand, ...]:
        found = self.of(test)
        assert isinstance(found, Call)
        return found.arguments


def with_elements(
    disjunct: Disjunct,
    units: tuple[RepeatedUnit, ...],
    paths: Mapping[str, PathFrom],
    at_hand: RepeatedUnit | None = None,
) -> Disjunct:
    """Return a conjunction that says what is of elements.

    `paths` are the paths from variables that need not be there: those of repeated units, and in the
    conditions of a repetition all.  `at_hand` is the unit whose candidate is judged.
    """
    return _Rewriting(units, paths, at_hand).conjunction(disjunct)


def operand_with_elements(
    operand: Operand,
    units: tuple[RepeatedUnit, ...],
    paths: Mapping[str, PathFrom],
    at_hand: RepeatedUnit | None = None,
) -> Operand:
    """Return an operand that says what is of elements."""
    return _Rewriting(units, paths, at_hand).of(operand)


def of_candidate(operand: Operand) -> Operand:
    """Return what is of all elements of a complete run as what it is of one element."""
    match operand:
        case Elements(_, "all", of):
            return Elements(None, "candidate", of)
        case Call(function, arguments):
            return Call(function, tuple(map(of_candidate, arguments)))
    return operand


def _has_elements(residual: Residual) -> bool:
    below = (*operands_below(residual.left), *operands_below(residual.right))
    return any(isinstance(each, Elements) for each in below)


def element_operands(disjunct: Disjunct) -> Iterator[Operand]:
    """Yield what a conjunction asks of elements."""
    yield from of_elements(disjunct.operands())


def of_elements(operands: Iterable[Operand]) -> Iterator[Operand]:
    """Yield what operands ask of elements."""
    for operand in operands:
        for below in operands_below(operand):
            if isinstance(below, Elements) and below.function != "fold" and below.operand:
                yield below.operand
