"""Pairs of instances are held by the smallest window that section 1.1 and section 4 ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from joins.memory.slots import Ints
from joins.memory.times import Pairs, codes_of_groups, held_ends, pair_codes


@dataclass(frozen=True, slots=True)
class Instance:
    """Where an instance stands and when it is; `watermark_us` is the `W` of its docid."""

    docid: int
    depth: int
    match_id: str
    start_us: int
    end_us: int
    watermark_us: int

    @property
    def position(self) -> tuple[int, int, str]:
        return self.docid, self.depth, self.match_id


@dataclass(frozen=True, slots=True)
class Remembered:
    """Instances by their numbers, 0, 1, 2, ..."""

    instances: list[Instance]

    @property
    def is_ordered(self) -> bool:
        docids = [each.docid for each in self.instances]
        return docids == sorted(set(docids))

    @property
    def published_ids(self) -> Mapping[int, str]:
        return {n: each.match_id for n, each in enumerate(self.instances) if each.depth}

    def take(self, name: str, instances: Ints) -> Ints:
        column = np.array([getattr(each, name) for each in self.instances], np.int64)
        found: Ints = column[instances]
        return found


def smallest_window(left: Instance, right: Instance, lateness_us: int) -> int:
    """Return the least `T` with which an operator joins two instances: 1.1 and 4."""
    earlier, later = sorted((left, right), key=lambda each: each.position)
    remembered_us = later.watermark_us - lateness_us - earlier.end_us
    return max(abs(right.end_us - left.end_us), remembered_us)


MOMENTS = st.integers(0, 5)


@st.composite
def instances(draw: st.DrawFn) -> list[Instance]:
    """Draw instances of which many stand at one docid; of those published, each has its own id."""
    found: list[Instance] = []
    for number in range(draw(st.integers(2, 5))):
        docid, depth = draw(st.integers(1, 3)), draw(st.integers(0, 2))
        start_us, end_us = sorted((draw(MOMENTS), draw(MOMENTS)))
        match_id = f"{draw(st.sampled_from('xyz'))}{number}" if depth else ""
        found.append(Instance(docid, depth, match_id, start_us, end_us, draw(st.integers(0, 9))))
    outside: dict[int, Instance] = {}
    kept = [each for each in found if each.depth or outside.setdefault(each.docid, each) is each]
    return kept if draw(st.booleans()) else sorted(kept, key=lambda each: each.position)


def ordered(found: list[Instance]) -> list[Instance]:
    return [
        Instance(n, 0, "", each.start_us, each.end_us, each.watermark_us)
        for n, each in enumerate(found, 1)
    ]


def expected(found: list[Instance], pairs: Pairs, lateness_us: int) -> list[tuple[int, bool]]:
    return [
        (
            smallest_window(found[left], found[right], lateness_us),
            found[left].end_us < found[right].start_us,
        )
        for left, right in zip(pairs.left, pairs.right, strict=True)
    ]


def told(pairs: Pairs) -> list[tuple[int, bool]]:
    return list(zip(pairs.span.tolist(), pairs.follows.tolist(), strict=True))


OUTSIDE = Instance(1, 0, "", 0, 0, 9)
ONCE, TWICE = Instance(1, 1, "y0", 0, 3, 9), Instance(1, 2, "x1", 0, 1, 9)
OTHER = Instance(1, 1, "z2", 0, 1, 9)


@given(instances(), st.integers(0, 4), st.booleans())
@example([OUTSIDE, ONCE], 0, False)
@example([ONCE, TWICE], 0, False)
@example([TWICE, ONCE], 0, False)
@example([ONCE, OTHER], 0, False)
@example([OTHER, ONCE], 0, False)
def test_a_pair_is_held_by_the_smallest_window_that_the_semantics_ask_for(
    found: list[Instance], lateness_us: int, is_ordered: bool
) -> None:
    found = ordered(found) if is_ordered else found
    times = Remembered(found)
    left, right = np.array(list(permutations(range(len(found)), 2)), np.int64).reshape(-1, 2).T
    pairs = Pairs.of(times, left, right, lateness_us)
    assert told(pairs) == expected(found, pairs, lateness_us)
    codes = np.sort(pair_codes(left, right, (0, 0)))
    coded = Pairs.of_codes(times, codes, (0, 0), lateness_us)
    places = zip(coded.left.tolist(), coded.right.tolist(), strict=True)
    assert sorted(places) == list(permutations(range(len(found)), 2))
    assert told(coded) == expected(found, coded, lateness_us)


@given(instances(), st.integers(0, 4), st.booleans())
def test_runs_of_older_instances_are_held_as_pairs_are(
    found: list[Instance], lateness_us: int, is_ordered: bool
) -> None:
    found = ordered(found) if is_ordered else found
    times = Remembered(found)
    newer = np.arange(1, len(found))
    older = np.concatenate([np.arange(n) for n in newer.tolist()] or [np.zeros(0, np.int64)])
    pairs = Pairs.of_groups(times, newer, newer, older, lateness_us)
    assert told(pairs) == expected(found, pairs, lateness_us)
    codes = codes_of_groups(newer, newer, older, (0, 0))
    assert codes.tolist() == pair_codes(pairs.left, pairs.right, (0, 0)).tolist()


@given(instances(), st.integers(0, 4), st.integers(0, 6), st.booleans(), st.booleans())
def test_what_ends_between_two_times_is_held(
    found: list[Instance], lateness_us: int, window_us: int, is_symmetric: bool, is_ordered: bool
) -> None:
    found = ordered(found) if is_ordered else found
    times = Remembered(found)
    newer = np.arange(len(found))
    oldest, newest = held_ends(
        times,
        newer,
        np.full(len(found), window_us),
        np.full(len(found), is_symmetric),
        lateness_us,
    )
    for n, later in enumerate(found):
        for earlier in found[:n]:
            is_held = smallest_window(earlier, later, lateness_us) <= window_us and (
                is_symmetric or earlier.end_us < later.start_us
            )
            is_between = oldest[n] <= earlier.end_us <= newest[n]
            assert is_between == is_held if times.is_ordered else is_between >= is_held
