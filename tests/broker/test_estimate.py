"""Estimates of cost: counted pairs, and warnings where a query is a bomb."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from oracle.similarity import score
from support.budgets import UNLIMITED
from support.goldens import check_golden, golden_files, golden_ids
from support.recorded_data import news_file

import xscl
from broker.cli import main
from broker.documents.document import FIRST_WATERMARK_US, Document
from broker.documents.recorded import number_lines, read_document_lines, recent_documents
from broker.estimate import QueryEstimate, alike, estimate, render_estimate
from broker.estimate.interval import heaps, poisson
from broker.estimate.statistics import DAY_US, DocumentSample, Timing, equal_values, take_sample
from broker.estimate.text import spell_interval
from broker.estimate.warnings import PARTNERS_MAX
from broker.explain.survey import survey_with_plan
from broker.matching.engine import Engine, RegisteredQuery

HOUR_US = 3_600_000_000


def item(number: int, hour: float, **values: str) -> Document:
    inside = "".join(f"<{name}>{value}</{name}>" for name, value in values.items())
    time_us = round(hour * HOUR_US)
    xml = f"<item>{inside}</item>".encode()
    return Document(number, "S", str(number), time_us, time_us, time_us, FIRST_WATERMARK_US, xml)


def items(values: Sequence[str], *, every_h: float = 1.0) -> list[Document]:
    return [item(i + 1, i * every_h, k=value) for i, value in enumerate(values)]


def of(text: str, documents: Sequence[Document]) -> QueryEstimate:
    [found] = estimate(xscl.parse(text, id="q"), documents)
    return found


def counted(documents: Sequence[Document], timing: Timing) -> int:
    query = xscl.parse("S//item->a JOIN {a/k = b/k, 1 h} S//item->b", id="q")
    found, plan = survey_with_plan(query)
    sample = take_sample(plan, documents)
    (variable,) = (v.number for v in found.named() if v.definition.endswith("/k"))
    own = sample.of(variable)
    return sample.pairs(equal_values(own, own), timing).total()


@pytest.mark.parametrize(
    "asked", ["exists(b[string(k) = $x])", "b[2][k * 2 > $n]/k = a/k", "b[3][k > m * $n]/k = a/k"]
)
def test_conditions_of_xpath_with_parameters_are_estimated_before_a_decision(asked: str) -> None:
    text = f"S//item->a NEXT {{a/k = b/k AND {asked}, 9 h}} S//item->b"
    assert of(text, items(["1", "2"] * 20)).operators


def test_matches_of_a_block_with_conditions_are_counted_by_these() -> None:
    documents = items([str(n % 4) for n in range(40)])
    known = [found.matches_per_day for found in (of("S//item->a WHERE a/k > 2", documents),)]
    plain = of("S//item[k = '3']->a", documents).matches_per_day
    assert known == [plain]
    either = of("(S//item[k = '3']->a | S//item[k = '2']->b)", documents).matches_per_day
    assert either is not None
    assert plain is not None
    assert either.expected == 2 * plain.expected


def test_a_bound_of_the_whole_is_the_window_of_its_operator() -> None:
    documents = items(["a", "b", "a", "b"])
    bound = of("S//item->a FOLLOWED BY {a/k = b/k} S//item->b WITHIN 2 h", documents)
    window = of("S//item->a FOLLOWED BY {a/k = b/k, 2 h} S//item->b", documents)
    assert bound.operators[0].joins == window.operators[0].joins


def test_pairs_are_counted_within_the_window_and_in_order() -> None:
    documents = items(["a", "a", "b", "a", "b"])
    assert counted(documents, Timing(HOUR_US, False)) == 1
    assert counted(documents, Timing(2 * HOUR_US, False)) == 3
    assert counted(documents, Timing(3 * HOUR_US, False)) == 4
    assert counted(documents, Timing(1 << 62, False)) == 4


def test_pairs_of_a_join_count_both_ways_and_no_document_with_itself() -> None:
    assert counted(items(["a", "a", "a"]), Timing(1 << 62, True)) == 6
    assert counted(items(["a"]), Timing(1 << 62, True)) == 0


def test_empty_values_make_no_pairs() -> None:
    assert counted(items(["", "", ""]), Timing(1 << 62, False)) == 0


def test_documents_that_cannot_be_read_bind_nothing() -> None:
    broken = Document(1, "S", "1", 0, 0, 0, FIRST_WATERMARK_US, b"<item>")
    assert counted([broken, *items(["a", "a"])], Timing(1 << 62, False)) == 1


def test_a_longer_window_than_the_sample_is_scaled() -> None:
    sample = DocumentSample([], {}, DAY_US)
    assert sample.unseen(DAY_US) == pytest.approx(2)
    assert sample.unseen(2 * DAY_US) == pytest.approx(4)
    assert sample.unseen(0) == pytest.approx(1)
    assert DocumentSample([], {}, 0).unseen(DAY_US) == 1.0


def test_the_anchor_is_the_value_join_with_the_fewest_pairs() -> None:
    documents = [item(i, i, k="same", m=str(i // 2)) for i in range(1, 30)]
    found = of("S//item->a FOLLOWED BY {a/k = b/k AND a/m = b/m, 6 h} S//item->b", documents)
    assert found.operators[0].anchor == "a/m = b/m"
    assert found.operators[0].joins[0].commonest == "same"
    assert found.operators[0].joins[0].commonest_share == 1.0


TALES = ["storm off harbour", "storm in harbour", "storm in the harbour", "fire", ""]


def brute_force_pairs(documents: Sequence[Document], least: str, hours: int) -> int:
    texts = [re.sub(rb"<[^>]*>", b"", document.xml).decode() for document in documents]
    return sum(
        score("jaccard", set(texts[i].split()), set(text.split())) >= Fraction(least)
        and documents[j].end_us - documents[i].end_us <= hours * HOUR_US
        for j, text in enumerate(texts)
        for i in range(j)
    )


@pytest.mark.parametrize("least", ["0.1", "0.5", "0.6", "1"])
def test_pairs_of_a_similarity_join_are_those_of_similar_texts(
    least: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = items([TALES[i * i % 5] for i in range(60)])
    text = f"S//item->a FOLLOWED BY {{similar(a/k, b/k) >= {least}, 6 h}} S//item->b"
    [operator] = of(text, documents).operators
    assert operator.anchor == f"similar(a/k, b/k) >= {least}"
    assert operator.sampled == brute_force_pairs(documents, least, 6)
    assert operator.matches is not None
    # Where too many share a rare word, some texts stand for all.
    monkeypatch.setattr(alike, "_PAIRS_MAX", 1)
    [part] = of(text, documents).operators
    assert part.sampled < operator.sampled


def test_a_threshold_that_is_a_parameter_is_taken_for_a_half() -> None:
    documents = items(TALES * 10)
    asked = "S//item->a FOLLOWED BY {{similar(a/k, b/k) >= {}, 6 h}} S//item->b"
    found, half = (of(asked.format(least), documents).operators[0] for least in ("$x", "0.5"))
    assert found.anchor == "similar(a/k, b/k) >= $x, as if 0.5"
    assert found.pairs_per_day == half.pairs_per_day


def test_a_similarity_that_nearly_all_have_is_a_bomb() -> None:
    documents = items(["daily discussion thread"] * 600, every_h=0.1)
    found = of("S//item->a JOIN {similar(a/k, b/k) >= 0.5, 60 h} S//item->b", documents)
    assert any("raise the threshold" in warning for warning in found.warnings)


def test_residuals_thin_the_matches_out() -> None:
    documents = [item(i, i, k="v", f="AB"[i % 2]) for i in range(1, 41)]
    joined = "S//item->a FOLLOWED BY {a/k = b/k%s, 2 h} S//item->b"
    everything = of(joined % "", documents).matches_per_day
    half = of(joined % " AND a/f != b/f", documents).matches_per_day
    assert everything is not None
    assert half is not None
    assert half.expected == pytest.approx(everything.expected / 2, rel=0.1)
    assert half.low < half.expected < half.high


@pytest.mark.parametrize(
    ("operator", "equal", "end"),
    [
        ("FOLLOWED BY", "", "WITHIN 150 min"),
        ("JOIN", "", "WHERE a/k < b/k"),
        ("JOIN", "a/t = b/t", "WHERE a/k < b/k"),
    ],
)
def test_what_holds_of_half_of_the_pairs_halves_the_matches(
    operator: str, equal: str, end: str
) -> None:
    documents = [item(i + 1, i, k=str(i), t="x") for i in range(48)]
    found = of(f"S//item->a {operator} {{{equal}, 4 h}} S//item->b {end}", documents)
    assert found.matches_per_day is not None
    low, high = found.matches_per_day.low, found.matches_per_day.high
    a_day = 24 * 4 / 2 * (2 if operator == "JOIN" else 1)
    assert 0.6 * a_day < low < a_day < high < 2 * a_day


def test_examples_are_pairs_within_the_window_and_are_spread_over_all() -> None:
    documents = items(["a", "b"] * 12)
    sample = take_sample(survey_with_plan(xscl.parse("S//item", id="q"))[1], documents)
    everything = list(range(len(documents)))
    for is_symmetric in (False, True):
        timing = Timing(2 * HOUR_US, is_symmetric)
        meetings = [(everything[::2], everything[1::2]), ([0], []), (everything, everything)]
        pairs = sample.pairs(meetings, timing).total()
        every = sample.examples(meetings, timing, 10_000)
        numbers = [(a.docid, b.docid) for a, b in every]
        apart = [abs(b - a) if is_symmetric else b - a for a, b in numbers]
        assert len(numbers) == pairs
        assert all(1 <= each <= 2 for each in apart)
        some = sample.examples(meetings, timing, 7)
        assert [(a.docid, b.docid) for a, b in some] == numbers[:: pairs // 7][:7]


def test_constants_restrict_what_is_counted() -> None:
    documents = [item(i, i, k="v", w="Ann" if i % 10 == 0 else "Bob") for i in range(1, 41)]
    text = "S//item[w = '{}']->a FOLLOWED BY {{a/k = b/k, 2 h}} S//item->b"
    ann, bob = (of(text.format(who), documents).operators[0] for who in ("Ann", "Bob"))
    assert ann.pairs_per_day is not None
    assert bob.pairs_per_day is not None
    assert 5 * ann.pairs_per_day < bob.pairs_per_day


def test_a_filter_matches_as_often_as_its_documents_come() -> None:
    found = of("S//item[k = 'a']", items(["a", "b"] * 24))
    assert found.operators == ()
    assert found.matches_per_day is not None
    assert found.matches_per_day.expected == pytest.approx(12, rel=0.1)


def test_a_join_on_a_common_value_is_a_bomb() -> None:
    documents = [item(i, i / 60, lang="en" if i % 10 else "de") for i in range(1, 600)]
    found = of("S//item->a FOLLOWED BY {a/lang = b/lang, 10 h} S//item->b", documents)
    assert found.operators[0].partners > PARTNERS_MAX
    assert any("'en' is on 90% of them" in warning for warning in found.warnings)


def test_keys_that_are_nearly_unique_are_no_bomb() -> None:
    """One key came twice in some minutes: in thirty days that is no thousand times."""
    documents = [item(i, i / 600, lang=str(i if i != 20 else 19)) for i in range(1, 60)]
    found = of("S//item->a JOIN {a/lang = b/lang, 30 days} S//item->b", documents)
    assert found.operators[0].partners > PARTNERS_MAX
    assert found.warnings == ()


def test_a_query_that_would_be_paused_is_warned_of() -> None:
    documents = [item(i, i / 60, lang="en") for i in range(1, 100)]
    queries = xscl.parse("S//item->a JOIN {a/lang = b/lang, 1 h} S//item->b", id="q")
    for name in ("pairs_per_document", "matches_per_document", "matches_per_1000_documents"):
        most = 20_000 if "1000" in name else 20
        budget = replace(UNLIMITED, **{name: most})
        [found] = estimate(queries, documents, budget=budget)
        [warning] = [text for text in found.warnings if "paused" in text]
        assert f"budget.{name} is {most:,}" in warning


@pytest.mark.parametrize("name", ["pairs_per_document", "matches_per_1000_documents"])
def test_the_window_that_is_named_keeps_a_query_from_being_paused(name: str) -> None:
    documents = [item(i, i / 60, lang="en") for i in range(1, 400)]
    most = 20_000 if "1000" in name else 20
    budget = replace(UNLIMITED, **{name: most})

    def paused(window: str) -> list[str]:
        text = f"S//item->a JOIN {{a/lang = b/lang, {window}}} S//item->b"
        [found] = estimate(xscl.parse(text, id="q"), documents, budget=budget)
        return [text for text in found.warnings if "would be paused" in text]

    [warning] = paused("3 h")
    found = re.search("; a window of (.+) would do$", warning)
    assert found is not None
    assert paused(found[1]) == []


def test_explain_says_what_queries_will_cost(tmp_path: Path) -> None:
    (tmp_path / "q.xscl").write_text("S//item->a JOIN {a/lang = b/lang, 1 d} S//item->b")
    lines = [
        {"stream": "S", "time": f"2026-01-01T{n:02}:00:00Z", "xml": "<item><lang>en</lang></item>"}
        for n in range(24)
    ]
    (tmp_path / "docs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    arguments = ["explain", str(tmp_path / "q.xscl"), "--statistics", str(tmp_path / "docs.jsonl")]
    text = CliRunner().invoke(main, arguments).output
    assert (
        "\nCost\n  q: matches a day not estimated: it takes 30 documents to tell, and there" in text
    )
    data = json.loads(CliRunner().invoke(main, [*arguments, "--format", "json"]).output)
    assert [each["query"] for each in data["estimates"]] == ["q"]


def test_ticks_of_a_file_are_no_documents_that_come_in_time(tmp_path: Path) -> None:
    lines: list[dict[str, str]] = []
    for n in range(40):
        time = f"2026-01-01T{n // 2:02}:{n % 2 * 30:02}:00Z"
        late = n % 4 == 3 and n > 4
        own = f"2026-01-01T{n // 2 - 2:02}:30:00Z" if late else time
        lines.append({"stream": "S", "time": own, "arrival": time, "xml": f"<a>{n}</a>"})
        lines += [{"tick": time}] * 4
    (tmp_path / "d").write_text("".join(json.dumps(line) + "\n" for line in lines))
    [found] = estimate(
        xscl.parse("*//a NEXT {, 1 h} *//a", id="q"), recent_documents(tmp_path / "d")
    )
    assert found.documents == 40
    [warning] = found.warnings
    assert warning.endswith("`GRACE 3 hours` would hear 100.0% of the 40 documents in time")


def test_a_join_without_a_value_join_is_a_bomb() -> None:
    documents = [item(i, i / 60) for i in range(1, 600)]
    found = of("S//item JOIN {, 10 h} S//item", documents)
    assert any("no value join" in warning for warning in found.warnings)


def test_a_window_without_end_is_warned_of() -> None:
    found = of("S//item->a JOIN {a/k = b/k, INF} S//item->b", items(["a", "b", "c"]))
    assert any("nothing is forgotten" in warning for warning in found.warnings)


def test_without_documents_there_is_nothing_to_estimate() -> None:
    found = of("S//item->a JOIN {a/k = b/k, 1 h} S//item->b", [])
    assert (found.documents, found.matches_per_day, found.warnings) == (0, None, ())
    assert found.refusal == "it takes 30 documents to tell, and there are 0"


def test_what_is_not_estimated_is_said() -> None:
    text = "(S//item->a JOIN {a/k = b/k, 1 h} S//item->b) JOIN {b/k = c/k, 1 h} S//item->c"
    found = of(text, items(["a", "a", "a"]))
    assert found.matches_per_day is None
    assert all(one.partners > 0 for one in found.operators)


@pytest.mark.parametrize("path", golden_files("estimate"), ids=golden_ids)
def test_estimates_print_what_is_golden(path: Path, tmp_path: Path) -> None:
    check_golden(path, tmp_path)


@pytest.fixture(scope="module")
def news() -> list[Document]:
    return list(number_lines(islice(read_document_lines([news_file()]), 5_000)))


@pytest.mark.parametrize(
    ("predicate", "hours"),
    [
        ("a/author = b/author", 6),
        ("a/title = b/title AND a/feed != b/feed", 12),
        ("similar(a/title, b/title) >= 0.5", 12),
        ("containment(words(lower-case(a/title)), words(b/title)) > 0.7 AND a/feed != b/feed", 12),
    ],
)
def test_estimates_on_real_news_are_around_what_the_engine_finds(
    predicate: str, hours: int, news: list[Document]
) -> None:
    text = f"news//item->a FOLLOWED BY {{{predicate}, {hours} h}} news//item->b"
    queries = xscl.parse(text, id="q")
    [found] = estimate(queries, news)
    engine = Engine([RegisteredQuery(queries[0])], lateness_us=DAY_US)
    xml = {document.docid: document.xml for document in news}
    step = engine.process(engine.evaluate(news), lambda docids: {d: xml[d] for d in docids})
    # The first documents have had no time to meet earlier ones.
    days = (news[-1].arrival_us - news[0].arrival_us) / DAY_US
    measured = len(step.matches) / days / (1 - hours / 24 / days / 2)
    assert found.matches_per_day is not None
    assert found.matches_per_day.low < measured < found.matches_per_day.high
    assert found.matches_per_day.high < 4 * found.matches_per_day.low


def test_a_join_on_language_of_real_news_is_a_bomb(news: list[Document]) -> None:
    text = "news//item->a FOLLOWED BY {a/language = b/language, 1 d} news//item->b"
    assert any("'en' is on" in warning for warning in of(text, news).warnings)


def test_parameters_leave_the_pairs_as_they_are() -> None:
    documents = items(["a", "a", "a"])
    text = "S//item[k = $k]->a JOIN {a/k = b/k, 2 h} S//item->b"
    found = of(text, documents)
    assert found.matches_per_day is None
    assert found.operators[0].partners > 0


def test_a_window_that_is_a_parameter_is_taken_for_a_day() -> None:
    found = of("S//item->a JOIN {a/k = b/k, $within} S//item->b", items(["a", "a", "a"]))
    assert found.operators[0].text == "JOIN within $within, as if 1 day"
    assert found.operators[0].partners > 0


def test_nothing_is_said_of_a_stream_that_the_documents_have_none_of() -> None:
    documents = items(["a", "b", "a"] * 10, every_h=12)
    found = of("S//item->a FOLLOWED BY {a/k = b/k, 1 d} pairs//item->b", documents)
    assert found.matches_per_day is None
    [warning] = found.warnings
    assert warning == "none of the documents is of the stream `pairs`: matches are not estimated"
    assert of("*//item", documents).matches_per_day is not None


# -- what is not known -----------------------------------------------------------------------------

PAIR = "S//item->a FOLLOWED BY {a/k = b/k, 2 h} S//item->b"


def test_of_few_documents_nothing_is_said_of_a_day() -> None:
    found = of(PAIR, items(["a", "a", "a"]))
    assert found.matches_per_day is None
    assert "matches a day not estimated: it takes 30 documents" in render_estimate(found)


def test_of_documents_that_came_within_minutes_nothing_is_said_of_a_day() -> None:
    found = of(PAIR, items(["a", "b"] * 50, every_h=1 / 300))
    assert found.matches_per_day is None
    assert found.refusal == "100 documents within 20 minutes say nothing of a day"


def test_a_backlog_says_nothing_of_a_day() -> None:
    documents = [
        replace(one, arrival_us=1_000 * HOUR_US + one.docid) for one in items(["a", "b"] * 50)
    ]
    found = of(PAIR, documents)
    assert found.matches_per_day is None
    assert found.refusal == "100 of 100 documents are a backlog, which says nothing of a day"
    assert found.operators[0].partners > 0.5


def test_days_are_those_of_arrivals() -> None:
    """One document with a date of long ago makes no long sample."""
    documents = items(["a", "b"] * 24)
    stray = replace(documents[0], start_us=-(10**15), end_us=-(10**15))
    found = of("S//item", [stray, *documents[1:]])
    assert found.days == pytest.approx(2, rel=0.1)


def test_that_none_of_some_examples_matches_does_not_mean_none_at_all() -> None:
    """There are far more pairs than are looked at: the true rate may be one in a hundred."""
    documents = [item(i, i / 10, k="v", f="A") for i in range(1, 400)]
    found = of(
        "S//item->a FOLLOWED BY {a/k = b/k AND a/f != b/f, 2 h} S//item->b", documents
    ).matches_per_day
    assert found is not None
    assert found.expected == 0
    pairs = of(PAIR, documents).operators[0].pairs_per_day
    assert pairs is not None
    assert pairs / 150 < found.high < pairs / 50
    assert spell_interval(found).startswith("fewer than about ")


@given(st.integers(0, 10_000))
def test_the_bounds_of_a_count_are_around_it(count: int) -> None:
    found = poisson(count)
    assert found.low <= found.expected <= found.high
    assert found.high - found.low >= 1.6 * count**0.5


def test_heaps_vary_more_than_single_things() -> None:
    single, heaped = heaps([1] * 100), heaps([10] * 10)
    assert single.expected == heaped.expected == 100
    assert heaped.low < single.low < single.high < heaped.high


def test_documents_that_came_too_late_are_warned_of() -> None:
    now = 1_000 * HOUR_US
    documents = [replace(one, watermark_us=now) for one in items(["a", "b"] * 20)]
    [warning] = of(PAIR, documents).warnings
    assert warning.startswith("40 of the 40 documents are older than anything that can still be")


@pytest.mark.parametrize("end", ["", " GRACE 0 s"])
def test_runs_are_counted_in_a_sample_and_said_what_they_wait_for(end: str) -> None:
    documents = items([str(n % 3) for n in range(60)])
    operator = "NEXT" if end else "FOLLOWED BY"
    text = f"S//item[k = '0'] {operator} {{, 90 min}} S//item[k->k]+ {{k = prev(k)}}{end}"
    found = of(text, documents)
    assert found.matches_per_day is not None
    assert found.matches_per_day.low <= 8 <= found.matches_per_day.high
    assert "an answer waits for no late documents" in render_estimate(found)


def test_of_runs_that_explode_it_is_said_that_they_would_be_paused() -> None:
    found = of("S//item[k->k]+ WITHIN 30 h", items(["x"] * 40))
    assert "it would be paused" in found.warnings[0]
