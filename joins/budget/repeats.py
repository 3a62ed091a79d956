"""Repeats: how often instances have the same value, which bounds a pair's equal nodes."""

from __future__ import annotations

import numpy as np

from joins.budget.entries import Entries
from joins.budget.probe import ValueJoin

__all__ = ["Most", "Repeats"]

Most = dict[int, tuple[int, int]]
"""By variable: how many values an instance has, and how often the same one, at most."""


class Repeats:
    """The most that any instance has had so far."""

    def __init__(self) -> None:
        self._most: Most = {}

    def note(self, entries: Entries, new: Most) -> None:
        """Take note of how often new instances have values, here and in `new`."""
        for variable in np.unique(entries.variables).tolist():
            rows = entries.variables == variable
            owners, hashes = entries.owners[rows], entries.hashes[rows]
            _, values = np.unique(owners, return_counts=True)
            order = np.lexsort((hashes, owners))
            is_new = np.ones(len(order), np.bool_)
            is_new[1:] = np.diff(owners[order]) > 0
            is_new[1:] |= hashes[order][1:] != hashes[order][:-1]
            same = np.diff(np.flatnonzero(is_new), append=len(order))
            for most in (new, self._most):
                before = most.get(variable, (0, 0))
                most[variable] = max(before[0], int(values.max())), max(before[1], int(same.max()))

    def equal_max(self, value_join: ValueJoin, new: Most) -> int:
        """Return how many equal nodes a pair has at most by a value join, one of them `new`."""
        left, right = value_join
        of_right = _equal_max(self._most.get(left), new.get(right))
        return max(of_right, _equal_max(new.get(left), self._most.get(right)))


def _equal_max(one: tuple[int, int] | None, two: tuple[int, int] | None) -> int:
    """Return how many equal nodes two instances have at most, by the (values, repeats) of each."""
    if one is None or two is None:
        return 0
    return min(one[0] * two[1], one[1] * two[0])
