"""A source in which something is repeated, as steps: what a run takes one after another.

Each unit is a step, as in a chain under MATCH: what conditions read of it are elements, of a plain
unit one (`templates.chained`).  What must be absent is left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from templates.elements import (
    RepeatedUnit,
    element_operands,
    operand_with_elements,
    repeated_units,
    with_elements,
)
from templates.optionalpaths import fresh_paths
from templates.ordered import length_us
from xscl.query import (
    INFINITE_US,
    Absence,
    Disjunct,
    From,
    Node,
    Operand,
    Operator,
    OperatorKind,
    Query,
    Repetition,
    Residual,
    Term,
    VariableValue,
    operand_terms,
)
from xscl.sequence import blocks_below

__all__ = ["RunScope", "RunStep", "SteppedSource", "stepped"]

Disjuncts = tuple[Disjunct, ...]


@dataclass(frozen=True, slots=True)
class RunStep:
    """A unit or a repetition, and what the operator before it asks of its first element.

    `each` is asked of every element, WHILE behind the braces: what fails it ends the run.
    """

    unit: RepeatedUnit
    is_repeated: bool = False
    is_next: bool = False
    window_us: int = INFINITE_US
    gap_us: int = INFINITE_US
    first: Disjuncts = (Disjunct(),)
    each: tuple[Disjuncts, ...] = ()
    folds: tuple[tuple[str, Operand, Operand], ...] = ()


@dataclass(frozen=True, slots=True)
class RunScope:
    """What WITHIN, SAME and WHERE ask of some of the steps, from `first` to `last`."""

    source: From
    first: int
    last: int
    where: Disjuncts = (Disjunct(),)

    @property
    def within_us(self) -> int:
        """How long its steps may take."""
        return INFINITE_US if self.source.within is None else length_us(self.source.within)


@dataclass(frozen=True, slots=True)
class SteppedSource:
    """The steps of a source, and the clauses around them."""

    steps: tuple[RunStep, ...]
    scopes: tuple[RunScope, ...]

    def read(self) -> frozenset[Term]:
        """Return what conditions read of elements."""
        asked = [d for step in self.steps for some in (step.first, *step.each) for d in some]
        asked += [d for scope in self.scopes for d in scope.where]
        asked += [_compared(*sides) for step in self.steps for _, *sides in step.folds]
        operands = [each for disjunct in asked for each in element_operands(disjunct)]
        keys = (key for scope in self.scopes for key in scope.source.keys)
        found = {term for operand in operands for term in operand_terms(operand)}
        return frozenset(found | {VariableValue(name) for k in keys for _, name in k.variables})


def _compared(first: Operand, following: Operand) -> Disjunct:
    return Disjunct(residuals=(Residual(first, "=", following),))


def stepped(query: Query) -> SteppedSource | None:
    """Return the steps of a query's source, None where it is no chain of units.

    `query` has no parameters.
    """
    reading = _Stepping(query)
    parts = reading.parts(query.root)
    return None if parts is None else reading.source(parts)


@dataclass(frozen=True, slots=True)
class _Part:
    """A unit with what stands around it, as the text has it."""

    unit: Node
    repetition: Repetition | None = None
    operator: Operator | None = None


class _Stepping:
    """Reads the source of a query."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._paths = fresh_paths(query)
        self._repeated = repeated_units(query)
        self._units: tuple[RepeatedUnit, ...] = ()
        self._scopes: list[tuple[From, int, int]] = []

    def parts(self, node: Node, place: int = 0) -> list[_Part] | None:
        """Return the units of a node, the first of which is step `place`."""
        match node:
            case From(node=inner):
                found = self.parts(inner, place)
                if found is not None:
                    self._scopes.append((node, place, place + len(found) - 1))
                return found
            case Absence(operand=operand):
                return self.parts(operand, place)
            case Repetition(unit=unit):
                return [_Part(unit, node)]
            case Operator(kind=kind, left=left, right=right) if kind is not OperatorKind.JOIN:
                before = self.parts(left, place)
                behind = None if before is None else self.parts(right, place + len(before))
                if before is None or behind is None or len(behind) > 1:
                    return None
                return [*before, replace(behind[0], operator=node)]
            case Operator():
                return None
        return [_Part(node)]

    def source(self, parts: Iterable[_Part]) -> SteppedSource:
        """Return steps with what is asked of elements."""
        parts = list(parts)
        self._units = tuple(self._unit(part.unit) for part in parts)
        steps = [self._step(part, unit) for part, unit in zip(parts, self._units, strict=True)]
        scopes = [
            RunScope(source, first, last, self._asked(source.where, None))
            for source, first, last in self._scopes
        ]
        return SteppedSource(tuple(steps), tuple(scopes))

    def _unit(self, node: Node) -> RepeatedUnit:
        blocks = tuple(blocks_below(node))
        repeated = next((unit for unit in self._repeated if unit.blocks == blocks), None)
        names = frozenset(v.name for v in self._query.variables if v.block in blocks)
        return repeated or RepeatedUnit(blocks, names, frozenset())

    def _step(self, part: _Part, unit: RepeatedUnit) -> RunStep:
        step, operator = RunStep(unit), part.operator
        if operator is not None:
            step = replace(
                step,
                is_next=operator.kind is OperatorKind.NEXT,
                window_us=length_us(operator.window),
                first=self._asked(operator.disjuncts, unit),
            )
        if (node := part.repetition) is None:
            return step
        asked = [node.disjuncts, *([node.condition] if node.condition is not None else [])]
        return replace(
            step,
            is_repeated=True,
            gap_us=INFINITE_US if node.gap is None else length_us(node.gap),
            each=tuple(self._asked(each, unit) for each in asked),
            folds=tuple(
                (fold.name, self._operand(fold.first, unit), self._operand(fold.following, unit))
                for fold in node.folds
            ),
        )

    def _asked(self, disjuncts: Disjuncts | None, unit: RepeatedUnit | None) -> Disjuncts:
        some = disjuncts or (Disjunct(),)
        return tuple(with_elements(each, self._units, self._paths, unit) for each in some)

    def _operand(self, operand: Operand, unit: RepeatedUnit) -> Operand:
        return operand_with_elements(operand, self._units, self._paths, unit)
