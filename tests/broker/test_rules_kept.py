"""Rows are of the same document number as matches, whatever crashes, and whoever comes later."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path

import pytest
from support.crashing_broker import POINTS, Crash, CrashAt, CrashingBroker
from support.examples import some

import xscl
from broker.documents.document import DocumentLine, tick
from broker.pipeline.lookback.backfill import LookBackError, check_unread
from broker.registry.queries import QueryState
from broker.registry.registered import loaded_tables, users_among

TABLE = """CREATE TABLE author
    (name KEY, posts DEFAULT 0, muted DEFAULT 'no', most DEFAULT 0, given DEFAULT 0)"""
COUNT = """SELECT * FROM S//i->a FOLLOWED BY {a/k = b/k, 90 s} S//i->b GRACE 70 s
    ON MATCH SET author[b/k].posts = author[b/k].posts + 1 PUBLISH pairs"""
MUTE = """pairs//i->p WHERE author[p/k].posts >= 3 GRACE 70 s
    ON MATCH SET author[p/k].muted = 'yes', SET author[p/k].posts = 0"""
SEEN = "SELECT * FROM S//i->a WHERE author[a/k].muted = 'no' GRACE 70 s PUBLISH seen"
QUIET = "S//i->a NOT FOLLOWED BY {a/k = b/k, 80 s} seen//i->b GRACE 70 s"
OFTEN = """SELECT <often>{k} {count()}</often> FROM S//i->a[k->k] WHERE author[k].muted = 'no'
    WINDOW 1000 s BY k HAVING count() != author[k].most GRACE 70 s
    ON MATCH SET author[k].most = count()"""
FEW = """S//i->a[k->k] WHERE author[k].muted = 'no' LIMIT 1 PER 300 s BY k GRACE 70 s
    ON MATCH SET author[k].given = author[k].given + 1"""
STATEMENTS = {
    "author": TABLE,
    "count": COUNT,
    "mute": MUTE,
    "seen": SEEN,
    "quiet": QUIET,
    "often": OFTEN,
    "few": FEW,
}

State = tuple[list[tuple[str, str]], list[object], list[str]]


class Broker(CrashingBroker):
    """A broker that is a day late."""

    def __init__(
        self, directory: Path, reached: Callable[[str], None] = lambda point: None
    ) -> None:
        super().__init__(directory, reached, lateness_us=86_400_000_000)

    def live(self, size: int = 6) -> None:
        """Register, accept and process everything that is not there yet."""
        self.catch_up(STATEMENTS, lines(), size)

    def accept(self, lines: Sequence[DocumentLine]) -> None:
        self.ingest.tables = loaded_tables(self.registry)
        super().accept(lines)

    def state(self) -> State:
        published = [each.key for each in self.outbox.published()]
        return self.found(), [*self.outbox.rows()], published


def lines() -> list[DocumentLine]:
    """Return documents, some late, some at one time, and two loads."""
    found = []
    for number in range(1, 40):
        second = number * 7 - (number % 5) * 9
        xml = f"<i><k>{'xyz'[number * number % 3]}</k></i>"
        stream = "S"
        if number in (9, 20):
            stream = "TABLE.author"
            xml = '<rows><row name="x"><muted>no</muted></row><delete name="z"/></rows>'
        at_us = 1_000_000_000_000_000 + second * 10_000_000
        found.append(DocumentLine(stream, xml.encode(), at_us, at_us + 10**9, key=str(number)))
    return [*found, tick(2_000_000_000_000_000)]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> State:
    with Broker(tmp_path_factory.mktemp("undisturbed")) as broker:
        broker.live()
        state = broker.state()
    queries = {query for query, _ in state[0]}
    assert queries == STATEMENTS.keys() - {"author"}
    assert state[1]
    assert state[2]
    return state


@pytest.mark.parametrize(("point", "visit"), some(product(POINTS, [1, 2, 3, 5]), 2))
def test_a_crash_at_a_commit_point_changes_no_cell_and_no_match(
    tmp_path: Path, undisturbed: State, point: str, visit: int
) -> None:
    reached = CrashAt(point, visit)
    with Broker(tmp_path, reached) as broker, suppress(Crash):
        broker.live()
    assert reached.has_crashed
    with Broker(tmp_path) as broker:
        broker.live()
        assert broker.state() == undisturbed


@pytest.mark.parametrize("size", [1, 3, 40])
def test_batches_change_no_cell_and_no_match(tmp_path: Path, undisturbed: State, size: int) -> None:
    with Broker(tmp_path) as broker:
        broker.live(size)
        assert broker.state() == undisturbed


def test_a_query_that_comes_later_sees_the_rows_that_are_there(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker:
        broker.pipeline.recover(0)
        for name in ("author", "count"):
            broker.register(name, STATEMENTS[name])
        broker.accept(lines()[:20])
        broker.drain()
        before = {row.key: row for row in broker.outbox.rows()}
        assert before
        broker.register("late", "S//i->a WHERE author[a/k].posts > 0 GRACE 70 s")
        broker.accept(lines()[20:])
    for _ in range(2):  # also by an engine that is made anew
        with Broker(tmp_path) as broker:
            broker.pipeline.recover(broker.registry.revision())
            broker.drain(3)
            late = [m for m in broker.outbox.matches.find(limit=1_000) if m.query == "late"]
            assert late
            assert all(match.oldest > 20 for match in late)


def test_the_registry_refuses_what_does_not_go_together(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker:
        with pytest.raises(xscl.XsclError, match="no text here creates the table `author`"):
            broker.register("count", COUNT)
        broker.register("author", TABLE)
        assert not loaded_tables(broker.registry)
        broker.register("count", COUNT)
        assert loaded_tables(broker.registry) == {"author"}
        with pytest.raises(xscl.XsclError, match="has no column `post`"):
            broker.register("wrong", "S//i->a WHERE author[a/k].post = 0 GRACE 70 s")
        with pytest.raises(xscl.XsclError, match="too, with GRACE 70 s"):
            broker.register("hasty", "S//i->a WHERE author[a/k].posts = 0 GRACE 1 s")
        [table] = xscl.parse(TABLE)
        assert users_among(broker.registry, table) == ["count"]
        with pytest.raises(xscl.XsclError, match="has no column `posts`"):
            broker.register("author", "CREATE TABLE author (name KEY, muted DEFAULT 'no')")
        [query] = xscl.parse(COUNT)
        with pytest.raises(LookBackError, match="rows have no past"):
            check_unread(broker.registry, query)
        broker.registry.set_state("count", QueryState.REMOVED, effective=0)
        assert not users_among(broker.registry, table)
