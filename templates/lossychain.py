"""The source of a statement with lossy units, and what its comparisons come to without some.

Equalities through a lost unit hold between the units that are left (`docs/loss.md`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, pairwise, product

from templates.comparisons import (
    Comparison,
    EqualTerm,
    compared,
    comparisons_of,
    equality,
)
from templates.derived import as_derived
from xscl.comparison import has_several, is_datum
from xscl.delays import exact
from xscl.path import Literal, Parameter
from xscl.query import (
    Absence,
    Disjunct,
    From,
    Operator,
    Query,
    Residual,
    ValueJoin,
    operand_variables,
)
from xscl.sequence import blocks_below, units_of
from xscl.textjoins import is_of_strings

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
        # One whose type is left open is a text here: a query says of which a number is given.
        self._texts = query.text_parameters
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
                    self.mentions(each, lost) for d in step.disjuncts for each in comparisons_of(d)
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

    def mentions(self, comparison: Comparison, lost: Iterable[int]) -> bool:
        """Return whether a comparison speaks of a lost unit."""
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
                if not self.mentions(comparison, lost):
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
            data = sorted(filter(is_datum, members), key=repr)
            terms = sorted(members.difference(data), key=repr)
            gone = [each for each in terms if self.is_lost(each, lost)]
            left = sorted((each for each in terms if each not in gone), key=self._place)
            if not gone:
                continue
            texts = [each for each in left if self.is_text(each)]
            several = [each for each in left if has_several(each)]
            numbers = [each for each in left if each not in texts and each not in several]
            # As each kind is in the order of the chain, its first terms tie both as soon as may be.
            others = [*numbers[:1], *several]
            tied = product(texts[:1], others) if texts else combinations(others, 2)
            for pair in [*pairwise(texts), *pairwise(numbers), *tied]:
                earlier, later = sorted(pair, key=self._place)
                yield self._place(later), self.equal(earlier, later)
            for term, datum in product(texts[:1] or others, data):
                yield self._place(term), self.equal(term, datum)
            # Nothing is left that is equal to data which no lost document has at once.
            for term, (datum, other) in product([] if left else gone, combinations(data, 2)):
                yield self._place(term), Residual(datum, "=", other)

    def equal(self, earlier: EqualTerm, later: EqualTerm) -> ValueJoin | Residual:
        """Return the equality of two terms, one that is looked up where it can be."""
        one, other = as_derived(earlier), as_derived(later)
        if one is None or other is None or self._place(one) == self._place(other):
            return Residual(earlier, "=", later)
        return ValueJoin(one, other)

    def _place(self, term: EqualTerm) -> int:
        return self.place_of[self.block(term)]

    def classes(self, lost: Sequence[int], choice: Choice) -> list[set[EqualTerm]]:
        """Return the classes of terms that a choice of disjuncts makes equal.

        A number is in the class of each text that it is equal to, and joins no two of them: they
        may be `1` and `1.0`.  Nor does what has several values, of which each text may be another.
        """
        pairs = [
            pair
            for disjunct in choice.values()
            for pair in map(equality, comparisons_of(disjunct))
            if pair is not None
            and all(self.is_text(each) or not self.is_lost(each, lost) for each in pair)
        ]
        classes: list[set[EqualTerm]] = []
        for pair in pairs:
            texts = {each for each in pair if self.is_text(each)}
            if texts:
                joined = [each for each in classes if not each.isdisjoint(texts)]
                classes = [each for each in classes if each.isdisjoint(texts)]
                classes.append(texts.union(*joined))
        for pair in pairs:
            for members in classes:
                if any(self.is_text(each) and each in members for each in pair):
                    members.update(pair)
        return classes

    def is_lost(self, term: EqualTerm, lost: Sequence[int]) -> bool:
        """Return whether a term is of a lost unit."""
        return not is_datum(term) and self.block(term) in lost

    def is_text(self, term: EqualTerm) -> bool:
        """Return whether a term is one text: then all that are equal to it are equal."""
        match term:
            case Literal(value):
                return isinstance(value, str)
            case Parameter(name):
                return name in self._texts
        return is_of_strings(term) and not has_several(term)

    def block(self, term: EqualTerm) -> int:
        """Return the block of a term that is no datum."""
        return self.block_of[operand_variables(term)[0]]
