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
    values: set[int] = field(default_factory=set)
    """The nodes of `Values`."""
    valued: list[str] = field(default_factory=list)
    """The terms of a block whose values are asked for."""


def template_of_sides(
    sides: Sequence[Side],
    joins: Sequence[tuple[NodeRef, NodeRef]],
    residuals: Sequence[ResidualEdge],
) -> tuple[Template, TemplateRow, Mapping[NodeRef, int]]:
    """Return the template of some sides, its row, and the meta-variables of nodes of blocks.

    Of tuples there is what is read here: they have many more nodes, by which graphs with the same
    minor would differ.
    """
    forms: list[SideForm] = []
    variables: list[int] = []
    place: dict[NodeRef, NodeRef] = {}
    for s, side in enumerate(sides):
        below = side.source.below
        if below is None:
            forms.append(tuple(side.nodes))
            variables += side.variables
            continue
        ends = [*joins, *[(each.left, each.right) for each in residuals]]
        read = sorted({end for pair in ends for end in pair if end[0] == s})
        forms.append(_flat(len(read)))
        variables += [side.variables[i] for i in (0, *[i for _, i in read])]
        place |= {ref: (s, at) for at, ref in enumerate(read, 1)}
    if place:
        joins = [(place.get(left, left), place.get(right, right)) for left, right in joins]
        residuals = [
            ResidualEdge(place.get(e.left, e.left), e.operator, place.get(e.right, e.right))
            for e in residuals
        ]
    joined = tuple([(left[1], right[1]) for left, right in joins])
    return reduced_template(tuple(forms), variables, joined, tuple(residuals))


@lru_cache(maxsize=256)
def _flat(size: int) -> SideForm:
    """Return the form of a root with so many nodes below it."""
    return ((-1, False), *((0, False),) * size)
