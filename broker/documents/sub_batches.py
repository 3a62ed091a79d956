"""Items in parts that fit into memory, and into the columns that are made of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

__all__ = ["in_sub_batches"]

T = TypeVar("T")


def in_sub_batches(
    items: Iterable[T], size: Callable[[T], int], size_max: int, count_max: int = sys.maxsize
) -> Iterator[list[T]]:
    """Yield items in order, each part ended by its `count_max`-th item or the one over `size_max`.

    >>> list(in_sub_batches(["a", "bcd", "", "e"], len, 3))
    [['a', 'bcd'], ['', 'e']]
    """
    part: list[T] = []
    total = 0
    for item in items:
        part.append(item)
        total += size(item)
        if total > size_max or len(part) >= count_max:
            yield part
            part, total = [], 0
    if part:
        yield part
