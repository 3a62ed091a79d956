from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from oracle.lines import as_found
from support import subscribers

from broker.delivery.tail import follow
from broker.documents.document import Document
from broker.matching.match import FoundMatch
from broker.matching.stepresult import StepResult
from broker.pipeline.matchlog import MatchLog
from broker.pipeline.outbox import Outbox
from broker.settings.database import DatabaseError, connect, transaction


@pytest.fixture
def outbox(tmp_path: Path) -> Iterator[Outbox]:
    outbox = Outbox(tmp_path / "outbox.db")
    yield outbox
    outbox.close()


def found(number: int, **given: Any) -> FoundMatch:
    return as_found(subscribers.found(number, **given))


def published(docid: int, *, depth: int = 1, stream: str = "P") -> Document:
    return Document(docid, stream, f"m{docid}", 1, 2, 3, 4, b"<p/>", depth, f"m{docid}.{depth}")


def test_a_batch_that_is_committed_already_changes_nothing(outbox: Outbox) -> None:
    assert outbox.commit(after=0, through=3, step=StepResult([found(1)]))
    assert not outbox.commit(after=0, through=3, step=StepResult([found(1), found(2)]))
    assert outbox.through() == 3
    assert [match.id for match in outbox.matches.find()] == [found(1).id]


def test_what_is_found_again_takes_no_number(outbox: Outbox) -> None:
    outbox.add(StepResult([found(1), found(2)]))
    outbox.add(StepResult([found(1), found(2), found(3)]))
    outbox.add(StepResult([found(2), found(4)]))
    assert [(match.seq, match.id) for match in outbox.matches.find()] == [
        (number, found(number).id) for number in (1, 2, 3, 4)
    ]


def test_progress_is_kept_across_restarts(tmp_path: Path) -> None:
    first = Outbox(tmp_path / "o.db")
    first.commit(after=0, through=7, step=StepResult([found(1)], dead_letters=[(4, "not XML")]))
    first.close()
    second = Outbox(tmp_path / "o.db")
    assert second.through() == 7
    assert second.matches.last_seq() == 1
    assert [(dead.docid, dead.reason) for dead in second.dead_letters()] == [(4, "not XML")]
    second.close()


def test_it_is_kept_for_a_week_when_a_segment_was_committed(tmp_path: Path) -> None:
    now_us = [1_000_000]
    outbox = Outbox(tmp_path / "o.db", now_us=lambda: now_us[0])
    day_us = 86_400_000_000

    def commit(after: int, through: int, wait_us: int = 0) -> int:
        now_us[0] += wait_us
        assert outbox.commit(after=after, through=through, step=StepResult())
        return now_us[0]

    first = commit(0, 2)
    commit(2, 3, 1_000_000)
    second = commit(3, 4, 1_000_000)
    assert [outbox.committed_us(n) for n in (1, 2, 3, 4, 5)] == [*[second] * 4, None]
    assert second - first == 2_000_000
    third = commit(4, 6, day_us)
    assert [outbox.committed_us(n) for n in (4, 5, 6, 7)] == [second, third, third, None]
    last = commit(6, 7, 7 * day_us)
    assert [outbox.committed_us(n) for n in (4, 6, 7)] == [None, third, last]
    outbox.close()


def test_a_match_is_here_once_whatever_is_replayed(outbox: Outbox) -> None:
    outbox.commit(after=0, through=1, step=StepResult([found(1), found(1)]))
    outbox.commit(after=1, through=2, step=StepResult([found(1), found(2)]))
    assert [match.id for match in outbox.matches.find()] == [found(1).id, found(2).id]


def test_the_order_of_matches_does_not_depend_on_batches(tmp_path: Path) -> None:
    matches = [found(n, query=query) for n in (3, 1, 2) for query in ("Q2", "Q1")]
    one, many = Outbox(tmp_path / "one.db"), Outbox(tmp_path / "many.db")
    one.commit(after=0, through=3, step=StepResult(matches))
    for through in (1, 2, 3):
        some = [match for match in matches if match.position == through + 1]
        many.commit(after=through - 1, through=through, step=StepResult(some))
    lines = [[match.line for match in outbox.matches.find()] for outbox in (one, many)]
    assert lines[0] == lines[1]
    one.close()
    many.close()


def test_a_commit_that_fails_keeps_nothing(outbox: Outbox) -> None:
    with pytest.raises(sqlite3.Error):
        outbox.commit(after=0, through=1, step=StepResult([found(1)], dead_letters=[(1, None)]))  # type: ignore[list-item]
    assert (outbox.through(), outbox.matches.last_seq()) == (0, 0)
    assert outbox.commit(after=0, through=1, step=StepResult([found(1)]))


def test_a_commit_for_which_there_is_no_room_says_where(outbox: Outbox) -> None:
    [pages] = outbox._db.execute("PRAGMA page_count").fetchone()
    outbox._db.execute(f"PRAGMA max_page_count = {pages}")
    step = StepResult([found(number) for number in range(2_000)])
    with pytest.raises(DatabaseError, match=r"outbox\.db cannot be written: .*is the disk full\?"):
        outbox.commit(after=0, through=1, step=step)
    assert outbox.through() == 0


def test_pages_hold_several_lines_and_a_file_that_is_there_keeps_its_own(tmp_path: Path) -> None:
    old = sqlite3.connect(tmp_path / "old.db")
    old.executescript("PRAGMA page_size = 4096; PRAGMA journal_mode = WAL; CREATE TABLE t (x);")
    old.close()
    connect(tmp_path / "old.db", (), page_bytes=16_384).close()
    Outbox(tmp_path / "new.db").close()
    pages = []
    for name in ("old", "new"):
        with closing(sqlite3.connect(tmp_path / f"{name}.db")) as file:
            pages += file.execute("PRAGMA page_size").fetchone()
    assert pages == [4096, 16_384]


def test_published_documents_come_back_as_they_were_in_order_of_position(outbox: Outbox) -> None:
    documents = [published(2), published(1, depth=2), published(1), published(3, stream="R")]
    outbox.commit(after=0, through=1, step=StepResult(published=documents))
    assert outbox.published() == [documents[2], documents[1], documents[0], documents[3]]
    assert outbox.published(after=1, through=2) == [documents[0]]
    assert outbox.published(stream="R") == [documents[3]]
    assert outbox.latest_published("P", limit=1) == [documents[2]]


def test_a_topic_has_the_matches_of_one_assignment_behind_a_point(outbox: Outbox) -> None:
    ann, bob = {"who": "Ann"}, {"who": "Bob"}
    matches = [found(n, parameters=p) for n in (1, 2, 3) for p in (ann, bob)]
    outbox.commit(after=0, through=1, step=StepResult(matches))
    mine = outbox.matches.of_topic("Q1", '{"who":"Ann"}', point=1)
    assert [(match.oldest, match.parameters) for match in mine] == [
        (2, '{"who":"Ann"}'),
        (3, '{"who":"Ann"}'),
    ]


def test_a_query_has_the_matches_of_all_its_assignments_in_order(outbox: Outbox) -> None:
    given = [{"who": "Ann"}, {}, {"who": "Bob"}]  # It had no parameters once.
    matches = [found(n, parameters=given[n % 3]) for n in range(1, 8)]
    others = [found(n, query="Q2") for n in range(1, 8)]
    outbox.commit(after=0, through=1, step=StepResult(sorted(matches + others)))
    log = outbox.matches
    numbers = [match.seq for match in log.find() if match.query == "Q1"]
    assert numbers == [1, 3, 5, 7, 9, 11, 13]
    assert [match.seq for match in log.find(query="Q1")] == numbers
    assert [match.seq for match in log.find(3, query="Q1", through=10, limit=9)] == [5, 7, 9]
    assert [match.seq for match in log.find(3, query="Q1", limit=2)] == [5, 7]
    of_document = [match.seq for match in log.find(document=4) if match.query == "Q1"]
    assert [match.seq for match in log.find(query="Q1", document=4)] == of_document != []
    assert [match.seq for match in log.newest("Q1", limit=2)] == [13, 11]
    assert (log.count("Q1"), log.counts()) == (7, {"Q1": 7, "Q2": 7})


def test_matches_of_a_query_are_read_by_indexes_and_not_sorted(tmp_path: Path) -> None:
    plans: list[str] = []
    Outbox(tmp_path / "o.db").close()
    with closing(sqlite3.connect(tmp_path / "o.db")) as file:

        def explain(sql: str, *values: object) -> list[tuple[object, ...]]:
            plan = file.execute(f"EXPLAIN QUERY PLAN {sql}", values).fetchall()
            plans.append("; ".join(row[-1] for row in plan))
            return []

        log = MatchLog(explain)
        log.find(5, query="Q1")
        log.find(5, query="Q1", document=4)
        log.newest("Q1", limit=9)
        log.of_topic("Q1", "{}", after=7)
    for plan in plans:
        assert "SEARCH its USING PRIMARY KEY (query=? AND parameters=?" in plan, plan
        assert "SCAN match" not in plan, plan
        assert "TEMP B-TREE" not in plan, plan
    assert ["match_by_assigned" in plan for plan in plans] == [True, True, True, False]


def test_the_place_of_a_docid_or_a_time_is_found(tmp_path: Path) -> None:
    times = iter(range(1_000))
    outbox = Outbox(tmp_path / "o.db", now_us=lambda: next(times))
    for number in range(1, 21):
        outbox.commit(after=number - 1, through=number, step=StepResult([found(number)]))
    topic = ("Q1", "{}")
    assert outbox.matches.topic_start(*topic) == 0
    assert outbox.matches.topic_start(*topic, position=11) == 9
    assert outbox.matches.topic_start(*topic, point=11) == 11
    assert outbox.matches.topic_start(*topic, position=99) == 20
    assert outbox.matches.seq_since(5) == 5
    outbox.close()


async def test_a_follower_sees_what_was_committed_and_what_comes(outbox: Outbox) -> None:
    outbox.commit(after=0, through=1, step=StepResult([found(1), found(1, query="Q2")]))
    following = follow(outbox, after=0, query="Q1", poll_s=10)
    async with asyncio.timeout(5):
        assert (await anext(following)).id == found(1).id
        coming = asyncio.ensure_future(anext(following))
        await asyncio.sleep(0)
        outbox.commit(after=1, through=2, step=StepResult([found(2)]))
        assert (await coming).id == found(2).id
    await following.aclose()


async def test_a_follower_sees_what_another_process_commits(tmp_path: Path) -> None:
    here, there = Outbox(tmp_path / "o.db"), Outbox(tmp_path / "o.db")
    following = follow(here, after=0, poll_s=0.01)
    there.commit(after=0, through=1, step=StepResult([found(1)]))
    async with asyncio.timeout(5):
        match = await anext(following)
    assert match.id == found(1).id
    await following.aclose()
    here.close()
    there.close()


def test_a_file_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    db = connect(tmp_path / "x.db", ["CREATE TABLE a (b)", "CREATE TABLE c (d)"])
    db.close()
    with pytest.raises(DatabaseError, match="format 2"):
        connect(tmp_path / "x.db", ["CREATE TABLE a (b)"])


def test_an_older_file_is_brought_up(tmp_path: Path) -> None:
    db = connect(tmp_path / "x.db", ["CREATE TABLE a (b)"])
    with transaction(db):
        db.execute("INSERT INTO a VALUES (1)")
    db.close()
    db = connect(tmp_path / "x.db", ["CREATE TABLE a (b)", "ALTER TABLE a ADD COLUMN c"])
    assert db.execute("SELECT b, c FROM a").fetchall() == [(1, None)]
    db.close()


def test_a_listener_that_fails_does_not_fail_the_commit(outbox: Outbox) -> None:
    heard: list[int] = []
    outbox.listen(lambda: heard.append(1 // 0))
    outbox.listen(lambda: heard.append(outbox.through()))
    assert outbox.commit(after=0, through=4, step=StepResult())
    assert heard == [4]


def test_matches_found_late_for_older_documents_are_behind_the_right_place(
    outbox: Outbox,
) -> None:
    outbox.commit(after=0, through=1, step=StepResult([found(10), found(11)]))
    outbox.commit(after=1, through=2, step=StepResult([found(3)]))
    assert outbox.matches.topic_start("Q1", "{}", point=10) == 1
    assert outbox.matches.topic_start("Q1", "{}", point=2) == 0
