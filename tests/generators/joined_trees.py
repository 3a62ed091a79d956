"""Every join graph of so many value joins, and how many there are that are not isomorphic.

A side is a rooted tree whose value-joined nodes are numbered; all other nodes branch, or the
reduction would have dropped them.  The number of graphs is found twice: by `template_of`, from all
of them, and by Burnside's lemma, which knows neither templates nor canonical forms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import combinations, permutations, product
from math import factorial

from templates.joingraph import GraphNode, JoinGraph

__all__ = ["Trees", "any_trees", "count", "flat_trees", "graphs", "interior_trees"]

Tree = tuple[int | None, frozenset["Tree"]]  # type: ignore[misc]
"""A node: its number, or None where it joins nothing, and what is below it."""

Joins = tuple[tuple[int, int], ...]
"""Value joins: (number on the left, number on the right)."""

Trees = Callable[[int], list[Tree]]
"""All trees over the numbers 0 to n - 1."""

NOTHING: frozenset[Tree] = frozenset()


@cache
def flat_trees(joined: int) -> list[Tree]:
    """Return the two-level tree over so many leaves."""
    leaves = frozenset[Tree]((i, NOTHING) for i in range(joined))
    return [(None, leaves)] if joined > 1 else list(leaves)


@cache
def any_trees(joined: int) -> list[Tree]:
    """Return all trees in which leaves are joined."""
    return list(_trees(tuple(range(joined)), is_interior=False))


@cache
def interior_trees(joined: int) -> list[Tree]:
    """Return all trees in which any nodes are joined, those that have others below them too."""
    return list(_trees(tuple(range(joined)), is_interior=True))


def _trees(numbers: tuple[int, ...], *, is_interior: bool) -> Iterator[Tree]:
    if is_interior or len(numbers) == 1:
        for top in numbers:
            rest = tuple(i for i in numbers if i != top)
            for below in _forests(rest, is_interior=is_interior):
                yield top, below
    for below in _forests(numbers, is_interior=is_interior, least=2):
        yield None, below


def _forests(
    numbers: tuple[int, ...], *, is_interior: bool, least: int = 0
) -> Iterator[frozenset[Tree]]:
    for blocks in _set_partitions(numbers):
        if len(blocks) >= least:
            for trees in product(*(_trees(block, is_interior=is_interior) for block in blocks)):
                yield frozenset(trees)


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


@cache
def join_sets(joins: int, left: int, right: int) -> list[Joins]:
    """Return all sets of so many value joins in which each number has a part."""
    return [
        pairs
        for pairs in combinations(list(product(range(left), range(right))), joins)
        if len({a for a, _ in pairs}) == left and len({b for _, b in pairs}) == right
    ]


def graphs(joins: int, trees: Trees) -> Iterator[JoinGraph]:
    """Yield join graphs: each at least once, up to isomorphism."""
    for left, right in product(range(1, joins + 1), repeat=2):
        for pairs in join_sets(joins, left, right):
            if pairs == min(_renumbered(left, right, pairs)):
                for sides in product(trees(left), trees(right)):
                    yield graph(sides, pairs)


def _renumbered(left: int, right: int, pairs: Joins) -> Iterator[Joins]:
    for mine, others in product(permutations(range(left)), permutations(range(right))):
        yield tuple(sorted((mine[a], others[b]) for a, b in pairs))


def graph(sides: tuple[Tree, ...], joins: Joins) -> JoinGraph:
    """Return two trees and the value joins between them as a join graph."""
    (left, at_left), (right, at_right) = (_side(side, 100 * i) for i, side in enumerate(sides))
    return JoinGraph((left, right), tuple((at_left[a], at_right[b]) for a, b in joins))


def _side(tree: Tree, first: int) -> tuple[tuple[GraphNode, ...], dict[int, int]]:
    nodes: list[GraphNode] = []
    places: dict[int, int] = {}

    def add(node: Tree, parent: int) -> None:
        number, below = node
        place = len(nodes)
        nodes.append(GraphNode(first + place, parent))
        if number is not None:
            places[number] = place
        for each in below:
            add(each, place)

    add(tree, -1)
    return tuple(nodes), places


def count(joins: int, trees: Trees) -> int:
    """Return how many graphs there are up to isomorphism, by Burnside's lemma.

    Renumbering the nodes of either side gives an isomorphic graph, and all of them.  So graphs are
    the orbits of the renumberings, and these are as many as a renumbering leaves alone on average.
    """
    total = 0
    for left, right in product(range(1, joins + 1), repeat=2):
        alone = 0
        for mine, others in product(permutations(range(left)), permutations(range(right))):
            sides = _left_alone(trees, left, mine) * _left_alone(trees, right, others)
            sets = join_sets(joins, left, right)
            alone += sides and sides * sum(
                pairs == tuple(sorted((mine[a], others[b]) for a, b in pairs)) for pairs in sets
            )
        orbits, rest = divmod(alone, factorial(left) * factorial(right))
        assert not rest
        total += orbits
    return total


@cache
def _left_alone(trees: Trees, joined: int, numbers: tuple[int, ...]) -> int:
    return sum(tree == _numbered(tree, numbers) for tree in trees(joined))


def _numbered(tree: Tree, numbers: tuple[int, ...]) -> Tree:
    number, below = tree
    return (
        None if number is None else numbers[number],
        frozenset(_numbered(each, numbers) for each in below),
    )
