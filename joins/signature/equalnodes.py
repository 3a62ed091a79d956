"""The equal nodes of a signature, by the variables that are joined.

A signature names slots.  A slot is a node of a shape, which several variables may bind: each value
join of some class that compares them has the two nodes as a pair.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import product

from joins.budget.probe import ValueJoin
from joins.memory.slots import Layout
from joins.signature.assignments import NodePair, PairsOfNodes, ShapeNodes, ShapesNodes
from joins.signature.compared import SLOT_BITS, Codes, Equal, Grouped

__all__ = ["EqualNodes", "Signature"]

_RIGHT_SLOT = (1 << SLOT_BITS) - 1

_Pairs = dict[ValueJoin, list[NodePair]]

_Parts = list[tuple[Sequence[int], Sequence[int]]]
"""Left nodes and right nodes, all of which are equal."""

_Bound = tuple[Mapping[int, Set[int]], Mapping[int, Set[int]]]
"""By side, the variables that bind each node of a shape."""

Signature = tuple[Layout, Layout | None, Equal]
"""Two layouts and the equal pairs of slots (`pair`), in order.

The right layout is None for a single instance, which classes of one block are looked up by.
"""


class EqualNodes(PairsOfNodes):
    """The pairs of equal nodes by value join, and the nodes of both shapes.

    Value joins with more pairs than `pairs_max` have none; `many` says how many there are.
    """

    def __init__(
        self, signature: Signature, shapes: ShapesNodes, joins: Set[ValueJoin], pairs_max: int
    ) -> None:
        left, right, equal = signature
        if right is None:
            right = left
        self.sides: tuple[ShapeNodes, ShapeNodes] = shapes.of(left.shape), shapes.of(right.shape)
        self.many: dict[ValueJoin, int] = {}
        bound = self.sides[0].binding, self.sides[1].binding
        if isinstance(equal, Grouped):
            pairs = self._grouped(_parts(left, right, equal, bound, joins), pairs_max)
        else:
            pairs = _listed(left, right, equal, bound, joins)
            if len(equal) > pairs_max:
                self.many = {join: len(own) for join, own in pairs.items() if len(own) > pairs_max}
                pairs |= {join: [] for join in self.many}
        super().__init__(pairs)

    def _grouped(self, parts: Mapping[ValueJoin, _Parts], pairs_max: int) -> _Pairs:
        pairs: _Pairs = {}
        for join, own in parts.items():
            count = sum(len(lefts) * len(rights) for lefts, rights in own)
            if count > pairs_max:
                self.many[join] = count
                own = []
            pairs[join] = [pair for part in own for pair in product(*part)]
        return pairs

    @property
    def size(self) -> int:
        """How many pairs are listed."""
        return sum(map(len, self.pairs.values()))

    @property
    def most(self) -> int:
        """How many pairs a value join has at most."""
        return max([*map(len, self.pairs.values()), *self.many.values()], default=0)

    def counts(self) -> dict[ValueJoin, int]:
        """Return how many pairs each value join has."""
        return {join: len(own) for join, own in self.pairs.items()} | self.many

    def rows(self) -> Iterable[tuple[int, int, int, int]]:
        """Return the pairs as (left variable, right variable, left node, right node)."""
        return ((*join, *pair) for join, own in self.pairs.items() for pair in own)


def _listed(
    left: Layout, right: Layout, equal: Codes, bound: _Bound, joins: Set[ValueJoin]
) -> _Pairs:
    """Return the pairs of nodes where the equal pairs of slots are listed."""
    pairs: _Pairs = {}
    of_left, of_right = bound
    for code in equal:
        pair = left.nodes[code >> SLOT_BITS], right.nodes[code & _RIGHT_SLOT]
        for join in product(of_left[pair[0]], of_right[pair[1]]):
            if join in joins:
                if join in pairs:
                    pairs[join].append(pair)
                else:
                    pairs[join] = [pair]
    return pairs


def _parts(
    left: Layout, right: Layout, equal: Grouped, bound: _Bound, joins: Set[ValueJoin]
) -> Mapping[ValueJoin, _Parts]:
    """Return groups of equal nodes where the equal pairs of slots are not listed."""
    parts: dict[ValueJoin, _Parts] = defaultdict(list)
    for slots, others in equal.groups:
        of_left = _by_variable([left.nodes[i] for i in slots], bound[0])
        of_right = _by_variable([right.nodes[j] for j in others], bound[1])
        for join in product(of_left, of_right):
            if join in joins:
                parts[join].append((of_left[join[0]], of_right[join[1]]))
    return parts


def _by_variable(nodes: Sequence[int], bound: Mapping[int, Set[int]]) -> dict[int, list[int]]:
    """Return which of some nodes of a shape each variable binds."""
    found: dict[int, list[int]] = defaultdict(list)
    for node in nodes:
        for variable in bound[node]:
            found[variable].append(node)
    return found
