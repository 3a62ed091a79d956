"""`xscl table`, and what the API says of tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.served_room import ServedRoom

from broker.matching.stepresult import StepResult
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
        ["Ann", "2.0", "no", "7"],
        ["Bob", "1.0", "yes", "9"],
    ]
    assert "Bob" not in served.xscl("table", "show", "author", "Ann").stdout
    commit(served, RowChange("author", "Bob", None, 11))
    assert "it has the defaults" in served.xscl("table", "show", "author", "Bob").stderr
    assert served.xscl("table", "show", "nobody").exit_code == 1


def test_what_is_exported_can_be_loaded(served: ServedRoom, tmp_path: Path) -> None:
    commit(served, RowChange("author", "A & B", {"posts": 2.0, "muted": "<no>"}, 7))
    path = tmp_path / "authors.csv"
    path.write_text(served.xscl("table", "export", "author", "--format", "csv").stdout)
    assert path.read_text() == "name,posts,muted\nA & B,2.0,<no>\n"
    loaded = served.xscl("table", "load", "author", str(path))
    assert "1 row is accepted, and set when a document or a tick" in loaded.stderr
    [segment] = served.room.spool.all_segments()
    [row] = served.room.spool.rows(segment).to_pylist()
    assert b'<row name="A &amp; B"><posts>2.0</posts><muted>&lt;no&gt;</muted></row>' in row["xml"]


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
