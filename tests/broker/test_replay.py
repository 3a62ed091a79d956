from __future__ import annotations

import gzip
import io
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from support.standin import StandInEngine

import xscl
from broker.cli import main
from broker.documents.recorded import RecordedError, number_lines, read_document_lines
from broker.pipeline.lookback.replay import (
    ReplayError,
    ReplaySummary,
    read_assignments,
    replay,
    replay_documents,
)

if TYPE_CHECKING:
    from broker.pipeline.spark import Spark

QUERY = "S//d->a FOLLOWED BY {a/v = b/v, 1 h} S//d->b"


def document(number: int, value: str, **fields: str) -> dict[str, str]:
    time = f"2026-01-01T00:{number % 60:02}:00Z"
    return {"stream": "S", "time": time, "xml": f"<d><v>{value}</v></d>", **fields}


def write_lines(path: Path, lines: Sequence[Any]) -> Path:
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    path.write_text(text)
    return path


def run_stand_in(path: Path, *, batch_documents: int = 3) -> tuple[str, ReplaySummary]:
    out = io.StringIO()
    summary = replay_documents(
        [path],
        lambda directory: StandInEngine(),
        out,
        batch_documents=batch_documents,
        spark=False,
    )
    return out.getvalue(), summary


@given(st.integers(1, 20))
def test_the_batch_size_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, batch_documents: int
) -> None:
    path = tmp_path_factory.mktemp("replay") / "documents.jsonl"
    write_lines(path, [document(number, str(number % 3)) for number in range(12)])
    matches, summary = run_stand_in(path, batch_documents=batch_documents)
    assert matches == run_stand_in(path, batch_documents=12)[0]
    assert (summary.documents, summary.matches) == (12, 18)


def test_match_lines_are_sorted(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "d", [document(number, "v") for number in range(12)])
    lines = [json.loads(line) for line in run_stand_in(path)[0].splitlines()]
    order = [
        (max(d["docid"] for d in line["documents"]), line["query"], line["id"]) for line in lines
    ]
    assert order == sorted(order)


def test_compressed_files_are_read_whatever_their_name(tmp_path: Path) -> None:
    plain = write_lines(tmp_path / "plain.gz", [document(1, "v"), document(2, "v")])
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert run_stand_in(packed)[0] == run_stand_in(plain)[0] != ""


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_pipe_is_read_once_and_whole(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    lines = write_lines(tmp_path / "lines", [document(i, str(i)) for i in range(500)])
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=[pack(lines.read_bytes())])
    writer.start()
    found = list(read_document_lines([pipe]))
    writer.join()
    assert [each for _, each in found] == [each for _, each in read_document_lines([lines])]


def test_a_bad_line_is_reported_with_its_place_and_the_rest_goes_on(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "d",
        [
            document(1, "v"),
            "not json",
            {"stream": "S"},
            {"stream": "S", "time": "noon", "xml": "<d/>"},
            "",
            document(2, "v"),
            {**document(3, "v"), "xml": "<d>"},
        ],
    )
    _, summary = run_stand_in(path)
    assert (summary.documents, summary.matches, summary.refused) == (3, 1, 3)
    assert summary.dead_letters == 1
    assert [problem.split(": ")[0] for problem in summary.problems] == [
        f"{path}:2",
        f"{path}:3",
        f"{path}:4",
        "document 3",
    ]


def test_repeated_documents_are_counted_once(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "d", [document(1, "v", key="k")] * 3)
    _, summary = run_stand_in(path)
    assert (summary.documents, summary.duplicates) == (1, 2)


def test_parameter_rows_become_canonical_assignments(tmp_path: Path) -> None:
    [query] = xscl.parse("S//d[v = $v]->a FOLLOWED BY {a/v = b/v, $within} S//d->b", id="Q")
    rows = write_lines(
        tmp_path / "rows", [{"query": "Q", "parameters": {"v": "x", "within": "6 h"}}]
    )
    assert read_assignments(rows, [query]) == {"Q": [{"v": "x", "within": 6 * 3_600_000_000}]}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{", "2: not a line of JSON"),
        ({"query": "Q"}, "2: a row of parameters is"),
        ([], "2: a row of parameters is"),
        ({"query": "R", "parameters": {}}, "2: there is no query `R` here"),
    ],
)
def test_a_bad_parameter_row_is_named(tmp_path: Path, row: Any, message: str) -> None:
    [query] = xscl.parse("S//d[v = $v]", id="Q")
    rows = write_lines(tmp_path / "rows", [{"query": "Q", "parameters": {"v": "x"}}, row])
    with pytest.raises(ReplayError, match=message):
        read_assignments(rows, [query])


@pytest.mark.spark
def test_spark_writes_the_same_bytes(spark: Spark, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "d", [document(number, str(number % 5)) for number in range(50)])
    queries = xscl.parse(QUERY, id="Q")
    outputs = []
    for is_spark in (False, True):
        out = io.StringIO()
        summary = replay(queries, [path], out, spark=is_spark, session=spark, batch_documents=20)
        assert summary.documents == 50
        outputs.append(out.getvalue())
    assert outputs[0] == outputs[1] != ""


def test_the_command_writes_matches_and_a_summary(tmp_path: Path) -> None:
    documents = write_lines(tmp_path / "d", [document(1, "v"), document(2, "v")])
    (tmp_path / "q.xscl").write_text(QUERY)
    result = CliRunner().invoke(
        main, ["replay", str(tmp_path / "q.xscl"), "--documents", str(documents), "--no-spark"]
    )
    assert result.exit_code == 0
    assert [json.loads(line)["query"] for line in result.stdout.splitlines()] == ["q"]
    figures = r"2 documents, 1 match, [\d.]+ s, [1-9][\d,]* documents/s"
    assert re.match(figures, result.stderr)


def test_the_command_points_at_an_error_in_a_query(tmp_path: Path) -> None:
    documents = write_lines(tmp_path / "d", [document(1, "v")])
    (tmp_path / "q.xscl").write_text("S//d->a FOLLOWED BY {a/v = c/v, 1 h} S//d->b")
    arguments = ["replay", str(tmp_path / "q.xscl"), "--documents", str(documents), "--no-spark"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 1
    assert "^" in result.stderr


def test_a_recorded_document_that_would_be_refused_is_named(tmp_path: Path) -> None:
    path = tmp_path / "documents.jsonl"
    lines = [document(1, "a"), document(2, "a", stream="bad stream")]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(RecordedError, match=r"documents\.jsonl:2: 'bad stream' cannot be"):
        list(number_lines(read_document_lines([path])))


def test_a_document_that_cannot_be_read_is_told_once(tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "docs.jsonl", [document(1, "x", xml="<d>")])
    (tmp_path / "q.xscl").write_text("S//d")
    verb = ["replay", str(tmp_path / "q.xscl"), "--documents", str(lines), "--no-spark"]
    done = subprocess.run(
        [sys.executable, "-m", "broker.cli", *verb], capture_output=True, text=True, check=True
    )
    assert done.stderr.count("Premature end of data") == 1


PARAMETERS = "S//d[v = $who]->a"


def run_replay(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["replay", *map(str, arguments), "--no-spark"])


def test_parameters_are_given_as_everywhere(tmp_path: Path) -> None:
    documents = write_lines(tmp_path / "d", [document(n, str(n % 2)) for n in range(6)])
    (tmp_path / "q.xscl").write_text(PARAMETERS)
    (tmp_path / "plain.xscl").write_text("S//d->a")
    found = run_replay(tmp_path / "q.xscl", "--documents", documents, "-p", "who='1'")
    assert len(found.stdout.splitlines()) == 3
    alone = run_replay(tmp_path / "q.xscl", "--documents", documents)
    assert (alone.exit_code, alone.stdout) == (2, "")
    assert "q has parameters, and finds nothing without them: give -p who=..." in alone.stderr
    both = run_replay(tmp_path, "--documents", documents)
    assert (both.exit_code, len(both.stdout.splitlines())) == (0, 6)
    assert "warning: q has parameters" in both.stderr
    wrong = run_replay(tmp_path, "--documents", documents, "-p", "whom=1")
    assert wrong.exit_code == 2
    assert "no query has a parameter 'whom'" in wrong.stderr


def test_a_replay_of_nothing_that_can_be_read_fails(tmp_path: Path) -> None:
    documents = write_lines(tmp_path / "d", ["nonsense", "{}"])
    (tmp_path / "q.xscl").write_text(QUERY)
    found = run_replay(tmp_path / "q.xscl", "--documents", documents)
    assert found.exit_code == 1
    assert "no line of the documents could be read" in found.stderr


def test_an_engine_for_reference_is_not_spread() -> None:
    arguments = ["replay", "examples/queries", "--documents", __file__]
    result = CliRunner().invoke(main, [*arguments, "--engine", "mmqjp", "--shards", "3"])
    assert result.exit_code == 2
    assert "leave out one of --shards and --engine" in result.stderr


def test_a_replay_ends_with_a_tick_that_decides_the_rest(tmp_path: Path) -> None:
    text = "S//d->a NOT FOLLOWED BY {a/v = b/v, 1 h} S//d->b GRACE 10 min"
    queries = tmp_path / "q.xscl"
    queries.write_text(text)
    lines = [document(1, "x"), {"tick": "2026-01-01T00:20:00Z"}, document(30, "y")]
    documents = write_lines(tmp_path / "docs.jsonl", lines)
    asked = (queries, "--documents", documents, "--no-spark")
    all_decided = run_replay(*asked)
    found = [json.loads(line) for line in all_decided.stdout.splitlines()]
    assert [(m["documents"][0]["docid"], m["end"], m["decided"]) for m in found] == [
        (1, "2026-01-01T01:01:00Z", 4),
        (3, "2026-01-01T01:30:00Z", 4),
    ]
    assert "2 documents, 2 matches" in all_decided.stderr
    early = run_replay(*asked, "--until", "2026-01-01T01:12:00")
    assert [json.loads(line)["id"] for line in early.stdout.splitlines()] == [found[0]["id"]]
    assert "1 undecided" in early.stderr
    assert run_replay(*asked, "--until", "soon").exit_code == 2


def test_schedulers_of_transactions_change_how_many_wait_and_nothing_else(tmp_path: Path) -> None:
    text = (
        "CREATE TABLE t (id KEY, n DEFAULT 0);"
        " S//d[v->v] WHERE t[v].n < 3 GRACE 0 s ON MATCH SET t[v].n = t[v].n + 1"
    )
    queries = tmp_path / "q.xscl"
    queries.write_text(text)
    path = write_lines(tmp_path / "d", [document(number, str(number % 3)) for number in range(12)])
    default = run_replay(queries, "--documents", path)
    assert len(default.stdout.splitlines()) == 9
    assert ", 4 waves of transactions" in default.stderr
    for options in (["--scheduler", "sei"], ["--scheduler", "s2pl", "--locks", "table"]):
        other = run_replay(queries, "--documents", path, *options)
        assert other.stdout == default.stdout
        assert ", 12 waves of transactions" in other.stderr
