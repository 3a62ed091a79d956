"""What is admitted to a prefilter: the constants of all who share a node, as one condition.

The catalog counts constants as statements come and go (`Constants`); a plan has what they come to
(`Admission`), which changes only where the condition does: with a looser bound, or another word;
the evaluator asks it of values (`AdmissionTest`).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from math import inf

from xpath_eval.textindex import TextIndex
from xscl.functions import Atom, compare_literal, spell, to_double
from xscl.prefilters import Admitted, Prefilter, Read, numbers_beside, values_of
from xscl.texttests import IN_NO_TEXT, TEXT_TESTS

__all__ = ["Admission", "AdmissionTest", "Constants", "Missing"]


def is_of_bounds(prefilter: Prefilter) -> bool:
    """Return whether the constants of a prefilter are bounds of numbers."""
    return prefilter.operator[0] in "<>"


@dataclass(frozen=True, slots=True)
class Admission:
    """A condition that holds where `prefilter` does for some constant.

    Of an inequality `bound` is the loosest of its numbers; of a chain of steps it is the greatest,
    and there is the `least`.  Of other operators `constants` are all
    there are; of `!=` with several, which every value fulfils, there are none.  With several words,
    a negated one holds everywhere.  `words` are all of
    them in one text, which costs little to send, with a character between them that no text has.
    `digest` is a hash of all.
    """

    prefilter: Prefilter
    bound: float = 0.0
    least: float = 0.0
    constants: frozenset[str | float] = frozenset()
    words: str | None = field(default=None, compare=False)
    digest: int = 0

    @property
    def is_of_bounds(self) -> bool:
        """Whether constants are held against numbers as bounds."""
        return is_of_bounds(self.prefilter)

    def covers(self, constant: str | float) -> bool:
        """Return whether it holds wherever the prefilter does for a constant."""
        operator = self.prefilter.operator
        if self.prefilter.is_negated and len(self.all) > 1:
            return True
        if self.prefilter.chain is not None:
            return self.least <= to_double(constant) <= self.bound
        if self.is_of_bounds:
            number = to_double(constant)
            if number != number:
                return True  # nothing is less or greater than what is no number
            return number <= self.bound if operator[0] == "<" else number >= self.bound
        return constant in self.all or (operator == "!=" and not self.constants)

    @property
    def all(self) -> frozenset[str | float]:
        """All constants, of words and others."""
        return self.constants if self.words is None else frozenset(self.words.split(IN_NO_TEXT))


class Constants:
    """The constants of all who share a node, for one of its prefilters."""

    def __init__(self, prefilter: Prefilter) -> None:
        self.prefilter = prefilter
        self._counts: Counter[str | float] = Counter()
        self._digest = 0
        self._admission: Admission | None = None

    @classmethod
    def of(cls, prefilter: Prefilter) -> Constants:
        """Return none yet, of a prefilter."""
        if prefilter.chain is not None:
            return _ChainConstants(prefilter)
        return _WordConstants(prefilter) if prefilter.operator in TEXT_TESTS else cls(prefilter)

    def __bool__(self) -> bool:
        return bool(self._counts)

    def add(self, constant: str | float) -> bool:
        """Count a constant; return whether the admission may be another one."""
        self._counts[constant] += 1
        return self._counts[constant] == 1 and self._change(constant, 1)

    def remove(self, constant: str | float) -> bool:
        """Undo one `add`; return whether the admission may be another one."""
        self._counts[constant] -= 1
        if self._counts[constant]:
            return False
        del self._counts[constant]
        return self._change(constant, -1)

    def _change(self, constant: str | float, sign: int) -> bool:
        before, self._admission = self._admission, None
        self._digest = (self._digest + sign * _digest(constant)) % _DIGESTS
        if before is None or not is_of_bounds(self.prefilter):
            return True
        number = to_double(constant)
        if before.covers(constant) if sign > 0 else number != before.bound:
            self._admission = before
            return False
        if sign > 0:
            self._admission = replace(before, bound=number + 0.0)
        return True

    @property
    def admission(self) -> Admission:
        """What the constants come to."""
        if self._admission is None:
            self._admission = self._made()
        return self._admission

    def _made(self) -> Admission:
        if is_of_bounds(self.prefilter):
            is_upper = self.prefilter.operator[0] == "<"
            numbers = [n for n in map(to_double, self._counts) if n == n]
            bound = max(numbers, default=-inf) if is_upper else min(numbers, default=inf)
            return Admission(self.prefilter, bound + 0.0)
        if self.prefilter.operator == "!=" and len(self._counts) > 1:
            return Admission(self.prefilter)
        return Admission(self.prefilter, constants=frozenset(self._counts), digest=self._digest)


class _ChainConstants(Constants):
    """Numbers within arithmetic: what holds of one of them holds of the least or the greatest."""

    def _change(self, constant: str | float, sign: int) -> bool:
        before, number = self._admission, to_double(constant)
        if before is not None and (
            before.covers(number) if sign > 0 else before.least < number < before.bound
        ):
            return False
        self._admission = None
        return True

    def _made(self) -> Admission:
        numbers = [*map(to_double, self._counts)]
        return Admission(
            self.prefilter, max(numbers, default=-inf) + 0.0, min(numbers, default=inf) + 0.0
        )


class _WordConstants(Constants):
    """Words, of which the text of all grows at its end.

    A word that nobody has any more stays in it until these are more than the others, so that one
    more among many costs little here, and who follows the text reads its end.
    """

    def __init__(self, prefilter: Prefilter) -> None:
        super().__init__(prefilter)
        self._text: str | None = None
        self._more: list[str] = []
        self._gone: set[str | float] = set()

    def add(self, constant: str | float) -> bool:
        """Count a word; return whether the admission may be another one."""
        self._counts[constant] += 1
        if self._counts[constant] > 1:
            return False
        if constant in self._gone:
            self._gone.remove(constant)
            return False
        self._more.append(str(constant))
        return self._change(constant, 1)

    def remove(self, constant: str | float) -> bool:
        """Undo one `add`; return whether the admission may be another one."""
        self._counts[constant] -= 1
        if self._counts[constant]:
            return False
        del self._counts[constant]
        self._gone.add(constant)
        if len(self._gone) <= len(self._counts):
            return False
        gone, self._gone = self._gone, set()
        for each in gone:
            self._change(each, -1)
        self._text, self._more = None, [*map(str, self._counts)]
        return True

    def _made(self) -> Admission:
        if self._more:
            before = () if self._text is None else (self._text,)
            self._text, self._more = IN_NO_TEXT.join((*before, *self._more)), []
        return Admission(self.prefilter, words=self._text, digest=self._digest)


_DIGESTS = 1 << 128


def _digest(constant: str | float) -> int:
    digest = hashlib.blake2b(repr(constant).encode(), digest_size=16).digest()
    return int.from_bytes(digest, "big")


@dataclass(frozen=True, slots=True)
class Missing:
    """What the witnesses of one plan lack for another.

    They have no such edges and values.  Of the prefilters in `covers` they have no more than what
    it says is covered.
    """

    edges: Set[tuple[int, int]]
    valued: Set[int]
    covers: Mapping[tuple[int, Prefilter], Callable[[str | float], bool]]

    def is_needed(
        self,
        edges: Collection[tuple[int, int]],
        valued: Collection[int],
        admitted: Iterable[tuple[int, Admitted]],
    ) -> bool:
        """Return whether who asks for some edges, values and constants needs any of it."""
        if not (self.edges.isdisjoint(edges) and self.valued.isdisjoint(valued)):
            return True
        return any(
            not self.covers[variable, prefilter](constant)
            for variable, (prefilter, constant) in admitted
            if (variable, prefilter) in self.covers
        )


class AdmissionTest:
    """Tells whether values fulfil an admission, which may change."""

    def __init__(self, prefilter: Prefilter) -> None:
        self._prefilter = prefilter
        self._operator = prefilter.operator
        self._admission: Admission | None = None
        self._words: set[str] = set()
        self._index = TextIndex[str]()

    def follow(self, admission: Admission | None) -> None:
        """Ask for another admission from now on; for None nothing is admitted."""
        before, self._admission = self._admission, admission
        if self._operator not in TEXT_TESTS or before == admission:
            return
        old, new = (each.words if each else None for each in (before, admission))
        if old is not None and new is not None and new.startswith(old + IN_NO_TEXT):
            more = {*new[len(old) + 1 :].split(IN_NO_TEXT)}
            gone = set[str]()
        else:
            wanted = set[str]() if new is None else {*new.split(IN_NO_TEXT)}
            more, gone = wanted - self._words, self._words - wanted
        for word in gone:
            self._index.remove(self._operator, word, word)
        for word in more:
            self._index.add(self._operator, word, word)
        self._words -= gone
        self._words |= more

    def holds(self, read: Read) -> bool:
        """Return whether some of the values that operands have fulfil it."""
        admission, operator = self._admission, self._operator
        if admission is not None and (chain := self._prefilter.chain) is not None:
            asked = chain.of(numbers_beside(self._prefilter.operands, read))
            return asked is not None and (
                not asked.is_moderate or asked.holds_within(admission.least, admission.bound)
            )
        values = values_of(self._prefilter.operands, read)
        if admission is None:
            return False
        if self._prefilter.is_negated:
            return len(self._words) > 1 or not self._have_any(values)
        if self._prefilter.holds_of_none:
            # Of all numbers there is one that is nearest.
            return compare_literal(self._prefilter.values.of(read), operator, admission.bound)
        if not values:
            return False
        if operator in TEXT_TESTS:
            return self._have_any(values)
        constants = admission.constants
        if self._prefilter.is_of_numbers:
            numbers = map(to_double, values)
            return any(each == each and each not in constants for each in numbers)
        if operator == "!=":
            return not constants or any(spell(value) not in constants for value in values)
        if operator == "=":
            return any(to_double(value) in constants for value in values)
        bound = admission.bound
        # A value that is no number fulfils nothing.
        if operator == "<":
            return any(to_double(value) < bound for value in values)
        if operator == "<=":
            return any(to_double(value) <= bound for value in values)
        if operator == ">":
            return any(to_double(value) > bound for value in values)
        return any(to_double(value) >= bound for value in values)

    def _have_any(self, values: Sequence[Atom]) -> bool:
        return self._index.has_any([*map(spell, values)])
