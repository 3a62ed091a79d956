"""A match that was found, and where it stands."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from broker.matching.match import Match

__all__ = ["Found"]


@dataclass(frozen=True, slots=True)
class Found:
    """A match, and where it stands: its position's document and depth, and its `W`.

    `sure` is its confidence.
    """

    match: Match
    depth: int
    arrival_us: int
    watermark_us: int
    sure: Fraction = Fraction(1)
