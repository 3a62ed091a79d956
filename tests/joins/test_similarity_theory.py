"""The theory of docs/similarity.md holds: no bound, order, frequency or hash loses a pair."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from oracle.similarity import score
from support.examples import examples

from joins.memory.remembered import Hashes, hash_values
from joins.similarity import settable
from joins.similarity.bounds import least_overlap, may_hold
from joins.similarity.settable import SetTable, shared_words
from xscl.measures import comparable

MEASURES = ("jaccard", "containment", "overlap")
THRESHOLDS = {
    "jaccard": ("0.3", "0.5", "0.6", "0.75", "0.8", "1"),
    "containment": ("0.3", "0.5", "0.75", "1"),
    "overlap": ("1", "2", "5"),
}


def few_hashes(values: pa.Array) -> tuple[Hashes, Hashes]:
    """Return hashes of which many words have the same."""
    first, other = hash_values(values)
    return first % np.uint64(7) + np.uint64(1), other


def random_sets(seed: int, count: int) -> list[frozenset[str]]:
    random_ = random.Random(seed)
    words = [f"w{i}" for i in range(random_.choice([5, 30, 200]))]
    weights = [1 / (i + 1) for i in range(len(words))]
    sets: list[frozenset[str]] = []
    for _ in range(count):
        size = random_.choice([1, 2, 4, 8, 8, 12, 70])
        sets.append(frozenset(random_.choices(words, weights, k=size)))
        if random_.random() < 0.3:
            sets.append(random_.choice(sets))
    return sets


def found_by_table(
    sets: Sequence[frozenset[str]], measure: str, threshold: float, seed: int, hashing: object
) -> set[tuple[int, int]]:
    """Return the pairs (earlier, later) that the index finds, the later as the first set."""
    table = SetTable(hashing)  # type: ignore[arg-type]
    cut = random.Random(seed)
    found: set[tuple[int, int]] = set()

    def least(sizes: np.ndarray) -> np.ndarray:
        both = [
            least_overlap(measure, sizes, threshold, is_first=is_first)
            for is_first in (True, False)
        ]
        return np.minimum(*both)

    def as_first(sizes: np.ndarray) -> np.ndarray:
        return least_overlap(measure, sizes, threshold, is_first=True)

    start = 0
    while start < len(sets):
        stop = start + cut.randint(1, 20)
        part = sets[start:stop]
        owners = list(range(start, start + len(part)))
        table.add(owners, part, least, lambda owners: np.ones(len(owners), np.bool_))
        mine = np.arange(len(table.sets) - len(part), len(table.sets))
        _, sizes, words = table.sets.take(mine)
        oldest = np.zeros(len(mine), np.int64)
        for which, others in table.find(words, sizes, as_first, oldest, 1_000):
            earlier = others < mine[which]
            which, others = which[earlier], others[earlier]
            shared = shared_words(table.sets, mine[which], table.sets, others, 100)
            most = np.minimum(sizes[which], table.sets.sizes(others))
            apart = np.bitwise_count(table.sets.bits(mine[which]) ^ table.sets.bits(others))
            most = np.minimum(most, (sizes[which] + table.sets.sizes(others) - apart) // 2)
            asked = sizes[which], table.sets.sizes(others)
            held = may_hold(measure, threshold, shared, *asked)
            possible = may_hold(measure, threshold, most, *asked)
            if hashing is hash_values:
                assert (possible | ~held).all()
            found |= {
                (int(a), int(b)) for a, b in zip(others[held], mine[which][held], strict=True)
            }
        start = stop
    return found


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("hashing", [hash_values, few_hashes])
def test_the_index_loses_no_pair(
    measure: str, hashing: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settable, "FIRST_LOOK", 12)
    for seed in range(examples(1)):
        sets = random_sets(seed, 60)
        for text in THRESHOLDS[measure]:
            similar = {
                (i, j)
                for j, later in enumerate(sets)
                for i, earlier in enumerate(sets[:j])
                if score(measure, set(later), set(earlier)) >= Fraction(text)
            }
            found = found_by_table(sets, measure, float(text), seed, hashing)
            if hashing is hash_values:
                assert found == similar
            else:
                assert found >= similar


def test_a_double_stands_for_a_score() -> None:
    random_ = random.Random(0)
    operators = {
        "<": lambda a, b: a < b,
        "<=": lambda a, b: a <= b,
        ">": lambda a, b: a > b,
        ">=": lambda a, b: a >= b,
    }
    for _ in range(examples(200)):
        whole = random_.randint(1, 300)
        exact = Fraction(random_.randint(0, whole), whole)
        near = float(exact)
        for bound in (near, np.nextafter(near, 0), np.nextafter(near, 2), round(near, 3), 0.5):
            decimal = Fraction(repr(float(bound)))
            for operator, holds in operators.items():
                assert holds(comparable(exact, operator), bound) == holds(exact, decimal)
