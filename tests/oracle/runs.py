"""Repetitions (section 16), by nested loops.

A run is built element by element.  What is asked of the next element is asked of what stands
before the repetition, and of the elements that the run has taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from oracle.conditions import Facts, all_of, applied, compared_in, values_of
from oracle.contender import Around, Contender, Row, Run, follows, is_within, same
from oracle.freshpaths import FreshPath
from oracle.values import Atom
from xscl.comparison import operands_below
from xscl.query import (
    INFINITE_US,
    Call,
    Conditional,
    Disjunct,
    Node,
    Operand,
    Operator,
    OperatorKind,
    PathFrom,
    Repetition,
    Residual,
    ValueJoin,
    VariableValue,
)
from xscl.sequence import blocks_below, nodes_below

if TYPE_CHECKING:
    from oracle.decided import Decisions

__all__ = ["ALWAYS", "Disjuncts", "Runs", "Step", "Taken", "bases_in", "with_optional"]

Disjuncts = tuple[Disjunct, ...]

ALWAYS = (Disjunct(),)


@dataclass(frozen=True, slots=True)
class Step:
    """A unit or a repetition of a chain, and what the operator before it asks."""

    unit: Node
    repetition: Repetition | None
    disjuncts: Disjuncts = ALWAYS
    window_us: int = INFINITE_US


@dataclass(frozen=True, slots=True)
class Taken:
    """What a run has taken: the elements of each step, and its FOLD values at the last one."""

    elements: tuple[tuple[Contender, ...], ...]
    folds: Mapping[str, tuple[Atom, ...]]

    @property
    def all(self) -> tuple[Contender, ...]:
        """All elements in order."""
        return tuple(one for step in self.elements for one in step)

    @property
    def start_us(self) -> int:
        """When it began."""
        return self.all[0].start_us


class Runs:
    """The runs of one query under one assignment."""

    def __init__(self, decisions: Decisions) -> None:
        self.decisions = decisions

    def predicates(self) -> Iterator[Sequence[Disjunct]]:
        """Yield the predicates of repetitions, FOLD as one that compares its values."""
        for node in nodes_below(self.decisions.query.root):
            if isinstance(node, Repetition):
                yield node.disjuncts
                yield node.condition or ()
                yield [
                    Disjunct(residuals=(Residual(each.first, "=", each.following),))
                    for each in node.folds
                ]

    # -- operators -----------------------------------------------------------------------------

    def leading(self, node: Repetition, around: Around) -> list[Contender]:
        """Return the runs with which a from begins."""
        step = Step(node.unit, node)
        units = self.decisions.contenders(node.unit, around)
        begun = Taken(((),), self.first_folds(node, None))
        taken = [
            found for one in units if (found := self.extended(None, begun, [step], one, around))
        ]
        runs = [each for one in taken for each in self._all(None, one, [step], units, around)]
        return [self.open(None, each, node) for each in runs]

    def behind(self, operator: Operator, around: Around) -> list[Contender]:
        """Return the runs of an operator whose right operand is repeated."""
        node = operator.right
        assert isinstance(node, Repetition)
        window_us = self.decisions.rules.length_us(operator.window)
        step = Step(node.unit, node, operator.disjuncts, window_us)
        units = self.decisions.contenders(node.unit, around)
        found: list[Contender] = []
        for left in self.decisions.contenders(operator.left, around):
            begun = Taken(((),), self.first_folds(node, left))
            if operator.kind is OperatorKind.NEXT:
                runs = self._next(left, begun, step, units, around)
                made = (self._decided(left, each, step) for each in runs)
                found += [one for one in made if one is not None]
            else:
                for one in units:
                    first = self.extended(left, begun, [step], one, around)
                    if first is not None:
                        runs = self._all(left, first, [step], units, around)
                        found += [self.open(left, each, node, operator.disjuncts) for each in runs]
        return found

    def _all(
        self,
        left: Contender | None,
        taken: Taken,
        steps: Sequence[Step],
        units: Sequence[Contender],
        around: Around,
    ) -> Iterator[Taken]:
        yield taken
        for one in units:
            longer = self.extended(left, taken, steps, one, around)
            if longer is not None:
                yield from self._all(left, longer, steps, units, around)

    def _next(
        self,
        left: Contender,
        taken: Taken,
        step: Step,
        units: Sequence[Contender],
        around: Around,
    ) -> Iterator[Taken]:
        """Yield the runs behind NEXT that are longer than one that is taken."""
        last = taken.all[-1] if taken.all else left
        fitting = [
            (one, longer)
            for one in units
            if (longer := self.extended(left, taken, [step], one, around)) is not None
        ]
        for one in self.first([one for one, _ in fitting], last):
            longer = next(longer for other, longer in fitting if other is one)
            if self.goes_on(left, taken, step, one):
                yield longer
                yield from self._next(left, longer, step, units, around)

    def first(self, those: Sequence[Contender], last: Contender) -> list[Contender]:
        """Return the next ones after an instance: 12.3."""
        order: list[tuple[tuple[int, int], Contender]] = []
        for one in those:
            settled = self.decisions.clock.settled(one.end_us)
            if settled is not None:
                at = max(settled, last.position[0], one.position[0])
                order.append(((at, one.end_us), one))
        least = min((at for at, _ in order), default=None)
        return [one for at, one in order if at == least]

    def goes_on(self, left: Contender | None, taken: Taken, step: Step, one: Contender) -> bool:
        """Return whether WHILE holds of an element that a run would take."""
        assert step.repetition is not None
        condition = step.repetition.condition
        return condition is None or self.holds(condition, left, taken, one)

    # -- what a run takes ----------------------------------------------------------------------

    def extended(
        self,
        left: Contender | None,
        taken: Taken,
        steps: Sequence[Step],
        one: Contender,
        around: Around,
        first: Contender | None = None,
        reach_us: int | None = None,
    ) -> Taken | None:
        """Return a run with one element more in its last step, None where it does not fit.

        `first` is the first instance of the run where that is not what stands before it, and
        `reach_us` for how long it is remembered where that is not the operator's window.
        """
        step, own = steps[-1], taken.elements[-1]
        before = taken.all
        last = before[-1] if before else left
        if reach_us is None:
            reach_us = around.reach_us(step.window_us)
        if first is None:
            first = left if left is not None else before[0] if before else None
        rules = self.decisions.rules
        if last is not None and not (follows(one, last) and same(around, last, one)):
            return None
        gap = None if step.repetition is None else step.repetition.gap
        gap_us = INFINITE_US if gap is None else rules.length_us(gap)
        if own and not is_within(one.end_us - own[-1].end_us, gap_us):
            return None
        if left is not None and not is_within(one.end_us - left.end_us, step.window_us):
            return None
        start_us = one.start_us if first is None else first.start_us
        if any(one.end_us - start_us > each for each in around.within):
            return None
        if first is not None and not self.decisions.meet(reach_us, first, one):
            return None
        if not own and left is not None and not self.holds(step.disjuncts, left, taken, one):
            return None
        if step.repetition is not None and not self.holds(
            step.repetition.disjuncts, left, taken, one
        ):
            return None
        folds = dict(taken.folds)
        if step.repetition is not None:
            facts = self.facts(left, taken, one)
            if left is not None:
                (row, *_) = left.rows
                facts = replace(facts, nodes={**dict(row.nodes), **facts.nodes})
            for fold in step.repetition.folds:
                folds[fold.name] = tuple(values_of(fold.following, facts) or ())
        return Taken((*taken.elements[:-1], (*own, one)), folds)

    def holds(
        self, disjuncts: Disjuncts, left: Contender | None, taken: Taken, one: Contender
    ) -> bool:
        """Return whether a condition holds of a candidate, for some row of what stands before."""
        facts = self.facts(left, taken, one)
        rows = [Row(frozenset())] if left is None else left.rows
        return any(
            all_of(
                with_optional(disjunct, self._paths()),
                replace(facts, nodes={**dict(row.nodes), **facts.nodes}),
            )
            for row in rows
            for disjunct in disjuncts
        )

    def _paths(self) -> dict[str, FreshPath]:
        return {each.variable: each for each in self.decisions.fresh.values()}

    def facts(self, left: Contender | None, taken: Taken, one: Contender) -> Facts:
        """Return what is known where a candidate is judged."""
        element = self.decisions.element
        own = element(one)
        before = tuple(map(element, taken.elements[-1]))
        known = own if left is None else self.decisions.facts(left)
        start_us = taken.start_us if left is None and taken.all else known.start_us
        return Facts(
            {**known.nodes, **own.nodes},
            {**known.owners, **own.owners},
            start_us,
            one.end_us,
            known.parameters,
            known.elements,
            before,
            {**known.folds, **taken.folds},
        )

    def first_folds(self, node: Repetition, left: Contender | None) -> dict[str, tuple[Atom, ...]]:
        if left is None:
            facts = Facts({}, {}, 0, 0, self.decisions.rules.parameters)
        else:
            # Of a chain what was taken may have no row that is handed on.
            nodes = next((dict(row.nodes) for row in left.rows), {})
            facts = replace(self.decisions.facts(left), nodes=nodes)
        return {each.name: tuple(values_of(each.first, facts) or ()) for each in node.folds}

    # -- what a run is -------------------------------------------------------------------------

    def run(self, left: Contender | None, taken: Taken, node: Repetition) -> tuple[Run, ...]:
        before = () if left is None else left.runs
        first = 0 if left is None else len(left.documents)
        folds = tuple((fold.name, taken.folds[fold.name]) for fold in node.folds)
        return (*before, Run(first, tuple(blocks_below(node)), taken.elements[-1], folds))

    def rows(
        self, left: Contender | None, taken: Taken, node: Repetition, disjuncts: Disjuncts
    ) -> frozenset[Row]:
        """Return the rows of the left operand that fit the first element."""
        if left is None:
            return frozenset([Row(frozenset())])
        decisions = self.decisions
        empty = Taken(((),), self.first_folds(node, left))
        facts = self.facts(left, empty, taken.elements[-1][0])
        plain = decisions.facts(left)
        found: set[Row] = set()
        for disjunct in disjuncts:
            # Another alternative may not compare a path: then it need not be there.
            is_one = len(list(blocks_below(node))) == 1
            asked = with_optional(disjunct, decisions.optional if is_one else self._paths())
            applies = applied(asked, {*facts.owners, *facts.elements, *facts.folds})
            if applies is None:
                continue
            compared = compared_in(applies if is_one else asked) & plain.owners.keys()
            paths = [path for path in decisions.fresh.values() if path.variable in compared]
            for row in left.rows:
                for nodes in decisions.extended(dict(row.nodes), paths):
                    if all_of(applies, replace(facts, nodes={**nodes, **facts.nodes})):
                        own = frozenset(nodes.items())
                        found.add(Row(own, row.compared | frozenset(compared), row.similar))
        asked_of = [node.disjuncts, node.condition or ()]
        rows = frozenset(found)
        return decisions.with_compared(replace(left, rows=rows), asked_of).rows

    def _decided(self, left: Contender, taken: Taken, step: Step) -> Contender | None:
        assert step.repetition is not None
        rows = self.rows(left, taken, step.repetition, step.disjuncts)
        return self.decisions.decided(
            (left, *taken.all),
            rows,
            left.start_us,
            taken.all[-1].end_us,
            self.run(left, taken, step.repetition),
        )

    def open(
        self,
        left: Contender | None,
        taken: Taken,
        node: Repetition,
        disjuncts: Disjuncts = ALWAYS,
    ) -> Contender:
        parts = taken.all if left is None else (left, *taken.all)
        newest = max(parts, key=lambda each: each.position)
        return Contender(
            tuple(block for each in parts for block in each.blocks),
            tuple(document for each in parts for document in each.documents),
            frozenset() if left is None else left.chosen,
            self.rows(left, taken, node, disjuncts),
            parts[0].start_us,
            parts[-1].end_us,
            newest.position,
            newest.watermark_us,
            parts,
            self.run(left, taken, node),
        )


# -- paths of elements -------------------------------------------------------------------------


def with_optional(disjunct: Disjunct, paths: Mapping[str, FreshPath]) -> Disjunct:
    """Return a conjunction that reads paths from variables as what they select, none or more."""

    def of(operand: Operand) -> Operand:
        match operand:
            case VariableValue(variable) if variable in paths:
                return PathFrom(paths[variable].base, paths[variable].path)
            case Call(function, arguments):
                return Call(function, tuple(map(of, arguments)))
            case Conditional(condition, then, otherwise):
                return Conditional(tuple(map(of_all, condition)), of(then), of(otherwise))
        return operand

    def of_all(each: Disjunct) -> Disjunct:
        return Disjunct(
            tuple(ValueJoin(of(j.left), of(j.right)) for j in each.value_joins),  # type: ignore[arg-type]
            tuple(Residual(of(r.left), r.operator, of(r.right)) for r in each.residuals),
            tuple(
                replace(join, left=of(join.left), right=of(join.right))  # type: ignore[arg-type]
                for join in each.similarity_joins
            ),
            tuple(Call(test.function, tuple(map(of, test.arguments))) for test in each.tests),
        )

    return of_all(disjunct)


def bases_in(disjunct: Disjunct) -> set[str]:
    """Return the variables that a conjunction mentions, those that paths lead from too."""
    return {
        below.variable
        for operand in disjunct.operands()
        for below in operands_below(operand)
        if isinstance(below, (VariableValue, PathFrom))
    }
