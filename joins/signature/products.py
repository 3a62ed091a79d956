"""Products: candidate pairs of classes without a value join.

An instance fits a side if its shape binds all of the side's variables.  So such a class costs the
product of both sides within its window, and other classes cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

import numpy as np

from joins.budget.groups import ClassGroup
from joins.budget.pairs import PairBudget
from joins.budget.probe import Partners, Probe
from joins.memory.remembered import Remembered
from joins.memory.shapes import Shapes
from joins.memory.slots import Ints, Layouts
from joins.memory.times import Flags, Pairs
from templates.queryclass import QueryClass, Sides

__all__ = ["Products"]


class Products:
    """Pairs new instances with all others, for classes without a value join."""

    def __init__(
        self,
        shapes: Shapes,
        remembered: Remembered,
        layouts: Layouts,
        lateness_us: int,
    ) -> None:
        self._shapes = shapes
        self._remembered = remembered
        self._layouts = layouts
        self._lateness_us = lateness_us
        self._products: dict[int, dict[Sides, ClassGroup]] = {}

    def put(self, number: int, query_class: QueryClass, window_us: int) -> None:
        """Pair for a class without a value join, or for one that is there in another window."""
        products = self._products.setdefault(query_class.stratum, {})
        group = products.setdefault(query_class.asked(), ClassGroup())
        group.put(number, window_us, is_symmetric=query_class.is_symmetric)

    def drop(self, number: int, query_class: QueryClass) -> None:
        """Take away a class that is there."""
        products, sides = self._products[query_class.stratum], query_class.asked()
        products[sides].drop(number)
        if not products[sides].members:
            del products[sides]
        if not products:
            del self._products[query_class.stratum]

    def has(self, stratum: int) -> bool:
        """Return whether a stratum has classes without a value join."""
        return stratum in self._products

    def partners_max(self, stratum: int, first: int) -> Ints:
        """Return how many partners each instance from `first` on may have here, at most."""
        new = self._remembered.next_instance - first
        older = np.arange(new) + len(self._remembered) - new
        return 2 * len(self._products[stratum]) * older

    def pairs(self, pair_budget: PairBudget, stratum: int, owner: int) -> Iterator[Pairs]:
        """Yield the pairs of a new instance with instances that came before it."""
        docid, layout, end_us = (
            int(self._remembered.take(name, np.array([owner]))[0])
            for name in ("docid", "layout", "end_us")
        )
        bound = self._shapes[self._layouts.layouts[layout].shape].variables
        for sides, group in self._products.get(stratum, {}).items():
            found = self.partners(bound, sides, end_us - group.window_us)
            met = Probe.of(self._remembered, owner, found, self._lateness_us)
            yield from pair_budget.pairs(group, docid, met, lambda *_, met=met: met)

    def of(self, owner: int, sides: Sides, window_us: int) -> Partners:
        """Return the instances that fit the other side of an instance, within a window."""
        layout, end_us = (
            int(self._remembered.take(name, np.array([owner]))[0]) for name in ("layout", "end_us")
        )
        bound = self._shapes[self._layouts.layouts[layout].shape].variables
        return self.partners(bound, sides, end_us - window_us)

    def partners(self, bound: Set[int], sides: Sides, since_us: int) -> Partners:
        """Return the instances that fit the other side, for each side that `bound` fits.

        All that end at `since_us` or later are among them.
        """
        (first,) = self._remembered.first_from(np.array([since_us]))
        numbers = self._remembered.numbers()
        numbers = numbers[numbers.searchsorted(first) :]
        layouts = self._remembered.take("layout", numbers)
        return [
            (numbers[self._fits(sides[not is_right])[layouts]], is_right)
            for is_right in (True, False)
            if sides[is_right] <= bound
        ]

    def _fits(self, side: frozenset[int]) -> Flags:
        """Return which layouts bind all variables of a side, by number."""
        shapes = (self._shapes.get(layout.shape) for layout in self._layouts.layouts)
        # A layout that has been forgotten leaves a place without a shape.
        return np.array([shape is not None and side <= shape.variables for shape in shapes])
