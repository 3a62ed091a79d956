"""Compiled loops agree with the array operations that they stand in for."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from oracle.similarity import score
from support.examples import examples, some
from support.kernels import needs_kernels
from support.word_sets import (
    KINDS,
    MANY,
    MEASURES,
    THRESHOLDS,
    columns,
    random_sets,
    random_text,
)

from joins.memory.limits import MemoryLimits
from joins.similarity import chains, settable
from joins.similarity.arraytable import ArrayTable
from joins.similarity.bounds import AskedMeasure
from joins.similarity.chains import Chains
from joins.similarity.settable import Indexed, SetTable
from templates import wordcolumns
from templates.wordcolumns import hashed_sets

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _kernels() -> None:
    needs_kernels()


def test_the_sets_of_texts_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    for base in (wordcolumns.BASE, 1, 0):
        # With such a base many words of one text have the same hash.
        monkeypatch.setattr(wordcolumns, "BASE", base)
        for seed in range(examples(3)):
            random_ = random.Random(seed)
            texts = [random_text(random_) for _ in range(random_.randint(0, 12))]
            texts.append(
                " ".join(f"w{random_.randrange(99)}" for _ in range(random_.randrange(99)))
            )
            for kind in KINDS:
                arrays, kernels = (hashed_sets(kind, texts, kernels=own) for own in (False, True))
                for one, other in zip(arrays, kernels, strict=True):
                    assert np.array_equal(one, other)


@pytest.mark.parametrize(
    ("measure", "way"), some(product(MEASURES, [(MANY, None), (7, None), (MANY, 40)]), 3)
)
def test_the_same_sets_are_similar(
    measure: str, way: tuple[int, int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    hashes, apart = way
    monkeypatch.setattr(settable, "FIRST_LOOK", 12)
    if apart is not None:
        # So far apart are entries and sets when their numbers are counted anew.
        monkeypatch.setattr(chains, "_MOST", apart)
    for seed in range(examples(1)):
        for text in THRESHOLDS[measure][::2]:
            arrays, kernels = (found(own, measure, float(text), seed, hashes) for own in (0, 1))
            # Of words with one hash each counts in its own way, and loses none.
            assert arrays == kernels or hashes != MANY


def found(
    compiled: int, measure: str, threshold: float, seed: int, hashes: int
) -> set[tuple[int, int]]:
    """Return the pairs of sets that a table finds, each set as the first and as the second.

    Those that are similar are among them.
    """
    from joins.similarity.compiledtable import CompiledTable

    limits = MemoryLimits(column_rows=16, run_entries=64)
    table: SetTable = CompiledTable(limits) if compiled else ArrayTable(limits)  # type: ignore[type-arg]
    cut = random.Random(seed)
    sets = random_sets(seed, 50)
    asked = [AskedMeasure(measure, threshold, is_first) for is_first in (True, False)]
    pairs: set[tuple[int, int]] = set()
    similar: set[tuple[int, int]] = set()
    first_there = start = 0
    while start < len(sets):
        part = sets[start : start + cut.randint(1, 20)]
        owners = np.arange(start, start + len(part))
        table.drop(first_there)
        table.add(owners, *columns(part, hashes), Indexed(frozenset(asked)))
        mine = np.arange(table.sets.end - len(part), table.sets.end)
        for look in asked:
            first = first_there + cut.randint(0, 3)
            oldest = np.full(len(mine), first)
            similar |= {
                (i if look.is_first else -i - 1, j)
                for i in mine.tolist()
                for j in range(first, i)
                if is_similar(look, sets[i], sets[j])
            }
            listed = cut.choice([1, 7, 1_000])
            for which, those in table.similar(table.sets, mine, look, oldest, listed):
                some = list(zip(mine[which].tolist(), those.tolist(), strict=True))
                assert len(set(some)) == len(some)
                pairs |= {(a if look.is_first else -a - 1, b) for a, b in some}
        start += len(part)
        first_there = max(first_there, start - 30)
    assert similar <= pairs
    return pairs


def test_sets_that_go_from_between_others_are_found_no_more_and_the_others_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from joins.similarity.compiledtable import CompiledTable

    monkeypatch.setattr(settable, "PART_WORDS", 50)
    asked = [AskedMeasure("containment", 0.5, is_first) for is_first in (True, False)]
    for seed, make in product(range(examples(3)), (ArrayTable, CompiledTable)):
        random_ = random.Random(seed)
        sets = random_sets(seed, 60)
        table: SetTable = make(MemoryLimits(column_rows=16, run_entries=64))  # type: ignore[type-arg]
        table.add(np.arange(len(sets)), *columns(sets, MANY), Indexed(frozenset(asked)))
        there = np.array([random_.random() < 0.7 for _ in sets])
        before = table.memory_bytes
        table.sweep(lambda owners, there=there: there[owners])
        left = table.sets.owners(np.arange(table.sets.start, table.sets.end))
        assert set(np.flatnonzero(there)) <= set(left.tolist())
        assert len(left) < 4 / 3 * there.sum() + 1
        assert len(left) == len(sets) or table.memory_bytes < before
        for look in asked:
            newest = table.sets.end - 1
            mine, oldest = np.array([newest]), np.array([0])
            found = {
                int(left[other - table.sets.start])
                for _, others in table.similar(table.sets, mine, look, oldest, 100)
                for other in others.tolist()
            }
            own = int(left[-1])
            assert found == {
                other for other in left[:-1].tolist() if is_similar(look, sets[own], sets[other])
            }


@cache
def is_similar(look: AskedMeasure, own: frozenset[str], other: frozenset[str]) -> bool:
    first, second = (own, other) if look.is_first else (other, own)
    return score(look.measure, set(first), set(second)) >= Fraction(repr(look.threshold))


def test_an_index_of_chains_is_as_large_as_what_is_there() -> None:
    """Its heads follow its entries when a burst has come, and when it has gone."""
    index = Chains()
    random_ = random.Random(0)
    first = 0
    for count in (100, 3_000, 70_000, 9_000, 1_000, 20_000):
        words = np.array([random_.getrandbits(64) for _ in range(count)], np.uint64)
        numbers = np.arange(first, first + count)
        index.drop(first)
        index.add(words, numbers)
        first += count
        assert index.memory_bytes <= 12 * count + 4 * max(1_024, 2 * count)


def test_numba_is_not_imported_before_it_is_of_use() -> None:
    program = "import sys, broker.matching.engine; sys.exit('numba' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_what_another_version_has_compiled_with_other_types_is_dropped(tmp_path: Path) -> None:
    source = """
from typing import NamedTuple
from templates.compiling import compiled

class {name}(NamedTuple):
    one: int

@compiled
def one(of: {name}) -> int:
    return of.one

print(one({name}(7)))
"""
    for name in ("Before", "Afterwards"):
        assert printed(tmp_path, source.format(name=name)) == "7\n"


def test_what_is_compiled_is_of_a_called_function_as_it_is_further_down(tmp_path: Path) -> None:
    source = """
from templates.compiling import compiled

@compiled
def one(number: int) -> int:
    return more(number)

@compiled
def more(number: int) -> int:
    return number + {added}

print(one(7))
"""
    for added in (1, 10, 1):
        assert printed(tmp_path, source.format(added=added)) == f"{7 + added}\n"


def printed(directory: Path, source: str) -> str:
    """Return what a module prints that is imported, after others of its name."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{directory}"}
    (directory / "versioned.py").write_text(source)
    command = [sys.executable, "-c", "import versioned"]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert list((directory / "__pycache__").glob("*.nbi"))
    return ran.stdout
