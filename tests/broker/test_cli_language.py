"""The verbs for query files: check, fmt, completion."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.verbs import xscl

from broker.cli import main


def test_check_says_what_is_right(tmp_path: Path) -> None:
    (tmp_path / "a.xscl").write_text("S//a")
    done = xscl("check", tmp_path)
    assert (done.exit_code, done.stdout) == (0, "")
    assert "1 query without errors, 0 errors, 0 warnings" in done.stderr


def test_check_fails_with_the_place_of_each_error(tmp_path: Path) -> None:
    (tmp_path / "a.xscl").write_text("S//a[; S JOIN {, 0 s} T")
    done = xscl("check", tmp_path)
    assert done.exit_code == 1
    assert f"{tmp_path / 'a.xscl'}:1:6" in done.stdout
    assert "XS101" in done.stdout
    assert "XS401" in done.stdout


def test_check_reads_standard_input() -> None:
    done = xscl("check", "-", given="S//a[")
    assert done.exit_code == 1
    assert "<stdin>:1:6" in done.stdout


def test_check_looks_at_the_queries_of_standard_input_together() -> None:
    done = xscl("check", "-", given="FROM b PUBLISH a; FROM a PUBLISH b")
    assert done.exit_code == 1
    assert "XS704" in done.stdout


def test_standard_input_that_is_no_text_is_refused() -> None:
    for verb in ("check", "fmt"):
        done = CliRunner().invoke(main, [verb, "-"], input=b"S//a[b = '\xff']")
        assert done.exit_code == 1
        assert "byte 10 is not UTF-8" in done.stderr


def test_warnings_fail_a_check_only_where_they_are_denied() -> None:
    assert xscl("check", "-", given="S JOIN {, 1 h} T").exit_code == 0
    assert xscl("check", "-", "--deny-warnings", given="S JOIN {, 1 h} T").exit_code == 1


def test_check_warns_of_what_is_not_run_and_the_verbs_that_run_queries_refuse_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.xscl").write_text("S//a->x JOIN {confidence() > 0.5, 1 h} T//b->y")
    (tmp_path / "documents.jsonl").write_text("")
    done = xscl("check", tmp_path)
    assert (done.exit_code, "warning[XS800]" in done.stdout) == (0, True)
    (tmp_path / "a.test").write_text("case nothing\n    no match\n")
    documents = ("--documents", tmp_path / "documents.jsonl")
    for verb in (("replay", "--no-spark", *documents), ("explain",), ("test",)):
        done = xscl(*verb, tmp_path)
        assert done.exit_code != 0
        assert "error[XS800]: this broker does not run" in done.output


def test_estimates_leave_out_what_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "a.xscl").write_text(
        "S//a->x JOIN {x = y, 1 h} T//b->y; SELECT DISJOINT * FROM S//a WINDOW 1 h GRACE 1 h"
    )
    line = '{"stream": "S", "time": "2026-01-01T00:00:00Z", "xml": "<a/>"}'
    (tmp_path / "documents.jsonl").write_text(f"{line}\n")
    done = xscl("check", tmp_path / "a.xscl", "--statistics", tmp_path / "documents.jsonl")
    assert done.exit_code == 0, done.output
    assert "a.1" in done.stdout
    assert "a.2" not in done.stdout


@pytest.mark.parametrize("output", ["json", "sarif"])
def test_check_speaks_to_programs(output: str) -> None:
    done = xscl("check", "-", "--format", output, given="S//a[")
    assert "XS101" in json.dumps(json.loads(done.stdout))
    assert xscl("check", "-", "--format", output, given="S").exit_code == 0


def test_fmt_rewrites_files_in_place(tmp_path: Path) -> None:
    path = tmp_path / "a.xscl"
    path.write_text("s//a  as x -- c")
    done = xscl("fmt", tmp_path)
    assert (done.exit_code, path.read_text()) == (0, "s//a->x -- c\n")
    assert "rewrote" in done.stderr
    assert xscl("fmt", tmp_path).stderr == ""


def test_fmt_check_and_diff_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.xscl"
    path.write_text("s  //a")
    assert xscl("fmt", "--check", tmp_path).exit_code == 1
    done = xscl("fmt", "--diff", tmp_path)
    assert done.exit_code == 1
    assert "+s//a" in done.stdout
    assert path.read_text() == "s  //a"


def test_fmt_leaves_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "a.xscl"
    path.write_text("S//a[")
    done = xscl("fmt", tmp_path)
    assert (done.exit_code, path.read_text()) == (1, "S//a[")
    assert "XS101" in done.stderr


def test_fmt_is_a_filter() -> None:
    done = xscl("fmt", "-", given="s  //a")
    assert (done.exit_code, done.stdout) == (0, "s//a\n")
    assert xscl("fmt", "-", given="s[").exit_code == 1


def test_fmt_checks_and_compares_standard_input() -> None:
    assert xscl("fmt", "--check", "-", given="s//a\n").exit_code == 0
    done = xscl("fmt", "--check", "-", given="s  //a")
    assert (done.exit_code, done.stdout) == (1, "")
    done = xscl("fmt", "--diff", "-", given="s  //a")
    assert done.exit_code == 1
    assert "+s//a" in done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(shell: str) -> None:
    done = xscl("completion", shell)
    assert done.exit_code == 0
    assert "_XSCL_COMPLETE" in done.stdout


def test_parameters_of_a_question_are_given_as_everywhere(tmp_path: Path) -> None:
    query = tmp_path / "by-author.xscl"
    query.write_text("S//a->x FOLLOWED BY {x/author = y/author AND x/author = $who, 1 h} S//a->y")
    (tmp_path / "d.xml").write_text("<a><author>Ann</author></a>")
    asked = ["explain", "--why-not", str(query), *(str(tmp_path / "d.xml"),) * 2]
    assert "= 'Ann'" in xscl(*asked, "-p", "who=Ann").stdout
    assert "= 'Ben'" in xscl(*asked, "-p", "who=Ben").stdout
    assert "does not match" in xscl(*asked, "-p", "who=Ben").stdout
