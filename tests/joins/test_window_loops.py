"""Ways that a compiled loop counts back over a window: the same as those that are spread."""

from __future__ import annotations

import random
from itertools import product

import pytest
from support.counted_runs import SOURCES, all_asked, asked, stream
from support.examples import some
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


def in_order(seed: int, count: int) -> str:
    """Return documents in order, some at one time."""
    chance, second, own = random.Random(seed), 10, []
    for number in range(1, count + 1):
        second += chance.choice([0, 1, 1, 2])
        v, w = chance.randrange(6), chance.randrange(6)
        time = f"00:{second // 60:02}:{second % 60:02}"
        own.append(f"document {number} S {time}  <a><v>{v}</v><w>{w}</w></a>")
    return "\n".join([*own, f"tick {count + 1} 10:00:00", "----", ""])


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
        count = min(chance.choice([1, 2, 7, 60]), len(rest))
        some, rest = rest[:count], rest[count:]
        if count == 1:
            columns.add(some[0])
        else:
            columns.extend(some)
        found, low, high = columns.counted(count, range(count)), *columns.bounds(count)
        few = sorted(chance.sample(range(count), (count + 1) // 2))
        assert columns.counted(count, few) == [found[at] for at in few]
        for own, ways, least, most in zip(some, found, low, high, strict=True):
            assert ways == spread_ways(own_shape, known, own)
            assert least <= ways <= most
            assert (ways == 0) == (most == 0)
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
    columns.extend([*rising, small])
    *found, last = columns.counted(300, range(300))
    enough = found.index(None)
    assert 150 < enough < 4 * 53
    assert found == [2**n for n in range(enough)] + [None] * (299 - enough)
    assert last == 2**10
    after = element(301, 3.5, 3.5, True, True)
    columns.add(after)
    assert columns.ways_to(after) == 2**4


def test_runs_are_counted_by_the_loop_as_they_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    counted_by: list[LaneWindow] = []
    plain = LaneWindow.counted
    monkeypatch.setattr(window, "FEWEST", 0)
    monkeypatch.setattr(
        LaneWindow, "counted", lambda *given: counted_by.append(given[0]) or plain(*given)
    )
    counting = "WINDOW 0 s GRACE 0 s"
    texts = {
        f"q{n}": f"SELECT <n>{{count()}}</n> FROM {s} {counting}" for n, s in enumerate(COMPARED)
    }
    for seed in range(3):
        counted_by.clear()
        case = all_asked(texts, stream(seed))
        counted = lines(run_engine(case, batch_size=3))
        assert len(set(map(id, counted_by))) >= len(COMPARED)
        with monkeypatch.context() as drawn:
            drawn.setattr(PlainRuns, "of", lambda *_: None)
            assert counted == lines(run_engine(case)), seed


HAVING = (
    "count() = 3",
    "count() != 2",
    "count() mod 2 = 1",
    "count() >= 3 AND count() < 9",
    "count() > 5 OR count() = 1",
    "4 < count()",
    "count() + 1 > count()",
    "count() < 0",
)


@pytest.mark.parametrize(("source", "having"), some(product([COMPARED[0], COMPARED[2]], HAVING), 4))
def test_what_bounds_leave_open_is_counted(
    source: str, having: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounded: list[object] = []
    plain = LaneWindow.bounds
    monkeypatch.setattr(window, "FEWEST", 0)
    monkeypatch.setattr("joins.sequences.counting.plain.FEW", 0)
    monkeypatch.setattr(LaneWindow, "bounds", lambda *given: bounded.append(given) or plain(*given))
    found = 0
    for seed in range(3):
        rows = f"WINDOW 0 s HAVING {having} GRACE 0 s"
        case = asked(f"SELECT <n>{{count()}}</n> FROM {source} {rows}", in_order(seed, 40))
        counted = lines(run_engine(case, batch_size=[40, 13, 5][seed]))
        found += len(counted)
        with monkeypatch.context() as drawn:
            drawn.setattr(PlainRuns, "of", lambda *_: None)
            assert counted == lines(run_engine(case)), seed
    assert (found > 0) == (having != "count() < 0")
    assert bounded


@pytest.mark.parametrize(
    ("having", "exponents"),
    [
        ("count() = 9007199254740992", [53]),
        ("count() = 9007199254740993", [53]),
        ("count() > 9007199254740993", [*range(54, 70)]),
        ("count() >= 9007199254740992 AND count() < 18014398509481985", [53]),
        ("count() = 1.8446744073709552E19 OR count() < 3", [0, 1, 64]),
    ],
)
def test_doubles_of_counts_are_compared_as_they_are(
    having: str, exponents: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window, "FEWEST", 0)
    own = [f"document {n} S 00:00:{n:02}  <a><v>{n}</v></a>" for n in range(1, 60)]
    own += [f"document {n} S 00:01:{n - 60:02}  <a><v>{n}</v></a>" for n in range(60, 71)]
    text = "\n".join([*own, "tick 71 10:00:00", "----", ""])
    source = "S//a[v->v]+ {v > prev(v)} WITHIN 1 h WINDOW 0 s"
    case = asked(f"SELECT <n>{{count()}}</n> FROM {source} HAVING {having} GRACE 0 s", text)
    assert [row.decided - 2 for row in run_engine(case)] == exponents


def test_what_no_double_is_large_enough_for_is_counted() -> None:
    own_shape = shape(">", 10_000, are_same=True)
    columns = LaneWindow(own_shape, [])
    columns.extend([element(n, float(n), float(n), True, True) for n in range(1_200)])
    low, high = columns.bounds(1_200)
    assert [low[1_199], high[1_199]] == [pytest.approx(2.0**1000), float("inf")]
    assert columns.counted(1_200, [1_199]) == [2**1_199]
