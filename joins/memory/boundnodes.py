"""The nodes that variables bind in remembered instances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from joins.memory.remembered import Remembered
from joins.memory.shapes import Shapes
from joins.memory.slots import Ints, Layouts, ranges

__all__ = ["BoundNodes", "bound_nodes"]


def bound_nodes(shapes: Shapes, of: Ints, variable: int) -> tuple[Ints, Ints]:
    """Return the nodes that a variable binds in instances of some shapes.

    They are given as (index into `of`, position).
    """
    distinct, inverse = np.unique(of, return_inverse=True)
    found = [shapes[number] for number in distinct.tolist()]
    bound = [[n for n, own in s.binding.items() if variable in own] for s in found]
    counts = np.array([len(each) for each in bound], np.int64)
    starts = (np.cumsum(counts) - counts)[inverse]
    flat = np.array([node for each in bound for node in each], np.int64)
    index = np.repeat(np.arange(len(of)), counts[inverse])
    return index, flat[ranges(starts, counts[inverse])]


@dataclass(frozen=True, slots=True)
class BoundNodes:
    """Finds nodes by the shapes of instances; it does not keep the join that they are of."""

    shapes: Shapes
    layouts: Layouts
    remembered: Remembered

    def positions(self, variable: int, instances: Ints) -> tuple[Ints, Ints]:
        """Return the nodes that a variable binds, as (index into `instances`, position)."""
        layouts = self.remembered.take("layout", instances)
        distinct, inverse = np.unique(layouts, return_inverse=True)
        shapes = [self.layouts.layouts[each].shape for each in distinct.tolist()]
        return bound_nodes(self.shapes, np.array(shapes, np.int64)[inverse], variable)
