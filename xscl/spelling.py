"""What the author of a query probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["closest", "did_you_mean"]


def closest(word: str, known: Iterable[str], cutoff: float | None = None) -> str | None:
    """Return the known word that is nearest to this one, if any is near.

    `cutoff` is the least ratio of `difflib` between 0 and 1; without it, one that suits the length.
    """
    if len(word) > 60:
        return None
    if cutoff is None:
        cutoff = 0.5 if len(word) < 4 else 0.6  # `x1` is near `x2`
    folded = {each.lower(): each for each in sorted(known) if abs(len(each) - len(word)) < 6}
    if len(word) < 4:
        folded = {each: own for each, own in folded.items() if abs(len(each) - len(word)) < 2}
    near = difflib.get_close_matches(word.lower(), folded, n=1, cutoff=cutoff)
    return folded[near[0]] if near else None


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """Return the question that names the nearest word."""
    near = closest(word, known)
    return f"did you mean `{near}`?" if near else None
