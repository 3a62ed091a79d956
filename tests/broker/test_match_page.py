"""docs/match.md is right: its example is what a replay writes, and its tables name every field."""

from __future__ import annotations

import json
import re
from pathlib import Path

from click.testing import CliRunner
from oracle.lines import render

from broker.cli import main
from broker.matching.match import Match, MatchDocument, MatchNode, MissingUnit

PAGE = (Path(__file__).parents[2] / "docs" / "match.md").read_text(encoding="utf-8")


def block(kind: str) -> str:
    """The page's block of a kind."""
    [found] = re.findall(rf"```{kind}\n(.*?\n)```", PAGE, re.DOTALL)
    return found


def test_the_example_is_the_line_that_a_replay_writes(tmp_path: Path) -> None:
    query, documents = tmp_path / "follow.xscl", tmp_path / "documents.jsonl"
    rows, matches = tmp_path / "rows.jsonl", tmp_path / "matches.jsonl"
    query.write_text(block("xscl"))
    documents.write_text(block("documents"))
    row = {"query": "follow", "parameters": json.loads(block("parameters"))}
    rows.write_text(json.dumps(row) + "\n")
    replay = ["replay", str(query), "--no-spark", "--documents", str(documents)]
    done = CliRunner().invoke(main, [*replay, "--parameters", str(rows), "--matches", str(matches)])
    assert done.exit_code == 0, done.output
    shown = json.dumps(json.loads(block("match")), ensure_ascii=False)
    assert matches.read_text(encoding="utf-8") == shown + "\n"


def test_the_tables_name_every_field_of_a_line_in_its_order() -> None:
    node = MatchNode(0, 0, "value")
    match = Match(
        id="id",
        query="query",
        start_us=0,
        end_us=0,
        documents=(MatchDocument(1, "S", "1", 0, 0, 1),),
        roots=(0,),
        nodes={"x": node},
        witnesses=({"x": node},),
        output="<match/>",
        witnesses_omitted=1,
        parameters={"p": "value"},
        output_error="why",
        decided=1,
        documents_omitted=1,
        values={"top": 1},
        confidence=0.5,
        missing=(MissingUnit(1, "S"),),
    )
    fields = json.loads(render(match))
    of_line, of_document, of_node = (
        [name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in names(row)]
        for table in re.findall(r"^\| field .*?\n\n", PAGE, re.MULTILINE | re.DOTALL)
    )
    assert of_line == list(fields)
    assert of_document == list(fields["documents"][0])
    assert of_node == list(fields["witnesses"][0]["x"])


def names(cell: str) -> list[str]:
    return re.findall(r"`(\w+)`", cell)
