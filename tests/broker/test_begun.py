"""What queries have spent in a block is the same whether they have rows in common or not."""

from __future__ import annotations

import random

from broker.matching.costs.begun import Begun, InBlock, Key

KEYS: list[Key] = [(name, 1) for name in "abcdef"]


def counts(chance: random.Random) -> InBlock:
    blocks = sorted(chance.sample(range(3), chance.randint(1, 2)))
    return {each: (chance.randrange(4), chance.randrange(100)) for each in blocks}


def changed(chance: random.Random, alike: Begun, apart: Begun) -> None:
    """Make one change to both; `apart` is told of each query by itself."""
    block, keys = chance.randrange(2), chance.choice((KEYS, KEYS[:3], KEYS[2:]))
    found, key = counts(chance), chance.choice(KEYS)
    match chance.randrange(6):
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
            assert alike.spent(0, KEYS) == apart.spent(0, KEYS)
            assert [*Begun(each for key in KEYS for each in alike.of(key)).spent(0, KEYS)] == (
                alike.spent(0, KEYS)
            )
