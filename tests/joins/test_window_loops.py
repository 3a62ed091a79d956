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


def elements(chance: random.Random, count: int, *, are_same: bool) -> list[PlainElement]:
    """Return elements in order: ties in time and number, some that are no number, and gaps."""
    end_us, found = 0, []
    for _ in range(count):
        end_us += chance.choice([0, 0, 1, 1, 2, 40 if chance.randrange(40) == 0 else 1])
        one = chance.choice([float(chance.randrange(9)), float("nan"), float("inf"), 3.0, 4.0])
        other = one if are_same else float(chance.randrange(9))
        begins, leads = chance.randrange(4) > 0, chance.randrange(4) > 0
        found.append(element(end_us, one, other, begins, leads))
    return found


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
@pytest.mark.parametrize("seed", range(6))
def test_a_window_counts_what_is_spread(operator: str, seed: int) -> None:
    are_same = seed % 2 == 0
    own_shape = shape(operator, 30, are_same=are_same)
    known: list[PlainElement] = []
    columns = LaneWindow(own_shape, [])
    for number, own in enumerate(elements(random.Random(seed), 250, are_same=are_same)):
        columns.add(own)
        assert columns.ways_to(own) == spread_ways(own_shape, known, own)
        known.append(own)
        if number == 120:
            columns = LaneWindow(own_shape, known)


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
@pytest.mark.parametrize("seed", range(6))
def test_a_batch_counts_what_its_elements_do(
    operator: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether they come together, some at a time, or by turns in either way."""
    monkeypatch.setattr(window, "FEWEST", 3)
    monkeypatch.setattr(window, "TOGETHER_MIN", 1 + seed**3)
    chance, are_same = random.Random(seed), seed % 2 == 0
    own_shape = shape(operator, chance.choice([9, 30, 500]), are_same=are_same)
    rest = elements(chance, 300, are_same=are_same)
    known: list[PlainElement] = []
    columns = LaneWindow(own_shape, [])
    while rest:
        count = chance.choice([0, 1, 2, 7, 60])
        some, rest = rest[:count], rest[count:]
        if len(some) == 1:
            columns.add(some[0])
            found = [columns.ways_to(some[0])]
        else:
            found = columns.extend(some)
        for own, ways in zip(some, found, strict=True):
            assert ways == spread_ways(own_shape, known, own)
            known.append(own)


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


def test_numbers_of_too_many_digits_are_counted_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    own_shape = shape(">", 1_000, are_same=True)
    columns = LaneWindow(own_shape, [])
    # Four digits for 300 elements and as many numbers.
    monkeypatch.setattr(window, "ROOM", 4 * 600)
    monkeypatch.setattr(window, "TOGETHER_MIN", 1_000)
    rising = [element(n, float(n), float(n), True, True) for n in range(299)]
    small = element(299, 9.5, 9.5, True, True)
    *found, last = columns.extend([*rising, small])
    enough = found.index(None)
    assert 150 < enough < 4 * 53
    assert found == [2**n for n in range(enough)] + [None] * (299 - enough)
    assert last == 2**10
    after = element(301, 3.5, 3.5, True, True)
    columns.add(after)
    assert columns.ways_to(after) == 2**4


@pytest.mark.parametrize("source", COMPARED)
def test_runs_are_counted_by_the_loop_as_they_are_drawn(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted_by: list[object] = []
    plain = LaneWindow._counted
    monkeypatch.setattr(window, "FEWEST", 0)
    monkeypatch.setattr(
        LaneWindow, "_counted", lambda *given: counted_by.append(given) or plain(*given)
    )
    for seed in range(3):
        case = asked(f"SELECT <n>{{count()}}</n> FROM {source} WINDOW 0 s GRACE 0 s", stream(seed))
        counted = lines(run_engine(case, batch_size=3))
        with monkeypatch.context() as drawn:
            drawn.setattr(PlainRuns, "of", lambda *_: None)
            assert counted == lines(run_engine(case, batch_size=20)), seed
    assert counted_by
