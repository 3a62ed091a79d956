"""`xscl top`, `streams` and `dead-letters`: what a running broker does, and what is not well."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from support.small_broker import small_broker

from broker.cli import main
from broker.cli.top import TopReading, render

QUERY = "news//item->a FOLLOWED BY {a/title = b/title, 2 days} news//item->b"


def query(name: str, matches: int, **more: object) -> dict[str, Any]:
    row = {"id": name, "state": "active", "matches": matches, "subscriptions": 0, "reason": None}
    return {**row, **more}


def reading(at_s: float, *queries: dict[str, Any], **figures: float) -> TopReading:
    statistics = {
        "is_ready": True,
        "reason": None,
        "documents": 1234,
        "documents_per_second": 2.5,
        "queries": {"active": 2, "paused": 1},
        "subscriptions": 1,
        "matches": 99,
        "deliveries": {"due": 3, "dead": 1},
        "figures": {"uptime_seconds": 3700.0, "documents_waiting": 7.0, **figures},
    }
    feeds = [{"url": "http://x/", "stream": "news", "status": "failing", "error": "not found"}]
    return TopReading(at_s, statistics, list(queries), feeds)


def test_the_view_shows_rates_reasons_and_what_fails() -> None:
    paused = query("bomb", 5, state="paused", reason="more than 10,000 matches of one document")
    before = reading(10, query("calm", 10), paused, documents_evaluated_total=100)
    now = reading(12, query("calm", 14), paused, documents_evaluated_total=150, matches_total=4)
    assert "\n".join(render(now, before, "http://b", 20)) == (
        """\
http://b  ready, up 1 h 1 min
documents   1,234 kept, 25.0 evaluated a second, 2.50 arrived a second (5 min), 7 waiting, \
0 dead letters
matches     99 kept, - a second
queries     2 active, 1 paused; 1 subscription
deliveries  3 due, 1 dead
feeds       1 failing

id    state   matches  matches_per_second  subscriptions  reason
calm  active  14       2.0                 0
bomb  paused  5        0.0                 0              more than 10,000 matches of one document

feeds that fail
  http://x/  not found"""
    )


def test_rates_are_unknown_after_a_restart_and_of_new_queries() -> None:
    before = reading(10, query("calm", 10), matches_total=50)
    now = reading(12, query("calm", 0), query("new", 3), matches_total=1)
    assert [row["matches_per_second"] for row in now.since(before)] == [None, None]
    assert "- a second" in "\n".join(render(now, before, "http://b", 20))


def test_more_queries_than_there_is_room_for_are_counted() -> None:
    now = reading(1, *(query(f"q{i}", i) for i in range(10)))
    lines = list(render(now, None, "http://b", 3))
    assert "and 7 more" in lines
    assert [line.split()[0] for line in lines if line.startswith("q") and "active" in line][1:] == [
        "q9",
        "q8",
        "q7",
    ]


@pytest.fixture
def query_file(tmp_path: Path) -> Path:
    path = tmp_path / "same.xscl"
    path.write_text(QUERY)
    return path


async def test_a_broker_is_shown_once_in_three_formats(tmp_path: Path, query_file: Path) -> None:
    async with small_broker(tmp_path / "data") as url:

        async def xscl(*arguments: str, given: str | None = None) -> Result:
            command = ["--broker", url, *arguments]
            run = CliRunner().invoke
            result = await asyncio.to_thread(lambda: run(main, command, input=given))
            assert result.exit_code == 0, result.output
            return result

        await xscl("register", str(query_file))
        line = json.dumps({"xml": "<item><title>One</title></item>"})
        await xscl("publish", "news", "-", given=f"{line}\n")
        assert "1 kept" in (await xscl("top", "--once")).stdout
        found = json.loads((await xscl("top", "--once", "--format", "json")).stdout)
        assert found["documents"] == 1
        assert found["deliveries"] == {}
        assert [row["id"] for row in found["by_query"]] == ["same"]
        rows = (await xscl("top", "--once", "--format", "csv")).stdout
        assert [row["id"] for row in csv.DictReader(io.StringIO(rows))] == ["same"]
        (stream,) = json.loads((await xscl("streams", "--format", "json")).stdout)
        assert (stream["name"], stream["documents"], stream["readers"]) == ("news", 1, 1)
        assert json.loads((await xscl("dead-letters", "--format", "json")).stdout) == []
