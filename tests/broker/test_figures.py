"""Figures with labels: bounded, escaped, and of the processes that there are."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from broker.operations import processes
from broker.operations.figures import build_figures, query_figures
from broker.operations.metrics import render_metrics
from broker.operations.processes import process_figures

RESIDENT = 'process_resident_bytes{process="%s"}'


def test_a_metric_names_the_queries_where_it_is_largest() -> None:
    found = query_figures("query_matches_total", {f"q{n}": n for n in range(2_000)})
    assert len(found) == 50
    assert 'query_matches_total{query="q1999"}' in found
    assert 'query_matches_total{query="q1949"}' not in found
    assert query_figures("query_matches_total", {"none": 0}) == {}


def test_an_id_with_quotes_stays_within_its_label() -> None:
    text = render_metrics(query_figures("query_matches_total", {'a"} 1\n\\': 3}), {})
    assert text.splitlines()[2:] == ['xscl_query_matches_total{query="a\\"} 1\\n\\\\"} 3']


def test_the_build_is_told() -> None:
    (name,) = build_figures()
    assert f'version="{version("xscl-broker")}"' in name
    assert re.fullmatch(r'build_info\{(\w+="[\w.+-]+",?)+\}', name)


def test_a_process_and_those_below_it_are_told_apart() -> None:
    before = process_figures()
    assert before[RESIDENT % "broker"] > 10_000_000
    assert before["process_open_files_max"] == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    code = "import sys; sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as child:
        found = process_figures()
        assert found[RESIDENT % "workers"] > before.get(RESIDENT % "workers", 0)
        assert found['process_cpu_seconds_total{process="workers"}'] >= 0
        assert found["process_open_files"] > before["process_open_files"]
        assert child.stdin is not None
        child.stdin.close()


def test_what_is_told_of_memory_is_what_the_system_tells() -> None:
    fields = Path("/proc/self/statm").read_text().split()
    told = process_figures()[RESIDENT % "broker"]
    pages = int(fields[1]) * os.sysconf("SC_PAGE_SIZE")
    assert abs(told - pages) < pages / 2


def test_where_there_is_no_proc_there_are_no_such_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_PROC", tmp_path)
    assert process_figures() == {}
