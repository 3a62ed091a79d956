"""The verbs for query files: check, fmt, completion."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from broker.cli import main


def run(*arguments: str | Path, given: str | None = None) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments], input=given)


def test_check_says_what_is_right(tmp_path: Path) -> None:
    (tmp_path / "a.xscl").write_text("S//a")
    done = run("check", tmp_path)
    assert (done.exit_code, done.stdout) == (0, "")
    assert "1 query without errors, 0 errors, 0 warnings" in done.stderr


def test_check_fails_with_the_place_of_each_error(tmp_path: Path) -> None:
    (tmp_path / "a.xscl").write_text("S//a[; S JOIN {, 0 s} T")
    done = run("check", tmp_path)
    assert done.exit_code == 1
    assert f"{tmp_path / 'a.xscl'}:1:6" in done.stdout
    assert "XS101" in done.stdout
    assert "XS401" in done.stdout


def test_check_reads_standard_input() -> None:
    done = run("check", "-", given="S//a[")
    assert done.exit_code == 1
    assert "<stdin>:1:6" in done.stdout


def test_check_looks_at_the_queries_of_standard_input_together() -> None:
    done = run("check", "-", given="FROM b PUBLISH a; FROM a PUBLISH b")
    assert done.exit_code == 1
    assert "XS704" in done.stdout


def test_standard_input_that_is_no_text_is_refused() -> None:
    for verb in ("check", "fmt"):
        done = CliRunner().invoke(main, [verb, "-"], input=b"S//a[b = '\xff']")
        assert done.exit_code == 1
        assert "byte 10 is not UTF-8" in done.stderr


def test_warnings_fail_a_check_only_where_they_are_denied() -> None:
    assert run("check", "-", given="S JOIN {, 1 h} T").exit_code == 0
    assert run("check", "-", "--deny-warnings", given="S JOIN {, 1 h} T").exit_code == 1


def test_check_warns_of_what_is_not_run_and_the_verbs_that_run_queries_refuse_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.xscl").write_text("S//a->x NEXT {x = y, 1 h} T//b->y GRACE 1 h")
    (tmp_path / "documents.jsonl").write_text("")
    done = run("check", tmp_path)
    assert (done.exit_code, "warning[XS800]" in done.stdout) == (0, True)
    (tmp_path / "a.test").write_text("case nothing\n    no match\n")
    documents = ("--documents", tmp_path / "documents.jsonl")
    for verb in (("replay", "--no-spark", *documents), ("explain",), ("test",)):
        done = run(*verb, tmp_path)
        assert done.exit_code != 0
        assert "error[XS800]: this broker does not run NEXT and GRACE yet" in done.output


def test_estimates_leave_out_what_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "a.xscl").write_text("S//a->x JOIN {x = y, 1 h} T//b->y; S//a MATCH ANY")
    line = '{"stream": "S", "time": "2026-01-01T00:00:00Z", "xml": "<a/>"}'
    (tmp_path / "documents.jsonl").write_text(f"{line}\n")
    done = run("check", tmp_path / "a.xscl", "--statistics", tmp_path / "documents.jsonl")
    assert done.exit_code == 0, done.output
    assert "a.1" in done.stdout
    assert "a.2" not in done.stdout


@pytest.mark.parametrize("output", ["json", "sarif"])
def test_check_speaks_to_programs(output: str) -> None:
    done = run("check", "-", "--format", output, given="S//a[")
    assert "XS101" in json.dumps(json.loads(done.stdout))
    assert run("check", "-", "--format", output, given="S").exit_code == 0


def test_fmt_rewrites_files_in_place(tmp_path: Path) -> None:
    path = tmp_path / "a.xscl"
    path.write_text("s//a  as x -- c")
    done = run("fmt", tmp_path)
    assert (done.exit_code, path.read_text()) == (0, "s//a->x -- c\n")
    assert "rewrote" in done.stderr
    assert run("fmt", tmp_path).stderr == ""


def test_fmt_check_and_diff_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.xscl"
    path.write_text("s  //a")
    assert run("fmt", "--check", tmp_path).exit_code == 1
    done = run("fmt", "--diff", tmp_path)
    assert done.exit_code == 1
    assert "+s//a" in done.stdout
    assert path.read_text() == "s  //a"


def test_fmt_leaves_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "a.xscl"
    path.write_text("S//a[")
    done = run("fmt", tmp_path)
    assert (done.exit_code, path.read_text()) == (1, "S//a[")
    assert "XS101" in done.stderr


def test_fmt_is_a_filter() -> None:
    done = run("fmt", "-", given="s  //a")
    assert (done.exit_code, done.stdout) == (0, "s//a\n")
    assert run("fmt", "-", given="s[").exit_code == 1


def test_fmt_checks_and_compares_standard_input() -> None:
    assert run("fmt", "--check", "-", given="s//a\n").exit_code == 0
    done = run("fmt", "--check", "-", given="s  //a")
    assert (done.exit_code, done.stdout) == (1, "")
    done = run("fmt", "--diff", "-", given="s  //a")
    assert done.exit_code == 1
    assert "+s//a" in done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(shell: str) -> None:
    done = run("completion", shell)
    assert done.exit_code == 0
    assert "_XSCL_COMPLETE" in done.stdout
