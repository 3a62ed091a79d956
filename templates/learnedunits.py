"""The units of a statement whose delay is learned, and the unit behind which each comes.

A match that lacks nothing says how long each took: from the end of what stands before it in the
chain to its own end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xscl.query import Absence, From, Node, Operator, Query
from xscl.sequence import units_of

__all__ = ["LearnedUnit", "learned_units"]


@dataclass(frozen=True, slots=True)
class LearnedUnit:
    """A block whose delay is learned, and the blocks of the unit before it."""

    block: int
    before: tuple[int, ...]

    def delay_us(self, ends_us: Mapping[int, int]) -> int:
        """Return how long it took in a match, given the ends of its documents by block."""
        before_us = max(ends_us[block] for block in self.before if block in ends_us)
        return ends_us[self.block] - before_us


def learned_units(query: Query) -> tuple[LearnedUnit, ...]:
    """Return the units of a query whose delay is learned, in the order of the chain."""
    found: list[LearnedUnit] = []
    node: Node = query.root.node if isinstance(query.root, From) else query.root
    while isinstance(node, (Operator, Absence)):
        if isinstance(node, Absence):
            node = node.operand
            continue
        if isinstance(node.right, int):
            loss = query.blocks[node.right].loss
            if loss is not None and loss.delay.kind == "learned":
                before = (block for unit in units_of(_last(node.left)) for block in unit)
                found.append(LearnedUnit(node.right, tuple(before)))
        node = node.left
    return tuple(found[::-1])


def _last(node: Node) -> Node:
    """Return the last unit of a chain."""
    while isinstance(node, Absence):
        node = node.operand
    return node.right if isinstance(node, Operator) else node
