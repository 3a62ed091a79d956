"""What queries have spent in a block, in columns, is what one dictionary of counts says."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from broker.documents.document import FIRST_WATERMARK_US, Document
from broker.matching.costs.begun import Begun, Key, columns_of
from broker.matching.costs.budget import Spent
from broker.matching.engine import Engine
from broker.matching.limits import MatchingLimits
from broker.matching.queries.registration import RegisteredQuery, SetChange
from xscl import parse

Place = tuple[int, Key, int]
"""A block of positions, a query, and the block of what is newest."""

BLOCKS = st.integers(0, 2)
KEYS = st.tuples(st.sampled_from("abcdefgh"), st.integers(1, 2))
FOUND = st.lists(
    st.lists(st.tuples(KEYS, BLOCKS, st.integers(0, 3), st.integers(0, 99)), max_size=12),
    max_size=3,
)
BATCHES = st.lists(
    st.tuples(st.sampled_from((0, 0, 1, 2)), st.sets(KEYS, max_size=2), FOUND),
    max_size=2 * examples(4),
)
BEFORE = st.dictionaries(st.tuples(BLOCKS, KEYS, BLOCKS), st.tuples(*2 * [st.integers(1, 9)]))


class Naive:
    """Counts by place, one by one."""

    def __init__(self) -> None:
        self.matches: Counter[Place] = Counter()
        self.nbytes: Counter[Place] = Counter()

    def add(self, place: Place, matches: int, nbytes: int) -> None:
        self.matches[place] += matches
        self.nbytes[place] += nbytes

    def keep(self, block: int, without: set[Key]) -> None:
        for counts in (self.matches, self.nbytes):
            for place in [*counts]:
                if place[0] != block or place[1] in without:
                    del counts[place]

    def of(self, key: Key) -> list[Spent]:
        places = {place for place in (*self.matches, *self.nbytes) if place[1] == key}
        return [
            Spent(*key, block, newest, self.matches[place], self.nbytes[place])
            for place in sorted(places)
            if self.matches[place] or self.nbytes[place]
            for block, _, newest in [place]
        ]


@given(BEFORE, BATCHES)
def test_columns_say_what_a_dictionary_says(
    before: dict[Place, tuple[int, int]],
    batches: list[tuple[int, set[Key], list[list[tuple[Key, int, int, int]]]]],
) -> None:
    """Blocks come and go, numbers are given anew, and no query has another's counts."""
    naive, known = Naive(), {key for _, key, _ in before}
    for place, counts in before.items():
        naive.add(place, *counts)
    begun = Begun(
        Spent(*key, block, newest, *counts) for (block, key, newest), counts in before.items()
    )
    for block, told, found in batches:
        known |= told | {key for part in found for key, *_ in part}
        columns = []
        naive.keep(block, told)
        for part in found:
            rows = np.array([row[1:] for row in part], np.int64).reshape(-1, 3)
            columns.append(columns_of(begun.numbers(row[0] for row in part), *rows.T))
            for key, newest, matches, nbytes in part:
                naive.add((block, key, newest), matches, nbytes)
        spent = begun.go_on(block, begun.numbers(told), columns)
        who = told | {key for part in found for key, *_ in part}
        assert sorted(spent) == sorted(one for key in who for one in naive.of(key))
        for key in known:
            assert sorted(begun.of(key)) == naive.of(key)
        keys = sorted(known)
        of_keys = [naive.of(key) for key in keys]
        sums = [[sum(o.matches for o in own), sum(o.nbytes for o in own)] for own in of_keys]
        assert begun.sums(begun.numbers(keys)).tolist() == sums


def test_numbers_of_who_has_nothing_any_more_are_given_anew() -> None:
    begun = Begun()
    begun.numbers((name, 1) for name in "abcdefgh")
    assert begun.go_on(0, begun.numbers([]), [columns_of(begun.numbers([("f", 1)]), 0, 2, 5)])
    assert len(begun) == 1
    assert begun.of(("f", 1)) == [Spent("f", 1, 0, 0, 2, 5)]
    begun.go_on(1, begun.numbers([]), [])
    assert len(begun) == 0


@pytest.mark.parametrize("held_pairs", [0, 256])
def test_what_comes_under_a_new_revision_is_counted_anew(held_pairs: int) -> None:
    """Statements that are equal are counted by a list, or by their numbers in the set.

    Both stay when one is stated again.
    """
    text = "(S//i->a JOIN {a = b, 1 h} S//i->b) JOIN {b = c, 1 h} S//i->c"
    equal = [RegisteredQuery(parse(text, id=f"q{i}")[0], revision=i) for i in range(3)]
    engine = Engine(equal, lateness_us=0, limits=MatchingLimits(held_pairs=held_pairs))

    def spent(docid: int) -> dict[str, list[int]]:
        xml, us = b"<i>x</i>", docid * 1_000_000
        document = Document(docid, "S", str(docid), us, us, us, FIRST_WATERMARK_US, xml)
        step = engine.process(
            engine.evaluate([document]), lambda docids: dict.fromkeys(docids, xml)
        )
        return {one.query: [one.revision, one.matches] for one in step.spent}

    counts = [spent(docid) for docid in (1, 2, 3)][-1]
    assert {name: revision for name, (revision, _) in counts.items()} == {"q0": 0, "q1": 1, "q2": 2}
    assert engine.follow(SetChange([RegisteredQuery(equal[1].query, 0, revision=9)]))
    later = spent(4)
    assert later["q0"][1] - later["q1"][1] == counts["q1"][1] > 0
    assert {name: revision for name, (revision, _) in later.items()} == {"q0": 0, "q1": 9, "q2": 2}
