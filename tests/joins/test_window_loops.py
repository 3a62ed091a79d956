"""Ways that a compiled loop counts back over a window: the same as those that are spread."""

from __future__ import annotations

import random

import pytest
from support.counted_runs import SOURCES, asked, stream
from support.kernels import needs_kernels
from support.runners import lines, run_engine

from joins.memory.durations import UNBOUNDED
from joins.sequences.counting import window
from joins.sequences.counting.compilation import compile_loops
from joins.sequences.counting.plainruns import PlainRuns
from joins.sequences.counting.spread import PlainElement, PlainShape, spread
from joins.sequences.counting.window import LaneWindow
from joins.sequences.runparts import Part

COMPARED = [
    each for each in SOURCES if ("WITHIN" in each and "v > prev" in each) or ">= v}" in each
]


@pytest.fixture(autouse=True, scope="module")
def _compiled() -> None:
    needs_kernels()
    compile_loops()


def element(end_us: int, asked: float, given: float, begins: bool, leads: bool) -> PlainElement:
    part = Part(1, 0, "", 1, 1, end_us, end_us, end_us, (0,), (1,), ())
    return PlainElement(part, end_us, asked, given, begins, leads)


def shape(operator: str, within_us: int, *, are_same: bool) -> PlainShape:
    return PlainShape(UNBOUNDED, within_us, operator, are_same, False, UNBOUNDED)


def spread_ways(shape: PlainShape, known: list[PlainElement], own: PlainElement) -> int:
    before = [e for e in known if own.end_us - shape.within_us <= e.end_us < own.end_us]
    found = spread(shape, own, before[::-1], on=False)
    return own.begins + sum(ways for each, ways in found if each.begins)


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
@pytest.mark.parametrize("seed", range(6))
def test_a_window_counts_what_is_spread(operator: str, seed: int) -> None:
    chance = random.Random(seed)
    are_same = seed % 2 == 0
    own_shape = shape(operator, 30, are_same=are_same)
    known: list[PlainElement] = []
    columns, end_us = LaneWindow(own_shape, []), 0
    for number in range(250):
        end_us += chance.choice([0, 0, 1, 1, 2, 40 if chance.randrange(40) == 0 else 1])
        one = chance.choice([float(chance.randrange(9)), float("nan"), float("inf"), 3.0, 4.0])
        other = one if are_same else float(chance.randrange(9))
        own = element(end_us, one, other, chance.randrange(4) > 0, chance.randrange(4) > 0)
        columns.add(own)
        assert columns.ways_to(own) == spread_ways(own_shape, known, own)
        known.append(own)
        if number == 120:
            columns = LaneWindow(own_shape, known)


def test_numbers_have_as_many_words_as_they_need() -> None:
    own_shape = shape(">", 1_000, are_same=True)
    columns = LaneWindow(own_shape, [])
    for number in range(700):
        own = element(number, float(number), float(number), True, True)
        columns.add(own)
        assert columns.ways_to(own) == 2**number
    fallen = element(701, -1.0, -1.0, True, True)
    columns.add(fallen)
    assert columns.ways_to(fallen) == 1


def test_numbers_beyond_all_doubles_are_counted_otherwise() -> None:
    own_shape = shape(">", 3_000, are_same=True)
    known = [element(n, float(n), float(n), True, True) for n in range(1_500)]
    columns = LaneWindow(own_shape, known)
    own = element(1_500, 1_500.0, 1_500.0, True, True)
    columns.add(own)
    assert columns.ways_to(own) is None


@pytest.mark.parametrize("source", COMPARED)
def test_runs_are_counted_by_the_loop_as_they_are_drawn(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted_by: list[object] = []
    plain = LaneWindow.ways_to
    monkeypatch.setattr(window, "FEWEST", 0)
    monkeypatch.setattr(
        LaneWindow, "ways_to", lambda *given: counted_by.append(given) or plain(*given)
    )
    for seed in range(3):
        case = asked(f"SELECT <n>{{count()}}</n> FROM {source} WINDOW 0 s GRACE 0 s", stream(seed))
        counted = lines(run_engine(case, batch_size=3))
        with monkeypatch.context() as drawn:
            drawn.setattr(PlainRuns, "of", lambda *_: None)
            assert counted == lines(run_engine(case, batch_size=20)), seed
    assert counted_by
