"""From a chain under MATCH to a `Chained` node.

A run over a chain takes elements, in units too: a unit is a repetition of one element.  So all that
is asked while a run goes on is asked of elements, and what an alternative of a unit does not bind
is left out when it is asked.  What is handed on is of one choice of alternatives, and asks of plain
units what a join asks of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from templates.elements import RepeatedUnit, operand_with_elements, with_elements
from templates.keys import SameKeys
from templates.ordered import AbsentInChain, Chained, ChainStep, given_us
from templates.predicates import Disjuncts
from xscl.counting import counts_chain
from xscl.path import Parameter
from xscl.query import (
    INFINITE_US,
    Absence,
    Disjunct,
    Fold,
    From,
    Key,
    Node,
    Operand,
    Operator,
    PathFrom,
    Query,
    Repetition,
    Unit,
    VariableValue,
    Window,
    operand_terms,
)
from xscl.sequence import blocks_below

__all__ = ["ChainReading"]

_ALWAYS = (Disjunct(),)


@dataclass(frozen=True, slots=True)
class _ChainLink:
    """A step as it is written, with what the operator before it asks."""

    unit: Node
    repetition: Repetition | None
    operator: Operator | None


@dataclass(frozen=True, slots=True)
class ChainReading:
    """Reads the chains of a query, under one choice of alternatives.

    `paths` are the paths from variables, `repeated_paths` those of repeated units.  `bound` leaves
    out of a predicate what the choice does not bind.
    """

    query: Query
    choice: Mapping[Unit, int]
    repeated: tuple[RepeatedUnit, ...]
    paths: Mapping[str, PathFrom]
    repeated_paths: Mapping[str, PathFrom]
    bound: Callable[[Iterable[Disjunct]], Disjuncts]
    same: SameKeys

    def chain(
        self,
        origin: int,
        node: Node,
        source: From,
        keys: Sequence[Key],
        within_us: int,
        innermost: Window | Parameter | None,
    ) -> Chained:
        """Return a chain; `keys` and the lengths are those of all clauses around it."""
        assert source.strategy is not None
        links, absences = _links(node)
        units = tuple(self._unit(link.unit) for link in links)
        steps = [
            self._step(link, unit, units, keys) for link, unit in zip(links, units, strict=True)
        ]
        if counts_chain(self.query):
            # A number of matches is handed on once, whichever disjuncts they fit.
            steps = [replace(step, begin=_ALWAYS) for step in steps]
        return Chained(
            origin,
            source.strategy,
            tuple(steps),
            tuple(self.absent(place, each, keys, units) for place, each in absences),
            tuple(key.path for key in keys),
            within_us,
            given_us(innermost),
            innermost if isinstance(innermost, Parameter) else None,
        )

    def _unit(self, node: Node) -> RepeatedUnit:
        """Return a unit whose tuples are elements."""
        blocks = tuple(blocks_below(node))
        repeated = next((unit for unit in self.repeated if unit.blocks == blocks), None)
        if repeated is not None:
            return repeated
        names = frozenset(v.name for v in self.query.variables if v.block in blocks)
        return RepeatedUnit(blocks, names, frozenset())

    def _step(
        self,
        link: _ChainLink,
        unit: RepeatedUnit,
        units: tuple[RepeatedUnit, ...],
        keys: Sequence[Key],
    ) -> ChainStep:
        repetition, operator = link.repetition, link.operator
        first = _ALWAYS if operator is None else operator.disjuncts
        each = _ALWAYS if repetition is None else repetition.disjuncts
        folds = () if repetition is None else repetition.folds
        gap_us = given_us(None if repetition is None else repetition.gap)
        block = unit.first
        if isinstance(link.unit, Unit) and repetition is None:
            block = self.choice[link.unit]
        return ChainStep(
            unit,
            block,
            repetition is not None,
            self._handed_on(link, unit),
            self._asked(first, unit, units),
            self._with_literals(self._asked(each, unit, units), unit, keys),
            tuple((fold.name, *self._fold(fold, unit, units)) for fold in folds),
            self._compared(each, unit),
            tuple(tuple(key.variable(b) for key in keys) for b in unit.blocks),
            ()
            if repetition is None
            else tuple(self.same.variable(key, unit.first) for key in keys),
            gap_us,
            INFINITE_US if operator is None else given_us(operator.window),
        )

    def _handed_on(self, link: _ChainLink, unit: RepeatedUnit) -> Disjuncts:
        """Return what is asked of a tuple that is handed on: of plain units as of a join."""
        if link.operator is None:
            return _ALWAYS
        if link.repetition is None:
            return self.bound(link.operator.disjuncts)
        # Another alternative may not compare a path: then it need not be there.
        paths = self.repeated_paths if len(unit.blocks) == 1 else self.paths
        return self.bound(
            [with_elements(d, self.repeated, paths, unit) for d in link.operator.disjuncts]
        )

    def _asked(
        self, disjuncts: Iterable[Disjunct], unit: RepeatedUnit, units: tuple[RepeatedUnit, ...]
    ) -> Disjuncts:
        known = (*units, unit) if unit not in units else units
        return tuple(with_elements(each, known, self.paths, unit) for each in disjuncts)

    def _fold(
        self, fold: Fold, unit: RepeatedUnit, units: tuple[RepeatedUnit, ...]
    ) -> tuple[Operand, Operand]:
        first, following = (
            operand_with_elements(each, units, self.paths, unit)
            for each in (fold.first, fold.following)
        )
        return first, following

    def absent(
        self,
        place: int,
        absence: Absence,
        keys: Sequence[Key],
        units: tuple[RepeatedUnit, ...] | None = None,
    ) -> AbsentInChain:
        """Return a unit that must be absent before a step.

        `units` are those whose tuples are elements; where they are left out it is asked of what
        stands before a repetition as of a join.
        """
        unit = self._unit(absence.absent)
        asked = self._asked(absence.disjuncts, unit, self.repeated if units is None else units)
        if units is None:
            asked = self.bound(asked)
        return AbsentInChain(
            place,
            unit,
            self._with_literals(asked, unit, keys),
            self._compared(absence.disjuncts, unit),
            tuple(tuple(key.variable(b) for key in keys) for b in unit.blocks),
            given_us(absence.window),
        )

    def _with_literals(
        self, disjuncts: Iterable[Disjunct], unit: RepeatedUnit, keys: Sequence[Key]
    ) -> Disjuncts:
        """Return what is asked of a unit, with what SAME asks beside that keys are the same."""
        literals = self.same.literals_of_elements(keys, unit)
        return tuple(replace(one, residuals=(*one.residuals, *literals)) for one in disjuncts)

    def _compared(self, disjuncts: Iterable[Disjunct], unit: RepeatedUnit) -> frozenset[str]:
        """Return the plain units' variables that conditions of elements compare."""
        known = (*self.repeated, unit) if unit not in self.repeated else self.repeated
        asked = self.bound([with_elements(d, known, self.paths, unit) for d in disjuncts])
        return frozenset(
            each.variable
            for disjunct in asked
            for operand in disjunct.operands()
            for each in operand_terms(operand)
            if isinstance(each, VariableValue) and each.variable[0] != "+"
        )


def _links(node: Node) -> tuple[list[_ChainLink], list[tuple[int, Absence]]]:
    """Return the steps of a chain, and its absences with the steps behind which they stand."""
    match node:
        case Absence(operand=operand):
            links, absences = _links(operand)
            return links, [*absences, (len(links) - 1, node)]
        case Operator(left=left, right=right):
            links, absences = _links(left)
            unit, repetition = _repeated(right)
            return [*links, _ChainLink(unit, repetition, node)], absences
    unit, repetition = _repeated(node)
    return [_ChainLink(unit, repetition, None)], []


def _repeated(node: Node) -> tuple[Node, Repetition | None]:
    return (node.unit, node) if isinstance(node, Repetition) else (node, None)
