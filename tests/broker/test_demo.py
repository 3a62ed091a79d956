from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from broker.demo.play import EXPECTED
from broker.demo.screen import joined_values, match_block, read_item
from broker.documents.spool import SpoolWriter
from broker.matching.rendering.matchlines import match_lines


def demo(directory: Path, timeout_s: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "broker.cli", "demo", "--data", str(directory)],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "100"},
    )


def test_a_silence_is_shown_with_its_length_and_the_last_that_came() -> None:
    xml = "<item><title>Level 0.94 m</title><source>Tide Gauge 7</source></item>"
    times = {"start": "2026-03-02T08:30:00Z", "end": "2026-03-02T10:30:00Z"}
    item = read_item({"stream": "gauges", "xml": xml, "time": times["start"]})
    match = {**times, "query": "quiet-gauge", "witnesses": []}
    console = Console(record=True, width=100, file=io.StringIO())
    console.print(match_block(match, [item], []))
    shown = [line.rstrip() for line in console.export_text().splitlines()]
    assert shown == [
        "= quiet-gauge  2 h of silence",
        "  last     Level 0.94 m  Tide Gauge 7, Mon 08:30",
    ]


def test_what_a_query_compares_twice_is_shown_once_under_its_own_name() -> None:
    first, second = ({"block": block, "value": "Ferry resumes"} for block in (0, 1))
    witness = {
        "first/title": first,
        "first/title#2": first,
        "second/title": second,
        "second/title#2": second,
    }
    assert list(joined_values({"witnesses": [witness]})) == [
        ("first/title = second/title", "Ferry resumes")
    ]
    match = {"end": "2026-01-01T12:00:00Z", "documents": [], "witnesses": [witness]}
    assert list(match_lines(match))[1:] == [
        "  first/title = Ferry resumes",
        "  second/title = Ferry resumes",
    ]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_demonstration_ends_well_and_shows_what_happened(tmp_path: Path) -> None:
    done = demo(tmp_path, 580)
    assert done.returncode == 0, done.stdout + done.stderr
    for query, count in EXPECTED.items():
        assert done.stdout.count(f"= {query} ") == count
        assert not count or f"{count} × {query}" in done.stdout
    assert "= quiet-gauge  2 h of silence" in done.stdout
    assert "joined   first/title = second/title" in done.stdout
    assert "sent to  the webhook and reader@demo.example" in done.stdout
    assert "the first was answered with 500" in done.stdout
    received = [json.loads(line) for line in (tmp_path / "received.jsonl").read_text().splitlines()]
    assert len(received) == len({row["delivery_id"] for row in received}) == 22


def test_a_demonstration_whose_broker_does_not_start_says_why(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    held = SpoolWriter(tmp_path / "data" / "spool")
    try:
        done = demo(tmp_path, 120)
    finally:
        held.close()
    assert done.returncode == 1
    assert "the broker ended with 1" in done.stderr
    assert "spool" in done.stderr
