"""Table 6.3: how many templates there are, enumerated, counted without them, and told apart."""

from __future__ import annotations

import random

import pytest
from generators.joined_trees import Trees, any_trees, count, flat_trees, graphs, interior_trees

from templates.joingraph import GraphNode, JoinGraph, reduce
from templates.template import Template, template_of

FLAT = [(1, 1), (2, 3), (3, 6), (4, 16)]
COMPLEX = [(1, 1), (2, 3), (3, 16), (4, 215)]
"""The table says < 230 of four."""

INTERIOR = [(1, 1), (2, 9), (3, 188)]
"""Where nodes above others are joined as well, which the paper leaves out."""


def templates(joins: int, trees: Trees) -> set[Template]:
    return {template_of(reduce(graph)[0])[0] for graph in graphs(joins, trees)}


@pytest.mark.parametrize(("joins", "expected"), FLAT)
def test_the_templates_of_flat_schemas(joins: int, expected: int) -> None:
    assert len(templates(joins, flat_trees)) == expected


@pytest.mark.parametrize(("joins", "expected"), COMPLEX)
def test_the_templates_of_complex_schemas(joins: int, expected: int) -> None:
    assert len(templates(joins, any_trees)) == expected


@pytest.mark.parametrize(("joins", "expected"), INTERIOR)
def test_the_templates_where_inner_nodes_are_joined(joins: int, expected: int) -> None:
    assert len(templates(joins, interior_trees)) == expected


@pytest.mark.parametrize(
    ("trees", "table"),
    [(flat_trees, FLAT), (any_trees, COMPLEX), (interior_trees, [*INTERIOR, (4, 7_794)])],
)
def test_burnsides_lemma_gives_the_same_numbers(trees: Trees, table: list[tuple[int, int]]) -> None:
    assert [(joins, count(joins, trees)) for joins, _ in table] == table


@pytest.mark.parametrize("trees", [any_trees, interior_trees])
def test_a_template_is_the_minor_itself_under_other_names(trees: Trees) -> None:
    """So graphs that are not isomorphic never have one template."""
    for joins in (1, 2, 3):
        for graph in graphs(joins, trees):
            minor, _ = reduce(graph)
            template, row, place = template_of(minor)
            assert sorted(place.values()) == list(range(template.size))
            assert template.left_size == len(minor.sides[0])
            for (side, i), meta in place.items():
                node = minor.sides[side][i]
                assert row.variables[meta] == node.variable
                above = place[side, node.parent] if node.parent >= 0 else -1
                assert template.parents[meta] == above
            assert {(place[0, a], place[1, b]) for a, b in minor.value_joins} == set(
                template.value_joins
            )


@pytest.mark.parametrize("trees", [any_trees, interior_trees])
def test_however_a_minor_is_written_down_it_has_one_template_and_one_row(trees: Trees) -> None:
    random_ = random.Random(63)
    for graph in graphs(3, trees):
        template, row, _ = template_of(graph)
        assert template_of(shuffled(graph, random_))[:2] == (template, row)


def shuffled(graph: JoinGraph, random_: random.Random) -> JoinGraph:
    """Return the graph with its nodes in another order, parents still first."""
    sides, moved = [], []
    for nodes in graph.sides:
        order: list[int] = []
        while len(order) < len(nodes):
            ready = [
                i
                for i, node in enumerate(nodes)
                if i not in order and (node.parent < 0 or node.parent in order)
            ]
            order.append(random_.choice(ready))
        place = {old: new for new, old in enumerate(order)}
        moved.append(place)
        sides.append(
            tuple(GraphNode(nodes[i].variable, place.get(nodes[i].parent, -1)) for i in order)
        )
    joins = [(moved[0][a], moved[1][b]) for a, b in graph.value_joins]
    random_.shuffle(joins)
    return JoinGraph(tuple(sides), tuple(joins))
