"""Anchors follow classes one by one, and stand as if they had been chosen for all at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from joins.signature.anchoring import Anchoring
from joins.signature.anchortable import NONE, AnchorTable
from joins.signature.limits import DEFAULT_LIMITS
from joins.signature.sample import PairCounts

Anchored = tuple[int, tuple[int, int], int, bool]
"""A class: its number, its anchor, its window, and whether it is symmetric."""

VARIABLES = st.integers(1, 4)
ANCHORED = st.tuples(
    st.integers(1, 60), st.tuples(VARIABLES, VARIABLES), st.integers(0, 5), st.booleans()
)


def described(table: AnchorTable) -> set[tuple[object, ...]]:
    """Return what new values are looked up, and for which anchors, whatever their numbers are."""

    def anchor(i: int) -> tuple[object, ...] | None:
        if i == NONE:
            return None
        members = tuple(sorted(table.groups[i].members))
        return table.value_join(i), members, int(table.window[i]), bool(table.is_symmetric[i])

    columns = (table.mine, table.other, table.as_right, table.as_left, table.widest)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return {
        (mine, other, anchor(as_right), anchor(as_left), reach)
        for mine, other, as_right, as_left, reach in rows
        if mine >= 0
    }


def made_of(classes: Sequence[Anchored]) -> AnchorTable:
    table = AnchorTable()
    for number, anchor, window_us, is_symmetric in classes:
        table.put(number, anchor, window_us, is_symmetric=is_symmetric)
    return table


@given(st.lists(ANCHORED, unique_by=lambda each: each[0]), st.data())
def test_anchors_that_came_and_went_leave_no_trace(
    classes: list[Anchored], data: st.DataObject
) -> None:
    table = made_of(classes)
    gone = data.draw(st.sets(st.sampled_from(classes))) if classes else set()
    for number, anchor, *_ in gone:
        table.drop(number, anchor)
    wider = [(n, anchor, window_us + 1, flag) for n, anchor, window_us, flag in classes]
    kept = [new for old, new in zip(classes, wider, strict=True) if old not in gone]
    for number, anchor, window_us, is_symmetric in kept:
        table.put(number, anchor, window_us, is_symmetric=is_symmetric)
    assert described(table) == described(made_of(kept))
    assert len(table) == len({anchor for _, anchor, *_ in kept})


def test_a_place_that_an_anchor_has_left_is_taken_by_the_next_one() -> None:
    table = AnchorTable()
    for i in range(1_000):
        table.put(i, (i, i + 1), 10, is_symmetric=False)
        table.drop(i, (i, i + 1))
    assert len(table.groups) == 2
    assert len(table.mine) == 2


def values(variable: int, distinct: int) -> tuple[np.ndarray, np.ndarray]:
    """Return 4,000 values under a variable, of which so many are distinct."""
    return np.full(4_000, variable), np.arange(4_000, dtype=np.uint64) % np.uint64(distinct)


def test_classes_move_to_what_has_become_rare_and_no_other_class_does() -> None:
    anchoring = Anchoring()
    anchoring.sample.note(4_000, *values(1, 4_000))
    both, alone = ((1, 1), (2, 2)), ((1, 1),)
    # Nothing has been seen under 2: that makes no pair at all.
    assert anchoring.enter(7, both) == (2, 2)
    assert anchoring.enter(8, alone) == (1, 1)
    assert list(anchoring.follow_values()) == []
    for variable, distinct in ((1, 4_000), (2, 10)):
        anchoring.sample.note(2_000, *values(variable, distinct))
    ((classes, before, now),) = anchoring.follow_values()
    assert (set(classes), before, now) == ({7}, (2, 2), (1, 1))
    assert anchoring.leave(7, both) == (1, 1)
    assert anchoring.anchor_of == {alone: (1, 1)}


@given(
    st.lists(st.lists(st.tuples(VARIABLES, VARIABLES), min_size=1, max_size=4), max_size=8),
    st.data(),
)
def test_what_all_classes_of_an_anchor_join_by_is_known_as_they_come_and_go(
    joins: list[list[tuple[int, int]]], data: st.DataObject
) -> None:
    anchoring, present = Anchoring(), dict[int, tuple[tuple[int, int], ...]]()
    for number, value_joins in enumerate(map(tuple, joins)):
        anchoring.enter(number, value_joins)
        present[number] = value_joins
        if data.draw(st.booleans()):
            gone = data.draw(st.sampled_from(sorted(present)))
            anchoring.leave(gone, present.pop(gone))
        anchored: dict[tuple[int, int], list[set[tuple[int, int]]]] = {}
        for own in present.values():
            anchored.setdefault(anchoring.anchor_of[own], []).append({*own})
        for anchor, several in anchored.items():
            assert {*anchoring.also(anchor)} == set.intersection(*several) - {anchor}


def test_a_look_goes_through_some_anchors_at_a_time_and_comes_to_all() -> None:
    anchoring = Anchoring(replace(DEFAULT_LIMITS, looked_at=2, sample_instances=100_000))
    rare, frequent = range(1, 6), range(101, 106)
    for variable in rare:
        anchoring.sample.note(4_000, *values(variable, 4_000))
    for number, both in enumerate(zip(rare, frequent, strict=True)):
        anchoring.enter(number, tuple((variable, variable) for variable in both))
    assert set(anchoring.anchor_of.values()) == {(each, each) for each in frequent}
    for variable in frequent:
        anchoring.sample.note(4_000, *values(variable, 10))
    nothing = np.zeros(0, np.int64), np.zeros(0, np.uint64)
    moved = []
    for count in (0, 1, 0, 100, 100, 100):
        anchoring.sample.note(count, *nothing)
        moved.append({each.now for each in anchoring.follow_values()})
    # No more than there are new instances, of which there are many at first.
    assert [len(each) for each in moved] == [2, 1, 0, 2, 0, 0]
    assert set().union(*moved) == {(each, each) for each in rare}


@given(st.lists(st.tuples(st.integers(0, 80), st.integers(1, 5)), max_size=60), st.integers(1, 4))
def test_pairs_are_counted_alike_of_few_variables_and_of_many(
    found: list[tuple[int, int]], size: int
) -> None:
    pieces = [found[start : start + size] for start in range(0, len(found), size)]
    parts = [
        (np.array([v for v, _ in part]), np.array([h for _, h in part], np.uint64))
        for part in pieces
    ]
    counts = PairCounts(parts)
    for left in range(81):
        for right in (left, 80 - left):
            both = ([h for v, h in found if v == variable] for variable in (left, right))
            assert counts.of((left, right)) == sum(a == b for a, b in product(*both))
