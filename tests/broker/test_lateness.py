"""Documents that come too late to be joined with anything: which they are, and who is told."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from pathlib import Path

import aiohttp
import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.lines import read_lines
from support.examples import examples
from support.small_broker import small_broker

import xscl
from broker.cli import main
from broker.documents.disk import Disk
from broker.documents.document import FIRST_WATERMARK_US, Document, DocumentLine
from broker.documents.ingest import Ingest
from broker.documents.late import LateDocuments, Newest
from broker.documents.spool import SpoolWriter
from broker.matching.engine import Engine, RegisteredQuery
from broker.matching.lateness import Lateness
from broker.matching.queries.registration import SetChange
from broker.operations.figures import late_figures
from broker.operations.late import LateLog
from broker.operations.metrics import render_metrics
from broker.pipeline.lookback.dryrun import DryRun, dry_run, render_dry_run

HOUR_US = 3_600_000_000
LATENESS_US = 2 * HOUR_US

QUERIES = [
    "S FOLLOWED BY {, 3 h} T",
    "S JOIN {, 2 h} T",
    "S JOIN {, 2 h} S",
    "* FOLLOWED BY {, 1 h} T",
    "(S FOLLOWED BY {, 1 h} T) JOIN {, 4 h} U",
    "S FOLLOWED BY {, 4 h} (T JOIN {, 1 h} U)",
    "T",
    "SELECT * FROM S PUBLISH copies",
    "copies FOLLOWED BY {, 5 h} T",
    "S FOLLOWED BY {, INF} U",
    "S FOLLOWED BY {, 2 h} T+",
    "(S FOLLOWED BY {, 2 h} T+) FOLLOWED BY {, 1 h} U",
]


def lateness_of(*texts: str, lateness_us: int = LATENESS_US) -> Lateness:
    found = Lateness(lateness_us)
    found.follow(SetChange([RegisteredQuery(query) for query in parsed(texts)]))
    return found


def parsed(texts: Sequence[str]) -> list[xscl.Query]:
    return [xscl.parse(text, id=f"q{n}")[0] for n, text in enumerate(texts)]


def documents_at(places: Sequence[tuple[str, int]]) -> list[Document]:
    watermark_us = FIRST_WATERMARK_US
    found = []
    for docid, (stream, hour) in enumerate(places, 1):
        end_us = hour * HOUR_US
        found.append(
            Document(docid, stream, str(docid), end_us, end_us, 10**18, watermark_us, b"<v/>")
        )
        watermark_us = max(watermark_us, end_us)
    return found


@settings(max_examples=examples(20), deadline=None)
@given(
    texts=st.lists(st.sampled_from(QUERIES), min_size=1, max_size=4, unique=True),
    places=st.lists(st.tuples(st.sampled_from("STU"), st.integers(0, 30)), max_size=14),
)
def test_what_is_too_late_is_in_no_match_of_an_operator(
    texts: list[str], places: list[tuple[str, int]]
) -> None:
    queries, documents = parsed(texts), documents_at(places)
    engine = Engine([RegisteredQuery(query) for query in queries], lateness_us=LATENESS_US)
    step = engine.process(engine.evaluate(documents), lambda docids: dict.fromkeys(docids, b"<v/>"))
    joining = {query.id for query in queries if query.root != 0}
    found = {d.docid for m in read_lines(step.matches) if m.query in joining for d in m.documents}
    lateness = lateness_of(*texts)
    late = {d.docid for d in documents if lateness.is_too_late(d.stream, d.end_us, d.watermark_us)}
    assert not late & found


@pytest.mark.parametrize(
    ("text", "stream", "hours"),
    [
        ("S FOLLOWED BY {, 3 h} T", "S", 2 + 6),
        ("S FOLLOWED BY {, 3 h} T", "T", 2 + 3),
        ("S JOIN {, 3 h} T", "T", 2 + 6),
        ("* FOLLOWED BY {, 3 h} T", "U", 2 + 6),
        ("(S FOLLOWED BY {, 1 h} T) JOIN {, 4 h} U", "U", 2 + 8),
    ],
)
def test_the_bound_is_where_the_last_partner_may_be(text: str, stream: str, hours: int) -> None:
    lateness, watermark_us = lateness_of(text), 100 * HOUR_US
    bound_us = watermark_us - hours * HOUR_US
    assert not lateness.is_too_late(stream, bound_us, watermark_us)
    assert lateness.is_too_late(stream, bound_us - 1, watermark_us)


def test_a_document_at_the_bound_is_joined() -> None:
    lateness = lateness_of("S JOIN {, 3 h} S")
    # 5 hours behind the newest is remembered; 8 hours behind is 3 hours from that.
    documents = documents_at([("S", 15), ("S", 20), ("S", 12)])
    engine = Engine(
        [RegisteredQuery(query) for query in parsed(["S JOIN {, 3 h} S"])], lateness_us=LATENESS_US
    )
    step = engine.process(engine.evaluate(documents), lambda docids: dict.fromkeys(docids, b"<v/>"))
    assert {1, 3} in [{d.docid for d in match.documents} for match in read_lines(step.matches)]
    assert not lateness.is_too_late("S", 12 * HOUR_US, 20 * HOUR_US)


def test_nothing_is_too_late_for_a_filter_or_a_window_without_end() -> None:
    for text in ("S", "S FOLLOWED BY {, INF} T", "T JOIN {, 1 h} U"):
        assert lateness_of(text).bound_us("S", 100 * HOUR_US) is None


@pytest.mark.parametrize(
    "text", ["S FOLLOWED BY {, 9 h} T+", "(S FOLLOWED BY {, 1 h} T+) JOIN {, 1 h} U"]
)
def test_nothing_is_too_late_for_runs(text: str) -> None:
    assert lateness_of(text, "S JOIN {, 1 h} T").bound_us("T", 100 * HOUR_US) is None


def test_the_widest_window_counts_and_goes_with_its_query() -> None:
    narrow, wide = parsed(["S JOIN {, 1 h} T", "S JOIN {, 9 h} T"])
    lateness = Lateness(0)
    lateness.follow(SetChange([RegisteredQuery(narrow), RegisteredQuery(wide)]))
    assert lateness.bound_us("S", 0) == -18 * HOUR_US
    lateness.follow(SetChange(gone=[wide.id]))
    assert lateness.bound_us("S", 0) == -2 * HOUR_US
    lateness.follow(SetChange(gone=[narrow.id]))
    assert lateness.bound_us("S", 0) is None


def test_time_has_to_pass_only_while_a_query_decides() -> None:
    lateness = lateness_of("S FOLLOWED BY {, 1 h} T")
    assert not lateness.is_decided
    (query,) = parsed(["S NEXT {, 1 h} T"])
    lateness.follow(SetChange([RegisteredQuery(query)]))
    assert lateness.is_decided
    lateness.follow(SetChange(gone=[query.id]))
    assert not lateness.is_decided


def test_windows_of_parameters_are_those_of_the_assignments() -> None:
    (query,) = parsed(["S JOIN {, $within} T"])
    lateness = Lateness(0)
    one, two = {"within": HOUR_US}, {"within": 3 * HOUR_US}
    lateness.follow(SetChange([RegisteredQuery(query, assignments=(one,))]))
    assert lateness.bound_us("T", 0) == -2 * HOUR_US
    lateness.follow(SetChange(assigned=[(query.id, two, 0)]))
    assert lateness.bound_us("T", 0) == -6 * HOUR_US
    lateness.follow(SetChange(assigned=[(query.id, two, None), (query.id, one, None)]))
    assert lateness.bound_us("T", 0) is None


def test_what_a_filter_publishes_is_joined_in_its_stead() -> None:
    lateness = lateness_of(*QUERIES[7:9], lateness_us=0)
    assert lateness.bound_us("S", 0) == -10 * HOUR_US


def test_the_newest_event_time_is_known_after_a_restart(tmp_path: Path) -> None:
    writer = SpoolWriter(tmp_path, Disk(is_durable=False))
    lines = [DocumentLine(stream, b"<v/>", time) for stream, time in (("S", 5), ("T", 9), ("U", 7))]
    Ingest(writer).append(lines, arrival_us=10, registry_version=1)
    assert Ingest(writer).late.newest == Newest(9, "T")


NEXT = "S NEXT {, 3 h} T GRACE 30 min"


@pytest.mark.parametrize(
    ("texts", "stream", "minutes"),
    [
        ([NEXT], "S", 30),
        ([NEXT, "S UNLESS {, 1 h} U GRACE 5 min"], "S", 5),
        ([NEXT, "S UNLESS {, 1 h} U GRACE 5 min"], "T", 30),
        (["S NOT FOLLOWED BY {, 3 h} *"], "other", 120),
        (["S NOT JOIN {, 3 h} T GRACE 1 d"], "S", 120),
        (["SELECT * FROM S NEXT {, 3 h} T GRACE 1 h PUBLISH p", "p NEXT {, 1 h} U"], "U", 60),
    ],
)
def test_a_time_is_settled_for_the_shortest_grace_that_reads_it(
    texts: list[str], stream: str, minutes: int
) -> None:
    texts[1:] = [f"{text} GRACE 0 s" if text.startswith("p") else text for text in texts[1:]]
    lateness, watermark_us = lateness_of(*texts), 100 * HOUR_US
    at_us = watermark_us - minutes * HOUR_US // 60
    assert not lateness.is_settled(stream, at_us, watermark_us)
    assert lateness.is_settled(stream, at_us - 1, watermark_us)
    assert not lateness.is_too_late(stream, at_us - 1, watermark_us)
    assert not lateness.is_settled("nobody's" if "*" not in texts[0] else "", at_us, watermark_us)


def test_a_grace_goes_with_its_query() -> None:
    short, long = parsed([NEXT, "S NEXT {, 3 h} T GRACE 1 h"])
    lateness = Lateness(LATENESS_US)
    lateness.follow(SetChange([RegisteredQuery(short), RegisteredQuery(long)]))
    assert lateness.is_settled("S", 0, 40 * 60_000_000)
    lateness.follow(SetChange(gone=[short.id]))
    assert not lateness.is_settled("S", 0, 40 * 60_000_000)
    lateness.follow(SetChange(gone=[long.id]))
    assert not lateness.is_settled("S", 0, 40 * HOUR_US)


# -- who is told -----------------------------------------------------------------------------------

SAME = "news//item->a FOLLOWED BY {a/title = b/title, 1 d} news//item->b"


def news(hour: int) -> str:
    time, xml = f"2026-01-01T{hour:02}:00:00Z", "<item><title>One</title></item>"
    return json.dumps({"time": time, "xml": xml})


async def verb(url: str, *arguments: str, given: str | None = None) -> Result:
    command = ["--broker", url, *arguments]
    run = CliRunner().invoke
    result = await asyncio.to_thread(lambda: run(main, command, input=given))
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture
def query_file(tmp_path: Path) -> Path:
    path = tmp_path / "same.xscl"
    path.write_text(SAME)
    return path


async def test_one_document_of_now_makes_old_ones_late_and_all_are_told(
    tmp_path: Path, query_file: Path
) -> None:
    async with small_broker(tmp_path / "data") as url:
        await verb(url, "register", str(query_file), "--id", "same")
        quiet = await verb(url, "publish", "other", "-", given='{"xml": "<x/>"}\n')
        assert "older" not in quiet.stderr
        told = await verb(url, "publish", "news", "-", given=f"{news(0)}\n{news(1)}\n")
        assert (
            "2 of these are older than anything that can still be joined: the newest event time is"
        ) in told.stderr
        assert ", from stream `other`" in told.stderr
        seen = (await verb(url, "top", "--once")).stdout
        assert "late        2 documents are older than anything that can still be joined" in seen
        rows = json.loads((await verb(url, "streams", "--format", "json")).stdout)
        assert {row["name"]: row["late"] for row in rows} == {"news": 2, "other": 0}
        why = await verb(url, "explain", "--why-not", "same", "2", "3")
        assert "was remembered" in why.stdout or "had been forgotten" in why.stdout
        assert "from stream `other`" in why.stdout
        async with aiohttp.ClientSession() as http:
            async with http.get(url + "/") as page:
                text = await page.text()
            assert "2 documents are older than anything that can still be joined" in text
            line = f"{news(2)}\n".encode()
            kind = {"Content-Type": "application/x-ndjson"}
            path = url + "/v1/streams/news/documents"
            async with http.post(path, data=line, headers=kind) as response:
                answer = await response.json()
        assert answer["documents"][0]["late"] is True
        assert (answer["late"]["documents"], answer["late"]["stream"]) == (1, "other")


async def test_who_comes_when_its_time_is_settled_is_told_so_and_judged_all_the_same(
    tmp_path: Path, query_file: Path
) -> None:
    query_file.write_text("news//item NOT FOLLOWED BY {, 1 h} T//x GRACE 10 min")
    async with small_broker(tmp_path / "data") as url:
        await verb(url, "register", str(query_file), "--id", "quiet")
        await verb(url, "publish", "other", "-", given='{"xml": "<x/>"}\n')
        told = await verb(url, "publish", "news", "-", given=f"{news(0)}\n")
        assert "1 of these came after its time was settled: it is judged" in told.stderr
        assert "older than anything" not in told.stderr
        seen = (await verb(url, "top", "--once")).stdout
        assert "settled     1 document came after its time was settled" in seen
        rows = json.loads((await verb(url, "streams", "--format", "json")).stdout)
        assert {row["name"]: (row["late"], row["settled"]) for row in rows} == {
            "T": (0, 0),
            "news": (0, 1),
            "other": (0, 0),
        }
        why = await verb(url, "explain", "--why-not", "quiet", "2")
        assert "decided at document 2" in why.stdout


async def test_a_dry_run_says_how_many_came_too_late(tmp_path: Path) -> None:
    writer = SpoolWriter(tmp_path, Disk(is_durable=False))
    lines = [DocumentLine("other", b"<x/>", 1_000 * HOUR_US)] + [
        DocumentLine("news", b"<item><title>One</title></item>", hour * HOUR_US)
        for hour in range(3)
    ]
    Ingest(writer).append(lines, arrival_us=2_000 * HOUR_US, registry_version=1)
    writer.close()
    asked = DryRun(str(tmp_path), ("same", SAME), lateness_us=LATENESS_US)
    found = dry_run(asked, lambda documents, of: None)
    assert found["matches"] == 0
    assert (found["late"]["documents"], found["late"]["stream"]) == (3, "other")
    assert "3 of them are older than anything that can still be joined" in render_dry_run(found)


def test_the_log_tells_what_is_new_once(caplog: pytest.LogCaptureFixture) -> None:
    log = LateLog()
    newest = Newest(HOUR_US, "other")
    with caplog.at_level(logging.WARNING):
        log.tell(LateDocuments({}, newest))
        log.tell(LateDocuments({"news": 3}, newest))
        log.tell(LateDocuments({"news": 3}, newest))
        log.tell(LateDocuments({"news": 3, "blog": 1}, newest))
    assert [record.getMessage() for record in caplog.records] == [
        "3 new documents are older than anything that can still be joined: the newest event time"
        " is 1970-01-01T01:00:00Z, from stream `other`; 3 of `news`",
        "1 new document is older than anything that can still be joined: the newest event time"
        " is 1970-01-01T01:00:00Z, from stream `other`; 1 of `blog`",
    ]


def test_metrics_name_the_streams_with_most() -> None:
    late = LateDocuments({f"s{n}": n for n in range(1, 300)}, Newest(1))
    found = late_figures(late)
    text = render_metrics(found, {})
    assert text.count("# TYPE xscl_late_documents_total counter") == 1
    assert 'xscl_late_documents_total{stream="s299"} 299' in text
    assert len(found) == 100
