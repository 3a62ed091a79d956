"""Candidate pairs of classes without a value join: all that fits their two sides.

An instance fits a side if its shape binds all of the side's variables.  So such a class costs the
product of both sides within its window, and other classes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

import numpy as np

from joins.classes import ClassRegistry, Sides
from joins.meeting import Meeting, Partners
from joins.ration import Group, Ration
from joins.remembered import Remembered
from joins.slots import Edge, Ints, Layouts
from joins.times import Flags, Pairs

__all__ = ["Products"]


@dataclass(frozen=True, slots=True)
class _Product:
    """The classes of a stratum without a value join whose sides bind the same variables."""

    sides: Sides
    group: Group


class Products:
    """Pairs new instances with all others, for the classes that ask for it."""

    def __init__(
        self, remembered: Remembered, layouts: Layouts, ration: Ration, lateness_us: int
    ) -> None:
        self._remembered = remembered
        self._layouts = layouts
        self._ration = ration
        self._lateness_us = lateness_us
        self._products: dict[int, list[_Product]] = {}
        self._bound: dict[int, frozenset[int]] = {}

    def add_shape(self, shape: int, edges: Sequence[Edge]) -> None:
        """Learn a shape by its edges."""
        self._bound[shape] = frozenset(v for v1, v2, *_ in edges for v in (v1, v2))

    def forget_shapes(self, shapes: Set[int]) -> None:
        """Forget shapes that nothing remembered has."""
        for shape in shapes:
            del self._bound[shape]

    def group(self, classes: ClassRegistry) -> None:
        """Look at the classes anew."""
        members: dict[tuple[int, Sides], list[int]] = {}
        for number, query_class in classes.by_number.items():
            template = query_class.template
            if template.has_right and not template.value_joins:
                sides = query_class.asked()
                members.setdefault((query_class.stratum, sides), []).append(number)
        self._products = {}
        for (stratum, sides), numbers in members.items():
            product = _Product(sides, Group.of(numbers, classes))
            self._products.setdefault(stratum, []).append(product)

    def has(self, stratum: int) -> bool:
        """Return whether a stratum has classes without a value join."""
        return stratum in self._products

    def partners_max(self, stratum: int, first: int) -> Ints:
        """Return how many partners each instance from `first` on may have here, at most."""
        new = self._remembered.next_instance - first
        older = np.arange(new) + len(self._remembered) - new
        return 2 * len(self._products[stratum]) * older

    def pairs(self, stratum: int, owner: int) -> Iterator[Pairs]:
        """Yield the pairs of a new instance and those that came before it."""
        docid, layout, end_us = (
            int(self._remembered.take(name, np.array([owner]))[0])
            for name in ("docid", "layout", "end_us")
        )
        bound = self._bound[self._layouts.layouts[layout].shape]
        for product in self._products.get(stratum, ()):
            found = self.partners(bound, product.sides, end_us - product.group.window_us)
            met = Meeting.of(self._remembered, owner, found, self._lateness_us)
            yield from self._ration.pairs(product.group, docid, met, lambda *_, met=met: met)

    def partners(self, bound: Set[int], sides: Sides, since_us: int) -> Partners:
        """Return who fits the other side, for each side that an instance of some variables fits.

        All that do not end before a time are among them.
        """
        (first,) = self._remembered.first_from(np.array([since_us]))
        numbers = self._remembered.numbers()
        numbers = numbers[np.searchsorted(numbers, first) :]
        layouts = self._remembered.take("layout", numbers)
        return [
            (numbers[self._fits(sides[not is_right])[layouts]], is_right)
            for is_right in (True, False)
            if sides[is_right] <= bound
        ]

    def _fits(self, side: frozenset[int]) -> Flags:
        """Return which layouts bind all variables of a side, by number."""
        bound = (self._bound.get(layout.shape) for layout in self._layouts.layouts)
        # Layouts that have been forgotten, and that nothing has, stay in their places.
        return np.array([each is not None and side <= each for each in bound])
