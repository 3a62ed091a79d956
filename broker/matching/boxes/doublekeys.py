"""Doubles as whole numbers in the same order: so numbers and times are held against alike."""

from __future__ import annotations

import numpy as np

from broker.matching.boxes.columns import Doubles, Flags, Ints

__all__ = ["as_doubles", "as_keys", "next_above"]

_BEYOND = np.iinfo(np.int64).max
"""The key of what is no number: it is above those of all numbers."""


def as_keys(numbers: Doubles) -> Ints:
    """Return the keys of doubles; both zeros have one.

    >>> keys = as_keys(np.array([-np.inf, -1.5, -0.0, 0.0, 5e-324, np.inf, np.nan]))
    >>> np.sign(np.diff(keys)).tolist()
    [1, 1, 0, 1, 1, 1]
    """
    bits = _turned((numbers + 0.0).view(np.int64))
    return np.where(np.isnan(numbers), _BEYOND, bits)


def next_above(keys: Ints, some: Flags) -> Ints:
    """Return keys of which some are the next above: not above a key is then below it."""
    return keys + (some & (keys < _BEYOND))


def as_doubles(keys: Ints) -> Doubles:
    """Return the doubles of keys of numbers."""
    return _turned(keys).view(np.float64)


def _turned(bits: Ints) -> Ints:
    """Turn the order of negative numbers round, whose sizes are in their bits; twice is nothing."""
    return bits ^ ((bits >> 63) & _BEYOND)
