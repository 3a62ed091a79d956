"""Layouts: the nodes of a witness shape that have values which some class compares.

A **layout** is a witness shape with its **slots**: the shape's nodes whose values are joined,
tested or held against constants, in the order of their positions.  An instance keeps, for each slot
of its layout, the hash of a value.  When further variables come to be compared, shapes get new
layouts; earlier instances keep theirs, since no query sees documents older than itself.

All layouts are kept as flat arrays, so that a batch is laid out without a loop over its instances.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from joins.memory.shapes import Shapes

__all__ = ["Ints", "Layout", "Layouts", "ranges"]

Ints = npt.NDArray[np.int64]


def ranges(starts: Ints, counts: Ints) -> Ints:
    """Return `starts[0], starts[0] + 1, ...` for each start, `counts[i]` numbers long.

    >>> ranges(np.array([10, 20]), np.array([2, 3])).tolist()
    [10, 11, 20, 21, 22]
    """
    # Each step of each batch asks: methods of arrays cost a third of NumPy's functions.
    ends: Ints = counts.cumsum()
    found: Ints = (starts - (ends - counts)).repeat(counts)
    found += np.arange(len(found))
    return found


class Layout(NamedTuple):
    """A shape's slots: the node of each, and which variables bind it, as (slot, variable)."""

    shape: int
    nodes: tuple[int, ...]
    bindings: tuple[tuple[int, int], ...]

    def __hash__(self) -> int:
        # Each signature that is looked up has two, and they are long.
        return hash((self.shape, len(self.bindings)))


_NO_LAYOUT = Layout(-1, (), ())
"""Stands where a layout has been forgotten."""

_NO_CURRENT = (-1, -1)
"""Stands for the layout of a shape that has none."""


class Layouts:
    """All layouts, by number and as arrays.

    `version` grows where numbers become free, which may be given again.
    """

    def __init__(self, shapes: Shapes) -> None:
        self._shapes = shapes
        self.layouts: list[Layout] = []
        self._numbers: dict[Layout, int] = {}
        self._free: list[int] = []
        # The current layout of a shape, and how many of the changes it is up to date with.
        self._current: dict[int, tuple[int, int]] = {}
        self._compared: Set[int] = frozenset()
        self._changes: list[Set[int]] = []
        self._arrays: _Arrays | None = None
        self._unwritten: list[int] = []
        self.version = 0
        shapes.watch(self._forget_shapes)

    def compare(self, variables: Set[int], changed: Set[int] | None = None) -> None:
        """Say which variables' values are compared from now on, where these are others.

        They may change afterwards; it has to be said again then.  Other variables than those
        `changed` are compared, or are not, as before; None stands for any.
        """
        self._compared = variables
        if changed is None or len(self._changes) == _CHANGES_MAX:
            self._current.clear()
            self._changes.clear()
        else:
            self._changes.append(changed)

    def current(self, shapes: Ints) -> Ints:
        """Return the layout of each shape, for instances that come now."""
        distinct, inverse = np.unique(shapes, return_inverse=True)
        changes, current = len(self._changes), self._current
        numbers = [
            known[0]
            if (known := current.get(shape, _NO_CURRENT))[1] == changes
            else self._layout(shape, *known)
            for shape in distinct.tolist()
        ]
        return np.array(numbers, np.int64)[inverse]

    def _layout(self, shape: int, number: int, seen: int) -> int:
        """Return the layout of a shape, which had one before some changes, or none."""
        of_shape = self._shapes[shape]
        if seen < 0 or not all(map(of_shape.variables.isdisjoint, self._changes[seen:])):
            layout = Layout(shape, *of_shape.slots(self._compared))
            found = self._numbers.get(layout)
            number = self._number(layout) if found is None else found
        self._current[shape] = number, len(self._changes)
        return number

    def _number(self, layout: Layout) -> int:
        """Give a new layout a number that no other has, any more."""
        if self._free:
            number = self._free.pop()
            self.layouts[number] = layout
        else:
            number = len(self.layouts)
            self.layouts.append(layout)
        self._numbers[layout] = number
        self._unwritten.append(number)
        return number

    def __len__(self) -> int:
        return len(self._numbers)

    def keep(self, used: Collection[int]) -> set[int]:
        """Forget the layouts that are not in use; return the shapes of the others."""
        self._forget([number for number in self._numbers.values() if number not in used])
        self._current = {s: known for s, known in self._current.items() if known[0] in used}
        return {self.layouts[number].shape for number in used}

    def _forget_shapes(self, shapes: Set[int]) -> None:
        """Forget the layouts of shapes."""
        self._forget([n for layout, n in self._numbers.items() if layout.shape in shapes])
        for shape in shapes:
            self._current.pop(shape, None)

    def _forget(self, gone: Sequence[int]) -> None:
        for number in gone:
            del self._numbers[self.layouts[number]]
            self.layouts[number] = _NO_LAYOUT
        self._free += gone
        self._arrays = None
        self.version += 1

    @property
    def arrays(self) -> _Arrays:
        """The layouts as arrays."""
        if self._arrays is None:
            self._arrays = _Arrays.none()
            self._unwritten = list(range(len(self.layouts)))
        if self._unwritten:
            self._arrays.write(self._unwritten, [self.layouts[n] for n in self._unwritten])
            self._unwritten.clear()
        return self._arrays


_CHANGES_MAX = 64
"""Changes of what is compared that a shape is held against: behind so many it gets a new layout."""

_VARIABLE_BITS = 32


@dataclass(slots=True, eq=False)
class _Arrays:
    """Layouts as flat arrays: layout `k` has `slot_counts[k]` slots from `slot_starts[k]` on.

    `of_one_variable[k]` are the most slots that one variable binds.  Arrays may be longer than what
    is in them; `slots` and `bindings` are how many there are.
    """

    slots: int
    bindings: int
    slot_starts: Ints
    slot_counts: Ints
    slot_nodes: Ints
    binding_starts: Ints
    binding_counts: Ints
    binding_slots: Ints
    binding_variables: Ints
    of_one_variable: Ints

    @classmethod
    def none(cls) -> _Arrays:
        """Return the arrays of no layouts."""
        return cls(0, 0, *(np.zeros(0, np.int64) for _ in range(8)))

    def write(self, numbers: Sequence[int], layouts: Sequence[Layout]) -> None:
        """Write layouts that have come since, under their numbers."""
        at = np.array(numbers, np.int64)
        slots, nodes = _flat([layout.nodes for layout in layouts])
        bindings, both = _flat([[*chain(*layout.bindings)] for layout in layouts])
        bindings //= 2
        binding_slots, variables = both.reshape(-1, 2).T
        of_layout = np.arange(len(layouts)).repeat(bindings)
        found, times = np.unique(of_layout << _VARIABLE_BITS | variables, return_counts=True)
        most = np.zeros_like(bindings)
        np.maximum.at(most, found >> _VARIABLE_BITS, times)
        behind = self.slots + np.arange(len(nodes))
        self.slot_nodes = _written(self.slot_nodes, behind, nodes)
        self.slot_starts = _written(self.slot_starts, at, self.slots + slots.cumsum() - slots)
        self.slot_counts = _written(self.slot_counts, at, slots)
        behind = self.bindings + np.arange(len(variables))
        self.binding_slots = _written(self.binding_slots, behind, binding_slots)
        self.binding_variables = _written(self.binding_variables, behind, variables)
        starts = self.bindings + bindings.cumsum() - bindings
        self.binding_starts = _written(self.binding_starts, at, starts)
        self.binding_counts = _written(self.binding_counts, at, bindings)
        self.of_one_variable = _written(self.of_one_variable, at, most)
        self.slots += len(nodes)
        self.bindings += len(variables)


def _flat(rows: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """Return how long each row is, and all of them one behind the other."""
    sizes = np.array([*map(len, rows)], np.int64)
    return sizes, np.fromiter(chain.from_iterable(rows), np.int64, int(sizes.sum()))


def _written(array: Ints, at: Ints, values: Ints) -> Ints:
    """Return an array with other values at some places, longer where that is needed."""
    stop = int(at.max(initial=-1)) + 1
    if stop > len(array):
        array = np.concatenate([array, np.zeros(stop, np.int64)])
    array[at] = values
    return array
