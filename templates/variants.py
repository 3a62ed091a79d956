"""A statement with lossy units as ordinary statements: one for each choice of what was lost.

A source is a first operand and steps behind it: operators, and absences of what stands before.  In
a variant the steps of lost units are gone.  The operator behind them has what their operators ask
of the units that are left, what follows from the equalities through the lost ones, and their
windows; and it has an absence for each of them.  `docs/loss.md` has the theory.

Where an operator that mentions a lost unit has several disjuncts, there is a variant for each: all
operators of such a chain are FOLLOWED BY, whose tuples are those of their disjuncts together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, pairwise, product

from templates.comparisons import (
    Comparison,
    EqualTerm,
    both,
    compared,
    comparisons_of,
    conjunction,
    equality,
)
from templates.derived import as_derived
from templates.factor import Factor
from xscl.comparison import operands_below
from xscl.delays import exact
from xscl.path import Literal, Parameter
from xscl.query import (
    INFINITE_US,
    Absence,
    AbsenceKind,
    Call,
    Derived,
    Disjunct,
    From,
    Node,
    Operand,
    Operator,
    Query,
    Residual,
    SimilarityJoin,
    ValueJoin,
    VariableValue,
    Window,
    operand_variables,
)
from xscl.sequence import blocks_below, children, units_of

__all__ = ["Variant", "variants"]

_Step = Operator | Absence
_Choice = Mapping[int, Disjunct]


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
    chain = _Chain(query)
    least = exact(query.confidence) if isinstance(query.confidence, float) else Fraction(0)
    sizes = range(len(chain.lossy) + 1)
    chosen = (each for size in sizes for each in combinations(chain.lossy, size))
    return [
        variant
        for lost in chosen
        if chain.can_be(lost, least)
        for variant in chain.variants(lost)
        if variant.most >= least and variant.most
    ]


class _Chain:
    """The source of a query with lossy units, as a first operand and steps."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.outer = query.root if isinstance(query.root, From) else From(query.root)
        self.steps: list[_Step] = []
        node = self.outer.node
        while isinstance(node, (Operator, Absence)):
            self.steps.append(node)
            node = node.left if isinstance(node, Operator) else node.operand
        self.first = node
        self.steps.reverse()
        self.place_of = dict.fromkeys(blocks_below(node), -1)
        for place, step in enumerate(self.steps):
            added = step.right if isinstance(step, Operator) else step.absent
            self.place_of |= dict.fromkeys(blocks_below(added), place)
        self.losses = {
            block: each.loss for block, each in enumerate(query.blocks) if each.loss is not None
        }
        positive = {block for unit in units_of(query.root) for block in unit}
        self.lossy = sorted(positive & self.losses.keys())
        self.block_of = {variable.name: variable.block for variable in query.variables}
        self.blocks = tuple(replace(block, loss=None) for block in query.blocks)

    def can_be(self, lost: Sequence[int], least: Fraction) -> bool:
        """Return whether the probabilities of loss alone leave some confidence."""
        left = Fraction(1)
        for block in lost:
            left *= exact(self.losses[block].probability)
        return left >= least and left > 0

    def variants(self, lost: Sequence[int]) -> Iterator[Variant]:
        """Yield the variants without some units, one for each choice of disjuncts."""
        for choice in self._choices(lost, range(len(self.steps)) if lost else ()):
            root, factors = self._rewritten(lost, choice)
            if self.outer != From(self.outer.node):
                root = replace(self.outer, node=root)
            yield Variant(replace(self.query, root=root, blocks=self.blocks), tuple(lost), factors)

    # -- comparisons -----------------------------------------------------------------------------

    def _choices(self, lost: Sequence[int], places: Iterable[int]) -> Iterator[_Choice]:
        """Yield a disjunct for each operator that joins across a lost unit, or mentions one."""
        gone = {self.place_of[block] for block in lost}
        asked = [
            place
            for place in places
            if isinstance(step := self.steps[place], Operator)
            and (
                place in gone
                or self._before(place) in gone
                or any(
                    self._mentions(each, lost) for d in step.disjuncts for each in comparisons_of(d)
                )
            )
        ]
        of_each = [self.steps[place].disjuncts for place in asked]
        for chosen in product(*of_each):
            yield dict(zip(asked, chosen, strict=True))

    def _before(self, place: int) -> int:
        """Return the place of the unit before an operator's right one."""
        before = (i for i in range(place - 1, -1, -1) if isinstance(self.steps[i], Operator))
        return next(before, -1)

    def _mentions(self, comparison: Comparison, lost: Iterable[int]) -> bool:
        return not set(lost).isdisjoint(self._blocks(comparison))

    def _blocks(self, comparison: Comparison) -> set[int]:
        names = {n for o in compared(comparison) for n in operand_variables(o)}
        return {self.block_of[name] for name in names if name in self.block_of}

    def _asked(self, lost: Sequence[int], choice: _Choice) -> dict[int, list[Comparison]]:
        """Return what each operator with a choice asks of the units that are left.

        What follows from equalities is asked where the later of two terms comes in.
        """
        gone = {self.place_of[block] for block in lost}
        asked: dict[int, list[Comparison]] = {}
        for place, disjunct in choice.items():
            for comparison in comparisons_of(disjunct):
                if not self._mentions(comparison, lost):
                    asked.setdefault(self._behind(place, gone), []).append(comparison)
        for latest, comparison in self._closure(lost, choice):
            known = asked.setdefault(self._behind(latest, gone), [])
            if comparison not in known:
                known.append(comparison)
        return asked

    def _behind(self, place: int, gone: set[int]) -> int:
        """Return the first operator from a place on whose right unit is left."""
        return next(
            i
            for i in range(max(place, 0), len(self.steps))
            if i not in gone and isinstance(self.steps[i], Operator)
        )

    def _closure(
        self, lost: Sequence[int], choice: _Choice
    ) -> Iterator[tuple[int, ValueJoin | Residual]]:
        """Yield what follows from the equalities through lost units, each with its place."""
        for members in self._classes(lost, choice):
            terms = sorted((each for each in members if not isinstance(each, Literal)), key=repr)
            left = sorted(
                (each for each in terms if self._block(each) not in lost),
                key=lambda each: self.place_of[self._block(each)],
            )
            if len(left) == len(terms) or not left:
                continue
            for earlier, later in pairwise(left):
                places = [self.place_of[self._block(each)] for each in (earlier, later)]
                if places[0] == places[1]:
                    yield places[1], Residual(earlier, "=", later)
                else:
                    yield places[1], ValueJoin(earlier, later)
            for literal in (each for each in members if isinstance(each, Literal)):
                yield self.place_of[self._block(left[0])], Residual(left[0], "=", literal)

    def _classes(self, lost: Sequence[int], choice: _Choice) -> list[set[EqualTerm]]:
        """Return the classes of terms that a choice of disjuncts makes equal."""
        classes: list[set[EqualTerm]] = []
        for disjunct in choice.values():
            for comparison in comparisons_of(disjunct):
                pair = equality(comparison)
                if pair is None or any(self._has_several(each, lost) for each in pair):
                    continue
                joined = [each for each in classes if not each.isdisjoint(pair)]
                classes = [each for each in classes if each.isdisjoint(pair)]
                classes.append(set(pair).union(*joined))
        return classes

    def _has_several(self, term: EqualTerm, lost: Sequence[int]) -> bool:
        """Whether two equalities with a term of a lost unit may speak of different values."""
        if isinstance(term, Literal) or self._block(term) not in lost:
            return False
        called = (o.function for o in operands_below(term) if isinstance(o, Call))
        return "tokenize" in called

    def _block(self, term: Derived) -> int:
        return self.block_of[operand_variables(term)[0]]

    # -- the tree --------------------------------------------------------------------------------

    def _rewritten(self, lost: Sequence[int], choice: _Choice) -> tuple[Node, tuple[Factor, ...]]:
        """Return the source without some units, and its factors."""
        asked = self._asked(lost, choice)
        classes = self._classes(lost, choice)
        factors: list[Factor] = []
        node: Node = self.first
        neighbour = _roots(self.query, self.first)
        factors += self._factors_within(self.first)
        left, missing = neighbour, list[int]()
        waiting: list[Absence] = []
        window_us = 0
        for place, step in enumerate(self.steps):
            if isinstance(step, Absence):
                found = self._absence(step, lost, classes)
                if missing:
                    waiting.append(found)
                    continue
                node = absent = replace(found, operand=node)
                factors += self._unseen(absent, left, neighbour)
                continue
            window_us += _length_us(step.window)
            waiting = [replace(each, window=_longer(each.window, step.window)) for each in waiting]
            if step.right in lost:
                assert isinstance(step.right, int)
                missing.append(step.right)
                continue
            left, neighbour = neighbour, _roots(self.query, step.right)
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
                losses = tuple(self.losses[block] for block in missing)
                within_us = _length_us(self.outer.within)
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
        variant: tuple[Sequence[int], _Choice],
    ) -> Absence:
        """Return a tuple without a unit, unless a document is there that the unit would take."""
        lost, chosen = variant
        held = self._asked(lost, chosen).get(place, [])
        others = [each for each in lost if each != block]
        first = min(self.place_of[each] for each in missing)
        places = range(first, place + 1)
        disjuncts: list[Disjunct] = []
        for choice in self._choices([*missing], places):
            asked = self._asked(others, {**chosen, **choice})
            comparisons = [each for i in places for each in asked.get(i, []) if each not in held]
            own = [self._of_absent(each, block) for each in comparisons]
            disjuncts += self._in_time(block, first, own)
        own_place = self.place_of[block]
        operators = (
            step for step in self.steps[own_place + 1 : place + 1] if isinstance(step, Operator)
        )
        behind_us = sum(_length_us(step.window) for step in operators)
        window = None if behind_us >= INFINITE_US else Window(behind_us)
        return Absence(AbsenceKind.BETWEEN, node, block, tuple(dict.fromkeys(disjuncts)), window)

    def _of_absent(self, comparison: Comparison, block: int) -> Comparison:
        """Return a comparison as one behind UNLESS: the absent unit stands last."""
        match comparison:
            case SimilarityJoin():
                return comparison.residual
            case ValueJoin(left, right):
                if self._block(right) == block:
                    return comparison
                is_left = self._block(left) == block
                return ValueJoin(right, left) if is_left else Call("joins", (left, right))
        return comparison

    def _in_time(
        self, block: int, first: int, comparisons: Sequence[Comparison]
    ) -> Iterator[Disjunct]:
        """Yield the comparisons, and that a document comes within the windows before it."""
        steps = self.steps[first : self.place_of[block] + 1]
        before_us = sum(_length_us(step.window) for step in steps if isinstance(step, Operator))
        if before_us >= INFINITE_US:
            yield conjunction(comparisons)
            return
        before = self._before(first)
        node = self.first if before < 0 else self.steps[before].right  # type: ignore[union-attr]
        own = Call("time", (VariableValue(self.query.blocks[block].root),))
        for unit in units_of(node):
            # The end of several is that of the last; a root that is not bound is left out.
            within = [
                Residual(
                    Call("-", (own, Call("time", (VariableValue(self.query.blocks[each].root),)))),
                    "<=",
                    Literal(float(before_us)),
                )
                for each in unit
            ]
            yield conjunction([*comparisons, *within])

    def _absence(
        self, absence: Absence, lost: Sequence[int], classes: Sequence[set[EqualTerm]]
    ) -> Absence:
        """Return an absence that compares what is left where it compares what is lost."""
        place = max(self.place_of[each] for each in blocks_below(absence.absent))

        def equal(term: Operand) -> Operand:
            known = as_derived(term)
            if known is None or self._block(known) not in lost:
                return term
            for members in classes:
                if known in members:
                    left = [
                        each
                        for each in members
                        if not isinstance(each, Literal)
                        and self._block(each) not in lost
                        and self.place_of[self._block(each)] < place
                    ]
                    return min(left, key=repr, default=term)
            return term

        disjuncts = tuple(
            conjunction(
                [
                    replace(each, left=equal(each.left), right=equal(each.right))  # type: ignore[arg-type]
                    if isinstance(each, (ValueJoin, Residual)) and equality(each) is not None
                    else each
                    for each in comparisons_of(disjunct)
                ]
            )
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
        around = around or self.outer
        within_us = _length_us(around.within)
        for block in blocks_below(absence.absent):
            if block not in self.losses:
                continue
            losses = (self.losses[block],)
            if absence.kind is AbsenceKind.BETWEEN:
                yield Factor(losses, False, left, right, (block,))
            else:
                window_us = min(_length_us(absence.window), within_us)
                own_us = within_us if within_us < INFINITE_US else INFINITE_US
                roots = _roots(self.query, absence.operand)
                yield Factor(losses, False, roots, (), (block,), window_us, own_us)

    def _factors_within(self, node: Node, around: From | None = None) -> Iterator[Factor]:
        """Yield the factors of lossy units that are absent within an operand in parentheses."""
        around = around or self.outer
        match node:
            case From():
                within = min(around.within, node.within, key=_length_us)
                yield from self._factors_within(node.node, replace(node, within=within))
            case Absence(operand=operand):
                yield from self._factors_within(operand, around)
                below = operand
                while isinstance(below, Absence):
                    below = below.operand
                sides: list[tuple[str, ...]] = [(), ()]
                if isinstance(below, Operator):
                    sides = [_roots(self.query, below.left), _roots(self.query, below.right)]
                yield from self._unseen(node, sides[0], sides[1], around)
            case _:
                for child in children(node):
                    yield from self._factors_within(child, around)


def _roots(query: Query, node: Node) -> tuple[str, ...]:
    """Return the roots of the blocks of a node's tuples."""
    return tuple(query.blocks[block].root for unit in units_of(node) for block in unit)


def _length_us(window: Window | Parameter | None) -> int:
    return window.length_us if isinstance(window, Window) else INFINITE_US


def _window(length_us: int) -> Window:
    return Window(min(length_us, INFINITE_US))


def _longer(window: Window | Parameter | None, by: Window | Parameter) -> Window | None:
    return None if window is None else _window(_length_us(window) + _length_us(by))
