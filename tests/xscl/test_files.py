"""Files and directories of queries, and what holds over the whole set."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import xscl
from xscl.files import check_files
from xscl.messages import to_json, to_sarif


def write(directory: Path, **texts: str) -> None:
    for name, text in texts.items():
        (directory / f"{name}.xscl").write_text(text, encoding="utf-8")


def test_directories_are_read_recursively_and_in_order(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    write(tmp_path, b="S//b", a="S//a")
    write(tmp_path / "sub", c="S//c; S//d")
    (tmp_path / "notes.txt").write_text("no query")
    assert [query.id for query in xscl.load([tmp_path])] == ["a", "b", "c.1", "c.2"]


def test_a_file_is_read_once_and_whatever_its_name(tmp_path: Path) -> None:
    write(tmp_path, a="S//a")
    (tmp_path / "query.txt").write_text("S//q")
    paths = [tmp_path, tmp_path / "a.xscl", tmp_path / "query.txt"]
    assert [query.id for query in xscl.load(paths)] == ["a", "query"]


def test_a_byte_order_mark_and_windows_lines_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / "a.xscl").write_bytes(b"\xef\xbb\xbfS//a\r\n  [b] -- c\r\n")
    [query] = xscl.load([tmp_path])
    assert query.text == "S//a[b]"


def test_the_errors_of_all_files_come_at_one_go(tmp_path: Path) -> None:
    write(tmp_path, a="S//a[", b="S//b", c="S JOIN {, 0 s} T")
    with pytest.raises(xscl.XsclError) as raised:
        xscl.load([tmp_path])
    assert [(Path(d.path or "").name, d.code) for d in raised.value.diagnostics] == [
        ("a.xscl", "XS101"),
        ("c.xscl", "XS401"),
    ]


def test_a_cycle_of_publish_names_is_an_error_that_shows_the_way(tmp_path: Path) -> None:
    write(
        tmp_path,
        a="FROM c PUBLISH a",
        b="FROM S JOIN {, 1 h} a PUBLISH b",
        c="FROM b PUBLISH c",
        d="FROM a PUBLISH d",
    )
    _, found = check_files([tmp_path])
    [cycle] = [each for each in found if each.is_error]
    assert cycle.code == "XS704"
    assert cycle.message.endswith("a reads c reads b reads a")


def test_a_query_that_reads_what_it_publishes_is_a_cycle(tmp_path: Path) -> None:
    write(tmp_path, a="FROM a PUBLISH a")
    assert [each.code for each in check_files([tmp_path])[1]] == ["XS704"]


def test_a_star_reads_outside_streams_only_and_so_makes_no_cycle(tmp_path: Path) -> None:
    write(tmp_path, a="FROM * PUBLISH a")
    assert check_files([tmp_path])[1] == []


def test_a_publish_name_belongs_to_one_query(tmp_path: Path) -> None:
    write(tmp_path, a="FROM S PUBLISH out", b="FROM T PUBLISH out")
    _, [found] = check_files([tmp_path])
    assert found.code == "XS703"
    assert "a.xscl" in found.message
    assert found.source[found.span.start : found.span.end] == "out"


def test_two_queries_of_one_file_may_not_publish_one_name(tmp_path: Path) -> None:
    write(tmp_path, a="FROM S PUBLISH out; FROM T PUBLISH out")
    assert [each.code for each in check_files([tmp_path])[1]] == ["XS703"]


def test_an_id_belongs_to_one_query(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write(tmp_path / name, q="S")
    assert [each.code for each in check_files([tmp_path])[1]] == ["XS702"]


@pytest.mark.parametrize("publisher", ["a", "z"])
def test_an_id_may_not_be_the_publish_name_of_another(tmp_path: Path, publisher: str) -> None:
    write(tmp_path, **{"out": "S", publisher: "FROM T PUBLISH out"})
    assert [each.code for each in check_files([tmp_path])[1]] == ["XS702"]


def test_a_file_that_cannot_be_read_does_not_hide_the_others(tmp_path: Path) -> None:
    (tmp_path / "a.xscl").write_bytes(b"S//\xff")
    write(tmp_path, b="S//b")
    queries, [found] = check_files([tmp_path, tmp_path / "missing.xscl"][:1])
    assert [query.id for query in queries] == ["b"]
    assert found.code == "XS701"
    assert str(found).startswith("error[XS701]: this file is not UTF-8")


def test_json_has_lines_and_columns() -> None:
    _, found = xscl.check("S//a\n  JOIN {x = y, 1 h} T->y", path="q.xscl")
    [entry] = json.loads(to_json(found))
    assert entry == {
        "code": "XS201",
        "severity": "error",
        "path": "q.xscl",
        "message": "no block binds the variable `x`",
        "hint": "bind it in a block: `author->x`; a string stands in quotes",
        "span": {
            "start": 13,
            "end": 14,
            "line": 2,
            "column": 9,
            "end_line": 2,
            "end_column": 10,
        },
    }


def test_sarif_names_the_rule_the_file_and_the_region() -> None:
    _, found = xscl.check("S//a->x JOIN {, 1 h} S//b->x", path="dir/q.xscl")
    log = json.loads(to_sarif(found))
    assert log["version"] == "2.1.0"
    [run] = log["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["XS202"]
    [result] = run["results"]
    assert (result["ruleId"], result["level"]) == ("XS202", "error")
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "dir/q.xscl"}
    assert (place["region"]["startLine"], place["region"]["startColumn"]) == (1, 28)
    assert result["relatedLocations"][0]["physicalLocation"]["region"]["startColumn"] == 7


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("dir/my q#1.xscl", "dir/my%20q%231.xscl"),
        ("/tmp/é.xscl", "file:///tmp/%C3%A9.xscl"),
        ("<stdin>", "stdin"),
        (None, "stdin"),
    ],
)
def test_sarif_names_files_by_uri(path: str | None, uri: str) -> None:
    _, found = xscl.check("S//a[", path=path)
    [result] = json.loads(to_sarif(found))["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": uri}


def test_the_caret_stands_under_its_text_behind_wide_and_combining_characters() -> None:
    _, found = xscl.check("S//a[b = '\u6f22e\u0301' and ]")
    line, caret = str(found[0]).splitlines()[2:4]
    assert caret.index("^") == line.index("]")  # one wide more, one combining less


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import xscl", "xscl.parser xscl.reader elementpath lxml difflib"),
        ("import xscl; xscl.parse('S//a[b = 1]->x JOIN {x/c = y, 1 h} T->y')", "elementpath lxml"),
        ("import xscl; xscl.parse('SELECT <a>{x/b}</a> FROM S->x')", "elementpath lxml"),
        ("import xscl.functions", "xscl.parser elementpath lxml"),
    ],
)
def test_heavy_modules_are_imported_when_they_are_needed(statement: str, absent: str) -> None:
    code = f"import sys; {statement}; print([m for m in {absent.split()} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_same_text_is_parsed_once() -> None:
    assert xscl.parse("S//once")[0] is xscl.parse("S//once")[0]
