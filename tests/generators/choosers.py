"""Where generators of random cases get their choices from."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from hypothesis import strategies as st

__all__ = ["Chooser", "DrawnChooser", "RandomChooser"]

T = TypeVar("T")


class Chooser(Protocol):
    """Chooses; what comes first is the simpler choice."""

    def choice(self, items: Sequence[T]) -> T: ...

    def integer(self, least: int, most: int) -> int: ...


class RandomChooser:
    """Choices by a seeded generator."""

    def __init__(self, seed: int | str) -> None:
        self._random = random.Random(seed)

    def choice(self, items: Sequence[T]) -> T:
        return self._random.choice(items)

    def integer(self, least: int, most: int) -> int:
        return self._random.randint(least, most)


class DrawnChooser:
    """Choices by Hypothesis."""

    def __init__(self, draw: Any) -> None:
        self._draw = draw

    def choice(self, items: Sequence[T]) -> T:
        return items[self.integer(0, len(items) - 1)]

    def integer(self, least: int, most: int) -> int:
        return int(self._draw(st.integers(least, most)))
