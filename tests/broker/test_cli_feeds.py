"""`xscl feeds ...` against a real feed server on loopback."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from feed_server import FeedServer, Page, entries, rss, start_feed_server

from broker.cli import main

Xscl = Callable[..., Awaitable[Result]]


@pytest.fixture
async def feed_server() -> AsyncIterator[FeedServer]:
    started = await start_feed_server()
    started.pages["/feed"] = Page(rss(entries(range(20)), title="Twenty"), etag='"1"')
    link = '<link rel="alternate" type="application/rss+xml" href="/feed">'
    started.pages["/"] = Page(f"<html><head>{link}</head></html>")
    yield started
    await started.close()


@pytest.fixture
def xscl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Xscl:
    monkeypatch.chdir(tmp_path)
    Path("xscl.toml").write_text('data = "data"\nallow_networks = ["127.0.0.0/8"]\n')

    async def run(*arguments: str, expect: int = 0) -> Result:
        result = await asyncio.to_thread(CliRunner().invoke, main, ["feeds", *arguments])
        assert result.exit_code == expect, result.output
        return result

    return run


async def test_check_shows_what_would_be_made_of_the_feed_behind_a_page(feed_server, xscl):
    shown = (await xscl("check", feed_server.url("/"))).output
    assert feed_server.url("/feed") in shown
    assert "Twenty" in shown
    assert "20, told apart by guid" in shown
    assert "next check   in" in shown
    assert "with validators" in shown
    assert "<title>Item 19</title>" in shown
    documents = (await xscl("check", feed_server.url("/feed"), "--documents")).output
    assert len(documents.splitlines()) == 20


async def test_a_feed_is_added_listed_paused_and_removed(feed_server, xscl):
    await xscl("add", feed_server.url("/"), "--stream", "news", "--header", "X-Key: secret")
    url = feed_server.url("/feed")
    await xscl("add", url, expect=1)
    await xscl("pause", url)
    (row,) = json.loads((await xscl("list", "--format", "json")).output)
    assert (row["url"], row["stream"], row["status"]) == (url, "news", "paused")
    await xscl("resume", url)
    shown = await xscl("show", url)
    assert json.loads(shown.output)["status"] == "waiting"
    assert "secret" not in shown.output.replace("has_secrets", "")
    await xscl("refresh", url)
    await xscl("remove", url)
    refused = await xscl("remove", url, expect=1)
    assert "no feed" in refused.output


async def test_lists_are_exported_and_imported(feed_server, xscl, tmp_path):
    await xscl("add", feed_server.url("/feed"), "--stream", "news", "--no-check")
    await xscl("export", "feeds.opml")
    await xscl("remove", feed_server.url("/feed"))
    added = await xscl("import", "feeds.opml")
    assert "added 1 feeds" in added.output
    assert "news" in (await xscl("list")).output
    (tmp_path / "bad.opml").write_text("<html/>")
    await xscl("import", "bad.opml", expect=1)


@pytest.mark.parametrize("url", ["ftp://example.org/", "http://", "https://:99999/"])
async def test_what_is_no_address_is_refused(xscl, url: str):
    assert "address" in (await xscl("add", url, expect=2)).output or url


async def test_a_page_without_a_feed_is_refused_in_words(feed_server, xscl):
    feed_server.pages = {"/bare": Page("<html></html>")}
    refused = await xscl("add", feed_server.url("/bare"), expect=1)
    assert "names no feed" in refused.output
