from __future__ import annotations

import json
import threading
import urllib.error
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from standardwebhooks.webhooks import Webhook
from support.examples import size
from support.running_broker import Broker

QUERY = b"""
news//item->a FOLLOWED BY { a/title = b/title AND a/feed != b/feed, 2 days } news//item->b
"""
STORIES = size(20, 60)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

Keys = tuple[str, str]


class Receiver:
    """Takes webhooks and keeps under which ids each match came, by the keys of its documents."""

    def __init__(self) -> None:
        self.secret = ""
        self.ids: dict[Keys, set[str]] = defaultdict(set)
        self.match_ids: dict[str, set[str]] = defaultdict(set)
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.take(body, dict(self.headers))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Stay quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"

    def take(self, body: bytes, headers: dict[str, str]) -> None:
        Webhook(self.secret).verify(body, headers)
        match = json.loads(body)["data"]
        first, second = (document["key"] for document in match["documents"])
        delivery_id = {name.lower(): value for name, value in headers.items()}["webhook-id"]
        self.ids[first, second].add(delivery_id)
        self.match_ids[match["id"]].add(delivery_id)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    thread = threading.Thread(target=receiver.server.serve_forever, args=(0.02,))
    thread.start()
    yield receiver
    receiver.server.shutdown()
    thread.join()
    receiver.server.server_close()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    broker = Broker(tmp_path)
    yield broker
    broker.stop()


def line(number: int) -> dict[str, str]:
    """Stories come in pairs: an item of one feed, and later one of another with its title."""
    feed, story = ("one", number) if number < STORIES else ("two", number - STORIES)
    return {
        "key": f"{feed}-{story}",
        "time": (NOON + timedelta(minutes=number)).isoformat(),
        "xml": f"<item><title>Story {story}</title><feed>{feed}</feed></item>",
    }


def publish_all(broker: Broker, numbers: range) -> None:
    """Publish one by one, again and again until each has been acknowledged by some broker."""
    for number in numbers:
        while True:
            try:
                answer = broker.publish("news", [line(number)])
            except (urllib.error.URLError, OSError):
                threading.Event().wait(0.05)
                continue
            assert answer["documents"][0]["outcome"] in ("accepted", "duplicate")
            break


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_killed_broker_loses_no_match_and_sends_none_under_a_new_id(
    broker: Broker, receiver: Receiver
) -> None:
    broker.configure("shards = 2")
    broker.start()
    broker.call("PUT", "/v1/queries/same", QUERY)
    subscription = {"query": "same", "destination": receiver.url}
    receiver.secret = broker.call("POST", "/v1/subscriptions", subscription)["secret"]
    publisher = threading.Thread(target=publish_all, args=(broker, range(2 * STORIES)))
    publisher.start()

    # Killed while documents are taken and matches are delivered; then its join is spread over more
    # shards.
    broker.wait_for(lambda: len(receiver.ids) > STORIES // 3)
    broker.kill()
    broker.configure("shards = 3")
    broker.start()

    expected = {(f"one-{story}", f"two-{story}") for story in range(STORIES)}
    broker.wait_for(lambda: set(receiver.ids) >= expected)
    publisher.join()
    broker.wait_for(
        lambda: len(broker.call("GET", "/v1/matches?after=0&limit=1000")["matches"]) == STORIES
    )
    assert set(receiver.ids) == expected
    assert {keys: len(ids) for keys, ids in receiver.ids.items()} == dict.fromkeys(expected, 1)
    assert len(receiver.match_ids) == STORIES
    assert all(len(ids) == 1 for ids in receiver.match_ids.values())

    assert broker.stop() == 0, broker.log.read_text()
