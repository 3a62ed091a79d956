"""The verdict of `kills`: nothing is said of a broker that did all it should, and each fault is.

A broker does what the callers of `kills` ask of it, and is stopped.  In copies of its directory, of
the journal and of what the receiver got, something is broken on purpose.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import sqlite3
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest
from kills.traffic import LASTING, NOON, Journal, Receipt, Receiver, Traffic
from kills.verdict import judge, judge_copy, settled_in, state_of
from support.light_broker import LightService
from support.sparkless_broker import running

from broker.settings.config import parse_settings

PAIRS = "S//d->a FOLLOWED BY {a/v = b/v, 40 s} S//d->b"
SETTINGS = (
    'data = "data"\nlateness = "30 s"\nallow_networks = ["127.0.0.0/8"]\n[http]\nport = 0\n'
    "[webhooks]\nallow_http = true\n"
)
WITHIN, ENDED = {"within": "30 s"}, {"within": "20 s"}
BY_VALUE = {"key": ["a/v"], "throttle": "1 per 1 h"}
VALUES = 3
EARLY, LATER = 3, 12
MATCHES = VALUES * 6
"""Pairs of the twelve documents that are published behind the subscriptions, by value."""


@dataclass
class Story:
    """A directory that a broker has left, and what others know of it."""

    data: Path
    journal: Journal
    receipts: list[Receipt]
    settled: dict[str, int]

    def judged(self) -> list[str]:
        state = state_of(self.data)
        return judge(state, self.journal, self.receipts, self.settled).found

    def judged_copy(self) -> list[str]:
        """Say of a copy that had sent nothing, and took over, what is wrong with what it sent."""
        state = state_of(self.data)
        return judge_copy(replace(state, deliveries=[]), state, self.receipts).found

    def execute(self, name: str, sql: str) -> None:
        with contextlib.closing(sqlite3.connect(self.data / name)) as db:
            changed = db.execute(sql).rowcount
            db.commit()
        assert changed > 0, f"nothing is broken by {sql}"

    def sent(self, name: str) -> list[Receipt]:
        """Return what came for the subscriptions of a query."""
        paths = {
            "/" + each.destination.address.rpartition("/")[2]
            for each in state_of(self.data).subscriptions
            if each.query == name
        }
        return [receipt for receipt in self.receipts if receipt.path in paths]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Story:
    return asyncio.run(lived(tmp_path_factory.mktemp("life")))


@pytest.fixture
def story(whole: Story, tmp_path: Path) -> Story:
    data = tmp_path / "data"
    shutil.copytree(whole.data, data)
    return Story(data, deepcopy(whole.journal), list(whole.receipts), dict(whole.settled))


async def lived(directory: Path) -> Story:
    """Have a broker do one of each thing that it is used for."""
    path, data = directory / "xscl.toml", directory / "data"
    path.write_text(SETTINGS)
    receiver = Receiver(Random(1))
    receiver.life = "original"
    async with receiver.serving(), running(parse_settings(SETTINGS, path), LightService) as url:
        traffic = Traffic(directory, url, receiver, Random(1), EARLY + LATER)
        async with traffic.connected():
            await publish(traffic, range(EARLY))
            for name, text in LASTING.items():
                await traffic.register(name, text)
            await traffic.register("pairs", PAIRS)
            await traffic.register("removed", PAIRS)
            await traffic.subscribe("pairs")
            await traffic.subscribe("pairs", options=BY_VALUE)
            await traffic.subscribe("shared", parameters=WITHIN)
            await traffic.subscribe("shared", parameters=ENDED)
            [*_, ended] = traffic.journal.subscriptions
            await traffic.end(ended)
            await traffic.remove("removed")
            await publish(traffic, range(EARLY, EARLY + LATER))
            async with asyncio.timeout(60):
                while sum(each.is_taken for each in receiver.receipts) < 2 * MATCHES + VALUES:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
            await receiver.idle()
    settled = dict.fromkeys(settled_in(data), len(receiver.receipts))
    return Story(data, traffic.journal, receiver.receipts, settled)


async def publish(traffic: Traffic, numbers: range) -> None:
    """Publish documents one second apart, whose values come round."""
    for number in numbers:
        time = (NOON + timedelta(seconds=number)).isoformat()
        xml = f"<d><v>{number % VALUES}</v></d>"
        await traffic.publish([{"stream": "S", "key": f"k{number}", "time": time, "xml": xml}])


def test_nothing_is_said_of_a_broker_that_did_all(story: Story) -> None:
    assert len(story.sent("pairs")) >= MATCHES + VALUES
    assert len(story.sent("shared")) >= MATCHES
    assert story.judged() == []
    assert story.judged_copy() == []


def lose_a_document(story: Story) -> None:
    newest = max((story.data / "spool").glob("*.segment"))
    newest.unlink()


def change_a_document(story: Story) -> None:
    docid, _, asked = story.journal.documents["k7"]
    story.journal.documents["k7"] = docid, "<d><v>other</v></d>", asked


def lose_a_query(story: Story) -> None:
    story.execute("registry.db", "DELETE FROM query WHERE id = 'pairs'")


def bring_a_query_back(story: Story) -> None:
    story.execute("registry.db", "DELETE FROM query WHERE id = 'removed' AND state = 'removed'")


def begin_a_query_late(story: Story) -> None:
    story.execute("registry.db", "UPDATE query SET point = point + 3 WHERE id = 'pairs'")


def begin_a_subscription_early(story: Story) -> None:
    story.execute("registry.db", "UPDATE subscription SET point = 0 WHERE query = 'pairs'")


def lose_a_subscription(story: Story) -> None:
    story.execute("registry.db", "DELETE FROM subscription WHERE query = 'shared'")


def bring_a_subscription_back(story: Story) -> None:
    [ended] = story.journal.ends
    sql = "UPDATE subscription SET until = NULL, state = 'active'"
    story.execute("registry.db", f"{sql} WHERE id = '{ended}'")


def lose_a_match(story: Story) -> None:
    first = "(SELECT min(seq) FROM match WHERE query = 'pairs')"
    story.execute("outbox.db", f"DELETE FROM match WHERE seq = {first}")


def make_a_match_up(story: Story) -> None:
    story.execute("outbox.db", "UPDATE match SET id = 'made-up' WHERE seq = 1")


def change_a_cell(story: Story) -> None:
    story.execute("outbox.db", "UPDATE table_row SET cells = '{\"n\": 99.0}' WHERE key = '1'")


def lose_a_row(story: Story) -> None:
    story.execute("outbox.db", "DELETE FROM table_row WHERE key = '1'")


def lose_a_message(story: Story) -> None:
    [*_, lost] = story.sent("shared")
    story.receipts = [each for each in story.receipts if each.id != lost.id]


def give_up_on_a_refused_message(story: Story) -> None:
    [*_, lost] = story.sent("shared")
    story.receipts = [
        replace(each, status=500) if each.id == lost.id else each for each in story.receipts
    ]


def send_a_settled_delivery_as_new(story: Story) -> None:
    story.receipts.append(replace(story.sent("shared")[0], id="new"))


def send_a_settled_delivery_again(story: Story) -> None:
    story.receipts.append(story.sent("shared")[0])


def say_something_else_the_second_time(story: Story) -> None:
    first = story.sent("shared")[0]
    del story.settled[first.id]
    story.receipts.append(replace(first, body=first.body + b" "))


def send_to_somebody_else(story: Story) -> None:
    first = story.sent("shared")[0]
    story.receipts.append(replace(first, path="/somebody", id="other"))


def send_what_is_not_owed(story: Story) -> None:
    first = story.sent("shared")[0]
    told = json.loads(first.body)
    told["data"]["id"] = "made-up"
    story.receipts.append(replace(first, id="other", body=json.dumps(told).encode()))


def let_more_through_a_throttle(story: Story) -> None:
    held = "state = 'delivered', begun_us = changed_us"
    story.execute("deliveries.db", f"UPDATE delivery SET {held} WHERE state = 'suppressed'")


FAULTS: dict[Callable[[Story], None], str] = {
    lose_a_document: "was acknowledged and is lost",
    change_a_document: "k7, was acknowledged and is lost",
    lose_a_query: "query pairs was acknowledged and is lost",
    bring_a_query_back: "query removed was removed and is there again",
    begin_a_query_late: "query pairs begins behind document",
    begin_a_subscription_early: "begins behind document 0",
    lose_a_subscription: "was acknowledged and is lost",
    bring_a_subscription_back: "was ended and is there again",
    lose_a_match: "a match of pairs, documents",
    make_a_match_up: "match made-up is none",
    change_a_cell: "row '1' of table seen is {'n': 99.0}, and must be",
    lose_a_row: "row '1' of table seen is None, and must be",
    lose_a_message: "was not delivered",
    give_up_on_a_refused_message: "was not delivered",
    send_a_settled_delivery_as_new: "came under ids",
    send_a_settled_delivery_again: "was settled and came again",
    say_something_else_the_second_time: "said something else the second time",
    send_to_somebody_else: "/somebody got messages, and there is no such subscription",
    send_what_is_not_owed: "match made-up is not owed",
    let_more_through_a_throttle: "than 1 per 1 h",
}


@pytest.mark.parametrize("broken", FAULTS, ids=lambda broken: broken.__name__)
def test_what_is_broken_is_found(story: Story, broken: Callable[[Story], None]) -> None:
    broken(story)
    assert any(FAULTS[broken] in text for text in story.judged())


COPIED: dict[Callable[[Story], None], str] = {
    change_a_cell: "of table seen is {'n': 99.0}",
    lose_a_match: "a match of pairs, documents",
    lose_a_message: "was not delivered",
    give_up_on_a_refused_message: "was not delivered",
}


@pytest.mark.parametrize("broken", COPIED, ids=lambda broken: broken.__name__)
def test_what_a_copy_lacks_is_found(story: Story, broken: Callable[[Story], None]) -> None:
    broken(story)
    assert any(COPIED[broken] in text for text in story.judged_copy())


def test_a_copy_that_sends_what_its_original_had_settled_is_found(story: Story) -> None:
    state = state_of(story.data)
    found = judge_copy(state, state, story.receipts).found
    assert found
    assert all("was settled and came again" in text for text in found)
