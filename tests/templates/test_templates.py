"""Minors and templates: the paper's examples, its counts, and what isomorphism must not miss."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations, permutations, product

import pytest

from templates.conjunctive import conjunctive_query, view_query
from templates.joingraph import Constant, GraphNode, JoinGraph, ResidualEdge, reduce
from templates.template import Template, template_of

Tree = tuple[int, ...]
"""A side by its parents; leaves are the last nodes."""


def side(parents: Tree, first: int = 1) -> tuple[GraphNode, ...]:
    return tuple(GraphNode(first + i, parent) for i, parent in enumerate(parents))


def flat_trees(leaves: int) -> list[tuple[Tree, list[int]]]:
    if leaves == 1:
        return [((-1,), [0])]
    return [((-1, *[0] * leaves), list(range(1, leaves + 1)))]


def any_trees(leaves: int) -> list[tuple[Tree, list[int]]]:
    """All rooted trees over numbered leaves in which every inner node branches."""
    trees = []
    for nested in _partitions(tuple(range(leaves))):
        parents: list[int] = []
        where: dict[int, int] = {}
        _number(nested, -1, parents, where)
        trees.append((tuple(parents), [where[leaf] for leaf in range(leaves)]))
    return trees


def _partitions(leaves: tuple[int, ...]) -> Iterator[object]:
    if len(leaves) == 1:
        yield leaves[0]
        return
    for blocks in _set_partitions(leaves):
        if len(blocks) > 1:
            yield from product(*(list(_partitions(block)) for block in blocks))


def _set_partitions(items: tuple[int, ...]) -> Iterator[list[tuple[int, ...]]]:
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for size in range(len(rest) + 1):
        for others in combinations(rest, size):
            left = tuple(i for i in rest if i not in others)
            for blocks in _set_partitions(left):
                yield [(first, *others), *blocks]


def _number(nested: object, parent: int, parents: list[int], where: dict[int, int]) -> None:
    index = len(parents)
    parents.append(parent)
    if isinstance(nested, tuple):
        for below in nested:
            _number(below, index, parents, where)
    else:
        where[int(str(nested))] = index


Joins = tuple[tuple[int, int], ...]


def join_sets(count: int) -> Iterator[tuple[int, int, Joins]]:
    """Yield (left leaves, right leaves, value joins) with no leaf left over.

    Of sets that differ in the numbers of the leaves one is yielded.
    """
    for left, right in product(range(1, count + 1), repeat=2):
        for pairs in combinations(list(product(range(left), range(right))), count):
            covers = len({a for a, _ in pairs}) == left and len({b for _, b in pairs}) == right
            if covers and pairs == min(renumbered(left, right, pairs)):
                yield left, right, pairs


def renumbered(left: int, right: int, pairs: Joins) -> Iterator[Joins]:
    for mine, others in product(permutations(range(left)), permutations(range(right))):
        yield tuple(sorted((mine[a], others[b]) for a, b in pairs))


def templates(count: int, trees: object) -> set[Template]:
    found = set()
    for left, right, pairs in join_sets(count):
        for (parents1, at1), (parents2, at2) in product(trees(left), trees(right)):  # type: ignore[operator]
            joins = tuple((at1[a], at2[b]) for a, b in pairs)
            graph = JoinGraph((side(parents1), side(parents2, 100)), joins)
            found.add(template_of(reduce(graph)[0])[0])
    return found


@pytest.mark.parametrize(("joins", "count"), [(1, 1), (2, 3), (3, 6), (4, 16)])
def test_the_number_of_templates_on_flat_schemas_is_that_of_table_6_3(
    joins: int, count: int
) -> None:
    assert len(templates(joins, flat_trees)) == count


@pytest.mark.parametrize(("joins", "count"), [(1, 1), (2, 3), (3, 16), (4, 215)])
def test_the_number_of_templates_on_complex_schemas_is_that_of_table_6_3(
    joins: int, count: int
) -> None:
    # Of four joins the table says "< 230".
    assert len(templates(joins, any_trees)) == count


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
            tuple(
                GraphNode(nodes[i].variable, place.get(nodes[i].parent, -1), nodes[i].is_kept)
                for i in order
            )
        )
    joins = [(moved[0][a], moved[1][b]) for a, b in graph.value_joins]
    random_.shuffle(joins)
    return JoinGraph(tuple(sides), tuple(joins))


@pytest.mark.parametrize("seed", range(40))
def test_isomorphic_graphs_have_one_template_and_one_row(seed: int) -> None:
    random_ = random.Random(seed)
    choices = list(join_sets(random_.randint(1, 4)))
    left, right, pairs = random_.choice(choices)
    (parents1, at1), (parents2, at2) = (random_.choice(any_trees(n)) for n in (left, right))
    graph = JoinGraph(
        (side(parents1), side(parents2, 100)), tuple((at1[a], at2[b]) for a, b in pairs)
    )
    template, row, _ = template_of(graph)
    for _ in range(5):
        again, again_row, _ = template_of(shuffled(graph, random_))
        assert (again, again_row) == (template, row)


def test_the_graph_of_twelve_equal_joins_is_canonical_within_the_bound() -> None:
    tree = (-1, *[0] * 12)
    joins = tuple((i, i) for i in range(1, 13))
    first = template_of(JoinGraph((side(tree), side(tree, 100)), joins))
    second = template_of(JoinGraph((side(tree), side(tree, 100)), joins[::-1]))
    assert first[:2] == second[:2]


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


def test_constants_of_residuals_stand_in_the_row_and_not_in_the_template() -> None:
    def graph(text: str) -> JoinGraph:
        residual = ResidualEdge((0, 0), "!=", Constant(text))
        return JoinGraph((side((-1,)), side((-1,), 100)), ((0, 0),), (residual,))

    ann, bob = template_of(graph("Ann")), template_of(graph("Bob"))
    assert ann[0] == bob[0]
    assert (ann[1].constants, bob[1].constants) == (("Ann",), ("Bob",))


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
