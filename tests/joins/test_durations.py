"""Durations that come and go: the longest is known, and what has gone takes no room."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from joins.memory.durations import Durations


@given(st.lists(st.integers(0, 8)), st.randoms(use_true_random=False))
def test_the_longest_is_that_of_those_that_are_left(added: list[int], random_: Random) -> None:
    lengths, left = Durations(), Counter[int]()
    for each in added:
        lengths.add(each)
        left[each] += 1
        if random_.random() < 0.5:
            gone = random_.choice(sorted(left.elements()))
            lengths.remove(gone)
            left = Counter(left - Counter([gone]))
        assert len(lengths) == len(left)
        assert set(left) == {each for each in range(9) if each in lengths}
        assert not left or lengths.longest == max(left)


def test_a_length_that_comes_and_goes_takes_no_more_room_each_time() -> None:
    lengths = Durations()
    for each in (10, 20):
        lengths.add(each)
    lengths.remove(20)  # from here on it is known what comes next
    for _ in range(1_000):
        lengths.add(5)
        lengths.remove(5)
    assert 0 < len(lengths._heap or ()) < 50
    assert lengths.longest == 10
