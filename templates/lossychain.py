"""The source of a statement with lossy units, and what its comparisons come to without some.

Equalities through a lost unit hold between the units that are left (`docs/loss.md`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product

from templates.comparisons import (
    Comparison,
    EqualTerm,
    compared,
    comparisons_of,
    equality,
)
from templates.derived import as_derived, is_of_strings
from xscl.comparison import operands_below
from xscl.delays import exact
from xscl.path import Literal
from xscl.query import (
    Absence,
    Call,
    Derived,
    Disjunct,
    From,
    Operator,
    Query,
    Residual,
    ValueJoin,
    operand_variables,
)
from xscl.sequence import blocks_below, units_of

__all__ = ["Choice", "LossyChain", "Step"]

Step = Operator | Absence
Choice = Mapping[int, Disjunct]
"""A disjunct for some of the operators, by their places."""


class LossyChain:
    """The source of a query with lossy units, as a first operand and steps."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.outer = query.root if isinstance(query.root, From) else From(query.root)
        self.steps: list[Step] = []
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

    def choices(self, lost: Sequence[int], places: Iterable[int]) -> Iterator[Choice]:
        """Yield a disjunct for each operator that joins across a lost unit, or mentions one."""
        gone = {self.place_of[block] for block in lost}
        asked = [
            place
            for place in places
            if isinstance(step := self.steps[place], Operator)
            and (
                place in gone
                or self.before(place) in gone
                or any(
                    self._mentions(each, lost) for d in step.disjuncts for each in comparisons_of(d)
                )
            )
        ]
        of_each = [self.steps[place].disjuncts for place in asked]
        for chosen in product(*of_each):
            yield dict(zip(asked, chosen, strict=True))

    def before(self, place: int) -> int:
        """Return the place of the unit before an operator's right one."""
        before = (i for i in range(place - 1, -1, -1) if isinstance(self.steps[i], Operator))
        return next(before, -1)

    def _mentions(self, comparison: Comparison, lost: Iterable[int]) -> bool:
        return not set(lost).isdisjoint(self._blocks(comparison))

    def _blocks(self, comparison: Comparison) -> set[int]:
        names = {n for o in compared(comparison) for n in operand_variables(o)}
        return {self.block_of[name] for name in names if name in self.block_of}

    def asked(self, lost: Sequence[int], choice: Choice) -> dict[int, list[Comparison]]:
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

    def stands_at(self, lost: Sequence[int], absence: Absence) -> int:
        """Return the place of the operator behind which an absence stands when units are lost.

        It is -1 for an absence of the first operand, which is never lost.
        """
        before = self.before(min(self.place_of[each] for each in blocks_below(absence.absent)))
        if before < 0:
            return before
        return self._behind(before, {self.place_of[block] for block in lost})

    def _behind(self, place: int, gone: set[int]) -> int:
        """Return the first operator from a place on whose right unit is left."""
        return next(
            i
            for i in range(max(place, 0), len(self.steps))
            if i not in gone and isinstance(self.steps[i], Operator)
        )

    def _closure(
        self, lost: Sequence[int], choice: Choice
    ) -> Iterator[tuple[int, ValueJoin | Residual]]:
        """Yield what follows from the equalities through lost units, each with its place."""
        for members in self.classes(lost, choice):
            terms = sorted((each for each in members if not isinstance(each, Literal)), key=repr)
            left = sorted((each for each in terms if self.block(each) not in lost), key=self._place)
            if len(left) == len(terms) or not left:
                continue
            texts = [each for each in left if _is_text(each)]
            numbers = [each for each in left if each not in texts]
            # As each kind is in the order of the chain, its first terms tie both as soon as may be.
            tied = zip(texts[:1], numbers[:1], strict=False)
            for pair in [*pairwise(texts), *pairwise(numbers), *tied]:
                earlier, later = sorted(pair, key=self._place)
                yield self._place(later), self._equal(earlier, later)
            first = (texts or numbers)[0]
            for literal in (each for each in members if isinstance(each, Literal)):
                yield self._place(first), Residual(first, "=", literal)

    def _equal(self, earlier: Derived, later: Derived) -> ValueJoin | Residual:
        """Return the equality of two terms, one that is looked up where it can be."""
        one, other = as_derived(earlier), as_derived(later)
        if one is None or other is None or self._place(earlier) == self._place(later):
            return Residual(earlier, "=", later)
        return ValueJoin(one, other)

    def _place(self, term: Derived) -> int:
        return self.place_of[self.block(term)]

    def classes(self, lost: Sequence[int], choice: Choice) -> list[set[EqualTerm]]:
        """Return the classes of terms that a choice of disjuncts makes equal.

        A number is in the class of each text that it is equal to, and joins no two of them: they
        may be `1` and `1.0`.
        """
        pairs = [
            pair
            for disjunct in choice.values()
            for pair in map(equality, comparisons_of(disjunct))
            if pair is not None and not any(self._has_several(each, lost) for each in pair)
        ]
        classes: list[set[EqualTerm]] = []
        for pair in pairs:
            texts = {each for each in pair if _is_text(each)}
            if texts:
                joined = [each for each in classes if not each.isdisjoint(texts)]
                classes = [each for each in classes if each.isdisjoint(texts)]
                classes.append(texts.union(*joined))
        for pair in pairs:
            for members in classes:
                if any(_is_text(each) and each in members for each in pair):
                    members.update(pair)
        return classes

    def _has_several(self, term: EqualTerm, lost: Sequence[int]) -> bool:
        """Whether two equalities with a term of a lost unit may speak of different values."""
        if isinstance(term, Literal) or self.block(term) not in lost:
            return False
        called = (o.function for o in operands_below(term) if isinstance(o, Call))
        return "tokenize" in called or not _is_text(term)

    def block(self, term: Derived) -> int:
        """Return the block of a term."""
        return self.block_of[operand_variables(term)[0]]


def _is_text(term: EqualTerm) -> bool:
    """Return whether a term is compared as a text with a text; a number is not."""
    if isinstance(term, Literal):
        return isinstance(term.value, str)
    return is_of_strings(term)
