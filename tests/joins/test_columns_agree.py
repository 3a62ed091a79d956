"""Chains that step on in columns agree with those found one by one, and both are right."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from generators.choosers import RandomChooser
from generators.column_cases import column_case, column_run_case
from support.examples import examples, some
from support.kernels import needs_kernels
from support.kit import CASES, Case, cases, parse_case
from support.runners import lines, run_engine, run_oracle
from support.tiny_limits import TINY_MEMORY

import xscl
from broker.documents.document import Document
from broker.matching.engine import Engine, RegisteredQuery
from broker.matching.limits import DEFAULT_MATCHING_LIMITS, MatchingLimits
from broker.matching.queries.registration import SetChange
from joins.budget.limits import DEFAULT_RUN_LIMITS, RunLimits
from joins.sequences import runevaluations
from joins.sequences.clock import WatermarkSteps
from joins.sequences.lockstep.batchrows import BatchRows
from joins.sequences.lockstep.columnchains import ColumnChainEvaluation
from joins.sequences.lockstep.compilation import compile_loops
from joins.sequences.lockstep.runtable import RunTable
from joins.sequences.lockstep.sample import sample_row
from joins.signature.limits import SignatureLimits
from templates.chainprograms import compile_chain
from templates.chainsample import sample_chain
from xscl.query import From, Node, Strategy

FORGETFUL = MatchingLimits(join=SignatureLimits(memory=TINY_MEMORY), runs=RunLimits(swept_parts=1))
ONE_BY_ONE = MatchingLimits(runs=RunLimits(in_columns=False))
ALL = dict((*cases(CASES / "runs"), *cases(CASES / "match")))
OF_DATA = [name for name in ALL if "given" in name]


@pytest.fixture(autouse=True, scope="module")
def _compiled() -> None:
    needs_kernels()
    compile_loops()


def strategy_of(root: Node) -> Strategy | None:
    """Return the strategy of a source, if it has one."""
    return root.strategy if isinstance(root, From) else None


def in_columns(case: Case, cut: random.Random) -> list[str]:
    """Return what is found in columns, under NEXT perhaps with what is of no use forgotten at once.

    What breaks contiguity, of a document that is later than allowed, may be forgotten.
    """
    is_next = all(
        strategy_of(query.root) is Strategy.NEXT for query in case.queries if query.id[0] == "q"
    )
    limits = FORGETFUL if is_next and cut.randrange(2) else DEFAULT_MATCHING_LIMITS
    batch_size, restart = cut.randint(1, 4), cut.randint(0, len(case.lines) - 1)
    return lines(run_engine(case, batch_size=batch_size, restart_after=restart, limits=limits))


@pytest.mark.parametrize("name", dict.fromkeys([*some(ALL, 4), *OF_DATA]))
def test_cases_of_runs_are_found_alike(name: str) -> None:
    case = parse_case(ALL[name])
    assert in_columns(case, random.Random(name)) == lines(run_engine(case, limits=ONE_BY_ONE))


def test_chains_over_numbers_are_found_alike() -> None:
    wrong: list[int] = []
    for seed in range(examples(4)):
        case = parse_case(column_case(RandomChooser(seed)))
        found = in_columns(case, random.Random(seed))
        if found != lines(run_engine(case, limits=ONE_BY_ONE)):
            wrong.append(seed)
    assert not wrong, "cases of column_case(RandomChooser(seed)) with these seeds"


def test_chains_over_numbers_are_as_the_oracle_says() -> None:
    wrong: list[int] = []
    for seed in range(1_000, 1_000 + examples(3)):
        case = parse_case(column_case(RandomChooser(seed)))
        if in_columns(case, random.Random(seed)) != lines(run_oracle(case)):
            wrong.append(seed)
    assert not wrong, "cases of column_case(RandomChooser(seed)) with these seeds"


def test_repetitions_behind_next_are_as_the_oracle_says() -> None:
    wrong: list[int] = []
    for seed in range(2_000, 2_000 + examples(3)):
        case = parse_case(column_run_case(RandomChooser(seed)))
        expected = lines(run_oracle(case))
        if in_columns(case, random.Random(seed)) != expected:
            wrong.append(seed)
        if lines(run_engine(case, limits=ONE_BY_ONE)) != expected:
            wrong.append(seed)
    assert not wrong, "cases of column_run_case(RandomChooser(seed)) with these seeds"


def test_the_next_is_decided_first_and_not_the_first_by_time() -> None:
    case = parse_case(
        "query q1\n  S//a FOLLOWED BY S//b WITHIN 8 s MATCH NEXT GRACE 5 s\n"
        "document 1 S 12:00:10  <a/>\n"
        "document 2 S 12:00:13  <b/>\n"
        "document 3 S 12:00:19  <x/>\n"
        "document 4 S 12:00:12  <b/>\n"
        "document 5 S 12:00:30  <x/>\n"
        "----\n"
    )
    expected = lines(run_oracle(case))
    assert [each for line in expected for each in re.findall(r'"docid": (\d+)', line)] == ["1", "2"]
    for batch_size in (1, 2, 5):
        assert lines(run_engine(case, batch_size=batch_size)) == expected


TEXTS = (
    "S//a[p->x] FOLLOWED BY {y = x} S//a[p->y] WITHIN 9 s MATCH STRICT",
    "S//a[p->x] FOLLOWED BY {y = x OR y > 1} S//a[p->y] WITHIN 9 s MATCH NEXT",
    "S//a[p->x] FOLLOWED BY {y = x} S//a[p->y]+ {y = first(y)} WITHIN 9 s SAME (//k)"
    " MATCH PARTITION",
    "S//a[p->x]+ {x != prev(x)} FOLLOWED BY {y != last(x)} S//b[p->y] WITHIN 9 s MATCH NEXT",
    "S//a[p->x]+ {x = prev(x, '2')} FOLLOWED BY S//b WITHIN 9 s MATCH NEXT",
    "S//a[p->x]+ {first(x) = '' AND x != ' 2 '} FOLLOWED BY S//b WITHIN 9 s MATCH NEXT",
    "S//a[p->x]+ {x = '2' OR x > 1} FOLLOWED BY {first(x) = y} S//b[p->y] WITHIN 9 s MATCH STRICT",
)

FOLDED = (
    "S//a[p->x]+ {x >= n} FOLD {n = 0 THEN n + x, t = '2' THEN x} FOLLOWED BY {y = t} S//b[p->y]"
    " WITHIN 9 s MATCH NEXT",
    "S//a[p->x] FOLLOWED BY {f >= 0} S//a[p->y]+ {y != e} FOLD {e = 'no' THEN y, f = x THEN y}"
    " WITHIN 9 s MATCH STRICT",
    "SELECT <r>{n}{m}</r> FROM S//a[p->x]+ {count() < n} FOLD {n = 1 THEN m, m = 1 THEN n + m}"
    " FOLLOWED BY {if (y = '2') then m else n > 1} S//b[p->y] WITHIN 9 s SAME (//k)"
    " MATCH PARTITION",
    "S//a[p->x]+ {1 <= if (x = prev(x) AND count() > 1) then top else 2}"
    " FOLD {top = 0 THEN if (x > top AND x != '') then x else top, s = 1 THEN prev(x)}"
    " WITHIN 9 s MATCH NEXT",
)


@pytest.mark.parametrize("text", some(FOLDED, 2))
def test_what_is_folded_is_found_in_columns(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_of_texts(text, random.Random(text))
    one_by_one = lines(run_engine(case, limits=ONE_BY_ONE))
    assert one_by_one == lines(run_oracle(case)) != []
    monkeypatch.setattr(runevaluations, "ChainEvaluation", None)
    assert in_columns(case, random.Random(text)) == one_by_one


BEHIND_NEXT = (
    "S//b[p->x] NEXT {, 9 s} S//a[p->y]+ WHILE {y = prev(y, x)}",
    "S//b[p->x] NEXT {, 9 s} S//a[p->y]+ {x = y, 4 s} WHILE {count() < 3} SAME (//k)",
    "S//b[p->x] NEXT {x != y, 9 s} S//a[p->y]+ WHILE {y != first(y) OR count() < 2}",
    "S//b[p->x] NEXT {, 9 s} S//a[p->y]+ WHILE {n < 8} FOLD {n = x THEN if (y > 1) then n + y"
    " else count(), t = x THEN y}",
    "(S//b[p->x] NEXT {time(y) > time(x) + 1 s, 9 s} S//a[p->y]+ WHERE dur() >= 3 s) NEXT {, 9 s}"
    " S//b[p->z]",
    "S//b NEXT S//a[p->y]+ WHILE {time(y) <= start() + 6 s AND dur() < 5 s} WITHIN 8 s",
)


@pytest.mark.parametrize("text", some(BEHIND_NEXT, 2))
def test_repetitions_behind_next_are_found_in_columns(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = case_of_texts(text, random.Random(text))
    expected = lines(run_oracle(case))
    assert expected == lines(run_engine(case, limits=ONE_BY_ONE)) != []
    monkeypatch.setattr(runevaluations, "RunEvaluation", None)
    assert in_columns(case, random.Random(text)) == expected


SAID = (
    "S//b[k = $k][p->x] FOLLOWED BY {y != $w, 9 s} S//a[p->y]+ {y >= n, $g}"
    " FOLD {n = $p THEN n + 1} FOLLOWED BY {z >= $p, 9 s} S//b[p->z] MATCH NEXT",
    "S//b[k = $k] NEXT {y >= $p, 9 s} S//a[p->y]+ WHILE {y = prev(y, $w)}",
    "S//b[k = $k][p->x] NEXT {, 9 s} S//a[k = $k][p->y]+ {x != $w OR y < $p} SAME (//k)",
    "S//b[k = $k] NEXT {, 9 s} S//a[p->y]+ {t != y OR n > $p} FOLD {n = $p THEN n + 1, t = $w"
    " THEN y}",
)


@pytest.mark.parametrize("text", some(SAID, 1))
def test_runs_that_say_data_are_found_in_columns(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = [
        {"k": k, "p": p, "w": w, "g": f"{p + 2} s"}
        for k, p, w in (("0", 0, "2"), ("1", 2, ""), ("1", 3, "2"))
    ]
    case = case_of_texts(text, random.Random(text), given)
    expected = lines(run_oracle(case))
    assert expected == lines(run_engine(case, limits=ONE_BY_ONE)) != []
    monkeypatch.setattr(runevaluations, "RunEvaluation", None)
    monkeypatch.setattr(runevaluations, "ChainEvaluation", None)
    assert in_columns(case, random.Random(text)) == expected
    assert lines(run_engine(case, batch_size=2, limits=FORGETFUL)) == expected


def test_data_of_runs_are_numbered_anew_when_others_are_forgotten() -> None:
    given = "".join(f'parameters q {{"k": "{n}", "p": "{n}"}}\n' for n in range(6))
    documents = "".join(
        f"document {3 * n + 1} S 00:{n:02}:01  <a><k>{n}</k></a>\n"
        f"document {3 * n + 2} S 00:{n:02}:02  <b><p>{n}</p></b>\n"
        f"document {3 * n + 3} S 00:{n:02}:03  <b><p>{n}</p></b>\n"
        for n in range(6)
    )
    text = "S//a[k = $k] NEXT {, 9 s} S//b[p->y]+ {prev(y, $p) = y} GRACE 0 s"
    case = parse_case(f"lateness 0 s\nquery q\n    {text}\n{given}\n{documents}----\n")
    expected = lines(run_oracle(case))
    assert len(expected) == 11
    assert lines(run_engine(case, batch_size=1, limits=FORGETFUL)) == expected


@pytest.mark.parametrize("in_columns", [False, True])
def test_what_stands_before_next_may_be_too_many_runs(in_columns: bool) -> None:
    text = "S//a[p->x] NEXT {, INF} S//b[p->y]+ WHILE {y > x} GRACE 0 s"
    [query] = xscl.parse(text, id="q")
    limits = MatchingLimits(runs=RunLimits(in_columns=in_columns, heads=2))
    engine = Engine([RegisteredQuery(query)], lateness_us=1_000_000, limits=limits)
    parts = ["<a><p>1</p><p>2</p></a>", "<b><p>9</p></b>", "<a><p>1</p><p>2</p><p>3</p></a>"]
    xml = {docid: part.encode() for docid, part in enumerate([*parts, "<c/>"], 1)}
    pauses: list[int] = []
    for docid, content in xml.items():
        at = docid * 1_000_000
        one = Document(docid, "S", str(docid), at, at, at, at - 1_000_000, content)
        step = engine.process(engine.evaluate([one]), lambda _: xml)
        pauses += [each.docid for each in step.pauses]
    assert pauses == [3]


@pytest.mark.parametrize("text", some(TEXTS, 2))
def test_texts_that_are_compared_are_those_that_the_oracle_compares(text: str) -> None:
    chance = random.Random(text)
    case = case_of_texts(text, chance)
    found = in_columns(case, chance)
    assert found == lines(run_oracle(case))
    assert found == lines(run_engine(case, limits=ONE_BY_ONE))
    assert found


def test_a_choice_behind_a_number_is_calculated_as_the_oracle_does() -> None:
    """A program has nothing on its stack where it chooses: this one is evaluated one by one."""
    added = "{count() < 3 + (if (x = '2') then 1 else -1)}"
    text = f"S//a[p->x]+ {added} FOLLOWED BY S//b WITHIN 9 s MATCH STRICT"
    case = case_of_texts(text, random.Random(text))
    assert lines(run_engine(case)) == lines(run_oracle(case)) != []


def case_of_texts(
    text: str, chance: random.Random, given: Sequence[Mapping[str, object]] = ()
) -> Case:
    """Return a case of a statement over documents whose texts are few, and some of them empty."""
    documents = [
        f"document {n} S 00:00:{n:02} <{name}><k>{n % 2}</k><p>{value}</p></{name}>"
        for n, name, value in zip(
            range(1, 31), chance.choices("aaab", k=30), chance.choices(["", "", "2", " 2 "], k=30),
            strict=True,
        )
    ]  # fmt: skip
    lined = ["lateness 0 s", "query q0", f"    {text}", "query q1", f"    {text} GRACE 1 s"]
    used = [{name: value for name, value in row.items() if f"${name}" in text} for row in given]
    lined += [f"parameters q{i} {json.dumps(row)}" for row in used for i in range(2)]
    return parse_case("\n".join([*lined, "", *documents, "tick 31 00:10:00"]) + "\n----\n")


@pytest.mark.parametrize("is_contiguous", [False, True])
def test_a_statement_that_goes_leaves_the_others_of_its_table(is_contiguous: bool) -> None:
    chain = sample_chain(is_contiguous=is_contiguous)
    program = compile_chain(chain)
    assert program is not None
    table = RunTable(chain, program, 0, DEFAULT_RUN_LIMITS)
    chains = [chain, replace(chain, within_us=1_000)]
    stays, goes = (ColumnChainEvaluation(each, program, table) for each in chains)
    clock = WatermarkSteps()
    found: list[tuple[int, int]] = []
    for docid in range(1, 9):
        clock = clock.next_batch()
        one = np.array([docid])
        clock.advance(one, one - 1, one)
        for stream in table.streams:
            table.absorb(BatchRows(sample_row(stream, docid)))
        found.append((len(stays.decide(clock)), len(goes.decide(clock))))
        if docid == 4:
            goes.leave()
    assert found[3][0] == found[3][1] > 0
    assert all(own > 0 and not other for own, other in found[4:])


@pytest.mark.parametrize("in_columns", [False, True])
def test_runs_go_on_when_another_statement_with_the_same_ones_is_removed(in_columns: bool) -> None:
    chain = "S//a[p->x]+ {x > prev(x)} FOLLOWED BY {, 1 h} S//b->n MATCH NEXT"
    texts = [f"{chain} GRACE 0 s", f"{chain} WHERE n/k = 'x' OR n/k = 'y' GRACE 0 s"]
    queries = [xscl.parse(text, id=f"q{i}")[0] for i, text in enumerate(texts)]
    limits = MatchingLimits(runs=RunLimits(in_columns=in_columns))
    engine = Engine(map(RegisteredQuery, queries), lateness_us=1_000_000, limits=limits)
    found: list[int] = []
    xml: dict[int, bytes] = {}
    for docid, kind in enumerate("aabcc", 1):
        at = docid * 1_000_000
        xml[docid] = f"<{kind}><p>{docid}</p></{kind}>".encode()
        one = Document(docid, "S", str(docid), at, at, at, at - 1_000_000, xml[docid])
        if docid == 3:
            engine.follow(SetChange(gone=["q1"]))
        found.append(len(engine.process(engine.evaluate([one]), lambda _: xml).matches))
    assert found == [0, 0, 0, 2, 0]


@pytest.mark.parametrize("in_columns", [False, True])
def test_elements_keep_their_values_when_others_with_more_of_them_come(in_columns: bool) -> None:
    text = "S//a[p->x] FOLLOWED BY {y > x AND z > x, 1 h} S//b[p->y][q->z] MATCH NEXT GRACE 0 s"
    [query] = xscl.parse(text, id="q")
    limits = MatchingLimits(runs=RunLimits(in_columns=in_columns))
    engine = Engine([RegisteredQuery(query)], lateness_us=1_000_000, limits=limits)
    parts = ["<a><p>5</p></a>", "<b><p>3</p><q>3</q></b>", "<b><p>9</p><q>9</q></b>", "<c/>"]
    xml = {docid: part.encode() for docid, part in enumerate(parts, 1)}
    found: list[int] = []
    for docid, content in xml.items():
        at = docid * 1_000_000
        one = Document(docid, "S", str(docid), at, at, at, at - 1_000_000, content)
        found.append(len(engine.process(engine.evaluate([one]), lambda _: xml).matches))
    assert found == [0, 0, 0, 1]
