"""`xscl test`: what it prints, what it accepts, and that the examples have cases."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.goldens import GOLDEN, check_golden, golden_files, golden_ids, write_files

from broker.cli import main
from broker.demo.examples import examples_directory
from broker.testing.casefile import read_case_file
from broker.testing.report import accepted
from broker.testing.trial import run_case

QUERIES = sorted((examples_directory() / "queries").glob("*.xscl"))


@pytest.mark.parametrize("path", golden_files("testing"), ids=golden_ids)
def test_what_xscl_test_prints(path: Path, tmp_path: Path) -> None:
    check_golden(path, tmp_path)


@pytest.mark.parametrize("query", QUERIES, ids=lambda path: path.stem)
def test_every_example_query_has_cases_of_matches_and_of_none(query: Path) -> None:
    file = read_case_file(query.with_suffix(".test"))
    assert all(run_case(file, case).passed for case in file.cases)
    assert any(case.expected for case in file.cases)
    assert any(not case.expected for case in file.cases)


@pytest.mark.parametrize("name", ["failures", "several-queries"])
def test_a_file_that_was_accepted_passes_and_the_rest_of_it_stays(
    name: str, tmp_path: Path
) -> None:
    write_files((GOLDEN / "testing" / f"{name}.txt").read_text().partition("\n----\n")[0], tmp_path)
    (path,) = tmp_path.glob("*.test")
    before = path.read_text().splitlines()
    result = CliRunner().invoke(main, ["test", str(path), "--accept"])
    assert result.exit_code == 0, result.output
    assert f"rewrote {path}" in result.stderr
    file = read_case_file(path)
    assert all(run_case(file, case).passed for case in file.cases)
    assert accepted(file, [run_case(file, case) for case in file.cases]) == file.source
    kept = re.compile(r"\s*(case|document|parameters|lateness|query)\b")
    after = path.read_text().splitlines()
    assert [li for li in before if kept.match(li)] == [li for li in after if kept.match(li)]


def test_every_mistake_in_a_case_file_is_documented_and_shown(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    used = set(re.findall(r'"(XT\d{3})"', (root / "broker/testing/casefile.py").read_text()))
    documented = re.findall(r"^\| (XT\d{3}) \|", (root / "docs/testing.md").read_text(), re.M)
    shown = re.findall(r"error\[(XT\d{3})\]", (GOLDEN / "testing" / "mistakes.txt").read_text())
    assert used == set(documented) == set(shown)


def test_a_case_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "q.xscl").write_text("S//a")
    (tmp_path / "q.test").write_bytes(b"case \xff")
    result = CliRunner().invoke(main, ["test", str(tmp_path)])
    assert result.exit_code == 1
    assert f"cannot read {tmp_path / 'q.test'}" in result.stderr
    assert os.listdir(tmp_path)
