"""Runs and chains of statements that differ in a constant each: together they find what each does.

What they have in common is kept once, and who has nothing in a batch is not asked in it.
"""

from __future__ import annotations

import random
from collections import Counter
from itertools import product

import pytest
from support.examples import some
from support.kit import Case, parse_case
from support.runners import lines, run_engine, run_oracle

from broker.matching.limits import MatchingLimits
from joins.budget.limits import RunLimits
from joins.sequences.lockstep.runtable import RunTable
from joins.sequences.repeated.runs import RunEvaluation

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


def case_of(texts: list[str], seed: int, first: int = 0) -> Case:
    """Return a case of statements over documents with some of the words, a third of them late.

    The statements are numbered from the first one's number on.
    """
    chance = random.Random(seed)
    documents, now = [], 20
    for number in range(1, 25):
        now += chance.choice([0, 1, 1, 2, 5])
        at = now - chance.choice([0, 0, 4, 8])
        words = " ".join(chance.sample(WORDS, chance.choice([1, 1, 2])))
        name, values = chance.choice("iiiiiij"), chance.choices("012", k=2)
        xml = f"<{name}><l>{values[0]}</l><n>{values[1]}</n><t>{words}</t></{name}>"
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


@pytest.mark.parametrize(("size", "seed"), some(product((1, 7, 24), range(3)), 3))
def test_statements_of_all_kinds_find_together_what_each_finds_alone(size: int, seed: int) -> None:
    texts = [text % word for text in TEXTS for word in "ab"]
    limits = MatchingLimits(runs=RunLimits(runs=3, heads=4, swept_parts=seed % 2 * 1_000))
    together: dict[str, int] = {}
    found = run_engine(case_of(texts, seed), batch_size=size, limits=limits, paused=together)
    alone: dict[str, int] = {}
    own = []
    for number, text in enumerate(texts):
        case = case_of([text], seed, first=number)
        own += run_engine(case, batch_size=size, limits=limits, paused=alone)
    assert sorted(lines(own)) == sorted(lines(found)) != []
    assert alone == together != {}


def test_who_has_nothing_before_an_element_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Counter[object] = Counter()
    decide = RunEvaluation.decide

    def noted(self: RunEvaluation, clock: object) -> object:
        asked[self] += 1
        return decide(self, clock)

    monkeypatch.setattr(RunEvaluation, "decide", noted)
    documents = [
        f"document {n} S 00:00:{n:02} <i><l>1</l><n>1</n><t>{'w7' if n == 9 else 'w'}</t></i>"
        for n in range(1, 31)
    ]
    for text in (TEXTS[5], TEXTS[6], TEXTS[7], TEXTS[9]):
        queries = [f"query q{i}\n    {text % f'w{i}'}" for i in range(20)]
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
