from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from broker.demo.play import EXPECTED
from broker.documents.spool import SpoolWriter


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


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_demonstration_ends_well_and_shows_what_happened(tmp_path: Path) -> None:
    done = demo(tmp_path, 580)
    assert done.returncode == 0, done.stdout + done.stderr
    for query, count in EXPECTED.items():
        assert done.stdout.count(f"= {query} ") == count
        assert f"{count} × {query}" in done.stdout
    assert "joined   first/title = second/title" in done.stdout
    assert "sent to  the webhook and reader@demo.example" in done.stdout
    assert "the first was answered with 500" in done.stdout
    received = [json.loads(line) for line in (tmp_path / "received.jsonl").read_text().splitlines()]
    assert len(received) == len({row["delivery_id"] for row in received}) == 17


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
