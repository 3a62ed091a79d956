"""Query templates: what isomorphic minors share (Hong 2009, sections 6.4.1 to 6.4.3).

A `Template` is a minor without its variables: meta-variables var1, var2, ... stand in their
place, those of the left side first, each side in an order in which parents precede children.
What a query says beyond its template is a **template row**: the value of each meta-variable.
`template_of` brings a minor into canonical form, so that isomorphic minors have equal templates,
and equivalent queries have equal rows.

The canonical form is found by colour refinement with individualisation: nodes get colours from
what surrounds them until nothing changes; where equal colours remain, each of the equal nodes
is tried first and the smallest result wins.  The work is bounded by `REFINED_NODES_MAX`; beyond it
equal nodes stand in the order of their variables, which can at worst give one template two forms:
less sharing, never another result.  What was found for a form is kept: queries
that differ in variables only are not searched again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

from templates.heldonce import held_once
from templates.joingraph import LEFT, GraphNode, JoinGraph, NodeRef, ResidualEdge, reduce

__all__ = ["Template", "TemplateRow", "reduced_template", "template_of"]

REFINED_NODES_MAX = 50_000
"""Nodes that are given a colour in one search, all trials together: six interchangeable value joins
make 720 trials, in which 34,622 are.  It is some half a second of work."""

_FORMS_KEPT = 1_000

SideForm = tuple[tuple[int, bool], ...]
"""A side of a join graph without its variables: see `GraphNode`."""

ResidualForm = tuple[int, str, int]
"""A residual in a template: meta-variable, operator, meta-variable."""


@dataclass(frozen=True, slots=True)
class Template:
    """The form of a minor.

    There are `size` meta-variables; it `has_right` where these are of two sides.
    `parents[i]` is the meta-variable above meta-variable `i`, or -1; the first `left_size` are
    the left side.  `value_joins` and `residuals` name meta-variables by index, from 0.  Templates
    that differ in `apart` alone are kept from being one: their minors are isomorphic.  `edges` are
    the pairs of a meta-variable and the one above it, and of one that stands alone and itself, and
    `spelled` is its text: many classes have one template.  `asked` are by side the meta-variables
    that value joins compare, or all of them where there is none; `compared` are those of value
    joins and residuals.
    """

    parents: tuple[int, ...]
    left_size: int
    value_joins: tuple[tuple[int, int], ...]
    residuals: tuple[ResidualForm, ...] = ()
    apart: tuple[int | str, ...] = ()
    size: int = field(init=False, repr=False, compare=False)
    has_right: bool = field(init=False, repr=False, compare=False)
    edges: tuple[tuple[int, int], ...] = field(init=False, repr=False, compare=False)
    spelled: str = field(init=False, repr=False, compare=False)
    asked: tuple[Sequence[int], Sequence[int]] = field(init=False, repr=False, compare=False)
    compared: tuple[int, ...] = field(init=False, repr=False, compare=False)

    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", len(self.parents))
        object.__setattr__(self, "has_right", self.left_size < self.size)
        above = set(self.parents)
        found = [
            (i if p < 0 else p, i) for i, p in enumerate(self.parents) if p >= 0 or i not in above
        ]
        object.__setattr__(self, "edges", tuple(found))
        object.__setattr__(self, "spelled", repr(self))
        left: Sequence[int] = range(self.left_size)
        right: Sequence[int] = range(self.left_size, self.size)
        if joins := self.value_joins:
            left, right = (tuple(dict.fromkeys(ends)) for ends in zip(*joins, strict=True))
        object.__setattr__(self, "asked", (left, right))
        ends = [*self.value_joins, *[(left, right) for left, _, right in self.residuals]]
        compared = tuple(dict.fromkeys([i for pair in ends for i in pair]))
        object.__setattr__(self, "compared", compared)
        own = self.parents, self.left_size, self.value_joins, self.residuals, self.apart
        object.__setattr__(self, "_hash", hash(own))

    def __hash__(self) -> int:
        # There are few of them, and each class is looked up by one.
        return self._hash

    def __reduce__(self) -> tuple[type[Template], tuple[Any, ...]]:
        # Strings have other hashes in another process.
        return Template, tuple([getattr(self, each.name) for each in fields(self) if each.init])


@dataclass(frozen=True, slots=True)
class TemplateRow:
    """The variables of one minor, in the order of its template."""

    variables: tuple[int, ...]


def reduced_template(
    forms: tuple[SideForm, ...],
    variables: Sequence[int],
    value_joins: tuple[tuple[int, int], ...] = (),
    residuals: tuple[ResidualEdge, ...] = (),
) -> tuple[Template, TemplateRow, Mapping[NodeRef, int]]:
    """Return the template and the row of a join graph's minor.

    `variables` are those of all nodes, side by side.  The last of what is returned is the
    meta-variable of each node of the graph that is in the minor.
    """
    form = _reduced_form(forms, value_joins, residuals)
    if form is None:
        minor, moved = reduce(_graph(forms, variables, value_joins, residuals))
        template, row, place = template_of(minor)
        found = ((s, old, new) for s, side in enumerate(moved) for old, new in side.items())
        return template, row, {(s, old): place[s, new] for s, old, new in found}
    template, orders = form
    if len(orders) == 1:
        [order] = orders
        return template, TemplateRow(order.variables(variables)), order.places
    each = [order.variables(variables) for order in orders]
    least = min(each)
    return template, TemplateRow(least), orders[each.index(least)].places


def _graph(
    forms: tuple[SideForm, ...],
    variables: Sequence[int],
    value_joins: tuple[tuple[int, int], ...],
    residuals: tuple[ResidualEdge, ...],
) -> JoinGraph:
    own = iter(variables)
    sides = tuple([tuple([GraphNode(next(own), *each) for each in side]) for side in forms])
    return JoinGraph(sides, value_joins, residuals)


def template_of(graph: JoinGraph) -> tuple[Template, TemplateRow, Mapping[NodeRef, int]]:
    """Return a minor's template, its row, and the meta-variable of each of its nodes."""
    parents = tuple([tuple([node.parent for node in side]) for side in graph.sides])
    form = _canonical_form(parents, graph.value_joins, graph.residuals)
    if form is None:
        template, row, order = next(_Search(graph).results())
        return template, row, {node: i for i, node in enumerate(order)}
    each = [_variables(graph, order) for order in form.orders]
    least = min(each)
    return form.template, TemplateRow(least), form.places[each.index(least)]


def _variables(graph: JoinGraph, order: Sequence[NodeRef]) -> tuple[int, ...]:
    """Return the variables of the nodes in an order."""
    sides = graph.sides
    return tuple([sides[s][i].variable for s, i in order])


class _CanonicalForm(NamedTuple):
    """The template of a form, every order of nodes that gives it, and the places of the nodes."""

    template: Template
    orders: tuple[list[NodeRef], ...]
    places: tuple[Mapping[NodeRef, int], ...]


@lru_cache(maxsize=4 * _FORMS_KEPT)
def _reduced_form(
    forms: tuple[SideForm, ...],
    value_joins: tuple[tuple[int, int], ...],
    residuals: tuple[ResidualEdge, ...],
) -> tuple[Template, tuple[_Order, ...]] | None:
    """Return the template of a minor, and every order that gives it of the nodes as they were."""
    no_variables = [0] * sum(map(len, forms))
    minor, moved = reduce(_graph(forms, no_variables, value_joins, residuals))
    parents = tuple(tuple(node.parent for node in side) for side in minor.sides)
    form = _canonical_form(parents, minor.value_joins, minor.residuals)
    if form is None:
        return None
    before = {
        (s, new): held_once((s, old)) for s, side in enumerate(moved) for old, new in side.items()
    }
    size = len(forms[LEFT])
    orders: list[_Order] = []
    for own in form.orders:
        nodes = tuple([before[node] for node in own])
        places = [i if side == LEFT else size + i for side, i in nodes]
        orders.append(_Order({node: i for i, node in enumerate(nodes)}, _taken(places)))
    return form.template, tuple(orders)


class _Order(NamedTuple):
    """An order of some nodes; `variables` takes theirs out of those of all nodes, side by side."""

    places: Mapping[NodeRef, int]
    variables: Callable[[Sequence[int]], tuple[int, ...]]


def _taken(places: Sequence[int]) -> Callable[[Sequence[int]], tuple[int, ...]]:
    if len(places) == 1:
        [place] = places
        return lambda variables: (variables[place],)
    return itemgetter(*places)


@lru_cache(maxsize=_FORMS_KEPT)
def _canonical_form(
    parents: tuple[tuple[int, ...], ...],
    value_joins: tuple[tuple[int, int], ...],
    residuals: tuple[ResidualEdge, ...],
) -> _CanonicalForm | None:
    """Return what graphs come to that differ in variables, None where there are too many orders."""
    sides = tuple(tuple(GraphNode(0, parent) for parent in side) for side in parents)
    search = _Search(JoinGraph(sides, value_joins, residuals))
    results = list(search.results())
    if search.is_bounded():
        return None
    best = min((template for template, _, _ in results), key=repr)
    orders = tuple(order for template, _, order in results if template == best)
    places = tuple({node: i for i, node in enumerate(order)} for order in orders)
    return _CanonicalForm(best, orders, places)


class _Surroundings:
    """The nodes whose colours refine that of one: above and below it, and joined with it."""

    __slots__ = ("above", "below", "joined", "residuals")

    def __init__(self) -> None:
        self.above: NodeRef | None = None
        self.below: list[NodeRef] = []
        self.joined: list[NodeRef] = []
        self.residuals: list[tuple[str, NodeRef]] = []

    def signature(self, node: NodeRef, colours: Mapping[NodeRef, int]) -> tuple[Any, ...]:
        """Return the colour of the node, and sorted the colours of each kind of node around it."""
        return (
            colours[node],
            -1 if self.above is None else colours[self.above],
            tuple(sorted([colours[n] for n in self.below])),
            tuple(sorted([colours[n] for n in self.joined])),
            tuple(sorted([(operator, colours[n]) for operator, n in self.residuals])),
        )


def _surroundings(graph: JoinGraph, nodes: Sequence[NodeRef]) -> dict[NodeRef, _Surroundings]:
    around = {node: _Surroundings() for node in nodes}
    for side, index in nodes:
        parent = graph.sides[side][index].parent
        if parent >= 0:
            around[side, index].above = (side, parent)
            around[side, parent].below.append((side, index))
    for left, right in graph.value_joins:
        around[0, left].joined.append((1, right))
        around[1, right].joined.append((0, left))
    for edge in graph.residuals:
        around[edge.left].residuals.append((edge.operator, edge.right))
        around[edge.right].residuals.append((edge.operator, edge.left))
    return around


class _Search:
    def __init__(self, graph: JoinGraph) -> None:
        self._graph = graph
        self._nodes = [(s, i) for s, side in enumerate(graph.sides) for i in range(len(side))]
        self._around = _surroundings(graph, self._nodes)
        self._refined = 0

    def results(self) -> Iterator[tuple[Template, TemplateRow, list[NodeRef]]]:
        for colours in self._discrete(self._refine(self._initial())):
            yield self.result(sorted(self._nodes, key=colours.__getitem__))

    def is_bounded(self) -> bool:
        """Whether there is more to refine than is refined."""
        return self._refined > REFINED_NODES_MAX

    def _initial(self) -> dict[NodeRef, int]:
        """Colour nodes by side and depth, so that any order by colour puts parents first."""
        return _rank({node: (node[0], self._depth(node)) for node in self._nodes})

    def _depth(self, node: NodeRef) -> int:
        parent = self._graph.sides[node[0]][node[1]].parent
        return 0 if parent < 0 else 1 + self._depth((node[0], parent))

    def _refine(self, colours: dict[NodeRef, int]) -> dict[NodeRef, int]:
        while True:
            signatures = {n: around.signature(n, colours) for n, around in self._around.items()}
            refined = _rank(signatures)
            self._refined += len(self._nodes)
            if len(set(refined.values())) == len(set(colours.values())):
                return refined
            colours = refined

    def _discrete(self, colours: dict[NodeRef, int]) -> Iterator[dict[NodeRef, int]]:
        counts = Counter(colours.values())
        tied = min((c for c, n in counts.items() if n > 1), default=None)
        if tied is None:
            yield colours
            return
        if self.is_bounded():
            yield _rank({n: (c, self._variable(n), n) for n, c in colours.items()})
            return
        cell = [n for n in self._nodes if colours[n] == tied]
        cell.sort(key=lambda n: (self._variable(n), n))
        for chosen in cell:
            split = {n: 2 * c + (c == tied and n != chosen) for n, c in colours.items()}
            yield from self._discrete(self._refine(split))
            if self.is_bounded():
                return

    def _variable(self, node: NodeRef) -> int:
        side, index = node
        return self._graph.sides[side][index].variable

    def result(self, order: list[NodeRef]) -> tuple[Template, TemplateRow, list[NodeRef]]:
        """Return the template and the row that an order of the nodes gives, and the order."""
        place = {node: i for i, node in enumerate(order)}
        sides = self._graph.sides
        parents = tuple(
            -1 if sides[s][i].parent < 0 else place[s, sides[s][i].parent] for s, i in order
        )
        joins = tuple(sorted((place[0, a], place[1, b]) for a, b in self._graph.value_joins))
        residuals = sorted(_residual_form(edge, place) for edge in self._graph.residuals)
        template = Template(
            parents,
            sum(side == LEFT for side, _ in order),
            tuple(dict.fromkeys(joins)),
            tuple(residuals),
        )
        row = TemplateRow(_variables(self._graph, order))
        return template, row, order


def _residual_form(edge: ResidualEdge, place: dict[NodeRef, int]) -> ResidualForm:
    # Both operators are symmetric: the smaller meta-variable stands first.
    first, second = sorted((place[edge.left], place[edge.right]))
    return first, edge.operator, second


def _rank(signatures: dict[NodeRef, tuple[Any, ...]]) -> dict[NodeRef, int]:
    ranks = {signature: i for i, signature in enumerate(sorted(set(signatures.values())))}
    return {node: ranks[signature] for node, signature in signatures.items()}
