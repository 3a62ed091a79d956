"""Measures: how much two sets of words have in common, as exact numbers (section 10).

A set is that of one value: of several values each makes a set of its own, and a measure has a
value for each choice of two sets.  A measure of an empty set is 0.

Scores are fractions.  A double that they are compared with stands for its shortest decimal, so that
`0.8` is 4/5.  Where thresholds are doubles in columns, `comparable` gives a double in place of the
score, by which each comparison comes out as that of the exact numbers:

    Rounding is monotone.  So where the score rounds to another double than the threshold, doubles
    compare as the numbers do.  Where it rounds to the threshold itself, the threshold's decimal is
    the shortest one of that very double: one comparison of exact numbers decides for all of them,
    and a neighbouring double says which way it went.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import lru_cache

from xscl import functions
from xscl.comparison import Call, VariableValue
from xscl.path import Literal
from xscl.words import shingles, words

__all__ = ["WordSet", "best", "comparable", "measure", "number_of", "sets_of", "sets_of_values"]

WordSet = frozenset[str]
"""What a measure compares."""


def measure(function: str, left: WordSet, right: WordSet) -> Fraction:
    """Return `jaccard`, `containment` or `overlap` of two sets.

    >>> measure("jaccard", frozenset("abc"), frozenset("bcd"))
    Fraction(1, 2)
    """
    if not left or not right:
        return Fraction(0)
    return _MEASURES[function](len(left & right), len(left), len(right))


_MEASURES: dict[str, Callable[[int, int, int], Fraction]] = {
    "jaccard": lambda shared, left, right: Fraction(shared, left + right - shared),
    "containment": lambda shared, left, right: Fraction(shared, left),
    "overlap": lambda shared, left, right: Fraction(shared),
}
"""Each measure of two sets that are not empty, by how many they share and have."""


def sets_of(call: Call, text: str) -> list[WordSet]:
    """Return the sets that `words`, `shingles` or `tokenize` of one variable's text gives.

    >>> sets_of(Call("shingles", (VariableValue("x"), Literal(2.0))), "a b c") == [{"a b", "b c"}]
    True
    """
    inner, *others = call.arguments
    if isinstance(inner, VariableValue):
        values: Iterable[str | float | Fraction] = (text,)
    elif isinstance(inner, Call):
        values = functions.derive(inner, text)
    else:
        assert isinstance(inner, Literal)
        values = (inner.value,)
    constants = [(each.value,) for each in others if isinstance(each, Literal)]
    return sets_of_values(call.function, values, constants)


def sets_of_values(
    function: str,
    values: Iterable[functions.Atom],
    others: Iterable[Iterable[functions.Atom]],
) -> list[WordSet]:
    """Return the set of each value, for each choice of the other arguments' values."""
    if function == "words":
        return [words(functions.spell(value)) for value in values]
    if function == "shingles":
        ((length,),) = others
        return [shingles(functions.spell(value), int(length)) for value in values]
    return [
        frozenset(map(functions.spell, functions.apply(function, [[value], *map(list, others)])))
        for value in values
    ]


def best(
    function: str, left: Sequence[WordSet], right: Sequence[WordSet]
) -> tuple[Fraction, WordSet, WordSet]:
    """Return the largest value of a measure, and the first two sets that have it.

    There is a set on both sides.
    """
    found = [(measure(function, a, b), a, b) for a in left for b in right]
    return max(found, key=lambda each: each[0])


def number_of(
    function: str, operator: str, left: Sequence[WordSet], right: Sequence[WordSet]
) -> float:
    """Return the double by which to compare a measure of some sets: NaN where there are none.

    Some value of the measure compares as wanted if the largest or the least does.
    """
    scores = [measure(function, a, b) for a in left for b in right]
    if not scores:
        return math.nan
    return comparable(max(scores) if operator in (">", ">=") else min(scores), operator)


@lru_cache(maxsize=4_096)
def comparable(score: Fraction, operator: str) -> float:
    """Return a double that compares with all others as a score does with their decimals.

    `operator` is the one of `<`, `<=`, `>` and `>=` that they are compared by, the score first.

    >>> comparable(Fraction(5, 9), ">=") >= 0.5555555555555556, 5 / 9 >= 0.5555555555555556
    (False, True)
    """
    number = float(score)
    decimal = functions.exact(number)
    if score < decimal and operator in ("<", ">="):
        return math.nextafter(number, -math.inf)
    if score > decimal and operator in (">", "<="):
        return math.nextafter(number, math.inf)
    return number
