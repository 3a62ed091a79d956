"""Texts, sets of words and thresholds that the search for similar sets is tried with."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
from generators.choosers import RandomChooser
from generators.similar_cases import similar_text

from templates.queryclass import SetKind
from templates.wordcolumns import hash_strings
from xscl.path import Literal
from xscl.query import Call, VariableValue

__all__ = ["KINDS", "MANY", "MEASURES", "THRESHOLDS", "columns", "random_sets", "random_text"]

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


def random_text(random_: random.Random) -> str:
    if random_.random() < 0.5:
        return similar_text(RandomChooser(random_.randrange(1 << 30)))
    ranges = ((32, 0x250), (0x20, 0x3000), (0xA000, 0xD7FF), (0x1F000, 0x20000), (97, 100))
    codes = (random_.randrange(*random_.choice(ranges)) for _ in range(random_.randrange(9)))
    return "".join(map(chr, codes))
