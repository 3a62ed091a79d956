"""Minors and templates: the paper's examples, its counts, and what isomorphism must not miss."""

from __future__ import annotations

import random

import pytest

from templates.conjunctive import conjunctive_query, view_query
from templates.joingraph import GraphNode, JoinGraph, ResidualEdge, reduce
from templates.template import reduced_template, template_of


def side(parents: tuple[int, ...], first: int = 1) -> tuple[GraphNode, ...]:
    return tuple(GraphNode(first + i, parent) for i, parent in enumerate(parents))


def test_the_reduction_drops_what_joins_nothing_and_contracts_what_does_not_branch() -> None:
    #   0 - 1 - 2 - 3 (joined)      and a twig 4 below 2
    #           |_ 5 (joined)
    left = side((-1, 0, 1, 2, 2, 1))
    minor, moved = reduce(JoinGraph((left, side((-1,), 100)), ((3, 0), (5, 0))))
    assert [node.variable for node in minor.sides[0]] == [2, 4, 6]
    assert [node.parent for node in minor.sides[0]] == [-1, 0, 0]
    assert moved[0] == {1: 0, 3: 1, 5: 2}
    assert minor.value_joins == ((1, 0), (2, 0))


def test_a_node_that_is_kept_survives_the_reduction() -> None:
    left = (GraphNode(1, -1, is_kept=True), GraphNode(2, 0), GraphNode(3, 1))
    minor, _ = reduce(JoinGraph((left, side((-1,), 100)), ((2, 0),)))
    assert [node.variable for node in minor.sides[0]] == [1, 3]


def test_a_side_that_joins_nothing_keeps_its_root() -> None:
    minor, _ = reduce(JoinGraph((side((-1, 0)), side((-1, 0), 100))))
    assert [len(nodes) for nodes in minor.sides] == [1, 1]


def test_the_graph_of_twelve_equal_joins_is_canonical_within_the_bound() -> None:
    tree = (-1, *[0] * 12)
    joins = tuple((i, i) for i in range(1, 13))
    first = template_of(JoinGraph((side(tree), side(tree, 100)), joins))
    second = template_of(JoinGraph((side(tree), side(tree, 100)), joins[::-1]))
    assert first[:2] == second[:2]


def test_a_nest_of_conditions_that_are_all_alike_is_registered_in_a_moment() -> None:
    # To set its 256 leaves apart one after another, each time from all nodes, would take minutes.
    nest = (-1, *[(i - 1) // 2 for i in range(1, 511)])
    leaves = tuple((i, i) for i in range(255, 511))
    graph = JoinGraph((side(nest), side(nest, 1000)), leaves)
    template, row, place = template_of(graph)
    assert all(parent < node for node, parent in enumerate(template.parents))
    variables = {place[s, i]: (1, 1000)[s] + i for s in (0, 1) for i in range(511)}
    assert dict(enumerate(row.variables)) == variables


@pytest.mark.parametrize("joins", [5, 8])
def test_alike_nodes_stand_in_the_order_of_their_variables_within_the_bound_and_beyond(
    joins: int,
) -> None:
    star = (-1, *[0] * joins)
    pairs = tuple((i, i) for i in range(1, joins + 1))
    descending = tuple(
        GraphNode(variable, parent)
        for variable, parent in zip((1, *range(joins + 1, 1, -1)), star, strict=True)
    )
    _, row, _ = template_of(JoinGraph((descending, side(star, 100)), pairs))
    assert row.variables[: joins + 1] == tuple(range(1, joins + 2))


@pytest.mark.parametrize("seed", range(20))
def test_a_graph_has_the_template_of_its_minor(seed: int) -> None:
    # 8 equal joins have more orders than are tried.
    chance, joins = random.Random(seed), 8 if seed == 0 else 2
    sizes = [chance.randint(joins + 1, joins + 4) for _ in range(2)]
    variables = iter(chance.sample(range(100), sum(sizes)))
    flat = joins == 8
    sides = tuple(
        tuple(
            GraphNode(
                next(variables),
                -1 if not i else 0 if flat else chance.randrange(i),
                chance.random() < 0.3,
            )
            for i in range(size)
        )
        for size in sizes
    )
    pairs = tuple((i, i) if flat else (chance.randrange(sizes[0]), i) for i in range(1, joins + 1))
    graph = JoinGraph(sides, pairs, (ResidualEdge((0, 0), "!=", (1, sizes[1] - 1)),))
    minor, moved = reduce(graph)
    template, row, place = template_of(minor)
    found = {(s, old): place[s, new] for s, own in enumerate(moved) for old, new in own.items()}
    forms = tuple(tuple((node.parent, node.is_kept) for node in side) for side in sides)
    of_nodes = [node.variable for side in sides for node in side]
    reduced = reduced_template(forms, of_nodes, graph.value_joins, graph.residuals)
    assert reduced == (template, row, found)


def test_the_conjunctive_query_of_figure_6_7() -> None:
    graph = JoinGraph((side((-1, 0, 0)), side((-1, 0, 0), 4)), ((1, 1), (2, 2)))
    template, row, _ = template_of(graph)
    assert row.variables == (1, 2, 3, 4, 5, 6)
    assert conjunctive_query(template).render() == (
        "R_outT(class, l, r, node1, node2, node3, node4, node5, node6) :-\n"
        "    R_doc(l, var2, node2, s1),\n"
        "    R_docW(r, var5, node5, s1),\n"
        "    R_doc(l, var3, node3, s2),\n"
        "    R_docW(r, var6, node6, s2),\n"
        "    R_bin(l, var1, var2, node1, node2),\n"
        "    R_bin(l, var1, var3, node1, node3),\n"
        "    R_binW(r, var4, var5, node4, node5),\n"
        "    R_binW(r, var4, var6, node4, node6),\n"
        "    R_T(class, var1, var2, var3, var4, var5, var6)"
    )
    assert view_query(template).render() == (
        "R_outT(class, l, r, node1, node2, node3, node4, node5, node6) :-\n"
        "    R_vj(l, r, var2, var5, node2, node5),\n"
        "    R_vj(l, r, var3, var6, node3, node6),\n"
        "    R_bin(l, var1, var2, node1, node2),\n"
        "    R_bin(l, var1, var3, node1, node3),\n"
        "    R_binW(r, var4, var5, node4, node5),\n"
        "    R_binW(r, var4, var6, node4, node6),\n"
        "    R_T(class, var1, var2, var3, var4, var5, var6)"
    )
