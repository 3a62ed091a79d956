"""What the broker has on the disk says which format it has: older is read, newer is refused."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from broker.delivery import store as deliveries
from broker.matching.match import FoundMatch
from broker.matching.stepresult import StepResult
from broker.pipeline import outboxrows
from broker.pipeline.outbox import Outbox
from broker.registry import file as registryfile
from broker.registry.audit import AuditTrail
from broker.registry.queries import QueryState, Registry
from broker.registry.subscription import SubscriptionState
from broker.registry.tokens import Tokens
from broker.settings.database import DatabaseError, connect, transaction
from feeds import FeedStore, FeedStoreError

OLD = ["c0ffee" * 5 + "01", "c0ffee" * 5 + "02", "m", "m2"]
"""Ids of matches."""

Open = Callable[[Path], Any]

FILES: dict[str, Open] = {
    "registry.db": Registry,
    "outbox.db": Outbox,
    "audit.db": AuditTrail,
    "tokens.db": Tokens,
    "deliveries.db": deliveries.open_deliveries,
    "feeds.db": FeedStore,
}


_WITH_BEGINNINGS = 5
"""The first format of a registry that says when a subscription began and ended."""


def file_format(path: Path, becomes: int | None = None) -> int:
    with sqlite3.connect(path) as db:
        if becomes is not None:
            db.execute(f"PRAGMA user_version = {becomes}")
        found = int(db.execute("PRAGMA user_version").fetchone()[0])
    db.close()
    return found


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_a_later_format_is_refused_and_left_as_it_is(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    FILES[name](path).close()
    newest = file_format(path)
    assert newest >= 1
    file_format(path, newest + 1)
    with pytest.raises((DatabaseError, FeedStoreError), match=rf"{name} has format {newest + 1}"):
        FILES[name](path)
    assert file_format(path) == newest + 1


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_no_database_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"what a disk left" * 300)
    with pytest.raises((DatabaseError, FeedStoreError), match=rf"{name} cannot be used"):
        FILES[name](tmp_path / name)


@pytest.mark.parametrize("former", range(1, len(registryfile._STEPS)))
def test_a_registry_of_a_former_format_keeps_what_it_holds(tmp_path: Path, former: int) -> None:
    path = tmp_path / "registry.db"
    db = connect(path, registryfile._STEPS[:former])
    with transaction(db):
        db.execute("UPDATE revision SET number = 3")
        for revision, state in ((1, "removed"), (2, "active")):
            db.execute(
                f"INSERT INTO query VALUES ({revision}, 'q', 'v', 'S//a', '{state}', 7, 7, '', 5)"
            )
        db.execute(
            "INSERT INTO subscription (id, query, parameters, kind, address, point, state, reason,"
            " options, created_us, revision) VALUES"
            " ('sub_1', 'q', '{}', 'pull', '', 8, 'active', '', '{}', 5, 3),"
            " ('sub_2', 'q', '{\"w\":1}', 'pull', '', 8, 'removed', '', '{}', 5, 3)"
        )
        if former >= _WITH_BEGINNINGS:
            db.execute("UPDATE subscription SET begun = 1")
            db.execute("UPDATE subscription SET ended = 3 WHERE state = 'removed'")
    db.close()
    opened = Registry(path)
    assert file_format(path) == len(registryfile._STEPS)
    [query] = opened.queries()
    assert (query.id, query.text, query.state, query.point) == ("q", "S//a", QueryState.ACTIVE, 7)
    found = opened.subscriptions.get("sub_1")
    assert (found.query, found.state, found.point) == ("q", SubscriptionState.ACTIVE, 8)
    assert found.until is None, "its query was removed before, and stated anew"
    # What waits in the spool is matched as of the version that its segments name.
    assignments = opened.subscriptions.assignments
    assert [len(list(assignments("q", as_of=version))) for version in (2, 3)] == [2, 1]
    assert opened.register("q", "S//b", version="w", point=9).revision == 4
    opened.close()


_WITH_NUMBERS = 12
"""The first format of an outbox that knows ids by their numbers."""


@pytest.mark.parametrize("former", range(1, len(outboxrows.STEPS)))
def test_an_outbox_of_a_former_format_keeps_what_it_holds(tmp_path: Path, former: int) -> None:
    path = tmp_path / "outbox.db"
    first = outboxrows.STEPS[0].replace("id TEXT NOT NULL,", "id TEXT NOT NULL UNIQUE,", 1)
    db = connect(path, (first, *outboxrows.STEPS[1:former]))
    with transaction(db):
        # Two ids that begin alike have one number; a number that was given is not given again.
        for seq, name in (*enumerate(OLD, 1), (9, "0" * 32)):
            db.execute(f"INSERT INTO match VALUES ({seq}, '{name}', 'q', '{{}}', 9, 8, '{{}}', 5)")
        db.execute("DELETE FROM match WHERE seq = 9")
        if former >= _WITH_NUMBERS:
            _, numbers, _ = outboxrows.STEPS[_WITH_NUMBERS - 1].split(";\n")
            db.execute(numbers)
        db.execute("INSERT INTO dead_letter VALUES (4, 'not XML', 5)")
        db.execute("UPDATE progress SET through = 3")
    db.close()
    opened = Outbox(path)
    assert file_format(path) == len(outboxrows.STEPS)
    assert [(match.seq, match.id) for match in opened.matches.find()] == [*enumerate(OLD, 1)]
    assert [match.seq for match in opened.matches.of_topic("q", "{}")] == [1, 2, 3, 4]
    assert [letter.docid for letter in opened.dead_letters()] == [4]
    again = [FoundMatch(9, "q", name, "{}", 8, "{}") for name in (*OLD[::-1], "f" * 32)]
    assert opened.commit(after=3, through=4, step=StepResult(again))
    assert [match.seq for match in opened.matches.find()] == [1, 2, 3, 4, 10]
    opened.close()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_feeds_from_before_formats_were_written_are_read(tmp_path: Path) -> None:
    FeedStore(tmp_path / "feeds.db").close()
    file_format(tmp_path / "feeds.db", 0)
    FeedStore(tmp_path / "feeds.db").close()
    assert file_format(tmp_path / "feeds.db") == 1
