"""A join spread over a Spark cluster: separate executors, which die."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(520)]


def test_shards_on_a_cluster_find_the_same_whatever_dies(tmp_path: Path) -> None:
    # Another master needs another session, and a process has one.
    ran = subprocess.run(
        [sys.executable, TESTS / "support/cluster_process.py", tmp_path],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS.parent), str(TESTS)])},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    trials = json.loads(ran.stdout)
    assert trials == dict.fromkeys(trials, True)
    assert len(trials) == 7
