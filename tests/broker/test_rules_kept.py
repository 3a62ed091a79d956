"""Rows are of the same document number as matches, whatever crashes, and whoever comes later."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from itertools import product
from pathlib import Path

import pytest
from support.budgets import UNLIMITED
from support.examples import some

import xscl
from broker.documents.disk import Disk
from broker.documents.document import DocumentLine, tick
from broker.documents.ingest import Ingest
from broker.documents.spool import Spool, SpoolWriter
from broker.pipeline.backfill import LookBackError, check_unread
from broker.pipeline.evaluation import PlanStore
from broker.pipeline.outbox import Outbox
from broker.pipeline.steps import Pipeline
from broker.registry.queries import QueryState, Registry
from broker.registry.registered import Engines, check_among, loaded_tables, users_among

POINTS = ("evaluated", "processed", "committed")

TABLE = "CREATE TABLE author (name KEY, posts DEFAULT 0, muted DEFAULT 'no')"
COUNT = """SELECT * FROM S//i->a FOLLOWED BY {a/k = b/k, 90 s} S//i->b GRACE 70 s
    ON MATCH SET author[b/k].posts = author[b/k].posts + 1 PUBLISH pairs"""
MUTE = """pairs//i->p WHERE author[p/k].posts >= 3 GRACE 70 s
    ON MATCH SET author[p/k].muted = 'yes', SET author[p/k].posts = 0"""
SEEN = "SELECT * FROM S//i->a WHERE author[a/k].muted = 'no' GRACE 70 s PUBLISH seen"
QUIET = "S//i->a NOT FOLLOWED BY {a/k = b/k, 80 s} seen//i->b GRACE 70 s"
STATEMENTS = {"author": TABLE, "count": COUNT, "mute": MUTE, "seen": SEEN, "quiet": QUIET}

State = tuple[list[tuple[str, str]], list[object], list[str]]


class Crash(BaseException):
    """The process dies."""


class Broker:
    """The files of a broker, and its pipeline."""

    def __init__(
        self, directory: Path, reached: Callable[[str], None] = lambda point: None
    ) -> None:
        self._files = ExitStack()
        self.registry = self._files.enter_context(closing(Registry(directory / "registry.db")))
        self.outbox = self._files.enter_context(closing(Outbox(directory / "outbox.db")))
        disk = Disk(is_durable=False)
        self.spool = self._files.enter_context(closing(SpoolWriter(directory / "spool", disk)))
        self._ingest = Ingest(self.spool)
        engines = Engines(
            self.registry, lateness_us=86_400_000_000, budget=UNLIMITED, pauses=self.outbox.pauses
        )
        self.pipeline = Pipeline(
            Spool(directory / "spool"),
            self.outbox,
            engines.make,
            PlanStore(directory / "plans"),
            reached=reached,
            plan_of=engines.plan,
            follow=engines.follow,
        )

    def __enter__(self) -> Broker:
        return self

    def __exit__(self, *exc: object) -> None:
        self._files.close()

    def register(self, name: str, text: str) -> None:
        [query] = xscl.parse(text, id=name)
        check_among(self.registry, query)
        point = self.spool.next_docid - 1
        self.registry.register(name, query.text, version=query.version, point=point)
        self.pipeline.prepare(self.registry.revision())

    def accept(self, lines: list[DocumentLine]) -> None:
        """Take documents, three in a segment."""
        self._ingest.tables = loaded_tables(self.registry)
        for start in range(0, len(lines), 3):
            some_lines = lines[start : start + 3]
            receipts = self._ingest.append(some_lines, registry_version=self.registry.revision())
            assert all(receipt.docid for receipt in receipts)

    def drain(self, size: int = 6) -> None:
        for _ in self.pipeline.drain(batch_documents_max=size):
            pass

    def state(self) -> State:
        found = [(match.query, match.id) for match in self.outbox.matches.find(limit=10_000)]
        return found, [*self.outbox.rows()], [each.key for each in self.outbox.published()]


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


def live(broker: Broker, size: int = 6) -> None:
    """Register, accept and process everything that is not there yet."""
    broker.pipeline.recover(broker.registry.revision())
    for name, text in STATEMENTS.items():
        if not broker.registry.history(name):
            broker.register(name, text)
    if broker.spool.next_docid == 1:
        broker.accept(lines())
    broker.drain(size)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> State:
    with Broker(tmp_path_factory.mktemp("undisturbed")) as broker:
        live(broker)
        state = broker.state()
    queries = {query for query, _ in state[0]}
    assert queries == {"count", "mute", "seen", "quiet"}
    assert state[1]
    assert state[2]
    return state


@pytest.mark.parametrize(("point", "visit"), some(product(POINTS, [1, 2, 3, 5]), 6))
def test_a_crash_at_a_commit_point_changes_no_cell_and_no_match(
    tmp_path: Path, undisturbed: State, point: str, visit: int
) -> None:
    visits = 0

    def reached(here: str) -> None:
        nonlocal visits
        visits += here == point
        if here == point and visits == visit:
            raise Crash

    with Broker(tmp_path, reached) as broker, suppress(Crash):
        live(broker)
    assert visits >= visit, "it has crashed"
    with Broker(tmp_path) as broker:
        live(broker)
        assert broker.state() == undisturbed


@pytest.mark.parametrize("size", [1, 3, 40])
def test_batches_change_no_cell_and_no_match(tmp_path: Path, undisturbed: State, size: int) -> None:
    with Broker(tmp_path) as broker:
        live(broker, size)
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
