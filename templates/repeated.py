"""From a repetition to a `Repeated` node: the runs of a unit, behind an operand or without one.

In the conditions of the repetition its variables are those of elements (`templates.elements`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from templates.elements import RepeatedUnit, operand_with_elements, with_elements
from templates.keys import SameKeys
from templates.ordered import AbsentInChain, PlainNode, Repeated, given_us
from templates.predicates import BoundVariables, Disjuncts, all_of
from xscl.path import Parameter
from xscl.query import (
    INFINITE_US,
    Disjunct,
    Fold,
    Key,
    Operand,
    PathFrom,
    Repetition,
    Window,
)
from xscl.sequence import blocks_below

__all__ = ["OperandBefore", "RepetitionReading"]


@dataclass(frozen=True, slots=True)
class OperandBefore:
    """What stands before a repetition: an operand and its last block, and what is asked of both."""

    node: PlainNode
    last: int
    is_next: bool
    disjuncts: Sequence[Disjunct]
    window_us: int | Parameter


@dataclass(frozen=True, slots=True)
class RepetitionReading:
    """Reads the repetitions of a query, under one choice of alternatives.

    `paths` are the paths from variables, `repeated_paths` those of repeated units.  `bound` are the
    variables that the choice binds.
    """

    repeated: tuple[RepeatedUnit, ...]
    paths: Mapping[str, PathFrom]
    repeated_paths: Mapping[str, PathFrom]
    bound: BoundVariables
    same: SameKeys

    def unit_of(self, node: Repetition) -> RepeatedUnit:
        """Return what is repeated."""
        return next(u for u in self.repeated if u.first == next(blocks_below(node)))

    def runs(
        self,
        origin: int,
        node: Repetition,
        before: OperandBefore | None,
        keys: Sequence[Key],
        within: tuple[int, Window | Parameter | None],
        absences: tuple[AbsentInChain, ...],
    ) -> Repeated:
        """Return the runs of a repetition; `keys` are those of all clauses around it.

        `within` is the shortest length around it, and the innermost WITHIN.
        """
        unit = self.unit_of(node)
        within_us, innermost = within
        literals = tuple(self.same.literals_of_elements(keys, unit))
        each = all_of(self._of_step(node.disjuncts, unit), (Disjunct(residuals=literals),))
        begin: Disjuncts = (Disjunct(),)
        window_us: int | Parameter = INFINITE_US
        if before is not None:
            window_us = before.window_us
            # Another alternative may not compare a path: then it need not be there.
            paths = self.repeated_paths if len(unit.blocks) == 1 else self.paths
            asked = [with_elements(d, self.repeated, paths, unit) for d in before.disjuncts]
            begin = self.bound.predicate(asked)
        return Repeated(
            origin,
            unit,
            before is not None and before.is_next,
            None if before is None else before.node,
            begin,
            each,
            None if node.condition is None else self._of_step(node.condition, unit),
            tuple((fold.name, *self._fold(fold, unit)) for fold in node.folds),
            tuple(tuple(key.variable(b) for key in keys) for b in unit.blocks),
            () if before is None else tuple(self.same.variable(key, before.last) for key in keys),
            tuple(self.same.variable(key, unit.first) for key in keys),
            given_us(node.gap),
            window_us,
            within_us,
            given_us(innermost) if window_us == INFINITE_US else window_us,
            absences,
            innermost if isinstance(innermost, Parameter) else None,
        )

    def _of_step(self, disjuncts: Iterable[Disjunct], unit: RepeatedUnit) -> Disjuncts:
        """Return what is asked of each element; no path from a variable need be there."""
        return self.bound.predicate(
            [with_elements(each, self.repeated, self.paths, unit) for each in disjuncts]
        )

    def _fold(self, fold: Fold, unit: RepeatedUnit) -> tuple[Operand, Operand]:
        sides = (fold.first, fold.following)
        first, following = (
            self.bound.operand(operand_with_elements(each, self.repeated, self.paths, unit))
            for each in sides
        )
        return first, following
