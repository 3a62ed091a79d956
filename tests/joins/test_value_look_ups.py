"""Values that are looked up under many variables: the entries that are found, and no others."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial, reduce
from operator import or_

import numpy as np
import pytest
from support.kernels import needs_kernels

from joins.memory import valuelookup
from joins.memory.limits import DEFAULT_MEMORY_LIMITS, MemoryLimits
from joins.memory.lookups import LookUps, entry_keys
from joins.memory.slots import Ints
from joins.memory.sortedrun import IndexRun
from joins.memory.valueindexes import NewValues, ValueIndexes

VARIABLES, INSTANCES = 12, 60


def entries(chance: random.Random) -> Iterator[tuple[int, int, int]]:
    """Yield (hash, variable, instance); some hashes have their first half in common."""
    hashes = [chance.getrandbits(32) << 32 | chance.getrandbits(32) for _ in range(20)]
    hashes += [h ^ chance.getrandbits(32) for h in hashes[:5]]
    for instance in range(INSTANCES):
        for variable in range(VARIABLES):
            if chance.random() < 0.6:
                yield chance.choice(hashes[: chance.choice((2, len(hashes)))]), variable, instance


def indexed(
    given: Sequence[tuple[int, int, int]], limits: MemoryLimits, kinds: int
) -> ValueIndexes:
    """Return indexes of entries whose instances are of up to so many documents."""
    indexes = ValueIndexes(limits)
    for start in range(0, len(given), 150):
        hashes, variables, owners = zip(*given[start : start + 150], strict=True)
        instances = np.array(owners)
        new = NewValues(instances, np.array(variables), instances, np.array(hashes, np.uint64))
        indexes.add(new, 1 + instances % kinds, 0, lambda owners: owners >= 0)
    return indexes


@pytest.fixture(params=["arrays", "loops", "loops in order, runs apart"])
def compiled_values(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many values are looked up by compiled loops: any, or hardly any."""
    if request.param == "arrays":
        return 1 << 20
    needs_kernels()
    if request.param == "loops in order, runs apart":
        monkeypatch.setattr(valuelookup, "_LARGE", 1)
        monkeypatch.setattr(valuelookup, "_GONE_THROUGH", 1)
    return 0


@pytest.mark.parametrize("filtered", [1, 1 << 20])
@pytest.mark.parametrize("seed", range(8))
def test_found_is_what_each_variable_has(seed: int, filtered: int, compiled_values: int) -> None:
    chance = random.Random(seed)
    # In half of the cases most variables have values in one of the indexes alone.
    kinds = chance.choice((1, 3, 12))
    given = [each for each in entries(chance) if seed % 4 < 2 or (each[1] + each[2]) % kinds < 2]
    limits = replace(
        DEFAULT_MEMORY_LIMITS, directory_entries=filtered, compiled_values=compiled_values
    )
    indexes = indexed(given, limits, kinds)
    pairs = [(m, o) for m in range(VARIABLES) for o in range(VARIABLES + 2)]
    asked = sorted(chance.sample(pairs, chance.choice((1, 10, 60))))
    values = [(h, m) for h, m, _ in chance.choices(given, k=80)] + [(1 << 40, 0)]
    own = np.array([h for h, _ in values], np.uint64), np.array([m for _, m in values])
    mine, other = np.array(asked).T
    oldest = [chance.choice((0, 0, 20, INSTANCES)) if seed % 2 else 0 for _ in values]
    which, rows, hits = indexes.find_under(*own, LookUps.of(mine, other), np.array(oldest))
    found = [
        (int(which[place]), int(rows[place]), instance)
        for hit in hits
        for places, counts, owners in hit.listed(7)
        for place, instance in zip(np.repeat(places, counts).tolist(), owners.tolist(), strict=True)
    ]
    assert len(found) == len({*found}), "an entry is found once"
    asked_for = {
        (i, row, instance)
        for i, (value, variable) in enumerate(values)
        for row, (m, o) in enumerate(asked)
        if m == variable
        for h, v, instance in given
        if (h, v) == (value, o)
    }
    assert {*found} <= asked_for
    # What is older than a value asks for is left out where that saves work.
    assert {*found} >= {each for each in asked_for if each[2] >= oldest[each[0]]}


@pytest.mark.parametrize("filtered", [1, 1 << 20])
@pytest.mark.parametrize("seed", range(4))
def test_shared_is_what_another_instance_has(
    seed: int, filtered: int, compiled_values: int
) -> None:
    chance = random.Random(seed)
    alone = 7 << 60
    given = [*entries(chance), (alone, 0, INSTANCES)]
    limits = replace(
        DEFAULT_MEMORY_LIMITS,
        directory_entries=filtered,
        compiled_values=compiled_values,
        own_entries=VARIABLES,
    )
    indexes = indexed(given, limits, chance.choice((1, 3)))
    owners: dict[int, set[int]] = {0: set(), 1 << 40: set()}
    for value, _, instance in given:
        # The first half of a value says where its entries stand.
        owners.setdefault(value >> 32 << 32, set()).add(instance)
    asked = [(value, chance.randrange(INSTANCES)) for value in (0, 1 << 40)]
    asked += [(h, own) for h, _, own in chance.choices(given, k=60)]
    asked += [(alone, INSTANCES), (alone, 0)]
    found = indexes.shared(
        np.array([h for h, _ in asked], np.uint64), np.array([own for _, own in asked])
    )
    expected = [bool(owners.get(h >> 32 << 32, set()) - {own}) for h, own in asked]
    assert found.tolist() == expected


@pytest.mark.parametrize("seed", range(6))
def test_look_ups_with_changes_are_those_put_together_anew(seed: int) -> None:
    chance = random.Random(seed)
    pairs = [(m, o) for m in range(40) for o in range(40)]
    chance.shuffle(pairs)
    now = {row: pairs.pop() for row in range(chance.choice((3, 200)))}
    look_ups = look_ups_of(now)
    for _ in range(30):
        changed = chance.sample(range(len(now) + 4), chance.randrange(4))
        gone = [now.pop(row) for row in changed if row in now]
        new = {row: pairs.pop() for row in changed if chance.random() < 0.7}
        assert sorted(m for m, _ in gone) == sorted(
            look_ups.variables_of(np.array(changed, np.int64)).tolist()
        )
        pairs[:0] = gone
        now |= new
        look_ups = look_ups.with_changes(np.array(changed, np.int64), *columns(new))
        anew = look_ups_of(now)
        assert found_by(look_ups) == found_by(anew) == sorted((*p, row) for row, p in now.items())
        assert under(look_ups) == under(anew)


def columns(rows: dict[int, tuple[int, int]]) -> tuple[Ints, Ints, Ints]:
    mine, other = np.array([*rows.values()], np.int64).reshape(-1, 2).T
    return mine, other, np.array([*rows], np.int64)


def look_ups_of(rows: dict[int, tuple[int, int]]) -> LookUps:
    return LookUps.of(*columns(rows))


def found_by(look_ups: LookUps) -> list[tuple[int, int, int]]:
    """Return all pairs of variables that are found, with the number of each."""
    mine, other = np.divmod(np.arange(41 * 41), 41)
    nothing = np.zeros(len(mine), np.uint64)
    which, rows = look_ups.find(mine, entry_keys(nothing, other))
    return sorted(zip(mine[which].tolist(), other[which].tolist(), rows.tolist(), strict=True))


def under(look_ups: LookUps) -> list[list[tuple[int, int]]]:
    """Return the look-ups of each variable: the number, and the variable looked for."""
    few = [look_ups.of_values(np.array([variable])) for variable in range(43)]
    starts, counts = look_ups.of_values(np.arange(43))
    # Few variables are searched for, many are listed, and then few are found in the list.
    listed = [look_ups.of_values(np.array([variable])) for variable in range(43)]
    assert [(int(n), int(i) if n else -1) for [i], [n] in few] == [
        (int(n), int(i) if n else -1) for [i], [n] in listed
    ]
    assert [int(n) for _, [n] in few] == counts.tolist()
    places = [range(i, i + n) for i, n in zip(starts.tolist(), counts.tolist(), strict=True)]
    rows, others = look_ups.rows.tolist(), look_ups.others.tolist()
    bits = np.arange(1, 40)
    asked = np.array([42, 0, *range(41), 7])
    of_each = [
        [int(bits[o]) if o < 39 else 0 for o in (others[i] for i in each)] for each in places
    ]
    expected = [reduce(or_, of_each[variable], 0) for variable in asked.tolist()]
    assert look_ups.any_of(bits, asked).tolist() == expected
    alone = [look_ups.any_of(bits, np.array([variable, variable])) for variable in range(43)]
    assert [each.tolist() for each in alone] == [[reduce(or_, own, 0)] * 2 for own in of_each]
    assert look_ups.any_of(bits[:0], asked).tolist() == [0] * len(asked)
    return [sorted((rows[i], others[i]) for i in each) for each in places]


def test_an_instance_shares_no_value_with_itself() -> None:
    """Where its own entry is all that there is, also where that is the newest of the run."""
    hashes = np.array([1, 2], np.uint64) << np.uint64(40)
    keys = entry_keys(hashes, np.zeros(2, np.int64))
    run = IndexRun.of(keys, np.array([5, 7]), DEFAULT_MEMORY_LIMITS)
    asked = np.sort(hashes)
    assert run.shared(asked[:1], np.array([5]), 4).tolist() == [False]
    assert run.shared(asked, np.array([5, 7]), 4).tolist() == [False, False]
    assert run.shared(asked[1:], np.array([7]), 4).tolist() == [False]
    assert run.shared(asked, np.array([5, 9]), 4).tolist() == [False, True]
    assert run.shared(asked, np.array([8, 9]), 4).tolist() == [True, True]


@pytest.mark.parametrize("apart", [1, 20])
def test_the_entries_of_instances_that_are_there_are_kept(apart: int) -> None:
    """Whether instances have several entries, or stand far apart."""
    keys = np.arange(40, dtype=np.uint64) * np.uint64(3)
    owners = 7 + np.arange(40) * 29 % 10 * apart
    run = IndexRun.of(keys, owners, DEFAULT_MEMORY_LIMITS)
    given = [*zip(keys.tolist(), owners.tolist(), strict=True)]
    for gone in (set[int](), {7}, {7, 7 + 9 * apart}, {*owners.tolist()}):
        kept = [*{*owners.tolist()} - gone]
        there = run.there(partial(np.isin, test_elements=kept))
        found = [*zip(*(each.tolist() for each in run.entries(there)), strict=True)]
        assert found == [(key, owner) for key, owner in given if owner not in gone]
