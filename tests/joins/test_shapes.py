"""What a shape binds is kept once, and what is derived from a shape goes with it."""

from __future__ import annotations

from collections.abc import Set

import pytest

from joins.memory.limits import MemoryLimits
from joins.memory.shapes import Shapes
from joins.signature import assignments
from joins.signature.assignments import ShapeEdges

ONE = [(1, 2, 0, 1), (1, 3, 0, 1)]
TWO = [(4, 4, 0, 0)]


def test_a_shape_says_which_variables_bind_its_nodes() -> None:
    shapes = Shapes()
    shapes.add({"one": ONE, "two": TWO})
    number = shapes.number("one")
    assert number == 0
    assert shapes[number].binding == {0: {1}, 1: {2, 3}}
    assert shapes[number].variables == {1, 2, 3}
    assert list(shapes[number].edges) == ONE


def test_no_number_is_given_twice() -> None:
    shapes = Shapes()
    shapes.add({"one": ONE, "two": TWO})
    shapes.add({"one": TWO})
    assert shapes[0].variables == {1, 2, 3}, "a shape that is known stays what it is"
    shapes.forget([0])
    assert shapes.number("one") is None
    shapes.add({"one": ONE})
    assert shapes.number("one") == 2
    assert shapes.since(1) == [1, 2]
    assert [*shapes] == [1, 2]


def test_who_watches_hears_of_a_shape_while_it_is_there() -> None:
    shapes, heard = Shapes(), dict[int, Set[int]]()
    shapes.watch(lambda gone: heard.update({number: shapes[number].variables for number in gone}))
    shapes.add({"one": ONE, "two": TWO})
    shapes.keep({1})
    assert heard == {0: {1, 2, 3}}
    assert shapes.get(0) is None


def test_shapes_in_use_are_looked_for_when_there_are_twice_as_many() -> None:
    shapes = Shapes(MemoryLimits(shapes_kept=2))
    due = []
    for number in range(12):
        shapes.add({str(number): TWO})
        due.append(shapes.are_many)
        if shapes.are_many:
            shapes.keep({number, number - 1, number - 2})
    assert [number for number, is_due in enumerate(due) if is_due] == [2, 6, 10]


def test_edges_of_so_many_shapes_are_kept_as_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assignments, "_SHAPES", 2)
    shapes = Shapes()
    shapes.add({"one": ONE, "two": TWO, "three": TWO})
    edges = ShapeEdges(shapes)
    first, second = edges.of(0), edges.of(1)
    assert edges.of(0) is first
    assert edges.of(1) is second
    assert edges.of(2).of((4, 4), -1, -1) == [(0, 0)]
    assert edges.of(0) is not first
