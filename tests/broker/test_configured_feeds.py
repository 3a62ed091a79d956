"""Feeds of the settings file, polled by a whole broker that has everything but Spark."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from support.feed_server import FeedServer, Page, entries, entry, rss, start_feed_server
from support.light_broker import LightService
from support.sparkless_broker import get, running, session_of, when

from broker.service.lifecycle import Service
from broker.settings.config import Settings, parse_settings
from broker.settings.reader import SettingsError
from feeds import FeedOptions, FeedStore, feed_at


@pytest.fixture
async def feed_server() -> AsyncIterator[FeedServer]:
    started = await start_feed_server()
    started.pages["/feed"] = Page(rss(entries(range(20))), etag='"1"')
    yield started
    await started.close()


def settings_in(directory: Path, feed: str) -> Settings:
    text = f'data = "data"\nallow_networks = ["127.0.0.0/8"]\n[http]\nport = 0\n[[feeds]]\n{feed}'
    return parse_settings(text, directory / "xscl.toml")


async def test_a_feed_of_the_settings_is_read_as_they_say(
    feed_server: FeedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEED_TOKEN", "open-sesame")
    feed = f'url = "{feed_server.url("/feed")}"\nstream = "news"\nitem = "raw"\n'
    feed += 'headers = [{ name = "Authorization", env = "FEED_TOKEN" }]'
    async with (
        running(settings_in(tmp_path, feed)) as url,
        session_of(tmp_path) as session,
    ):
        found = await when(session, f"{url}/v1/documents", lambda it: len(it["documents"]) == 20)
        assert {each["stream"] for each in found["documents"]} == {"news"}
        assert all("<guid" in each["xml"] for each in found["documents"])
        # All entries are a year old, a minute apart: a silence that is worth a word.
        await when(session, f"{url}/metrics", lambda text: "xscl_feeds_quiet 1\n" in text)
        assert "xscl_feed_items_total 20\n" in await get(session, f"{url}/metrics")
        shown = await get(session, f"{url}/v1/feeds")
    assert feed_server.headers("Authorization") == ["open-sesame"]
    assert "open-sesame" not in str(shown)
    # Nothing says how often: the interval is the feed's own.
    assert shown["feeds"][0]["why"] == "at least this often, however quiet the feed is"


async def test_the_settings_hold_again_after_a_restart(
    feed_server: FeedServer, tmp_path: Path
) -> None:
    feed = f'url = "{feed_server.url("/feed")}"\nstream = "news"\n'
    (tmp_path / "data").mkdir()
    store = FeedStore(tmp_path / "data" / "feeds.db")
    store.add(feed_at(feed_server.url("/feed"), "old", FeedOptions(interval_s=1_800.0)))
    store.change(feed_server.url("/feed"), paused=True)
    async with running(settings_in(tmp_path, feed)) as url, session_of(tmp_path) as session:
        await when(session, f"{url}/readyz", lambda answer: answer["status"] == "ready")
        subscribed = store.get(feed_server.url("/feed"))
    store.close()
    assert (subscribed.feed.stream, subscribed.feed.options) == ("news", FeedOptions())
    assert subscribed.state.paused


async def test_a_broker_whose_settings_name_no_secret_does_not_start(tmp_path: Path) -> None:
    feed = 'url = "https://a.example/"\nstream = "news"\n'
    feed += 'headers = [{ name = "X", env = "NOWHERE" }]'
    with pytest.raises(SettingsError, match="NOWHERE is not set"):
        Service(settings_in(tmp_path, feed))
    assert not (tmp_path / "data").exists()


PAIR = "news//item->a JOIN {a/id = b/id AND revision(b) = revision(a) + 1, 1 d} news//item->b"


async def test_revisions_of_an_item_are_told_apart_also_after_a_restart(
    feed_server: FeedServer, tmp_path: Path
) -> None:
    feed = f'url = "{feed_server.url("/feed")}"\nstream = "news"\nevery = "100 ms"\n'
    settings = settings_in(tmp_path, feed + 'on_update = "new document"')
    feed_server.pages["/feed"] = [Page(rss(entry(1, title=title))) for title in ("One", "Two")]
    async with running(settings, LightService) as url, session_of(tmp_path) as session:
        for name, text in (("pair", PAIR), ("revised", "news//item->a WHERE revision(a) > 0")):
            (await session.put(f"{url}/v1/queries/{name}?since=all", data=text)).raise_for_status()
        before = await matched(session, url, 2)
    feed_server.pages["/feed"] = Page(rss(entry(1, title="Three")))
    async with running(settings, LightService) as url, session_of(tmp_path) as session:
        after = await matched(session, url, 4)
    assert before == [("pair", [0, 1]), ("revised", [1])]
    assert after == [*before[:1], ("pair", [1, 2]), *before[1:], ("revised", [2])]


async def matched(
    session: aiohttp.ClientSession, url: str, count: int
) -> list[tuple[str, list[int]]]:
    """Return so many matches: of which query each is, and which revisions of an item it has."""
    every = f"{url}/v1/matches?after=0"
    found = await when(session, every, lambda answer: len(answer["matches"]) >= count)
    return sorted(
        (match["query"], [revision_of(each["key"]) for each in match["documents"]])
        for match in found["matches"]
    )


def revision_of(key: str) -> int:
    """Return which revision a document with a key is: that of `key#2` is the first."""
    _, _, ordinal = key.partition("#")
    return int(ordinal or 1) - 1
