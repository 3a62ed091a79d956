"""A statement with lossy units as ordinary statements: one for each choice of what was lost.

A source is a first operand and steps behind it: operators, and absences of what stands before.  In
a variant the steps of lost units are gone.  The operator behind them has what their operators ask
of the units that are left, what follows from the equalities through the lost ones, and their
windows; and it has an absence for each of them.  `docs/loss.md` has the theory.

Where an operator that mentions a lost unit has several disjuncts, there is a variant for each: all
operators of such a chain are FOLLOWED BY, whose tuples are those of their disjuncts together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations

from templates.comparisons import (
    Comparison,
    EqualTerm,
    both,
    comparisons_of,
    conjunction,
    equality,
)
from templates.factor import Factor
from templates.lossychain import Choice, LossyChain
from templates.ordered import length_us
from xscl.comparison import is_datum
from xscl.delays import exact
from xscl.path import Literal, Parameter
from xscl.query import (
    INFINITE_US,
    Absence,
    AbsenceKind,
    Call,
    Disjunct,
    From,
    Node,
    Operator,
    Query,
    Residual,
    SimilarityJoin,
    ValueJoin,
    VariableValue,
    Window,
)
from xscl.sequence import blocks_below, children, units_of
from xscl.textjoins import is_of_strings

__all__ = ["Variant", "variants"]


@dataclass(frozen=True, slots=True)
class Variant:
    """One choice of lost units: a query without them, and the factors of its confidence."""

    query: Query
    lost: tuple[int, ...]
    factors: tuple[Factor, ...]

    @property
    def most(self) -> Fraction:
        """The most confidence that a match of it can have."""
        found = Fraction(1)
        for factor in self.factors:
            found *= factor.most
        return found


def variants(query: Query) -> list[Variant]:
    """Return the variants of a query that can reach its confidence, that of all units first.

    No parameter is left in its losses and windows.
    """
    if not query.is_lossy:
        return [Variant(query, (), ())]
    chain = LossyChain(query)
    rewriting = _WithoutUnits(chain)
    least = exact(query.confidence) if isinstance(query.confidence, float) else Fraction(0)
    sizes = range(len(chain.lossy) + 1)
    chosen = (each for size in sizes for each in combinations(chain.lossy, size))
    return [
        variant
        for lost in chosen
        if chain.can_be(lost, least)
        for variant in rewriting.variants(lost)
        if variant.most >= least and variant.most
    ]


class _WithoutUnits:
    """The variants of a query, as its chain without some units."""

    def __init__(self, chain: LossyChain) -> None:
        self._chain = chain
        self._query, self._outer, self._steps = chain.query, chain.outer, chain.steps
        self._losses = chain.losses

    def variants(self, lost: Sequence[int]) -> Iterator[Variant]:
        """Yield the variants without some units, one for each choice of disjuncts."""
        for choice in self._chain.choices(lost, range(len(self._steps)) if lost else ()):
            root, factors = self._rewritten(lost, choice)
            if self._outer != From(self._outer.node):
                root = replace(self._outer, node=root)
            yield Variant(
                replace(self._query, root=root, blocks=self._chain.blocks),
                tuple(lost),
                factors,
            )

    # -- the tree --------------------------------------------------------------------------------

    def _rewritten(self, lost: Sequence[int], choice: Choice) -> tuple[Node, tuple[Factor, ...]]:
        """Return the source without some units, and its factors."""
        asked = self._chain.asked(lost, choice)
        classes = self._chain.classes(lost, choice)
        factors: list[Factor] = []
        node: Node = self._chain.first
        neighbour = _roots(self._query, self._chain.first)
        factors += self._factors_within(self._chain.first)
        left, missing = neighbour, list[int]()
        waiting: list[Absence] = []
        window_us = 0
        for place, step in enumerate(self._steps):
            if isinstance(step, Absence):
                found = self._absence(step, lost, classes)
                if missing:
                    waiting.append(found)
                    continue
                node = absent = replace(found, operand=node)
                factors += self._unseen(absent, left, neighbour)
                continue
            window_us += length_us(step.window)
            waiting = [replace(each, window=_longer(each.window, step.window)) for each in waiting]
            if step.right in lost:
                assert isinstance(step.right, int)
                missing.append(step.right)
                continue
            left, neighbour = neighbour, _roots(self._query, step.right)
            factors += self._factors_within(step.right)
            disjuncts = step.disjuncts
            if place in choice:
                disjuncts = (conjunction(asked.get(place, [])),)
            elif place in asked:
                more = conjunction(asked[place])
                disjuncts = tuple(both(each, more) for each in disjuncts)
            window = _window(window_us)
            node = replace(step, left=node, disjuncts=disjuncts, window=window)
            for block in missing:
                node = self._instead(block, node, missing, place, (lost, choice))
            if missing:
                losses = tuple(self._losses[block] for block in missing)
                within_us = length_us(self._outer.within)
                blocks = tuple(missing)
                factors.append(Factor(losses, True, left, neighbour, blocks, window_us, within_us))
            for absence in waiting:
                node = absent = replace(absence, operand=node)
                factors += self._unseen(absent, left, neighbour)
            waiting, missing, window_us = [], [], 0
        return node, tuple(factors)

    def _instead(
        self,
        block: int,
        node: Node,
        missing: Sequence[int],
        place: int,
        variant: tuple[Sequence[int], Choice],
    ) -> Absence:
        """Return a tuple without a unit, unless a document is there that the unit would take."""
        lost, chosen = variant
        held = self._chain.asked(lost, chosen).get(place, [])
        others = [each for each in lost if each != block]
        first = min(self._chain.place_of[each] for each in missing)
        places = range(first, place + 1)
        disjuncts: list[Disjunct] = []
        for choice in self._chain.choices([*missing], places):
            asked = self._chain.asked(others, {**chosen, **choice})
            comparisons = [each for i in places for each in asked.get(i, []) if each not in held]
            own = [self._of_absent(each, block) for each in comparisons]
            disjuncts += self._in_time(block, first, own)
        own_place = self._chain.place_of[block]
        operators = (
            step for step in self._steps[own_place + 1 : place + 1] if isinstance(step, Operator)
        )
        behind_us = sum(length_us(step.window) for step in operators)
        window = None if behind_us >= INFINITE_US else Window(behind_us)
        return Absence(AbsenceKind.BETWEEN, node, block, tuple(dict.fromkeys(disjuncts)), window)

    def _of_absent(self, comparison: Comparison, block: int) -> Comparison:
        """Return a comparison as one behind UNLESS: the absent unit stands last."""
        match comparison:
            case SimilarityJoin():
                return comparison.residual
            case ValueJoin(left, right):
                if self._chain.block(right) == block:
                    return comparison
                is_left = self._chain.block(left) == block
                return ValueJoin(right, left) if is_left else Call("joins", (left, right))
        return comparison

    def _in_time(
        self, block: int, first: int, comparisons: Sequence[Comparison]
    ) -> Iterator[Disjunct]:
        """Yield the comparisons, and that a document comes within the windows before it."""
        steps = self._steps[first : self._chain.place_of[block] + 1]
        before_us = sum(length_us(step.window) for step in steps if isinstance(step, Operator))
        if before_us >= INFINITE_US:
            yield conjunction(comparisons)
            return
        before = self._chain.before(first)
        node = self._chain.first if before < 0 else self._steps[before].right  # type: ignore[union-attr]
        own = Call("time", (VariableValue(self._query.blocks[block].root),))
        for unit in units_of(node):
            # The end of several is that of the last; a root that is not bound is left out.
            within = [
                Residual(
                    Call(
                        "-",
                        (own, Call("time", (VariableValue(self._query.blocks[each].root),))),
                    ),
                    "<=",
                    Literal(float(before_us)),
                )
                for each in unit
            ]
            yield conjunction([*comparisons, *within])

    def _absence(
        self, absence: Absence, lost: Sequence[int], classes: Sequence[set[EqualTerm]]
    ) -> Absence:
        """Return an absence that compares what is left, equal to terms that are lost.

        One beside a lost unit stands behind the next that is left, whose terms it may compare.
        """
        last = self._chain.stands_at(lost, absence)

        def is_left(term: EqualTerm) -> bool:
            if is_datum(term) or self._chain.is_lost(term, lost):
                return is_datum(term)
            return self._chain.place_of[self._chain.block(term)] <= last

        def rank(term: EqualTerm) -> tuple[bool, bool, bool, str]:
            """A text says more than a number that it is equal to, or than one of several."""
            return (
                not self._chain.is_text(term),
                is_datum(term),
                not is_of_strings(term),
                repr(term),
            )

        def equal(term: EqualTerm) -> EqualTerm:
            if not self._chain.is_lost(term, lost):
                return term
            members = next((each for each in classes if term in each), set[EqualTerm]())
            return min(filter(is_left, members), key=rank, default=term)

        def about_left(comparison: Comparison) -> Comparison:
            pair = equality(comparison)
            if pair is None or not self._chain.mentions(comparison, lost):
                return comparison
            one, other = sorted(map(equal, pair), key=is_datum)
            is_looked_up = isinstance(comparison, ValueJoin)
            return self._chain.equal(one, other) if is_looked_up else Residual(one, "=", other)

        disjuncts = tuple(
            conjunction([about_left(each) for each in comparisons_of(disjunct)])
            for disjunct in absence.disjuncts
        )
        return replace(absence, disjuncts=disjuncts)

    # -- factors ---------------------------------------------------------------------------------

    def _unseen(
        self,
        absence: Absence,
        left: tuple[str, ...],
        right: tuple[str, ...],
        around: From | None = None,
    ) -> Iterator[Factor]:
        """Yield the factors of the lossy units of an absence between two neighbours, or behind."""
        around = around or self._outer
        within_us = length_us(around.within)
        for block in blocks_below(absence.absent):
            if block not in self._losses:
                continue
            losses = (self._losses[block],)
            if absence.kind is AbsenceKind.BETWEEN:
                yield Factor(losses, False, left, right, (block,))
            else:
                window_us = min(length_us(absence.window), within_us)
                own_us = within_us if within_us < INFINITE_US else INFINITE_US
                roots = _roots(self._query, absence.operand)
                yield Factor(losses, False, roots, (), (block,), window_us, own_us)

    def _factors_within(self, node: Node, around: From | None = None) -> Iterator[Factor]:
        """Yield the factors of lossy units that are absent within an operand in parentheses."""
        around = around or self._outer
        match node:
            case From():
                within = min(around.within, node.within, key=length_us)
                yield from self._factors_within(node.node, replace(node, within=within))
            case Absence(operand=operand):
                yield from self._factors_within(operand, around)
                below = operand
                while isinstance(below, Absence):
                    below = below.operand
                sides: list[tuple[str, ...]] = [(), ()]
                if isinstance(below, Operator):
                    sides = [
                        _roots(self._query, below.left),
                        _roots(self._query, below.right),
                    ]
                yield from self._unseen(node, sides[0], sides[1], around)
            case _:
                for child in children(node):
                    yield from self._factors_within(child, around)


def _roots(query: Query, node: Node) -> tuple[str, ...]:
    """Return the roots of the blocks of a node's tuples."""
    return tuple(query.blocks[block].root for unit in units_of(node) for block in unit)


def _window(length_us: int) -> Window:
    return Window(min(length_us, INFINITE_US))


def _longer(window: Window | Parameter | None, by: Window | Parameter) -> Window | None:
    return None if window is None else _window(length_us(window) + length_us(by))
