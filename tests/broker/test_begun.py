"""What queries have spent in a block is the same whether they have rows in common or not."""

from __future__ import annotations

import random

import numpy as np

from broker.matching.costs.begun import Begun, InBlock, Key

KEYS: list[Key] = [(name, 1) for name in "abcdef"]


def counts(chance: random.Random) -> InBlock:
    blocks = sorted(chance.sample(range(3), chance.randint(1, 2)))
    return {each: (chance.randrange(4), chance.randint(1, 99)) for each in blocks}


def changed(chance: random.Random, alike: Begun, apart: Begun) -> None:
    """Make one change to both; `apart` is told of each query by itself."""
    block, keys = chance.randrange(2), chance.choice((KEYS, KEYS[:3], KEYS[2:]))
    found, key = counts(chance), chance.choice(KEYS)
    match chance.randrange(8):
        case 0:
            alike.add(block, key, found)
            apart.add(block, key, found)
        case 1:
            taken = chance.choice(({}, found))
            alike.put(block, key, taken)
            apart.put(block, key, taken)
        case 2 if chance.random() < 0.2:
            alike.keep(block)
            apart.keep(block)
        case 3 | 4:
            # All but the first may have nothing.
            have = [True, *(chance.random() < 0.8 for _ in keys[1:])]
            own = np.array([[own * chance.randint(1, 3), own * 7] for own in have])
            columns = {newest: own * [newest != 1, 1] for newest in found}
            alike.add_to_each(block, [*keys], columns)
            for i, each in enumerate(keys):
                rows = {newest: columns[newest][i].tolist() for newest in sorted(columns)}
                if have[i]:
                    apart.add(block, each, {newest: (a, b) for newest, (a, b) in rows.items()})
        case _:
            alike.add_to_all(block, [*keys], found)
            for each in keys:
                apart.add(block, each, found)


def test_what_is_added_to_all_is_added_to_each() -> None:
    """Rows in common come and go, and no query has another's counts."""
    for seed in range(80):
        chance = random.Random(seed)
        alike, apart = Begun(), Begun()
        for _ in range(chance.randint(1, 12)):
            changed(chance, alike, apart)
            assert [alike.of(key) for key in KEYS] == [apart.of(key) for key in KEYS]
            for keys in (KEYS, KEYS[:3], KEYS[4:]):
                assert alike.most(keys) == apart.most(keys)
                own, other = alike.sums(keys), apart.sums(keys)
                assert (own is None) == (other is None)
                assert own is None or other is None or own.tolist() == other.tolist()
            assert sorted(alike.spent(0, KEYS)) == sorted(apart.spent(0, KEYS))
            again = Begun(each for key in KEYS for each in alike.of(key))
            assert sorted(again.spent(0, KEYS)) == sorted(alike.spent(0, KEYS))


def test_the_most_that_one_has_is_exact() -> None:
    begun = Begun()
    assert begun.most(KEYS) == (0, 0)
    begun.add_to_all(1, KEYS, {0: (2, 30), 1: (1, 5)})
    begun.add(1, KEYS[2], {1: (0, 7)})
    begun.add(2, KEYS[0], {2: (4, 1)})
    assert begun.most(KEYS) == (3 + 4, 42 + 1)
