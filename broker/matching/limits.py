"""The sizes at which matching works in pieces; they change cost, never matches."""

from __future__ import annotations

from dataclasses import dataclass

from joins import DEFAULT_LIMITS, SignatureLimits
from xpath_eval.stage import VALUES_CHARACTERS_MAX

__all__ = ["DEFAULT_MATCHING_LIMITS", "MatchingLimits"]


@dataclass(frozen=True, slots=True)
class MatchingLimits:
    """The limits of one engine."""

    join: SignatureLimits = DEFAULT_LIMITS
    """Those of its join."""

    tuples: int = 50_000
    """Tuples that are fanned out at a time: a query that explodes is noticed before it fills
    memory."""

    characters: int = VALUES_CHARACTERS_MAX
    """Characters of documents that are evaluated at a time, and of tuples that become instances."""


DEFAULT_MATCHING_LIMITS = MatchingLimits()
