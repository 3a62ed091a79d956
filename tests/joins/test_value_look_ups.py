"""Values that are looked up under many variables: the entries that are found, and no others."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from joins.memory.limits import DEFAULT_MEMORY_LIMITS
from joins.memory.sortedrun import LookUps, entry_keys
from joins.memory.valueindex import ValueIndex

VARIABLES, INSTANCES = 12, 60


def entries(chance: random.Random) -> Iterator[tuple[int, int, int]]:
    """Yield (hash, variable, instance); some hashes have their first half in common."""
    hashes = [chance.getrandbits(32) << 32 | chance.getrandbits(32) for _ in range(20)]
    hashes += [h ^ chance.getrandbits(32) for h in hashes[:5]]
    for instance in range(INSTANCES):
        for variable in range(VARIABLES):
            if chance.random() < 0.6:
                yield chance.choice(hashes[: chance.choice((2, len(hashes)))]), variable, instance


@pytest.mark.parametrize("filtered", [1, 1 << 20])
@pytest.mark.parametrize("seed", range(6))
def test_found_is_what_each_variable_has(seed: int, filtered: int) -> None:
    chance = random.Random(seed)
    given = [*entries(chance)]
    index = ValueIndex(replace(DEFAULT_MEMORY_LIMITS, filtered_entries=filtered))
    for start in range(0, len(given), 150):
        hashes, variables, instances = zip(*given[start : start + 150], strict=True)
        keys = entry_keys(np.array(hashes, np.uint64), np.array(variables))
        index.add(keys, np.array(instances), 0, lambda owners: owners >= 0)
    pairs = [(m, o) for m in range(VARIABLES) for o in range(VARIABLES)]
    asked = sorted(chance.sample(pairs, chance.choice((1, 10, 60))))
    values = [(h, m) for h, m, _ in chance.sample(given, 80)] + [(1 << 40, 0)]
    own = np.array([h for h, _ in values], np.uint64), np.array([m for _, m in values])
    mine, other = np.array(asked).T
    oldest = [chance.choice((0, 0, 20, INSTANCES)) if seed % 2 else 0 for _ in values]
    which, rows, hits = index.find_under(*own, LookUps.of(mine, other), np.array(oldest))
    found = {
        (int(which[place]), int(rows[place]), instance)
        for hit in hits
        for places, counts, owners in hit.listed(7)
        for place, instance in zip(np.repeat(places, counts).tolist(), owners.tolist(), strict=True)
    }
    asked_for = {
        (i, row, instance)
        for i, (value, variable) in enumerate(values)
        for row, (m, o) in enumerate(asked)
        if m == variable
        for h, v, instance in given
        if (h, v) == (value, o)
    }
    assert found <= asked_for
    # What is older than a value asks for is left out where that saves work.
    assert found >= {each for each in asked_for if each[2] >= oldest[each[0]]} != set()
