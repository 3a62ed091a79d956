"""Why a similarity join does not hold: the best score, and the words that one side alone has."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from broker.whynot.reason import Reason, quote
from xscl.evaluation import Reading, compile_operand, compile_sets
from xscl.functions import compare, exact
from xscl.measures import WordSet, best
from xscl.query import SimilarityJoin

__all__ = ["similarity_reason"]

_SHOWN = 8

_DECIMALS = 17


def similarity_reason(name: str, join: SimilarityJoin, readings: Iterable[Reading]) -> Reason:
    """Return whether a similarity join holds for some choice of nodes, by the best of them."""
    sides = [compile_sets(call) for call in join.measured.arguments]
    asked = compile_operand(join.threshold)
    found: list[tuple[Fraction, WordSet, WordSet]] = []
    threshold: Fraction | float = Fraction(0)
    for reading in readings:
        (given,) = asked(reading)
        threshold = exact(given)
        left, right = (of(reading) for of in sides)
        if left and right:
            found.append(best(join.measure, left, right))
    if not found:
        return Reason("similarity", False, f"{name}: a side has no value")
    score, left_set, right_set = max(found, key=lambda each: each[0])
    holds = compare([score], join.operator, [threshold])
    shown, needed = _spell(score, threshold)
    facts = {
        "score": float(score),
        "shared": sorted(left_set & right_set)[:50],
        "missing": sorted(left_set ^ right_set)[:50],
    }
    if holds:
        text = f"{name}: {shown}, shared: {_words(left_set & right_set)}"
        return Reason("similarity", True, text, facts=facts)
    more = "more than " if join.operator == ">" else ""
    text = f"{name}: {shown}, needed {more}{needed}"
    if not left_set or not right_set:
        text += "; a side has no words"
    elif left_set ^ right_set:
        text += f"; missing: {_words(left_set ^ right_set)}"
    least = float(score)
    is_close = bool(score) and threshold - score <= Fraction(1, 5)
    hint = f"a threshold of {least:.2g} is met, or nearly" if is_close and least < 1 else None
    progress = min(0.9, least / float(threshold)) if threshold > 0 else 0.0
    return Reason("similarity", False, text, hint, facts, progress=progress)


def _words(words: Iterable[str]) -> str:
    ordered = sorted(words)
    shown = ", ".join(map(quote, ordered[:_SHOWN]))
    return f"{shown} and {len(ordered) - _SHOWN} more" if len(ordered) > _SHOWN else shown


def _spell(score: Fraction, threshold: Fraction | float) -> tuple[str, str]:
    """Return two numbers with as many decimals as tell them apart, at least two."""
    if score.denominator == 1 and threshold == int(threshold):
        return str(score), str(threshold)
    for decimals in range(2, _DECIMALS):
        shown, needed = f"{float(score):.{decimals}f}", f"{float(threshold):.{decimals}f}"
        if shown != needed or score == threshold:
            return shown, needed
    return str(score), str(threshold)
