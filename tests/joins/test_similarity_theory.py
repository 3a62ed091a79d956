"""The theory of docs/similarity.md holds: no bound, order, frequency or hash loses a pair."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pytest
from oracle.similarity import score
from support.examples import examples, size
from support.word_sets import (
    KINDS,
    MANY,
    MEASURES,
    THRESHOLDS,
    columns,
    random_sets,
    random_text,
)

from joins.memory.slots import Ints
from joins.similarity import settable, textsets
from joins.similarity.arraytable import ArrayTable, tallied
from joins.similarity.bounds import AskedMeasure, ScoreBounds, least_overlap, may_hold
from joins.similarity.sets import shared_words
from joins.similarity.settable import Indexed
from joins.similarity.textsets import TextSets
from templates import wordcolumns
from templates.wordcolumns import HashedSets, hash_strings, hashed_sets
from xscl.measures import comparable


def found_by_table(
    sets: Sequence[frozenset[str]], measure: str, threshold: float, seed: int, hashes: int
) -> set[tuple[int, int]]:
    """Return the pairs (earlier, later) that the index finds, the later as the first set."""
    table = ArrayTable()
    cut = random.Random(seed)
    found: set[tuple[int, int]] = set()
    as_first, as_other = (AskedMeasure(measure, threshold, is_first) for is_first in (True, False))
    others = [
        AskedMeasure("jaccard", 0.9, is_first=True),
        AskedMeasure("overlap", 3, is_first=False),
    ]
    first_there = start = 0
    while start < len(sets):
        stop = start + cut.randint(1, 20)
        part = sets[start:stop]
        owners = np.arange(start, start + len(part))
        asked = {as_first, as_other, *cut.sample(others, cut.randint(0, 2))}
        table.drop(first_there)
        table.add(owners, *columns(part, hashes), Indexed(frozenset(asked)))
        mine = np.arange(table.sets.end - len(part), table.sets.end)
        _, sizes, words = table.sets.take(mine)
        oldest = np.full(len(mine), first_there)
        parts = table.find(words, sizes, as_other, oldest, cut.choice([1, 7, 7, 1_000, 1_000]))
        for which, those, seen in tallied(parts, table.sets.end):
            earlier = (those < mine[which]) & (those >= first_there)
            which, those, seen = which[earlier], those[earlier], seen[earlier]
            shared = shared_words(table.sets, mine[which], table.sets, those, 100)
            most = np.minimum(sizes[which], table.sets.sizes(those))
            apart = np.bitwise_count(table.sets.bits(mine[which]) ^ table.sets.bits(those))
            most = np.minimum(most, (sizes[which] + table.sets.sizes(those) - apart) // 2)
            unseen = sizes[which] - as_first.prefixes(sizes[which])
            hidden = table.unseen(table.sets.sizes(those), as_other)
            counted = seen + np.maximum(unseen, hidden)
            asked_sizes = sizes[which], table.sets.sizes(those)
            held = may_hold(measure, threshold, shared, *asked_sizes)
            if hashes == MANY:
                assert (may_hold(measure, threshold, most, *asked_sizes) | ~held).all()
                assert (shared <= counted).all()
            held &= may_hold(measure, threshold, counted, *asked_sizes)
            pairs = zip(table.sets.owners(those[held]), owners[which[held]], strict=True)
            found |= {(int(a), int(b)) for a, b in pairs}
        start = stop
        first_there = max(first_there, start - 40)
    return found


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_set_shares_at_least_what_it_does_with_a_smaller_one(
    measure: str, is_first: bool
) -> None:
    sizes = np.arange(1, 8)
    for text in THRESHOLDS[measure]:
        least = least_overlap(measure, sizes, float(text), is_first=is_first)
        for own, found in zip(sizes.tolist(), least.tolist(), strict=True):
            similar = []
            for shared in range(1, own + 1):
                both = set(range(own)), set(range(shared))
                if score(measure, *(both if is_first else both[::-1])) >= Fraction(text):
                    similar.append(shared)
            assert found == min(similar, default=found)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("hashes", [MANY, 7])
def test_the_index_loses_no_pair(
    measure: str, hashes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settable, "FIRST_LOOK", 12)
    for seed in range(examples(1)):
        sets = random_sets(seed, 60)
        scores = {
            (i, j): score(measure, set(later), set(earlier))
            for j, later in enumerate(sets)
            for i, earlier in enumerate(sets[:j])
        }
        for text in THRESHOLDS[measure]:
            least = Fraction(text)
            similar = {pair for pair, own in scores.items() if own >= least}
            found = found_by_table(sets, measure, float(text), seed, hashes)
            # Sets that the window has left may be found or not.
            if hashes == MANY:
                assert found <= similar
            assert found >= {(i, j) for i, j in similar if i >= j - 20}


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("base", [wordcolumns.BASE, 1])
def test_texts_are_found_by_their_first_words_in_any_order(
    measure: str, base: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is decided is looked up so: see `joins.similarity.textsets`."""
    monkeypatch.setattr(wordcolumns, "BASE", base)
    monkeypatch.setattr(textsets, "FIRST_SETS", 10)
    for seed in range(examples(1)):
        sets = random_sets(seed, 40)
        texts = [" ".join(sorted(each)) for each in sets]
        found = TextSets(partial(chosen, texts))
        numbers, counts = found.of(KINDS[0], np.arange(len(texts)), is_list=False)
        assert counts.tolist() == [1] * len(texts)
        scores = {
            (i, j): score(measure, one, other)
            for (i, one), (j, other) in product(enumerate(sets), repeat=2)
        }
        pairs = np.array([*scores])
        orders = 0
        for _ in range(2):
            for text, is_turned in product(THRESHOLDS[measure], (False, True)):
                bounds = ScoreBounds.of(measure, float(text), is_turned=is_turned)
                least = Fraction(text)
                similar = {
                    (i, j) for i, j in scores if scores[(j, i) if is_turned else (i, j)] >= least
                }
                left, right = numbers[pairs[:, 0]], numbers[pairs[:, 1]]
                rows = bounds.some(np.zeros(len(pairs), np.int64))
                held = {tuple(pair) for pair in pairs[found.may_hold(left, right, rows)].tolist()}
                assert held >= similar
                if base != 1:
                    assert held == similar
                words = [first_words(found, numbers, bounds, is_right) for is_right in (0, 1)]
                assert all(words[0][i] & words[1][j] for i, j in similar)
            orders += found.renew()
        assert orders == 1


def chosen(texts: Sequence[str], which: Ints) -> list[str]:
    return [texts[i] for i in which.tolist()]


def first_words(
    sets: TextSets, numbers: Ints, bounds: ScoreBounds, is_right: int
) -> list[set[int]]:
    """Return the words by which sets are found on one side."""
    rows = bounds.some(np.zeros(len(numbers), np.int64))
    lengths = rows.prefixes(sets.sizes(numbers), is_right=bool(is_right))
    words = sets.first_words(numbers, lengths)
    return [set(part.tolist()) for part in np.split(words, np.cumsum(lengths)[:-1])]


def test_word_columns_are_the_sets_of_each_text(monkeypatch: pytest.MonkeyPatch) -> None:
    for base in (wordcolumns.BASE, 1, 0):
        # With such a base many words of one text have the same hash.
        monkeypatch.setattr(wordcolumns, "BASE", base)
        for seed in range(examples(12)):
            random_ = random.Random(seed)
            texts = [random_text(random_) for _ in range(random_.randint(0, 12))]
            for kind in KINDS:
                assert read(hashed_sets(kind, texts)) == [
                    (i, sorted(hash_strings(sorted(each)).tolist()))
                    for i, text in enumerate(texts)
                    for each in kind.sets(text)
                    if each
                ]


def test_every_character_is_folded_as_in_a_text() -> None:
    letters = [chr(code) for code in range(1, 0x20010) if not 0xD800 <= code < 0xE000]
    letters = letters[:: size(13, 1)]
    for texts in ([f"{each}x" for each in letters], [f"a{each} \u00e9{each}" for each in letters]):
        found = read(hashed_sets(KINDS[0], texts))
        assert found == [
            (i, sorted(hash_strings(sorted(each)).tolist()))
            for i, text in enumerate(texts)
            for each in KINDS[0].sets(text)
        ]


def read(found: HashedSets) -> list[tuple[int, list[int]]]:
    """Return each set's text and hashes."""
    ends = np.cumsum(found.sizes)
    parts = np.split(found.hashes, ends[:-1]) if len(ends) else []
    assert ends[-1:].tolist() == [len(found.hashes)] * min(1, len(ends))
    return [(i, part.tolist()) for i, part in zip(found.texts.tolist(), parts, strict=True)]


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
