"""The theory of docs/similarity.md holds: no bound, order, frequency or hash loses a pair."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from generators.choosers import RandomChooser
from generators.similar_cases import similar_text
from oracle.similarity import score
from support.examples import examples, size

from joins.similarity import settable
from joins.similarity.bounds import Asked, may_hold
from joins.similarity.candidates import tallied
from joins.similarity.settable import Indexed, SetTable, shared_words
from templates import wordcolumns
from templates.queryclass import SetKind
from templates.wordcolumns import HashedSets, hash_strings, hashed_sets
from xscl.measures import comparable
from xscl.path import Literal
from xscl.query import Call, VariableValue

MEASURES = ("jaccard", "containment", "overlap")
MANY = 1 << 62
"""As many hashes as words of a test have none in common."""

KINDS = [
    SetKind(1, Call(function, (VariableValue("x"), *map(Literal, others))))
    for function, *others in (
        ("words",),
        ("shingles", 1.0),
        ("shingles", 2.0),
        ("shingles", 3.0),
        ("tokenize", " "),
    )
]
THRESHOLDS = {
    "jaccard": ("0.3", "0.5", "0.6", "0.75", "0.8", "1"),
    "containment": ("0.3", "0.5", "0.75", "1"),
    "overlap": ("1", "2", "5"),
}


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


def columns(sets: Sequence[frozenset[str]], hashes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the sizes of sets, and their words as hashes; there are `hashes` different ones."""
    sizes = np.array([len(each) for each in sets], np.int64)
    words = hash_strings([word for each in sets for word in each]) % np.uint64(hashes)
    return sizes, words[np.lexsort((words, np.repeat(np.arange(len(sets)), sizes)))]


def found_by_table(
    sets: Sequence[frozenset[str]], measure: str, threshold: float, seed: int, hashes: int
) -> set[tuple[int, int]]:
    """Return the pairs (earlier, later) that the index finds, the later as the first set."""
    table = SetTable()
    cut = random.Random(seed)
    found: set[tuple[int, int]] = set()
    as_first, as_other = (Asked(measure, threshold, is_first) for is_first in (True, False))
    others = [Asked("jaccard", 0.9, is_first=True), Asked("overlap", 3, is_first=False)]
    first_there = start = 0
    while start < len(sets):
        stop = start + cut.randint(1, 20)
        part = sets[start:stop]
        owners = np.arange(start, start + len(part))
        asked = {as_first, as_other, *cut.sample(others, cut.randint(0, 2))}
        table.add(owners, *columns(part, hashes), Indexed(frozenset(asked)), first_there)
        mine = np.arange(table.sets.end - len(part), table.sets.end)
        _, sizes, words = table.sets.take(mine)
        oldest = np.full(len(mine), first_there)
        parts = table.find(words, sizes, as_other, oldest, cut.choice([1, 7, 1_000]))
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
@pytest.mark.parametrize("hashes", [MANY, 7])
def test_the_index_loses_no_pair(
    measure: str, hashes: int, monkeypatch: pytest.MonkeyPatch
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
            found = found_by_table(sets, measure, float(text), seed, hashes)
            # Sets that the window has left may be found or not.
            if hashes == MANY:
                assert found <= similar
            assert found >= {(i, j) for i, j in similar if i >= j - 20}


def test_word_columns_are_the_sets_of_each_text(monkeypatch: pytest.MonkeyPatch) -> None:
    for base in (wordcolumns.BASE, 1, 0):
        # With such a base many words of one text have the same hash.
        monkeypatch.setattr(wordcolumns, "BASE", base)
        for seed in range(examples(30)):
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


def random_text(random_: random.Random) -> str:
    if random_.random() < 0.5:
        return similar_text(RandomChooser(random_.randrange(1 << 30)))
    ranges = ((32, 0x250), (0x20, 0x3000), (0xA000, 0xD7FF), (0x1F000, 0x20000), (97, 100))
    codes = (random_.randrange(*random_.choice(ranges)) for _ in range(random_.randrange(9)))
    return "".join(map(chr, codes))


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
