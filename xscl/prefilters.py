"""Conditions of a node with the constants of all who share it, and the values that these test.

A condition that is written out in a block, `[price < 10]`, is data where that costs no tuple: the
node's **prefilter** has the path and the operator, and no constant, so statements that differ in
constants have one node.  Evaluation leaves out documents that none of them can want; whose a node
is, each one's box says, of the node's `Values`.  docs/prefilters.md has the theory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from math import copysign
from typing import NamedTuple, cast

from xscl.evaluation import optional_values
from xscl.functions import Atom, spell, to_double
from xscl.path import Excerpt, Value
from xscl.solving import Chain
from xscl.texttests import NEGATED, REFUTED

__all__ = [
    "CHAINED",
    "Admitted",
    "Prefilter",
    "Values",
    "ValuesKind",
    "numbers_beside",
    "spell_number",
    "tag",
    "values_by_place",
]

Read = Callable[[Value], Sequence[Atom]]
"""Gives the values of an operand."""


def tag(place: int) -> str:
    """Return what stands before the values of the operand at a place, where there are several.

    No text of a document has such a character.
    """
    return chr(place + 1)


OPERANDS_MAX = 8
"""So many operands have characters of their own."""


def values_by_place(texts: Iterable[str]) -> dict[int, list[str]]:
    """Return values with the places of their operands; those of the only operand are at -1."""
    found: dict[int, list[str]] = {}
    for text in texts:
        place = ord(text[0]) - 1 if text else OPERANDS_MAX
        if place < OPERANDS_MAX:
            found.setdefault(place, []).append(text[1:])
        else:
            found.setdefault(-1, []).append(text)
    return found


def spell_number(number: float) -> str:
    """Return a number as a text that equal numbers have in common; zeros of both signs are one."""
    return repr(number + 0.0)


class ValuesKind(Enum):
    """What of several values is looked at."""

    ALL = "all"
    LEAST = "least"
    GREATEST = "greatest"
    ONLY = "only"
    EVEN_NONE = "values"
    EACH = "each"
    INFIMUM = "infimum"
    SUPREMUM = "supremum"
    LEAST_SOLVING = "from"
    GREATEST_SOLVING = "up to"
    UNSOLVED = "unsolved"


@dataclass(frozen=True, slots=True)
class Values:
    """The values that operands have at a node, as one: all of them, or a number by its text.

    The number is the least of them, the greatest, or the only one: where there are several, this is
    a text that is none.  Where there is nothing, there is no value, but for `EVEN_NONE`, which is
    all of them otherwise, for `EACH`, in which a zero has its sign besides, and for the infimum and
    the supremum, which are infinite.  Of the comparison
    that a `chain` makes of them it is an end between which data must be, or, where it is not solved
    for them, the comparison itself.
    """

    operands: tuple[Value, ...]
    kind: ValuesKind
    chain: Chain | None = None

    @property
    def is_of_several(self) -> bool:
        """Whether the value stands for several, as `optional_values` writes them."""
        return self.kind in _OF_SEVERAL

    @property
    def excerpts(self) -> tuple[Excerpt, ...]:
        """The operands that are excerpts."""
        return tuple(each for each in self.operands if isinstance(each, Excerpt))

    @property
    def leads_upwards(self) -> bool:
        """Whether an excerpt has more than what is below its node."""
        return any(each.leads_upwards for each in self.excerpts)

    def of(self, read: Read) -> tuple[str, ...]:
        """Return what the values of the operands come to."""
        if self.chain is not None:
            return self._solving(self.chain, read)
        values = values_of(self.operands, read)
        if self.kind is ValuesKind.ALL:
            return (optional_values(map(spell, values)),) if values else ()
        if self.kind is ValuesKind.EVEN_NONE:
            return (optional_values(map(spell, values)),)
        if self.kind is ValuesKind.EACH:
            return (optional_values(map(_with_sign, values)),)
        numbers = [(number, value) for value in values if (number := to_double(value)) == number]
        if not numbers:
            return _OF_NONE.get(self.kind, ())
        if self.kind is ValuesKind.ONLY:
            several = {number for number, _ in numbers}
            return (spell_number(numbers[0][0]) if len(several) == 1 else "several",)
        is_least = self.kind in (ValuesKind.LEAST, ValuesKind.INFIMUM)
        number, value = (min if is_least else max)(numbers)
        return ("-0" if _is_below_zero(number) else spell(value),)

    def _solving(self, chain: Chain, read: Read) -> tuple[str, ...]:
        found = chain.solved(numbers_beside(self.operands, read))
        if found is None:
            return ()
        if self.kind is ValuesKind.UNSOLVED:
            return (optional_values([] if found.written is None else [found.written]),)
        return (found.least if self.kind is ValuesKind.LEAST_SOLVING else found.greatest,)


def _is_below_zero(number: float) -> bool:
    """Return whether a number is negative zero: who divides by it minds the sign."""
    return number == 0 and copysign(1, number) < 0


def _with_sign(value: Atom) -> str:
    return "-0" if isinstance(value, float) and _is_below_zero(value) else spell(value)


_OF_SEVERAL = frozenset(
    (ValuesKind.ALL, ValuesKind.EVEN_NONE, ValuesKind.EACH, ValuesKind.UNSOLVED)
)
_OF_NONE = {ValuesKind.INFIMUM: ("INF",), ValuesKind.SUPREMUM: ("-INF",)}


def numbers_beside(operands: Sequence[Value], read: Read) -> Sequence[float]:
    """Return the numbers that a node has for the operand of a chain of steps."""
    (beside,) = operands
    return cast("Sequence[float]", read(beside))


def values_of(operands: Sequence[Value], read: Read) -> Sequence[Atom]:
    """Return the values of some operands; of several, each with the `tag` of its operand."""
    if len(operands) == 1:
        return read(operands[0])
    return [tag(i) + spell(each) for i, operand in enumerate(operands) for each in read(operand)]


class Prefilter(NamedTuple):
    """A condition `operand operator constant` of a node, for the constants of all who share it.

    Documents in which no node fulfils it for any of them have no such node.  In all others it lets
    through all nodes: what a statement is charged for then does not depend on who shares it.  It
    `is_of_numbers` where `!=` compares numbers.  One that `is_negated` holds where a test of texts
    does for no value, and a bound that `holds_of_none` does where there is no number: `>=` of all
    numbers is what `not(... < ...)` asks.  Of a `chain` the operand are the numbers beside the
    constant, and the operator is `CHAINED`.
    """

    operands: tuple[Value, ...]
    operator: str
    is_of_numbers: bool = False
    is_negated: bool = False
    holds_of_none: bool = False
    chain: Chain | None = None

    @property
    def tested(self) -> tuple[tuple[Values, str], ...]:
        """The values that are held against a constant, each with how."""
        if self.chain is not None:
            return tuple(
                (Values(self.operands, kind, self.chain), operator)
                for kind, operator in _OF_CHAINS.items()
            )
        return ((self.values, (NEGATED if self.is_negated else "") + self.operator),)

    @property
    def values(self) -> Values:
        """The values that are held against a constant, where they are of one kind."""
        kind = {"<": ValuesKind.LEAST, ">": ValuesKind.GREATEST}.get(self.operator[0])
        if self.is_of_numbers:
            kind = ValuesKind.ONLY
        if self.is_negated:
            kind = ValuesKind.EVEN_NONE
        if self.holds_of_none:
            kind = ValuesKind.INFIMUM if self.operator[0] == ">" else ValuesKind.SUPREMUM
        return Values(self.operands, kind or ValuesKind.ALL)


CHAINED = "chained"
"""The operator of what is asked by a chain of steps."""

_OF_CHAINS = {
    ValuesKind.LEAST_SOLVING: "<=",
    ValuesKind.GREATEST_SOLVING: ">=",
    ValuesKind.UNSOLVED: NEGATED + REFUTED,
}


Admitted = tuple[Prefilter, str | float]
"""A condition with the constant of one who shares the node."""
