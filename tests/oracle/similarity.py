"""Similarity, character by character and set by set: section 10."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any

from oracle.values import Atom, apply, number
from xscl.path import Literal, Parameter
from xscl.query import Call, Operand, SimilarityJoin, VariableValue

__all__ = ["MEASURES", "as_number", "likeness", "scores", "sets", "words"]

MEASURES = ("jaccard", "containment", "overlap")

_UNSPACED = (
    "CJK UNIFIED IDEOGRAPH",
    "CJK COMPATIBILITY IDEOGRAPH",
    "IDEOGRAPHIC ITERATION MARK",
    "IDEOGRAPHIC NUMBER ZERO",
    "HANGZHOU NUMERAL",
    "VERTICAL IDEOGRAPHIC ITERATION MARK",
    "OLD CHINESE",
    "VIETNAMESE ALTERNATE READING",
    "HIRAGANA",
    "HENTAIGANA",
    "KATAKANA",
    "COMBINING KATAKANA-HIRAGANA",
    "THAI",
    "LAO",
    "KHMER",
    "MYANMAR",
)
"""How the names of characters begin that are of a script without spaces."""


@lru_cache(maxsize=1_000)
def words(text: str) -> tuple[str, ...]:
    """Return the words of a text in order."""
    found: list[str] = []
    run = ""
    for character in unicodedata.normalize("NFKC", text).casefold() + " ":
        if unicodedata.category(character)[0] in "LMN":
            run += character
        else:
            found += _of_run(run)
            run = ""
    return tuple(found)


def _of_run(run: str) -> list[str]:
    pieces: list[tuple[bool, str]] = []
    for character in run:
        is_unspaced = unicodedata.name(character, "").startswith(_UNSPACED)
        is_mark = unicodedata.category(character).startswith("M")
        if pieces and (is_unspaced == pieces[-1][0] or (is_mark and not is_unspaced)):
            pieces[-1] = pieces[-1][0], pieces[-1][1] + character
        else:
            pieces.append((is_unspaced, character))
    found: list[str] = []
    for is_unspaced, piece in pieces:
        if is_unspaced and len(piece) > 1:
            found += [piece[i : i + 2] for i in range(len(piece) - 1)]
        else:
            found.append(piece)
    return found


def sets(call: Call, values: Sequence[Atom], others: Sequence[Sequence[Atom]]) -> list[set[str]]:
    """Return the sets that `words`, `shingles` or `tokenize` makes of values, one of each."""
    if call.function == "tokenize":
        return [{str(token) for token in apply("tokenize", [[each], *others])} for each in values]
    length = 1
    if call.function == "shingles":
        ((given,),) = others
        length = int(given)
    return [_shingles(words(str(value)), length) for value in values]


def _shingles(found: Sequence[str], length: int) -> set[str]:
    if not found:
        return set()
    starts = range(max(1, len(found) - length + 1))
    return {" ".join(found[start : start + length]) for start in starts}


def score(measure: str, left: set[str], right: set[str]) -> Fraction:
    """Return a measure of two sets."""
    if not left or not right:
        return Fraction(0)
    shared = sum(word in right for word in left)
    of = {"jaccard": len(left | right), "containment": len(left), "overlap": 1}
    return Fraction(shared, of[measure])


def scores(measure: str, lefts: list[set[str]], rights: list[set[str]]) -> list[Fraction]:
    """Return a measure of each choice of two sets."""
    return [score(measure, left, right) for left, right in product(lefts, rights)]


def as_number(value: Atom | Fraction) -> Fraction | float | None:
    """Read a value as the decimal that it is written as; None for what is not a number."""
    if isinstance(value, Fraction):
        return value
    found = number(value)
    if found is None or abs(found) == float("inf"):
        return found
    return Fraction(Decimal(repr(found)))


def likeness(join: SimilarityJoin, values: Mapping[str, str], parameters: Mapping[str, Any]) -> Any:
    """Return what a witness tuple says of a similarity join, by the values of its variables."""
    lefts, rights = (
        _made(call, values, parameters)
        for call in ((join.right, join.left) if join.is_turned else (join.left, join.right))
    )
    best, left, right = max(
        ((score(join.measure, a, b), a, b) for a, b in product(lefts, rights)),
        key=lambda each: each[0],
    )
    shown = int(best) if join.measure == "overlap" else best.numerator / best.denominator
    return {"score": shown, "shared": sorted(left & right)[:50]}


def _made(
    call: Operand, values: Mapping[str, str], parameters: Mapping[str, Any]
) -> list[set[str]]:
    assert isinstance(call, Call)
    first, *others = [_values(each, values, parameters) for each in call.arguments]
    return sets(call, first, others)


def _values(
    operand: Operand, values: Mapping[str, str], parameters: Mapping[str, Any]
) -> list[Atom]:
    match operand:
        case VariableValue(variable):
            return [values[variable]]
        case Literal(value):
            return [value]
        case Parameter(name):
            given = parameters[name]
            return [float(given) if isinstance(given, int) else given]
        case Call(function, arguments):
            return apply(function, [_values(each, values, parameters) for each in arguments])
    raise AssertionError(operand)
