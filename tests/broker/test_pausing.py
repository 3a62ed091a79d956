"""A pause is part of its batch's commit, and reaches the registry whatever crashes in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from support.budgets import UNLIMITED
from support.examples import some

import xscl
from broker.delivery.attempt import Outcome, OutcomeKind
from broker.documents.disk import Disk
from broker.documents.document import DocumentLine
from broker.documents.ingest import Ingest
from broker.documents.spool import Spool, SpoolWriter
from broker.pipeline.evaluation import PlanStore
from broker.pipeline.outbox import Outbox
from broker.pipeline.steps import Pipeline
from broker.registry.queries import QueryState, Registry
from broker.registry.registered import Engines
from broker.registry.subscription import Destination, DestinationKind, Options
from broker.service.pausing import Pausing

BUDGET = replace(UNLIMITED, matches_per_1000_documents=60)
BOMB = "S//i->a JOIN {a/lang = b/lang, 1 d} S//i->b"
CALM = "S//i->a FOLLOWED BY {a/t = b/t, 1 d} S//i->b"
POINTS = ("evaluated", "processed", "committed")


class Crash(BaseException):
    """The process dies."""


class Broker:
    """The files of a broker, its pipeline, and the step that brings pauses to the registry."""

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
            self.registry,
            lateness_us=0,
            budget=BUDGET,
            pauses=self.outbox.pauses,
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
        self.pausing = Pausing(self.outbox, self.registry)

    def __enter__(self) -> Broker:
        return self

    def __exit__(self, *exc: object) -> None:
        self._files.close()

    def start(self) -> None:
        self.pausing.apply()
        self.pipeline.recover(self.registry.revision())

    def register(self, name: str, text: str) -> None:
        [query] = xscl.parse(text, id=name)
        point = self.spool.next_docid - 1
        self.registry.register(name, query.text, version=query.version, point=point)
        self.pipeline.prepare(self.registry.revision())

    def accept(self, count: int) -> None:
        """Take documents, three in a segment."""
        first = self.spool.next_docid
        for start in range(first, first + count, 3):
            lines = [line(number) for number in range(start, start + 3)]
            self._ingest.append(lines, registry_version=self.registry.revision())

    def drain(self) -> None:
        for _ in self.pipeline.drain(batch_documents_max=6):
            self.pausing.apply()
            self.pipeline.prepare(self.registry.revision())

    def found(self) -> list[tuple[str, str]]:
        return [(match.query, match.id) for match in self.outbox.matches.find(limit=10_000)]


def line(number: int) -> DocumentLine:
    xml = f"<i><lang>{'en' if number % 4 else 'de'}</lang><t>{number % 29}</t></i>"
    time_us = number * 60_000_000
    return DocumentLine("S", xml.encode(), time_us, time_us, key=str(number))


@pytest.fixture
def undisturbed(tmp_path: Path) -> Iterator[Broker]:
    directory = tmp_path / "undisturbed"
    directory.mkdir()
    with Broker(directory) as broker:
        live(broker)
        yield broker


def live(broker: Broker) -> None:
    """Register, accept and process everything that is not there yet."""
    broker.start()
    for name, text in (("bomb", BOMB), ("calm", CALM)):
        if not broker.registry.history(name):
            broker.register(name, text)
    if broker.spool.next_docid == 1:
        broker.accept(48)
    broker.drain()


def test_a_query_over_its_budget_is_paused_in_the_registry_with_the_reason(
    undisturbed: Broker,
) -> None:
    [pause] = undisturbed.outbox.pauses()
    bomb = undisturbed.registry.query("bomb")
    assert (bomb.state, bomb.effective, bomb.reason) == (
        QueryState.PAUSED,
        pause.docid - 1,
        pause.reason,
    )
    assert "matches_per_1000_documents" in bomb.reason
    assert undisturbed.registry.query("calm").state is QueryState.ACTIVE
    assert undisturbed.pipeline.through == undisturbed.spool.last
    assert not undisturbed.pausing.apply(), "once is enough"


@pytest.mark.parametrize(("point", "visit"), some(product(POINTS, [1, 2, 3, 4]), 7))
def test_a_crash_at_a_commit_point_changes_no_match_and_no_pause(
    tmp_path: Path, undisturbed: Broker, point: str, visit: int
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
        assert broker.found() == undisturbed.found()
        assert broker.outbox.pauses() == undisturbed.outbox.pauses()
        now, then = (each.registry.query("bomb") for each in (broker, undisturbed))
        assert (now.state, now.effective, now.reason) == (then.state, then.effective, then.reason)


def test_documents_of_older_registry_versions_do_not_wake_a_paused_query(
    tmp_path: Path, undisturbed: Broker
) -> None:
    with Broker(tmp_path) as broker:
        broker.start()
        for name, text in (("bomb", BOMB), ("calm", CALM)):
            broker.register(name, text)
        broker.accept(24)
        broker.register("late", CALM)
        broker.accept(24)
        for _ in broker.pipeline.drain(batch_documents_max=6):
            pass  # nobody brings the pause to the registry
        assert broker.registry.query("bomb").state is QueryState.ACTIVE
        assert [each for each in broker.found() if each[0] != "late"] == undisturbed.found()
        assert broker.outbox.pauses() == undisturbed.outbox.pauses()


def test_a_query_that_is_resumed_goes_on_until_it_is_over_its_budget_again(
    undisturbed: Broker,
) -> None:
    newest = undisturbed.spool.next_docid - 1
    undisturbed.registry.set_state("bomb", QueryState.ACTIVE, effective=newest)
    undisturbed.pipeline.prepare(undisturbed.registry.revision())
    undisturbed.accept(9)
    undisturbed.drain()
    first, second = undisturbed.outbox.pauses()
    assert second.revision > first.revision
    assert second.docid > newest
    assert undisturbed.registry.query("bomb").reason == second.reason
    matches = undisturbed.outbox.matches.find(query="bomb", limit=10_000)
    resumed = [match.position for match in matches if match.position > first.docid]
    assert all(newest < position < second.docid for position in resumed)


def test_a_query_that_was_stated_anew_meanwhile_is_left_alone(undisturbed: Broker) -> None:
    [pause] = undisturbed.outbox.pauses()
    undisturbed.register("bomb", CALM)
    assert undisturbed.registry.pause([pause]) == []
    assert undisturbed.registry.query("bomb").state is QueryState.ACTIVE


def test_a_text_that_another_release_accepted_is_paused_and_the_others_go_on(
    tmp_path: Path,
) -> None:
    with Broker(tmp_path) as broker:
        broker.registry.register("old", "S//i ALONGSIDE S//j", version="v", point=0)
        broker.registry.register("calm", CALM, version="v", point=0)
        broker.accept(48)
    with Broker(tmp_path) as broker:
        broker.pausing.pause_unreadable([1, 2], 1)
        broker.start()
        broker.drain()
        old = broker.registry.query("old")
        assert (old.state, old.effective) == (QueryState.PAUSED, 0)
        assert "this release cannot read its text" in old.reason
        assert {query for query, _ in broker.found()} == {"calm"}


def test_owners_of_subscriptions_are_told_once(tmp_path: Path) -> None:
    class Post:
        def __init__(self) -> None:
            self.letters: list[tuple[str, str, str]] = []

        async def notify(self, address: str, subject: str, text: str) -> Outcome:
            self.letters.append((address, subject, text))
            return Outcome(OutcomeKind.DELIVERED)

    post = Post()
    with Broker(tmp_path) as broker:
        broker.start()
        broker.register("bomb", BOMB)
        for address in ("https://a.example", "https://b.example"):
            broker.registry.subscribe(
                "bomb",
                Destination(DestinationKind.WEBHOOK, address),
                point=0,
                options=Options(owner="ann@example.org"),
            )
        broker.pipeline.prepare(broker.registry.revision())
        broker.accept(48)
        broker.drain()
        asyncio.run(broker.pausing.tell(post))
        asyncio.run(broker.pausing.tell(post))
    [(address, subject, text)] = post.letters
    assert (address, subject) == ("ann@example.org", "bomb is paused")
    assert "xscl resume bomb" in text
