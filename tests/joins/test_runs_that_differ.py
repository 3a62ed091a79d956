"""Runs and chains of statements that differ in a constant each: together they find what each does.

What they have in common is kept once, and who has nothing in a batch is not asked in it.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from itertools import product
from types import SimpleNamespace
from typing import Any
from weakref import ref

import numpy as np
import pyarrow as pa
import pytest
from support.examples import is_searching, some
from support.kit import Case, parse_case
from support.runners import lines, run_engine, run_oracle

from broker.matching.limits import MatchingLimits
from joins.budget.limits import RunLimits
from joins.memory.instance import INSTANCE_SCHEMA
from joins.sequences.deferred import Deferred, DeferredRows
from joins.sequences.lockstep.runtable import RunTable
from joins.sequences.repeated.runs import RunEvaluation
from joins.sequences.rowreaders import RowReaders

WORDS = "abcde"
TEXTS = [
    "S//i->a FOLLOWED BY {a/n = b/l, 6 s} S//i[contains(t, '%s')]->b+",
    "S//i->a FOLLOWED BY {, 6 s} S//i[contains(t, '%s')]->b+ {b/l = prev(b/l)} WITHIN 9 s",
    "S//i->a FOLLOWED BY {, 6 s} S//i[contains(t, '%s')]->b+ {b/l >= sum(b/l)} WITHIN 9 s",
    "S//i->a NEXT {a/n = b/l, 9 s} S//i[contains(t, '%s')]->b+ GRACE 3 s",
    "S//i->a NEXT {, 6 s} S//i[contains(t, '%s')]->b+ UNLESS {} S//j->c GRACE 2 s",
    "S//i[contains(t, '%s')]->a FOLLOWED BY {, 6 s} S//i->b+ {b/l = prev(b/l)}",
    "S//i[contains(t, '%s')]->a FOLLOWED BY {a/n = b/l, 6 s} S//i->b+",
    "S//i[contains(t, '%s')]->a FOLLOWED BY {a/n = b/l, 6 s} S//i->b+ {b/l >= sum(b/l)} WITHIN 9 s",
    "S//i[contains(t, '%s')]->a FOLLOWED BY {, 6 s} S//i->b+ UNLESS {} S//j->c GRACE 2 s",
    "S//i[contains(t, '%s')]->a NEXT {, 6 s} S//i->b+ {b/l = prev(b/l, a/n)} GRACE 2 s",
    "S//i[contains(t, '%s')]->a NEXT {a/n = b/l} (S//i->b | S//j->b)+ WITHIN 9 s GRACE 3 s",
    "(S//i[contains(t, '%s')]->a FOLLOWED BY {a/n = c/l, 6 s} S//i->c) FOLLOWED BY {c/n = b/l, 6 s}"
    " S//i->b+",
    "S//i[contains(t, '%s')]->a FOLLOWED BY S//i->b+ FOLLOWED BY S//i->c WITHIN 9 s MATCH STRICT"
    " GRACE 2 s",
    "S//i->a FOLLOWED BY S//i[contains(t, '%s')]->b+ FOLLOWED BY S//i->c WITHIN 9 s"
    " SAME (//l = $l) MATCH NEXT GRACE 3 s",
    "S//i[contains(t, '%s')]->a FOLLOWED BY S//i->b FOLLOWED BY S//i->c WITHIN 9 s"
    " SAME (//l = $l) MATCH PARTITION GRACE 0 s",
]
# Their rows wait while a step has none.
COUNTING = " WINDOW 5 s HAVING count() > 0 GRACE 2 s"
DEFERRED = [
    "S//i[contains(t, '%s')]->a FOLLOWED BY S//i->b FOLLOWED BY S//i->c WITHIN 9 s MATCH ANY",
    "S//i->a FOLLOWED BY {a/n = b/l, 6 s} S//i[contains(t, '%s')]->b FOLLOWED BY {, 4 s} S//j->c"
    " MATCH ANY",
    "S//i->a FOLLOWED BY {, 4 s} S//i->b+ {b/l >= sum(b/l)} FOLLOWED BY {, 4 s}"
    " S//i[contains(t, '%s')]->c MATCH ANY",
    "S//i[contains(t, '%s')]->a FOLLOWED BY S//i->b FOLLOWED BY S//i->c WITHIN 5 s MATCH ANY"
    + COUNTING,
    "S//i->a FOLLOWED BY {a/n = b/l, 4 s} S//i[contains(t, '%s')]->b FOLLOWED BY {, 4 s} S//i->c"
    " MATCH ANY" + COUNTING,
    "S//i->a FOLLOWED BY {, 3 s} S//i[contains(t, '%s')]->b+" + COUNTING,
    "S//i[contains(t, '%s')]->a FOLLOWED BY {a/n = b/l, 4 s} S//i->b+" + COUNTING,
    "SELECT COMPRESSED FROM S//i[contains(t, '%s')]->a FOLLOWED BY {b/l >= a/n, 4 s} S//i->b+"
    " GRACE 1 s",
]


def case_of(texts: list[str], seed: int, first: int = 0, *, is_rare: bool = False) -> Case:
    """Return a case of statements over documents with some of the words, a third of them late.

    The statements are numbered from the first one's number on.  Where words are rare, documents
    with some come, and again after a minute in which the others come.
    """
    chance = random.Random(seed)
    documents, now = [], 20
    for number in range(1, 31 if is_rare else 25):
        now += chance.choice([0, 1, 1, 2, 5]) + (50 if is_rare and number == 12 else 0)
        at = now - chance.choice([0, 0, 4, 8])
        has_some = not is_rare or number % 15 > 5
        said = " ".join(chance.sample(WORDS, chance.choice([1, 1, 2]))) if has_some else "z"
        name, values = chance.choice("iiiiiij"), chance.choices("012", k=2)
        xml = f"<{name}><l>{values[0]}</l><n>{values[1]}</n><t>{said}</t></{name}>"
        documents.append(f"document {number} S 00:{at // 60:02}:{at % 60:02} {xml}")
    queries = [f"query q{i}\n    {text}" for i, text in enumerate(texts, first)]
    return parse_case("\n".join(["lateness 8 s", *queries, "", *documents, "----", ""]))


@pytest.mark.parametrize(("text", "seed"), some(product(TEXTS, range(3)), 5))
def test_statements_find_together_what_each_finds_alone(text: str, seed: int) -> None:
    texts = [text % word for word in WORDS]
    expected = sorted(lines(run_oracle(case_of(texts, seed))))
    # What no run can take any more is forgotten at once.
    limits = MatchingLimits(runs=RunLimits(swept_parts=0))
    for size in (1, 7, 24):
        found = run_engine(case_of(texts, seed), batch_size=size, limits=limits)
        assert sorted(lines(found)) == expected, size


@pytest.mark.parametrize(("text", "seed"), some(product(DEFERRED, range(4)), 3))
def test_rows_that_waited_make_the_same_matches(
    text: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rested: list[object] = []
    rest = Deferred.rest

    def noted(self: Deferred[Any], readers: Iterable[Any], horizon_us: int) -> list[Any]:
        found = rest(self, readers, horizon_us)
        rested.extend(found)
        return found

    case = case_of([text % word for word in "abc"], seed, is_rare=True)
    expected = sorted(lines(run_oracle(case)))
    limits = MatchingLimits(runs=RunLimits(swept_parts=0))
    monkeypatch.setattr(Deferred, "rest", noted)
    for size in (1, 7):
        assert sorted(lines(run_engine(case, batch_size=size, limits=limits))) == expected, size
    after = run_engine(case, batch_size=3, restart_after=15, limits=limits)
    assert sorted(lines(after)) == expected
    # Who waits for a grace longer than it remembers stays awake.
    assert rested or "GRACE" in text


class Needing:
    """A reader that needs a row of each of two streams."""

    decision = SimpleNamespace(retained_us=10)
    needs = (frozenset("a"), frozenset("b"))
    due_us = None

    @property
    def streams(self) -> set[str]:
        """All of its streams."""
        return {"a", "b"}


def rows(*ends_us: int) -> pa.Table:
    columns = {field.name: pa.nulls(len(ends_us), field.type) for field in INSTANCE_SCHEMA}
    return pa.table(columns | {"end_us": pa.array(ends_us, pa.int64())}, INSTANCE_SCHEMA)


def test_a_row_of_the_missing_step_is_taken_however_early_it_ended() -> None:
    reader = Needing()
    deferred: Deferred[Any] = Deferred(lateness_us=0, swept=0)
    deferred.follow(reader)
    taken: list[int] = []
    for stream, end_us in [("b", 50), ("b", 95), ("a", 80)]:
        deferred.begin_batch()
        deferred.add(stream, rows(end_us), np.zeros(1, np.int64))
        for woken, own in deferred.wake([stream]):
            assert woken is reader
            taken += [each.latest_us for each in own]
        deferred.rest([], 100)
    # What ended at 50 is within nobody's reach when the last one comes.
    assert sorted(taken) == [80, 95]
    assert not deferred.waits(reader)
    assert deferred.rest([reader], 110) == [reader]


@pytest.mark.parametrize("text", [DEFERRED[0], DEFERRED[4], DEFERRED[5], DEFERRED[6]])
def test_who_misses_a_step_takes_no_rows(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fed: Counter[object] = Counter()
    catch_up = RowReaders._catch_up

    def noted(self: RowReaders, evaluation: object, deferred: list[DeferredRows]) -> None:
        fed[evaluation] += sum(map(len, deferred))
        catch_up(self, evaluation, deferred)  # type: ignore[arg-type]

    monkeypatch.setattr(RowReaders, "_catch_up", noted)
    documents = [
        f"document {n} S 00:00:{n:02} <i><l>1</l><n>1</n><t>{'w7' if n == 9 else 'w'}</t></i>"
        for n in range(1, 31)
    ]
    queries = [f"query q{i}\n    {text % f'w{i}'}" for i in range(20)]
    case = parse_case("\n".join([*queries, "", *documents, "----", ""]))
    run_engine(case, batch_size=2)
    assert len(fed) == 1
    assert max(fed.values()) <= 30


SIZES = (1, 7, 24)


@pytest.mark.parametrize(("size", "seed"), some(product(SIZES, range(3)), 3))
def test_statements_of_all_kinds_find_together_what_each_finds_alone(size: int, seed: int) -> None:
    texts = [text % word for text in TEXTS + DEFERRED for word in "ab"]
    limits = MatchingLimits(runs=RunLimits(runs=3, heads=4, swept_parts=seed % 2 * 1_000))
    together: dict[str, int] = {}
    found = run_engine(case_of(texts, seed), batch_size=size, limits=limits, paused=together)
    alone: dict[str, int] = {}
    own = []
    # Each with batches of one size, and a third of those that are to be alone document by document.
    step = 3 if size > 1 else 9
    tried = range(len(texts)) if is_searching() else range(SIZES.index(size), len(texts), step)
    for number in tried:
        case = case_of([texts[number]], seed, first=number)
        own += run_engine(case, batch_size=size, limits=limits, paused=alone)
    names = {f"q{number}" for number in tried}
    assert sorted(lines(own)) == sorted(lines(m for m in found if m.query in names)) != []
    assert alone == {name: docid for name, docid in together.items() if name in names} != {}


def test_who_has_nothing_before_an_element_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Counter[object] = Counter()
    decide = RunEvaluation.decide

    def noted(self: RunEvaluation, clock: object) -> object:
        asked[self] += 1
        return decide(self, clock)

    monkeypatch.setattr(RunEvaluation, "decide", noted)
    documents = [
        f"document {n} S 00:00:{n:02} <i><l>1</l><n>1</n><t>{'w7' if n == 9 else 'w'}</t></i>"
        for n in range(1, 23)
    ]
    for text in (TEXTS[5], TEXTS[6], TEXTS[7], TEXTS[9]):
        queries = [f"query q{i}\n    {text % f'w{i}'}" for i in range(8)]
        case = parse_case("\n".join([*queries, "", *documents, "----", ""]))
        asked.clear()
        assert run_engine(case, batch_size=1)
        # While elements may stand behind what it has, and those that were not settled by then.
        assert len(asked) == 1
        assert 5 <= sum(asked.values()) <= 10


@pytest.mark.parametrize("text", [TEXTS[0], TEXTS[3]])
def test_who_has_no_element_in_a_batch_is_not_asked(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: Counter[str] = Counter()
    decide = RunEvaluation.decide

    def noted(self: RunEvaluation, clock: object) -> object:
        [element] = self.decision.elements
        asked[element.stream.name] += 1
        return decide(self, clock)

    monkeypatch.setattr(RunEvaluation, "decide", noted)
    documents = [
        f"document {n} S 00:00:{n:02} <i><l>1</l><n>1</n><t>{'w7' if n == 9 else 'w'}</t></i>"
        for n in range(1, 21)
    ]
    queries = [f"query q{i}\n    {text % f'w{i}'}" for i in range(20)]
    case = parse_case("\n".join([*queries, "", *documents, "----", ""]))
    assert run_engine(case, batch_size=1)
    assert len(asked) == 1
    # When its element comes, and when its time is settled.
    assert sum(asked.values()) <= 3


def test_chains_that_differ_in_a_word_are_of_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    begin = RunTable.__init__

    def noted(self: RunTable, *arguments: object) -> None:
        made.append(self)
        begin(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(RunTable, "__init__", noted)
    assert run_engine(case_of([TEXTS[12] % word for word in WORDS], 1))
    assert len(made) == 1


def test_rows_are_kept_no_longer_than_somebody_waits() -> None:
    reader = Needing()
    deferred: Deferred[Any] = Deferred(lateness_us=0, swept=1_000)
    deferred.follow(reader)
    table = rows(50)
    kept = ref(table)
    deferred.begin_batch()
    deferred.add("b", table, np.zeros(1, np.int64))
    assert list(deferred.wake(["b"])) == []
    del table
    assert kept() is not None
    deferred.add("a", rows(60), np.zeros(1, np.int64))
    assert [len(taken) for _, taken in deferred.wake(["a"])] == [2]
    assert kept() is None
