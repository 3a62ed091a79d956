"""What similarity joins have found in a tuple: their scores, and the words that are shared."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from broker.matching.spelling import spell
from xscl.evaluation import Reading, compile_sets
from xscl.measures import WordSet, best
from xscl.query import Operand, SimilarityJoin

__all__ = ["SHARED_MAX", "spell_likenesses"]

SHARED_MAX = 50
"""Shared words listed for a similarity join (semantics, section 10)."""


def spell_likenesses(joins: Iterable[SimilarityJoin], reading: Reading) -> str:
    """Return what the similarity joins of a tuple have found, as JSON.

    Of several sets on a side it is the first choice with the largest score.
    """
    return spell([_likeness(join, reading) for join in joins])


def _likeness(join: SimilarityJoin, reading: Reading) -> dict[str, Any]:
    left, right = (_sets(call)(reading) for call in join.measured.arguments)
    score, a, b = best(join.measure, left, right)
    shown = int(score) if join.measure == "overlap" else float(score)
    return {"score": shown, "shared": sorted(a & b)[:SHARED_MAX]}


@lru_cache(maxsize=1_024)
def _sets(call: Operand) -> Callable[[Reading], list[WordSet]]:
    return compile_sets(call)
