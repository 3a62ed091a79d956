"""What an evaluator finds for one block, put together again as bindings, to compare with others."""

from __future__ import annotations

from collections.abc import Sequence

from xpath_eval.catalog import PatternCatalog
from xpath_eval.evaluator import Evaluator, Witnesses
from xpath_eval.limits import EvaluatorLimits
from xscl.pattern import DOCUMENT, TreePattern
from xscl.query import Block
from xscl.treepattern import tree_pattern

__all__ = ["Registered", "register"]

Binding = frozenset[tuple[str, int]]


class Registered:
    """A block whose every step is asked for."""

    def __init__(self, catalog: PatternCatalog, block: Block) -> None:
        self.catalog = catalog
        self.pattern: TreePattern = tree_pattern(block, block.variables)
        self.ids = catalog.add(self.pattern)
        self.edges = [
            (self.ids[max(node.parent, 0)], i)
            for i, node in zip(self.ids, self.pattern.nodes, strict=True)
        ]
        catalog.want(self.edges, self.ids)

    def remove(self) -> None:
        self.catalog.unwant(self.edges, self.ids)
        self.catalog.remove(self.pattern)

    def bindings(self, witnesses: Witnesses) -> set[Binding]:
        """Join the edges of the pattern, and hold the constants against the values."""
        partial: list[dict[int, int]] = [{}]
        for i, node in enumerate(self.pattern.nodes):
            partial = [
                {**one, i: below}
                for one in partial
                for above, below in self._pairs(witnesses, i)
                if node.parent == DOCUMENT or one[node.parent] == above
                if all(witnesses.values[below] == constant for constant in node.constants)
            ]
        return {
            frozenset(
                (term, witnesses.nodes[one[i]])
                for i, node in enumerate(self.pattern.nodes)
                for term in node.terms
            )
            for one in partial
        }

    def _pairs(self, witnesses: Witnesses, i: int) -> Sequence[tuple[int, int]]:
        parent = max(self.pattern.nodes[i].parent, 0)
        wanted = (self.ids[parent], self.ids[i])
        return [(n1, n2) for v1, v2, n1, n2 in witnesses.shape.edges if (v1, v2) == wanted]


def register(blocks: Sequence[Block], **limits: int) -> tuple[list[Registered], Evaluator]:
    """Return blocks registered in one catalog, and an evaluator of its plan."""
    catalog = PatternCatalog()
    registered = [Registered(catalog, block) for block in blocks]
    return registered, Evaluator(catalog.plan(), EvaluatorLimits(**limits))
