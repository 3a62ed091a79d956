"""Values that many clauses have in common, each as one object."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import TypeVar

__all__ = ["held_once"]

T = TypeVar("T", bound=Hashable)

_KEPT = 16_384


@lru_cache(maxsize=_KEPT)
def _held(value: Hashable) -> Hashable:
    return value


def held_once(value: T) -> T:
    """Return a value, or one of those of late that is equal to it.

    Equal ones must be the same in all: no number may be in it that is whole in one and a double,
    or a truth, in another.
    """
    return _held(value)  # type: ignore[return-value]
