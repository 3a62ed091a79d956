"""Boxes are found that a look at each of them finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
from hypothesis import given

import xscl
from broker.matching.boxes.columns import Flags, Hashes, Ints
from broker.matching.boxes.forms import Forms
from broker.matching.boxes.hashsets import HashSets
from broker.matching.boxes.index import Asks, Box, BoxIndex, as_number, mixed
from broker.matching.boxes.soughtwords import SoughtWords
from joins import hash_values
from templates.compiler import compile_query
from xpath_eval.catalog import PatternCatalog
from xscl.evaluation import optional_values

STRINGS = st.sampled_from(["", "a", "b"])
NUMBERS = st.sampled_from([-np.inf, -1.0, -0.0, 0.0, 0.5, 1.0, np.inf, np.nan])
TIMES = st.integers(0, 3)


@dataclass(frozen=True)
class Point:
    """What a tuple asks of boxes of one form; `excluded` has None where no value is known."""

    form: int
    equal: tuple[str, ...]
    excluded: tuple[str | None, ...]
    values: tuple[float, ...]
    span_us: int
    docid_min: int


# How many equal strings, excluded strings and bounds the boxes of a form have.
ARITIES = ((0, 0, 0), (1, 0, 1), (2, 1, 0), (0, 2, 2))
STRICT = (True, False)


@st.composite
def boxes(draw: st.DrawFn) -> tuple[int, Box]:
    form = draw(st.integers(0, len(ARITIES) - 1))
    equal, excluded, bounds = ARITIES[form]
    return form, Box(
        tuple(draw(STRINGS) for _ in range(equal)),
        tuple(draw(STRINGS) for _ in range(excluded)),
        tuple(draw(NUMBERS) for _ in range(bounds)),
        draw(TIMES),
        draw(TIMES),
    )


@st.composite
def points(draw: st.DrawFn) -> Point:
    form = draw(st.integers(0, len(ARITIES) - 1))
    equal, excluded, bounds = ARITIES[form]
    return Point(
        form,
        tuple(draw(STRINGS) for _ in range(equal)),
        tuple(draw(st.none() | STRINGS) for _ in range(excluded)),
        tuple(draw(NUMBERS) for _ in range(bounds)),
        draw(TIMES),
        draw(TIMES),
    )


def admits(form: int, box: Box, point: Point) -> bool:
    return (
        form == point.form
        and box.equal == point.equal
        and not any(a == b for a, b in zip(box.excluded, point.excluded, strict=True))
        and all(
            value < bound if is_strict else value <= bound
            for value, bound, is_strict in zip(point.values, box.bounds, STRICT, strict=False)
        )
        and point.span_us <= box.window_us
        and box.point < point.docid_min
    )


def hashed(string: str | None) -> tuple[np.uint64, np.uint64]:
    first, other = hash_values(pa.array([string or ""]))
    return first[0], other[0]


def asked(points: Sequence[Point]) -> Asks:
    """Return what points ask, in columns."""
    forms = np.array([point.form for point in points], np.int64)
    keys, others = forms.astype(np.uint64), forms.astype(np.uint64)
    for i, point in enumerate(points):
        for string in point.equal:
            first, other = (np.array([each]) for each in hashed(string))
            keys[i : i + 1] = mixed(keys[i : i + 1], first)
            others[i : i + 1] = mixed(others[i : i + 1], other)
    bounds = [
        np.array([p.values[k] if len(p.values) > k else -np.inf for p in points]) for k in (0, 1)
    ]
    excluded = []
    for k in (0, 1):
        own = [p.excluded[k] if len(p.excluded) > k else None for p in points]
        first, other = (
            np.array(column, np.uint64) for column in zip(*map(hashed, own), strict=True)
        )
        excluded.append((np.array([each is not None for each in own]), first, other))
    return Asks(
        np.arange(len(points)),
        forms,
        keys,
        others,
        np.array([point.span_us for point in points], np.int64),
        np.array([point.docid_min for point in points], np.int64),
        bounds,
        [np.full(len(points), is_strict) for is_strict in STRICT],
        excluded,
    )


@given(
    steps=st.lists(st.tuples(st.lists(boxes(), max_size=8), st.floats(0, 1)), max_size=4),
    tried=st.lists(points(), min_size=1, max_size=8),
    waiting_max=st.sampled_from([1, 3, 1_000]),
)
def test_boxes_are_found_that_a_look_at_each_finds(
    steps: list[tuple[list[tuple[int, Box]], float]], tried: list[Point], waiting_max: int
) -> None:
    index, there = BoxIndex(1_000, waiting_max), dict[int, tuple[int, Box]]()
    asks = asked(tried)
    for added, share in steps:
        for form, some in groupby(added, itemgetter(0)):
            boxes = [box for _, box in some]
            for number, box in zip(index.add(form, boxes), boxes, strict=True):
                assert number not in there
                there[number] = form, box
        for number in sorted(there)[: int(share * len(there))]:
            index.remove([number])
            del there[number]
        found = sorted(
            pair
            for which, numbers in index.find(asks)
            for pair in zip(which.tolist(), numbers.tolist(), strict=True)
        )
        assert found == sorted(
            (i, number)
            for i, point in enumerate(tried)
            for number, (form, box) in there.items()
            if admits(form, box, point)
        )
        assert len(index) == len(there)


def test_many_boxes_come_and_go() -> None:
    index = BoxIndex(1_000, 100)
    (point,) = [Point(1, ("a",), (), (0.5,), 0, 9)]
    for round_ in range(3):
        numbers = [*index.add(1, [Box(("a",), (), (float(i),), 1, 0) for i in range(3_000)])]
        index.remove(numbers[2_000:])  # before anybody has looked for them
        del numbers[2_000:]
        found = [n for _, some in index.find(asked([point])) for n in some.tolist()]
        assert sorted(found) == sorted(numbers[1:])
        for number in numbers:
            index.remove([number])
        assert not list(index.find(asked([point])))
        # Numbers of boxes that are gone are given again: no run keeps them for ever.
        assert max(numbers) < (2 + round_) * 3_000
    assert max(numbers) < 6_000 + 3_000


def test_a_box_that_excludes_stands_before_many_that_do_not() -> None:
    index = BoxIndex(1_000, 100)
    tried = [Point(0, (), (), (), 0, 9), Point(3, (), ("b", "a"), (0.0, 0.0), 0, 9)]
    [excluding] = index.add(3, [Box((), ("a", "b"), (1.0, 1.0), 1, 0)])
    assert len(list(index.find(asked(tried)))) == 1
    numbers = index.add(0, [Box((), (), (), 1, 0)] * 200)
    found = [n for _, some in index.find(asked(tried)) for n in some.tolist()]
    assert sorted(found) == sorted([excluding, *numbers])


def test_of_many_boxes_those_are_looked_at_whose_datum_is_spared() -> None:
    index, looked_at = BoxIndex(100_000, 100), []
    numbers = index.add(
        1, [Box((), (), (), 1, 0, (f"{i}",)) for i in range(5_000)], are_spared=True
    )
    plain = index.add(0, [Box((), (), (), 1, 0)])

    class Sets(HashSets):
        def refuse(self, rows: Ints, first: Hashes, other: Hashes) -> Flags:
            looked_at.append(len(rows))
            return super().refuse(rows, first, other)

    first, other = hash_values(pa.array(["17", "4999", "nobody"]))
    tried = asked([Point(form, (), (), (), 0, 9) for form in (1, 1, 1, 1, 0)])
    spared = np.array([True, True, True, False, False])
    rows = np.arange(3)
    sets = Sets.of(rows, [None] * 3, (rows, first, other), spared)
    alone = np.append(as_number(first), [np.nan, np.nan])
    found = [
        pair
        for which, some in index.find(replace(tried, taken=[sets], spared=alone))
        for pair in zip(which.tolist(), some.tolist(), strict=True)
    ]
    own = [(0, numbers[17]), (1, numbers[4_999])]
    assert sorted(found) == [*own, *((3, number) for number in numbers), (4, plain[0])]
    assert sum(looked_at) == 2 + 5_000 + 1


def test_a_word_is_looked_for_as_long_as_some_box_has_it() -> None:
    words = SoughtWords("contains")
    words.add_all(["harbour", "harbour", "our"])
    for left in (["harbour", "our"], ["our"]):
        words.remove_all(["harbour"])
        assert words.found("the harbour") == left
    words.remove_all(["our"])
    assert words.found("the harbour") == []


def test_an_expression_is_looked_for_in_each_of_several_values() -> None:
    expressions = SoughtWords("matches/i", is_of_several=True)
    expressions.add_all(["^B", "x|y", "[0-9]"])
    assert expressions.found(optional_values(["a", "bY"])) == ["^B", "x|y"]
    assert expressions.found(optional_values(["3"])) == ["[0-9]"]


def test_operators_of_a_query_look_for_words_once_at_what_is_one_value() -> None:
    [query] = xscl.parse(
        "(S//i[contains(t, $x)][contains(t, $y)]->a FOLLOWED BY {, 1 h} S//i->b)"
        " FOLLOWED BY {, 1 h} S//i[contains(t, $x)]->c"
    )
    [alternative] = compile_query(query, 0, PatternCatalog(), {})
    inner, root = alternative.clauses
    of_inner, of_root = (Box(words, (), (), 1, 0) for words in (("x", "y"), ("x", "y", "x")))
    forms = Forms()
    forms.add(1, inner, [of_inner])
    forms.add(2, root, [of_root, of_root])
    (x, y), (*of_first, of_last) = forms.sought(1, inner), forms.sought(2, root)
    assert of_first == [x, y]
    assert len({x, y, of_last}) == 3
    forms.remove(1, inner, 1, lambda: [of_inner])
    assert x.found("x y") == ["x"]
    forms.remove(2, root, 2, lambda: [of_root, of_root])
    assert x.found("x y") == []
