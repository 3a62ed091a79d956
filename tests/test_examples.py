from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from click.testing import CliRunner
from standardwebhooks.webhooks import Webhook

import xscl
from broker.cli import main
from broker.demo.examples import examples_directory
from broker.demo.feed_server import ROUNDS, moved
from broker.demo.play import EXPECTED
from broker.demo.world import STREAMS
from broker.documents.document import render_time
from feeds import ParsedFeed, item_document, parse

EXAMPLES = examples_directory()
QUERIES = sorted((EXAMPLES / "queries").glob("*.xscl"))
FEEDS = sorted(path.name for path in (EXAMPLES / "feeds").iterdir() if path.is_dir())


def read(feed: str, number: int) -> ParsedFeed:
    found = parse((EXAMPLES / "feeds" / feed / f"{number}.xml").read_bytes())
    assert isinstance(found, ParsedFeed)
    return found


def item_lines() -> Iterator[str]:
    """The items of all rounds, in the order in which a poller would find them."""
    seen = set()
    for number in range(1, ROUNDS + 1):
        for feed in FEEDS:
            found = read(feed, number)
            for item in reversed(found.items):
                if (feed, item.id) not in seen:
                    seen.add((feed, item.id))
                    assert item.event_time_us is not None
                    xml = item_document(item, feed=feed, source=found.title).decode()
                    time = render_time(item.event_time_us)
                    stream = STREAMS.get(feed, "news")
                    yield json.dumps({"stream": stream, "time": time, "xml": xml})


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_an_example_query_is_right_explained_and_in_its_own_words(path: Path) -> None:
    text = path.read_text()
    queries, diagnostics = xscl.check(text, path=str(path))
    assert [query.id for query in queries] == [path.stem]
    assert diagnostics == []
    assert text.startswith("(:")
    assert text == xscl.render(text)


def test_the_demonstration_expects_something_of_every_example_query() -> None:
    assert set(EXPECTED) == {path.stem for path in QUERIES}


def test_the_example_documents_have_the_matches_that_the_demonstration_expects(
    tmp_path: Path,
) -> None:
    documents = tmp_path / "documents.jsonl"
    pushed = (EXAMPLES / "documents" / "books-and-blogs.jsonl").read_text()
    documents.write_text("\n".join(item_lines()) + "\n" + pushed)
    matches = tmp_path / "matches.jsonl"
    arguments = ["replay", str(EXAMPLES / "queries"), "--no-spark"]
    arguments += ["--documents", str(documents), "--matches", str(matches)]
    # The demonstration is over soon after noon: what is quiet since then is not known by then.
    arguments += ["--until", "2026-03-02T12:00:00Z"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    lines = [json.loads(line) for line in matches.read_text().splitlines()]
    assert Counter(line["query"] for line in lines) == Counter(EXPECTED)


@pytest.mark.parametrize("feed", FEEDS)
def test_each_round_of_a_feed_keeps_the_items_of_the_one_before(feed: str) -> None:
    for number in range(1, ROUNDS):
        earlier, later = read(feed, number), read(feed, number + 1)
        assert {item.id for item in earlier.items} <= {item.id for item in later.items}


@pytest.mark.parametrize("feed", FEEDS)
def test_all_times_of_a_feed_move_together(feed: str) -> None:
    text = (EXAMPLES / "feeds" / feed / f"{ROUNDS}.xml").read_text()
    day = timedelta(days=100)
    moved_feed = parse(moved(text, day).encode())
    assert isinstance(moved_feed, ParsedFeed)
    pairs = zip(read(feed, ROUNDS).items, moved_feed.items, strict=True)
    day_us = day // timedelta(microseconds=1)
    assert all(b.event_time_us - a.event_time_us == day_us for a, b in pairs)


def test_the_example_receiver_prints_matches_and_checks_signatures() -> None:
    body = json.dumps({"data": {"query": "q", "documents": [{"key": "a"}, {"key": "b"}]}}).encode()
    key = "whsec_" + base64.b64encode(bytes(24)).decode()
    with subprocess.Popen(
        [sys.executable, str(EXAMPLES / "webhook.py"), "0", key], stdout=subprocess.PIPE, text=True
    ) as receiver:
        assert receiver.stdout is not None
        url = receiver.stdout.readline().split()[-1]
        try:
            now = datetime.now(UTC)
            signature = Webhook(key).sign("m1", now, body.decode())
            headers = {"webhook-id": "m1", "webhook-timestamp": f"{int(now.timestamp())}"}
            right = Request(url, body, headers | {"webhook-signature": signature})
            with urlopen(right) as answer:
                assert answer.status == 204
            assert receiver.stdout.readline() == "webhook: q: a + b\n"
            with pytest.raises(HTTPError, match="401"):
                urlopen(Request(url, body + b" ", headers | {"webhook-signature": signature}))
        finally:
            receiver.terminate()
