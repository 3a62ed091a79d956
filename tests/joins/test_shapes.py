"""What a shape binds is kept once, and what is derived from a shape goes with it."""

from __future__ import annotations

from collections.abc import Set

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joins.memory.limits import MemoryLimits
from joins.memory.shapes import Shapes, TupleShape, WitnessShape
from joins.signature import assignments
from joins.signature.assignments import ShapesNodes

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


def test_tuples_have_a_shape_by_the_variables_of_their_nodes() -> None:
    shapes = Shapes()
    shapes.add({"one": ONE})
    assert shapes.of_tuples(["a", "b", "a"], [(7,), (8, 9), (7,)]) == [1, 2, 1]
    assert shapes.of_tuples(["b", "one", "c"], [(8, 9), (), (5,)]) == [2, 0, 3]
    assert shapes.version == 4
    assert shapes.number("b") == 2


@given(st.lists(st.integers(0, 9), min_size=1, unique=True), st.sets(st.integers(0, 9)))
def test_what_follows_from_the_variables_of_tuples_is_what_their_edges_say(
    variables: list[int], compared: set[int]
) -> None:
    shape = TupleShape(tuple(variables))
    spelled = WitnessShape.of(shape.edges)
    assert (shape.binding, shape.variables) == (spelled.binding, spelled.variables)
    assert shape.slots(compared) == spelled.slots(compared)


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


def test_nodes_of_so_many_shapes_are_kept_by_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assignments, "_SHAPES", 2)
    shapes = Shapes()
    shapes.add({"one": ONE, "two": TWO, "three": TWO})
    nodes = ShapesNodes(shapes)
    first, second = nodes.of(0), nodes.of(1)
    assert nodes.of(0) is first
    assert nodes.of(1) is second
    assert nodes.of(2).edges.of((4, 4), -1, -1) == [(0, 0)]
    assert nodes.of(0) is not first
