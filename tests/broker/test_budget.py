"""A query that explodes is paused at a definite document; nothing else changes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.budget_runs import Running, Way, documents, run, stream
from support.budgets import UNLIMITED
from support.examples import some
from support.runners import SOME_ENGINES

from broker.cli import main
from broker.matching.costs.blocks import Account
from broker.matching.costs.budget import Budget, Spent, Tally
from joins.engines import EngineName

BOMB = "S//i->a FOLLOWED BY {a/lang = b/lang, 1 d} S//i->b"
OTHERS = {
    "title": "S//i->a FOLLOWED BY {a/t = b/t, 1 d} S//i->b",
    "both": "S//i->a JOIN {a/lang = b/lang AND a/t = b/t, 1 d} S//i->b",
    "short": "S//i->a FOLLOWED BY {a/lang = b/lang, 2 m} S//i->b",
}


def first_over(counts: dict[int, int], most: int) -> int:
    return min(docid for docid, count in counts.items() if count > most)


BUDGETS = {
    "matches of a document": replace(UNLIMITED, matches_per_document=20),
    "matches of 1,000 documents": replace(UNLIMITED, matches_per_1000_documents=150),
    "pairs of a document": replace(UNLIMITED, pairs_per_document=20),
    "all": Budget(25, 300, 30, 0),
}


@pytest.mark.parametrize(("name", "batch"), some(product(BUDGETS, [1, 7, 60]), 2))
def test_the_same_document_pauses_a_query_whatever_the_batches(name: str, batch: int) -> None:
    stream, texts = documents(), {"bomb": BOMB, **OTHERS}
    free = run(texts, UNLIMITED, stream)
    alone = run({"bomb": BOMB}, BUDGETS[name], stream)
    found = run(texts, BUDGETS[name], stream, batch)
    [pause] = found.pauses
    assert [pause] == alone.pauses, "neither batches nor other queries decide"
    assert pause.query == "bomb"
    assert 10 < pause.docid < 55
    assert found.of("bomb") == free.of("bomb", before=pause.docid) != []
    for other in OTHERS:
        assert found.of(other) == free.of(other) != []


@pytest.mark.parametrize("engine", SOME_ENGINES)
def test_every_engine_pauses_at_the_first_document_with_too_many_matches(
    engine: EngineName,
) -> None:
    stream, texts = documents(40), {"bomb": BOMB, "title": OTHERS["title"]}
    free = run(texts, UNLIMITED, stream)
    found = run(texts, replace(UNLIMITED, matches_per_document=9), stream, 11, Way(engine))
    [pause] = found.pauses
    assert pause.docid == first_over(free.counts("bomb"), 9)
    assert pause.reason == (
        f"document {pause.docid} alone has more than 9 matches (budget.matches_per_document); "
        "join on something rarer as well, or shorten the window"
    )
    assert found.of("title") == free.of("title")


@pytest.mark.parametrize("batch", some([1, 7, 60], 2))
def test_a_block_of_documents_has_a_budget_too(batch: int) -> None:
    stream = [replace(one, docid=one.docid + 980, key=str(one.docid)) for one in documents()]
    free = run({"bomb": BOMB}, UNLIMITED, stream).counts("bomb")
    first = sum(count for docid, count in free.items() if docid <= 1_000)
    found = run({"bomb": BOMB}, replace(UNLIMITED, matches_per_1000_documents=first), stream, batch)
    [pause] = found.pauses
    total, expected = 0, 0
    for docid, count in sorted(free.items()):
        total += count if docid > 1_000 else 0
        if total > first:
            expected = docid
            break
    assert pause.docid == expected
    assert pause.reason.startswith(f"documents 1001 to {expected} have more than {first} matches")


def test_what_a_block_has_spent_outlives_the_process() -> None:
    stream, budget = documents(), replace(UNLIMITED, matches_per_1000_documents=150)
    [expected] = run({"bomb": BOMB}, budget, stream, 10).pauses
    xml = {one.docid: one.xml for one in stream}
    for after in some(range(10, expected.docid, 5), 2):
        first = Running({"bomb": BOMB}, budget).feed(stream[:after], 10)
        second = Running({"bomb": BOMB}, budget)
        second.engine.absorb(
            second.engine.evaluate(stream[:after]), lambda ids: {i: xml[i] for i in ids}
        )
        second.engine.resume(first.spent)
        second.feed(stream, 10, after)
        assert first.pauses + second.pauses == [expected]


def test_a_class_with_a_rarer_value_join_is_not_paused_by_a_frequent_value() -> None:
    stream, text = documents(), {"both": OTHERS["both"]}
    found = run(text, replace(UNLIMITED, pairs_per_document=10), stream, 7)
    assert found.pauses == []
    assert found.of("both") == run(text, UNLIMITED, stream).of("both") != []


def test_a_query_without_a_value_join_says_so() -> None:
    stream = documents(30)
    texts = {"product": "S//i->a JOIN {a/t != b/t, 1 d} S//i->b", "title": OTHERS["title"]}
    free = run(texts, UNLIMITED, stream)
    for batch in (1, 4, 30):
        found = run(texts, replace(UNLIMITED, pairs_per_document=20), stream, batch)
        [pause] = found.pauses
        assert (pause.query, pause.docid) == ("product", 12)
        assert "because there is no value join" in pause.reason
        assert found.of("product") == free.of("product", before=12) != []
        assert found.of("title") == free.of("title")


def test_windows_of_one_class_are_paused_one_by_one() -> None:
    text = "S//i->a FOLLOWED BY {a/lang = b/lang, %s} S//i->b"
    texts = {"long": text % "1 d", "longer": text % "2 d", "middle": text % "22 m"}
    stream = documents()
    for batch in some((1, 9, 60), 1):
        found = run(texts, replace(UNLIMITED, pairs_per_document=18), stream, batch)
        by_query = {pause.query: pause.docid for pause in found.pauses}
        assert by_query["long"] == by_query["longer"] < by_query["middle"]
        for name in texts:
            budget = replace(UNLIMITED, pairs_per_document=18)
            [alone] = run({name: texts[name]}, budget, stream).pauses
            assert alone.docid == by_query[name]


NESTED = f"({BOMB}) FOLLOWED BY {{b/t = c/t, 1 d}} S//i->c"
PUBLISHED = {
    "pairs": f"SELECT * FROM {BOMB} PUBLISH pairs",
    "reader": "pairs//i->p FOLLOWED BY {p/t = q/t, 1 d} S//i->q",
}


@pytest.mark.parametrize("texts", [{"nested": NESTED}, PUBLISHED], ids=["nested", "published"])
def test_inner_operators_and_publishers_have_budgets(texts: dict[str, str]) -> None:
    stream, texts = documents(40), {**texts, "title": OTHERS["title"]}
    budget = replace(UNLIMITED, matches_per_document=12)
    free = run(texts, UNLIMITED, stream)
    found = [run(texts, budget, stream, batch) for batch in (1, 3, 10, 40)]
    assert all(each.pauses == found[0].pauses for each in found)
    [pause] = found[0].pauses
    for each in found:
        assert each.of("title") == free.of("title")
        assert each.of(pause.query) == free.of(pause.query, before=pause.docid)
    assert all(each.of("reader") == found[0].of("reader") for each in found)


@pytest.mark.parametrize("most", some([20, 60, 200], 1))
def test_tuples_of_inner_operators_count_in_a_block(most: int) -> None:
    stream, texts = documents(40), {"nested": NESTED}
    budget = replace(UNLIMITED, matches_per_1000_documents=most)
    free = run(texts, UNLIMITED, stream)
    inner = run({"inner": BOMB}, UNLIMITED, stream).counts("inner")
    total, expected = 0, 0
    for docid, tuples in sorted(inner.items()):
        total += tuples + free.counts("nested").get(docid, 0)
        if total > most:
            expected = docid
            break
    for batch in (1, 3, 10, 40):
        found = run(texts, budget, stream, batch)
        [pause] = found.pauses
        assert (pause.query, pause.docid) == ("nested", expected)
        assert pause.reason.startswith(
            f"documents 1 to {expected} have more than {most} matches, those of inner operators"
        )
        assert found.of("nested") == free.of("nested", before=expected)


@pytest.mark.parametrize("batch", [1, 3, 20])
def test_each_datum_that_finds_what_competes_counts_in_a_block(batch: int) -> None:
    text = "S//i->a NEXT {, 1 s} S//i[contains(k, $x)]->b"
    words = [{"x": word} for word in ("w", "wo", "wor", "none")]
    running = Running(
        {"words": text}, replace(UNLIMITED, matches_per_1000_documents=30), given={"words": words}
    )
    [pause] = running.feed(stream(["<k>word</k>"] * 20), batch).pauses
    assert pause.docid == 11
    assert "those of inner operators" in pause.reason


def test_pairs_of_inner_operators_have_budgets() -> None:
    stream, texts = documents(40), {"nested": NESTED, "title": OTHERS["title"]}
    for most in some((8, 15, 40), 1):
        budget = replace(UNLIMITED, pairs_per_document=most)
        found = [run(texts, budget, stream, batch).pauses for batch in (1, 3, 10, 40)]
        assert all([p.docid for p in each] == [p.docid for p in found[0]] for each in found)


def test_what_stands_where_a_query_stops_is_counted_once() -> None:
    budget = Budget(matches_per_1000_documents=10, output_bytes_per_1000_documents=100)
    tally = Tally("q", 1, budget, ())
    tally.find(Account(1, 1), tuples=6, nbytes=0, matches=6)
    tally.find(Account(2, 2), tuples=3, nbytes=0, matches=3)
    tally.pay(Account(2, 2), 101, 101)
    assert tally.limit == 2
    assert "have more than 100 bytes of output" in tally.reason(), "and nine matches are not many"
    assert tally.spent_in(0) == [Spent("q", 1, 0, 0, 6, 0)]


def test_what_is_absorbed_pauses_a_query_at_the_next_document() -> None:
    stream = documents(40)
    xml = {one.docid: one.xml for one in stream}
    running = Running({"nested": NESTED}, replace(UNLIMITED, matches_per_document=12))
    running.engine.absorb(
        running.engine.evaluate(stream[:30]), lambda ids: {i: xml[i] for i in ids}
    )
    running.feed(stream, 5, after=30)
    [pause] = running.pauses
    assert (pause.query, pause.docid) == ("nested", 31)
    assert running.lines == []


def test_a_pause_has_a_document_where_none_follows_what_was_absorbed() -> None:
    stream = documents(30)
    xml = {one.docid: one.xml for one in stream}
    running = Running({"nested": NESTED}, replace(UNLIMITED, matches_per_document=12))
    running.engine.absorb(running.engine.evaluate(stream), lambda ids: {i: xml[i] for i in ids})
    step = running.engine.process(running.engine.evaluate([]), lambda _: {})
    assert [(pause.query, pause.docid) for pause in step.pauses] == [("nested", 31)]


def remembering(windows: Iterable[str]) -> dict[str, str]:
    text = "S//i->a FOLLOWED BY {a/t = b/t, %s} S//i->b"
    return {window.replace(" ", ""): text % window for window in windows}


def test_too_many_remembered_documents_pause_the_query_that_reaches_back_farthest() -> None:
    stream = documents()
    found = run(
        remembering(["INF", "1 d", "10 m"]), replace(UNLIMITED, remembered_documents=30), stream, 10
    )
    assert [pause.query for pause in found.pauses] == ["INF", "1d"]
    assert all(30 < pause.docid <= 41 for pause in found.pauses)
    assert "reaches back farthest" in found.pauses[0].reason
    assert "10m" in found.engine.queries
    free = run(remembering(["10 m"]), UNLIMITED, stream)
    assert found.of("10m") == free.of("10m")


def test_what_is_remembered_without_any_window_pauses_nothing() -> None:
    at_once = [replace(one, start_us=0, end_us=0) for one in documents()]
    texts = {**remembering(["10 m"]), "filter": "S//i[lang = 'de']"}
    found = run(texts, replace(UNLIMITED, remembered_documents=30), at_once, 10)
    assert [pause.query for pause in found.pauses] == ["10m"]
    assert found.of("filter") == run(texts, UNLIMITED, at_once).of("filter") != []


def test_negative_budgets_are_refused() -> None:
    with pytest.raises(ValueError, match="pairs_per_document"):
        Budget(pairs_per_document=-1)


def test_a_replay_says_loudly_which_query_was_paused(tmp_path: Path) -> None:
    (tmp_path / "bomb.xscl").write_text(BOMB)
    (tmp_path / "title.xscl").write_text(OTHERS["title"])
    (tmp_path / "xscl.toml").write_text("[budget]\nmatches_per_document = 5\n")
    lines = [
        {"stream": "S", "time": f"2026-01-01T00:{n:02}:00Z", "xml": one.xml.decode()}
        for n, one in enumerate(documents(30))
    ]
    (tmp_path / "documents.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    queries = [str(tmp_path / name) for name in ("bomb.xscl", "title.xscl")]
    arguments = ["replay", *queries, "--documents", str(tmp_path / "documents.jsonl"), "--no-spark"]
    paused = CliRunner().invoke(main, ["--config", str(tmp_path / "xscl.toml"), *arguments])
    assert paused.exit_code == 4
    assert re.search(r"warning: bomb was paused at document \d+: document \d+ alone", paused.stderr)
    assert "1 paused" in paused.stderr
    (tmp_path / "xscl.toml").write_text("")
    free = CliRunner().invoke(main, ["--config", str(tmp_path / "xscl.toml"), *arguments])
    assert free.exit_code == 0

    def of_title(output: str) -> list[str]:
        return [line for line in output.splitlines() if '"query": "title"' in line]

    assert of_title(paused.stdout) == of_title(free.stdout) != []
    assert len(paused.stdout) < len(free.stdout)
