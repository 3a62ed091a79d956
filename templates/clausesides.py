"""The operands of a clause as the two sides of its join graph, and the template that they have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from templates.clause import ClauseSource
from templates.joingraph import NodeRef, ResidualEdge
from templates.template import SideForm, Template, TemplateRow, reduced_template
from xscl.pattern import DataTest

__all__ = ["Side", "template_of_sides"]


@dataclass(slots=True)
class Side:
    """One operand as a graph: the variables of its nodes, and where the terms are.

    `nodes` are those of a block as in `SideForm`; the ones of tuples are below their root.
    """

    source: ClauseSource
    variables: Sequence[int]
    nodes: list[tuple[int, bool]]
    node_of: dict[str, int]
    tests: list[tuple[int, DataTest]]
    values: list[int] = field(default_factory=list)
    """The nodes of `Values`."""
    valued: list[str] = field(default_factory=list)
    """The terms of a block whose values are asked for."""


def template_of_sides(
    sides: Sequence[Side],
    joins: Sequence[tuple[int, int]],
    residuals: Sequence[ResidualEdge],
) -> tuple[Template, TemplateRow, Mapping[NodeRef, int]]:
    """Return the template of some sides, its row, and the meta-variables of nodes of blocks.

    `joins` are pairs of nodes of the two sides.
    Of tuples there is what is read here: they have many more nodes, by which graphs with the same
    minor would differ.
    """
    forms: list[SideForm] = []
    variables: list[int] = []
    for s, side in enumerate(sides):
        if side.source.below is None:
            forms.append(tuple(side.nodes))
            variables += side.variables
            continue
        read = {pair[s] for pair in joins}
        if residuals:
            ends = [end for each in residuals for end in (each.left, each.right)]
            read.update([i for of, i in ends if of == s])
        in_order = sorted(read)
        forms.append(_flat(len(in_order)))
        variables.append(side.variables[0])
        variables += [side.variables[i] for i in in_order]
        at = {i: n for n, i in enumerate(in_order, 1)}
        joins = [(left, at[right]) if s else (at[left], right) for left, right in joins]
        residuals = [_moved(each, s, at) for each in residuals]
    return reduced_template(tuple(forms), variables, tuple(joins), tuple(residuals))


def _moved(edge: ResidualEdge, side: int, at: Mapping[int, int]) -> ResidualEdge:
    """Return an edge of nodes that have other numbers on one side."""
    left, right = [(side, at[i]) if of == side else (of, i) for of, i in (edge.left, edge.right)]
    return ResidualEdge(left, edge.operator, right)


@lru_cache(maxsize=256)
def _flat(size: int) -> SideForm:
    """Return the form of a root with so many nodes below it."""
    return ((-1, False), *((0, False),) * size)
