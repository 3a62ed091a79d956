"""The witness shapes of a join, each kept once for all parts of it.

Documents with equal witnesses up to values have one shape: the edges between the nodes that
variables bind.  A shape has a name, given by the evaluation of documents, and here a number, from 0
up; no number is given twice.  Shapes that no instance has any more are forgotten now and
then (`keep`); one that comes again is spelled out again, and gets another number.

Parts that keep something derived from a shape, as a layout or a row in a database, `watch`, to drop
it with the shape.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

from joins.memory.limits import DEFAULT_MEMORY_LIMITS, MemoryLimits
from xpath_eval.shape import Edge

__all__ = ["Shape", "Shapes", "TupleShape", "WitnessShape"]

Slots = tuple[tuple[int, ...], tuple[tuple[int, int], ...]]
"""The nodes of a layout's slots, and which variables bind them, as (slot, variable)."""

Forget = Callable[[Set[int]], None]
"""Hears of the numbers of shapes before they are forgotten."""


@dataclass(frozen=True, slots=True)
class WitnessShape:
    """The edges of a shape; by node, the variables that bind it; and all of its variables."""

    edges: Sequence[Edge]
    binding: Mapping[int, frozenset[int]]
    variables: frozenset[int]

    @classmethod
    def of(cls, edges: Sequence[Edge]) -> WitnessShape:
        """Return the shape of some edges."""
        binding: dict[int, set[int]] = {}
        for var1, var2, node1, node2 in edges:
            binding.setdefault(node1, set()).add(var1)
            binding.setdefault(node2, set()).add(var2)
        by_node = {node: frozenset(variables) for node, variables in binding.items()}
        return cls(edges, by_node, frozenset().union(*by_node.values()))

    def slots(self, compared: Set[int]) -> Slots:
        """Return the nodes that some variables bind, in order, and by which of these."""
        found = {n: sorted(variables & compared) for n, variables in self.binding.items()}
        nodes = tuple(sorted(n for n, variables in found.items() if variables))
        return nodes, tuple((i, v) for i, n in enumerate(nodes) for v in found[n])


class TupleShape(NamedTuple):
    """The shape of tuples as instances: a variable for each node, that of the root first.

    Where statements differ each has one of its own: what follows is made where it is asked for.

    >>> TupleShape((7, 8)).edges
    [(7, 8, 0, 1), (7, 7, 0, 0), (8, 8, 1, 1)]
    """

    of_nodes: tuple[int, ...]

    @property
    def edges(self) -> list[Edge]:
        """The edges: from the root to each term, and of each node to itself."""
        root, *terms = self.of_nodes
        edges = [(root, v, 0, i) for i, v in enumerate(terms, 1)]
        return [*edges, *((v, v, i, i) for i, v in enumerate(self.of_nodes))]

    @property
    def binding(self) -> dict[int, frozenset[int]]:
        """By node, the variables that bind it."""
        return {i: frozenset((v,)) for i, v in enumerate(self.of_nodes)}

    @property
    def variables(self) -> frozenset[int]:
        """All of its variables."""
        return frozenset(self.of_nodes)

    def slots(self, compared: Set[int]) -> Slots:
        """Return what `WitnessShape.slots` does."""
        nodes = tuple([i for i, v in enumerate(self.of_nodes) if v in compared])
        return nodes, tuple([(i, self.of_nodes[n]) for i, n in enumerate(nodes)])


Shape = WitnessShape | TupleShape


class Shapes:
    """The shapes that are known; `version` grows with every change."""

    def __init__(self, limits: MemoryLimits = DEFAULT_MEMORY_LIMITS) -> None:
        self._numbers: dict[str, int] = {}
        self._shapes: dict[int, Shape] = {}
        self._next = 0
        self._kept = limits.shapes_kept
        self._many = self._kept
        self._watchers: list[Forget] = []
        self.version = 0

    def __len__(self) -> int:
        return len(self._shapes)

    def __iter__(self) -> Iterator[int]:
        return iter(self._shapes)

    def __getitem__(self, number: int) -> Shape:
        return self._shapes[number]

    def get(self, number: int) -> Shape | None:
        """Return a shape, or None where it is not known any more."""
        return self._shapes.get(number)

    def number(self, name: str) -> int | None:
        """Return the number of a shape, or None while it is not known."""
        return self._numbers.get(name)

    def watch(self, forget: Forget) -> None:
        """Have `forget` hear of shapes that are about to be forgotten."""
        self._watchers.append(forget)

    def add(self, shapes: Mapping[str, Sequence[Edge]]) -> None:
        """Learn shapes by name; one that is known stays what it is."""
        for name, edges in shapes.items():
            if name not in self._numbers:
                self._learn(name, WitnessShape.of(edges))

    def of_tuples(self, names: Sequence[str], variables: Sequence[tuple[int, ...]]) -> list[int]:
        """Return the numbers of shapes of tuples, learnt where they are not known.

        The variables of each are those of its nodes, that of the root first.
        """
        known = self._numbers
        return [
            self._learn(name, TupleShape(of_nodes))
            if (number := known.get(name)) is None
            else number
            for name, of_nodes in zip(names, variables, strict=True)
        ]

    def _learn(self, name: str, shape: Shape) -> int:
        number = self._numbers[name] = self._next
        self._shapes[number] = shape
        self._next += 1
        self.version += 1
        return number

    def since(self, number: int) -> list[int]:
        """Return the shapes that have come since a number was the next one to be given."""
        newest = takewhile(lambda each: each >= number, reversed(self._shapes))
        return sorted(newest)

    @property
    def next_number(self) -> int:
        """The number that the next shape will get."""
        return self._next

    @property
    def are_many(self) -> bool:
        """Whether it is worth to look which shapes are in use: there are twice as many as then."""
        return len(self._shapes) > self._many

    def keep(self, used: Collection[int]) -> None:
        """Forget all shapes but those in use."""
        self.forget(self._shapes.keys() - set(used))
        self._many = max(self._kept, 2 * len(self._shapes))

    def forget(self, numbers: Iterable[int]) -> None:
        """Forget shapes that no instance has."""
        gone = frozenset(numbers)
        for forget in self._watchers:
            forget(gone)
        for number in gone:
            del self._shapes[number]
        self._numbers = {name: n for name, n in self._numbers.items() if n not in gone}
        self.version += 1
