"""What a query would have matched among retained documents: `xscl register --dry-run`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from support.small_broker import small_broker

import xscl
from broker.cli import main
from broker.documents.disk import Disk
from broker.documents.document import DocumentLine
from broker.documents.ingest import Ingest
from broker.documents.spool import SpoolWriter
from broker.pipeline.lookback.dryrun import DryRun, dry_run, render_dry_run

DAY_US = 86_400_000_000
PAIR = "S//a[k->x] FOLLOWED BY {x = y, 1 h} S//b[k->y]"


def spool_of(directory: Path, documents: Sequence[str], *, segment: int = 2) -> str:
    """A spool of documents that come a minute apart."""
    writer = SpoolWriter(directory, Disk(is_durable=False))
    ingest = Ingest(writer, dedup_horizon_us=None)
    lines = [
        DocumentLine(stream="S", xml=xml.encode(), time_us=i * 60_000_000, key=f"d{i}")
        for i, xml in enumerate(documents, 1)
    ]
    for start in range(0, len(lines), segment):
        ingest.append(lines[start : start + segment], registry_version=1)
    writer.close()
    return str(directory)


def look(spool: str, text: str = PAIR, **options: Any) -> dict[str, Any]:
    asked = DryRun(spool=spool, query=("pair", text), lateness_us=DAY_US, **options)
    return dry_run(asked, lambda documents, of: None)


PAIRS = ["<a><k>1</k></a>", "<b><k>1</k></b>", "<a><k>2</k></a>", "<b><k>2</k></b>"]


def test_all_matches_among_what_is_kept_are_found_and_the_newest_shown(tmp_path: Path) -> None:
    found = look(spool_of(tmp_path, PAIRS))
    assert (found["matches"], found["documents"], found["retained"]) == (2, 4, 4)
    assert found["is_complete"]
    keys = [[d["key"] for d in match["documents"]] for match in found["newest_matches"]]
    assert keys == [["d3", "d4"], ["d1", "d2"]]
    text = render_dry_run(found)
    assert text.startswith(
        "pair: 2 matches among all 4 documents that are kept (1970-01-01T00:01 to 1970-01-01T00:04)"
    )
    assert "S d3 + S d4\n    x = 2\n    y = 2\n" in text


def test_only_the_newest_documents_are_looked_at_and_that_is_said(tmp_path: Path) -> None:
    found = look(spool_of(tmp_path, PAIRS), documents_max=3)
    assert (found["matches"], found["documents"], found["retained"]) == (1, 3, 4)
    assert "the newest 3 of 4 documents" in render_dry_run(found)


def test_it_ends_when_its_time_is_over(tmp_path: Path) -> None:
    found = look(spool_of(tmp_path, PAIRS), seconds_max=0)
    assert (found["documents"], found["is_complete"]) == (2, False)
    assert "the first 2 of the newest 4 documents" in render_dry_run(found)


def test_it_ends_where_the_query_would_be_paused_and_says_so(tmp_path: Path) -> None:
    every = "S//a[k->x] FOLLOWED BY {, 1 h} S//b[k->y]"
    spool = spool_of(tmp_path, [*PAIRS, *PAIRS], segment=8)
    found = look(spool, every, budget={"matches_per_document": 2})
    # Document 6 follows three, as 4 follows two.
    assert (found["matches"], found["documents"], found["is_complete"]) == (3, 5, False)
    assert "it would be paused: document 6 alone has more than 2 matches" in found["paused"]
    text = render_dry_run(found)
    assert "3 matches among the first 5 of the newest 8 documents" in text
    assert f"\n  {found['paused']}\n" in text
    assert look(spool, every)["paused"] is None


def test_it_ends_where_a_query_that_it_reads_would_be_paused(tmp_path: Path) -> None:
    publisher = "SELECT <p/> FROM S//a[k->x] FOLLOWED BY {, 1 h} S//b[k->y] PUBLISH pairs"
    spool = spool_of(tmp_path, [*PAIRS, *PAIRS], segment=8)
    found = look(
        spool, "pairs//p", upstream=(("pairs", publisher),), budget={"matches_per_document": 2}
    )
    assert (found["matches"], found["documents"]) == (3, 5)
    assert found["paused"].startswith("'pairs', which it reads, would be paused: document 6")


def test_without_a_document_before_the_pause_nothing_was_looked_at(tmp_path: Path) -> None:
    spool = spool_of(tmp_path, ["<a><k>1</k></a>"] * 2)
    found = look(spool, "S//a[k->x]", budget={"bytes_per_document": 1})
    assert (found["matches"], found["documents"], found["oldest"]) == (0, 0, None)
    assert render_dry_run(found).startswith("pair: 0 matches among the first 0 of the newest 2")


def test_an_empty_spool_has_no_matches(tmp_path: Path) -> None:
    found = look(spool_of(tmp_path, []))
    assert (found["matches"], found["documents"], found["oldest"]) == (0, 0, None)
    assert "among all 0 documents that are kept, in" in render_dry_run(found)


def test_documents_that_cannot_be_read_hold_nothing_up(tmp_path: Path) -> None:
    found = look(spool_of(tmp_path, [*PAIRS, "<a>"]))
    assert (found["matches"], found["dead_letters"]) == (2, 1)


def test_a_query_with_parameters_is_asked_with_values(tmp_path: Path) -> None:
    text = "S//a[k = $k]->x FOLLOWED BY {x/k = y, $within} S//b[k->y]"
    [query] = xscl.parse(text, id="pair")
    values = xscl.assignment(query, {"k": "2", "within": "1 h"})
    assert look(spool_of(tmp_path, PAIRS), text, parameters=values)["matches"] == 1
    assert look(str(tmp_path), text)["matches"] == 0


def test_what_a_query_reads_from_others_is_published_for_it(tmp_path: Path) -> None:
    publisher = f'SELECT <p k="{{x}}"/> FROM {PAIR} PUBLISH pairs'
    text = "pairs//p[@k->x] FOLLOWED BY {x = y, 1 h} S//c[k->y]"
    spool = spool_of(tmp_path, [*PAIRS, "<c><k>2</k></c>"])
    assert look(spool, text, upstream=(("pairs", publisher),))["matches"] == 1
    assert look(spool, text)["matches"] == 0


@pytest.fixture
def query_file(tmp_path: Path) -> Path:
    path = tmp_path / "pair.xscl"
    path.write_text(PAIR)
    return path


class _Broker:
    """A running broker and the verbs against it."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def xscl(self, *arguments: str, given: str | None = None) -> Result:
        command = ["--broker", self.url, *arguments]
        return await asyncio.to_thread(lambda: CliRunner().invoke(main, command, input=given))

    async def publish(self, documents: Sequence[str]) -> None:
        lines = "".join(
            json.dumps({"xml": xml, "time": f"2026-01-01T12:0{i}"}) + "\n"
            for i, xml in enumerate(documents)
        )
        assert (await self.xscl("publish", "S", "-", given=lines)).exit_code == 0


async def test_a_dry_run_tells_cost_template_and_history_and_registers_nothing(
    tmp_path: Path, query_file: Path
) -> None:
    async with small_broker(tmp_path / "data") as url:
        broker = _Broker(url)
        await broker.publish(PAIRS)
        result = await broker.xscl("register", str(query_file), "--dry-run")
        assert result.exit_code == 0, result.output
        assert result.stdout.startswith("pair: matches a day not estimated: ")
        assert "  template (x = y): of its own\n" in result.stdout
        assert "pair: 2 matches among all 4 documents that are kept" in result.stdout
        assert json.loads((await broker.xscl("list", "--format", "json")).stdout) == []
        await broker.xscl("register", str(query_file), "--id", "same")
        again = await broker.xscl("register", str(query_file), "--dry-run", "--format", "json")
        assert again.exit_code == 0, again.output
        (found,) = json.loads(again.stdout)
        assert found["history"]["matches"] == 2
        assert found["estimate"]["templates"] == [
            {"joins": ["x = y"], "decision": None, "queries_of_template": 1, "queries_of_class": 1}
        ]


async def test_what_was_estimated_is_said_before_a_registration(
    tmp_path: Path, query_file: Path
) -> None:
    async with small_broker(tmp_path / "data") as url:
        broker = _Broker(url)
        await broker.publish(PAIRS)
        result = await broker.xscl("register", str(query_file))
        lines = result.stderr.splitlines()
        assert lines[0].startswith("pair: matches a day not estimated: ")
        assert lines[-1].startswith("registered pair")


async def test_parameters_that_are_missing_are_asked_for(tmp_path: Path, query_file: Path) -> None:
    query_file.write_text("S//a[k = $k]->x FOLLOWED BY {x/k = y, 1 h} S//b[k->y]")
    async with small_broker(tmp_path / "data") as url:
        broker = _Broker(url)
        await broker.publish(PAIRS)
        result = await broker.xscl("register", str(query_file), "--dry-run")
        assert "give -p k=... to see what it would have matched" in result.stderr
        result = await broker.xscl("register", str(query_file), "--dry-run", "-p", "k=1x")
        assert "pair: 0 matches among" in result.stdout
        result = await broker.xscl("register", str(query_file), "--dry-run", "-p", "who=1")
        assert result.exit_code == 1
        assert "has no parameter `$who`" in result.stderr


async def test_a_dry_run_that_fails_says_so(
    tmp_path: Path,
    query_file: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    failing = tmp_path / "python"
    failing.write_text("#!/bin/sh\necho no such module >&2\nexit 1\n")
    failing.chmod(0o700)
    async with small_broker(tmp_path / "data") as url:
        broker = _Broker(url)
        await broker.publish(PAIRS)
        monkeypatch.setattr("sys.executable", str(failing))
        result = await broker.xscl("register", str(query_file), "--dry-run")
        assert result.exit_code == 1
        assert "the history could not be looked at" in result.stderr
        assert "the process of a dry run said: no such module" in caplog.text


async def test_a_dry_run_that_takes_too_long_is_in_the_log(
    tmp_path: Path,
    query_file: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("broker.api.asking.dryruns._GRACE_S", -60.0)
    async with small_broker(tmp_path / "data") as url:
        broker = _Broker(url)
        await broker.publish(PAIRS)
        result = await broker.xscl("register", str(query_file), "--dry-run")
        assert result.exit_code == 1
        assert "took too long for the documents of one batch" in result.stderr
        assert "a dry run was ended" in caplog.text


def test_a_similarity_join_is_shown_at_other_thresholds(tmp_path: Path) -> None:
    titles = ["one two three four", "one two three", "two three five", "one two six seven"]
    spool = spool_of(tmp_path, [f"<i><t>{title}</t></i>" for title in titles])
    text = "S//i->x FOLLOWED BY {similar(x/t, y/t) >= %s, 1 h} S//i->y"
    for threshold in ("0.75", "0.5"):
        found = look(spool, text % threshold)
        assert found["thresholds"] == {"0.4": 4, "0.5": 2, "0.6": 1, "0.7": 1}
    assert found["matches"] == 2
    assert "by threshold: 4 at 0.4, 2 at 0.5, 1 at 0.6, 1 at 0.7" in render_dry_run(found)
    found = look(spool, text % "$least", parameters={"least": 0.6})
    assert (found["matches"], found["thresholds"]["0.5"]) == (1, 2)


def test_a_query_without_similarity_is_shown_at_no_threshold(tmp_path: Path) -> None:
    found = look(spool_of(tmp_path, PAIRS))
    assert found["thresholds"] == {}
    assert "threshold" not in render_dry_run(found)
