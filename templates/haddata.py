"""The data that operands of a decision have, and what is asked beside their values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from templates.clause import Clause
from templates.conjunctions import conjunction_of
from templates.decision import ALWAYS, Conjunction, DecisionKind
from templates.hadtests import given_values
from templates.helddata import asked_of_had, equal_terms
from xscl.path import Parameter
from xscl.query import Disjunct

__all__ = ["HadData", "Operands"]

Operands = Sequence[Clause]
"""What is decided about, or what is on either side of it: one choice among alternatives."""


class HadData:
    """The data that values of an operand are equal to, whichever alternative it is, by side.

    What is on both sides is that of the first.  `used` are those beside whose values something is
    asked.
    """

    def __init__(self, kind: DecisionKind) -> None:
        self._kind = kind
        self.known: list[set[str]] = []
        self._used: list[set[str]] = [set(), set()]

    def know(self, statements: Iterable[Sequence[Operands]]) -> None:
        """Learn of the next operand in all statements, each with its alternatives."""
        side = len(self.known)
        had = [set(_terms(choices, side)) for choices in statements]
        self.known.append(set.intersection(*had).difference(*self.known))

    @property
    def of_competing(self) -> set[str]:
        """What is known beside a further operand that competes."""
        return self.of_all if self._kind is DecisionKind.NEXT else set()

    @property
    def of_all(self) -> set[str]:
        """What is known of all operands so far."""
        return set[str]().union(*self.known)

    @property
    def used(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What is used so far, by side."""
        first, second = map(sorted, self._used)
        return tuple(first), tuple(second)

    def asked_of_right(self, operands: Operands, rest: Disjunct) -> Conjunction:
        """Return what a right operand is asked beside the left one, with the `rest`.

        Of pairs that do not compete it is what they are looked up by: all else is asked above.
        """
        if len(operands) < 2:
            return ALWAYS
        left, right = operands
        asked = self._asked(right, [[left]], rest)
        if self._kind is not DecisionKind.NEXT:
            asked = replace(asked, had=())
        return self._noted(asked, [[left]])

    def asked_of_absent(
        self, absent: Clause, choices: Sequence[Operands], rest: Disjunct
    ) -> Conjunction:
        """Return what is asked of absent rows beside operands of a statement, with the `rest`."""
        return self._noted(self._asked(absent, choices, rest), choices)

    def window_of_absent(self, window_us: int | Parameter, choices: Sequence[Operands]) -> str:
        """Return the term of a statement's first operand that says a window; "" if none does."""
        if isinstance(window_us, int):
            return ""
        terms = self._known_terms(choices, 0)
        for given in given_values([window_us.name], terms) or ():
            self._used[0].update(datum for datum, name in terms.items() if name == given.term)
            return given.term
        return ""

    def _asked(self, clause: Clause, choices: Sequence[Operands], rest: Disjunct) -> Conjunction:
        terms = [self._known_terms(choices, side) for side in range(len(choices[0]))]
        known = {datum: each[datum] for each in terms for datum in each}
        return conjunction_of(rest, known, asked_of_had(clause, known))

    def _noted(self, asked: Conjunction, choices: Sequence[Operands]) -> Conjunction:
        """Return what is asked, the data noted whose values it reads of operands."""
        read = {name for name, _ in asked.same}
        read.update(each.term for test in asked.had for each in test.given)
        read.update(each.term for each in asked.given)
        for side in range(len(choices[0])):
            terms = self._known_terms(choices, side)
            self._used[side].update(datum for datum, name in terms.items() if name in read)
        return asked

    def _known_terms(self, choices: Sequence[Operands], side: int) -> dict[str, str]:
        terms = _terms(choices, side)
        return {datum: terms[datum] for datum in self.known[side]}


def _terms(choices: Sequence[Operands], side: int) -> dict[str, str]:
    """Return the data that all choices of an operand are equal to, by the same term."""
    first, *others = (equal_terms(each[side]) for each in choices)
    return {d: name for d, name in first.items() if all(o.get(d) == name for o in others)}
