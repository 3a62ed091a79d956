"""A shape is retained for the longest that anybody asks for, whenever somebody looks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joins.classes import ClassRegistry
from joins.memory import retention
from joins.memory.shapes import Shapes
from templates.joingraph import GraphNode, JoinGraph
from templates.queryclass import QueryClass
from templates.template import template_of

VARIABLES = (1, 2, 3)


def join(left: int, right: int) -> QueryClass:
    """Return the class that joins values of two variables."""
    sides = tuple((GraphNode(0, -1), GraphNode(variable, 0)) for variable in (left, right))
    template, row, _ = template_of(JoinGraph(sides, ((1, 1),)))
    return QueryClass(template, row, False, 0)


def shapes_of_one_variable() -> Shapes:
    """Return a shape for each variable, which binds it alone."""
    shapes = Shapes()
    shapes.add({str(v): [(v, v, 0, 0)] for v in VARIABLES})
    return shapes


@given(
    st.lists(
        st.tuples(
            st.sampled_from(VARIABLES),
            st.sampled_from(VARIABLES),
            st.integers(0, 4),
            st.sampled_from(["window", "retained", "gone", "gone", "look"]),
        ),
        max_size=40,
    )
)
def test_a_shape_is_kept_for_the_longest_that_a_class_asks_for(
    steps: list[tuple[int, int, int, str]],
) -> None:
    shapes = shapes_of_one_variable()
    registry = ClassRegistry(shapes)
    there: list[tuple[int, int, int, int, int | None]] = []
    for left, right, duration, step in [*steps, (1, 1, 0, "look")]:
        if step == "gone":
            if there:
                *_, number, window_us, retained_us = there.pop(duration % len(there))
                if retained_us is not None:
                    registry.release(number, retained_us)
                registry.remove(number, window_us)
        elif step == "look":
            for shape, variable in enumerate(VARIABLES):
                asked = [
                    max(window_us, retained_us or 0)
                    for one, other, _, window_us, retained_us in there
                    if variable in (one, other)
                ]
                assert registry.retention.of(shape) == max(asked, default=None)
        else:
            number = registry.add(join(left, right), duration)
            retained_us = 2 * duration if step == "retained" else None
            if retained_us is not None:
                registry.retain(number, retained_us)
            there.append((left, right, number, duration, retained_us))


def test_windows_that_grow_are_one_change_until_somebody_looks() -> None:
    registry = ClassRegistry(shapes_of_one_variable())
    known = registry.retention.version
    for window_us in range(1_000):
        number = registry.add(join(1, 2), window_us)
    assert registry.retention.of(0) == 999
    assert registry.retention.version == known + 2, "once for each side"
    before = registry.retention.shortened
    for window_us in reversed(range(1, 1_000)):
        registry.remove(number, window_us)
    assert registry.retention.shortened == before + 2
    assert registry.retention.of(0) == registry.retention.of(1) == 0


def test_thousands_of_classes_that_change_before_somebody_looks_are_kept_for() -> None:
    variables = range(1, 2_502)
    shapes = Shapes()
    shapes.add({str(v): [(v, v, 0, 0)] for v in variables})
    registry = ClassRegistry(shapes)
    of_pair = [join(variable, variable + 1) for variable in variables[:-1]]
    numbers = [registry.add(each, i % 7) for i, each in enumerate(of_pair)]
    for i, (number, each) in enumerate(zip(numbers, of_pair, strict=True)):
        registry.add(each, i % 11)
        if i % 3 == 0:
            registry.remove(number, i % 7)
    own = [i % 11 if i % 3 == 0 else max(i % 7, i % 11) for i in range(len(of_pair))]
    expected = [max(own[max(0, i - 1) : i + 1]) for i in range(len(variables))]
    assert [registry.retention.of(shape) for shape in range(len(variables))] == expected


def test_what_is_noted_of_shapes_does_not_grow_with_every_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retention, "_BOUND_MIN", 8)
    registry = ClassRegistry(shapes_of_one_variable())
    for window_us in range(100):
        registry.add(join(1, 2), window_us)
        assert registry.retention.of(0) == window_us
    assert len(registry.retention._bound._shapes) <= 2 * 8
