"""`xscl table`, and what the API says of tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import oracle
import pytest
from click.testing import CliRunner
from support.served_room import ServedRoom

import xscl
from broker.cli import main
from broker.documents.document import DocumentLine, tick
from broker.matching.engine import Engine, RegisteredQuery
from broker.matching.stepresult import StepResult
from broker.registry.registered import tables_of
from broker.tables.store import RowChange

RULES = """CREATE TABLE author (name KEY, posts DEFAULT 0, muted DEFAULT 'no');
news//item[author->a] WHERE author[a].muted = 'no' GRACE 1 min
    ON MATCH SET author[a].posts = author[a].posts + 1
"""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedRoom]:
    served = ServedRoom(tmp_path / "data")
    path = tmp_path / "rules.xscl"
    path.write_text(RULES)
    try:
        result = served.xscl("register", str(path))
        assert result.exit_code == 0, result.output
        created = [table for table, _ in tables_of(served.room.registry)]
        served.room.numbering.created = {table.name: table for table in created}
        yield served
    finally:
        served.close()


def commit(served: ServedRoom, *rows: RowChange) -> None:
    outbox = served.room.outbox
    through = outbox.through()
    outbox.commit(after=through, through=through + 1, step=StepResult(rows=rows))


def test_a_table_is_registered_listed_and_shown_like_a_query(served: ServedRoom) -> None:
    assert served.xscl("list").stdout.count("active") == 2
    assert "CREATE TABLE author" in served.xscl("show", "author").stdout
    commit(served, RowChange("author", "Ann", {"posts": 2.0, "muted": "no"}, 7))
    listed = served.xscl("table", "list", "--format", "json").stdout
    assert '"rows": 1' in listed
    assert '"rules.2"' in listed


def test_rows_are_shown_with_the_document_that_changed_them(served: ServedRoom) -> None:
    assert "all have the defaults" in served.xscl("table", "show", "author").stderr
    ann = RowChange("author", "Ann", {"posts": 2.0, "muted": "no"}, 7)
    commit(served, ann, RowChange("author", "Bob", {"posts": 1.0, "muted": "yes"}, 9))
    shown = served.xscl("table", "show", "author").stdout.splitlines()
    assert [line.split() for line in shown[1:]] == [
        ["Ann", "2", "no", "7"],
        ["Bob", "1", "yes", "9"],
    ]
    assert "Bob" not in served.xscl("table", "show", "author", "Ann").stdout
    commit(served, RowChange("author", "Bob", None, 11))
    assert "it has the defaults" in served.xscl("table", "show", "author", "Bob").stderr
    assert served.xscl("table", "show", "nobody").exit_code == 1


ODD = [
    RowChange("author", "A & B", {"posts": 2.0, "muted": "<no>"}),
    RowChange("author", "02", {"posts": "2", "muted": 3.5}),
    RowChange("author", 'c, "d"', {"posts": "02", "muted": "1e3"}),
    RowChange("author", "e\nf", {"posts": -1e300, "muted": ""}),
    RowChange("author", "7", {"posts": 0.1, "muted": " 2"}),
]


@pytest.mark.parametrize("output", ["csv", "json"])
def test_what_is_exported_and_loaded_is_what_it_was(
    served: ServedRoom, tmp_path: Path, output: str
) -> None:
    commit(served, *(row._replace(docid=7) for row in ODD))
    path = tmp_path / "authors"
    path.write_text(served.xscl("table", "export", "author", "--format", output).stdout)
    loaded = served.xscl("table", "load", "author", str(path))
    assert "5 rows are accepted, and set when a document or a tick" in loaded.stderr
    [segment] = served.room.spool.all_segments()
    [row] = served.room.spool.rows(segment).to_pylist()
    documents = oracle.number_documents([DocumentLine("TABLE.author", row["xml"], 1), tick(10**9)])
    engine = Engine(
        [RegisteredQuery(query) for query in xscl.parse(RULES, id="rules")], lateness_us=0
    )
    engine.process(engine.evaluate(documents), lambda docids: {1: row["xml"]})
    assert sorted(engine.tables.rows("author")) == sorted(ODD)


def test_cells_of_csv_are_numbers_where_they_are_spelled_so(
    served: ServedRoom, tmp_path: Path
) -> None:
    path = tmp_path / "authors.csv"
    path.write_text('name,posts,muted\nAnn,2,no\n007,"2",no\n')
    assert "2 rows are accepted" in served.xscl("table", "load", "author", str(path)).stderr
    [segment] = served.room.spool.all_segments()
    [row] = served.room.spool.rows(segment).to_pylist()
    assert b'<row name="Ann"><posts type="number">2</posts><muted>no</muted></row>' in row["xml"]
    assert b'<row name="007"><posts>2</posts><muted>no</muted></row>' in row["xml"]
    path.write_text("name,posts\nAnn,2,no\n")
    assert "more cells than columns" in served.xscl("table", "load", "author", str(path)).stderr
    path.write_text('name,posts\nAnn,"2\n')
    assert "a quote that does not end" in served.xscl("table", "load", "author", str(path)).stderr
    path.write_text('{"name": "Ann", "posts": true}\n')
    assert "'posts' is True" in served.xscl("table", "load", "author", str(path)).stderr


WRONG = {
    "<rows><row nam='Ann'/></rows>": "a `<row>` without the attribute 'name', which is the key",
    "<rows><row name='Ann'><post>1</post></row></rows>": "there is no column 'post'",
    "<rows><row name='a'/><remove name='b'/></rows>": "`<remove>` is neither `<row>` nor",
    "<delete id='a'/>": "a `<delete>` without the attribute 'name'",
    "<rows/>": "it has no `<row name=...>` and no `<delete name=...>`",
}


@pytest.mark.parametrize("xml", WRONG)
def test_who_publishes_a_load_that_says_nothing_is_told(
    served: ServedRoom, tmp_path: Path, xml: str
) -> None:
    path = tmp_path / "load.xml"
    path.write_text(xml)
    refused = served.xscl("publish", "TABLE.author", str(path))
    assert refused.exit_code == 1
    assert WRONG[xml] in refused.output
    rules, lines = tmp_path / "again.xscl", tmp_path / "lines.jsonl"
    rules.write_text(RULES)
    lines.write_text(json.dumps({"stream": "TABLE.author", "xml": xml, "time": "2026-01-01"}))
    replayed = CliRunner().invoke(
        main, ["replay", str(rules), "--documents", str(lines), "--no-spark"]
    )
    assert WRONG[xml] in replayed.output
    assert f"{lines}:1" in replayed.output


def test_a_load_with_a_column_that_is_not_there_is_refused(
    served: ServedRoom, tmp_path: Path
) -> None:
    path = tmp_path / "authors.jsonl"
    path.write_text('{"name": "Ann", "post": 3}\n')
    assert "no column 'post'" in served.xscl("table", "load", "author", str(path)).stderr


def test_a_table_in_use_is_not_removed(served: ServedRoom) -> None:
    refused = served.xscl("remove", "author")
    assert refused.exit_code == 1
    assert "the table 'author' is used by 'rules.2': remove these first" in refused.stderr
    assert served.xscl("remove", "rules.2").exit_code == 0
    assert served.xscl("remove", "author").exit_code == 0
