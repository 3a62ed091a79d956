"""A pause is part of its batch's commit, and reaches the registry whatever crashes in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from support.budgets import UNLIMITED
from support.crashing_broker import POINTS, Crash, CrashAt, CrashingBroker
from support.examples import some

from broker.delivery.attempt import Outcome, OutcomeKind
from broker.documents.document import DocumentLine
from broker.registry.queries import QueryState
from broker.registry.subscription import Destination, DestinationKind, Options
from broker.service.pausing import Pausing

BUDGET = replace(UNLIMITED, matches_per_1000_documents=60)
BOMB = "S//i->a JOIN {a/lang = b/lang, 1 d} S//i->b"
CALM = "S//i->a FOLLOWED BY {a/t = b/t, 1 d} S//i->b"


class Broker(CrashingBroker):
    """A broker with the step that brings pauses to the registry."""

    def __init__(
        self, directory: Path, reached: Callable[[str], None] = lambda point: None
    ) -> None:
        super().__init__(directory, reached, lateness_us=0, budget=BUDGET)
        self.pausing = Pausing(self.outbox, self.registry)

    def start(self) -> None:
        self.pausing.apply()
        self.pipeline.recover(self.registry.revision())

    def accept_more(self, count: int) -> None:
        """Take some documents behind those that are there."""
        first = self.spool.next_docid
        self.accept([line(number) for number in range(first, first + count)])

    def follow(self) -> None:
        self.pausing.apply()
        self.pipeline.prepare(self.registry.revision())


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
        broker.accept_more(48)
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


@pytest.mark.parametrize(("point", "visit"), some(product(POINTS, [1, 2, 3, 4]), 2))
def test_a_crash_at_a_commit_point_changes_no_match_and_no_pause(
    tmp_path: Path, undisturbed: Broker, point: str, visit: int
) -> None:
    reached = CrashAt(point, visit)
    with Broker(tmp_path, reached) as broker, suppress(Crash):
        live(broker)
    assert reached.has_crashed
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
        broker.accept_more(24)
        broker.register("late", CALM)
        broker.accept_more(24)
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
    undisturbed.accept_more(9)
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
        broker.accept_more(48)
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
        broker.accept_more(48)
        broker.drain()
        asyncio.run(broker.pausing.tell(post))
        asyncio.run(broker.pausing.tell(post))
    [(address, subject, text)] = post.letters
    assert (address, subject) == ("ann@example.org", "bomb is paused")
    assert "xscl resume bomb" in text
