"""`xscl feeds ...` against a real feed server on loopback, with a broker and where none runs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shlex
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.api_house import open_house
from support.feed_server import FeedServer, Page, entries, rss, start_feed_server
from support.goldens import GOLDEN
from support.small_broker import small_broker

from broker.cli import main
from broker.documents.spool import SpoolWriter
from broker.registry.tokens import TokenScope

Xscl = Callable[..., Awaitable[Result]]
SESSION = GOLDEN / "feeds" / "session.txt"
SITE = "http://127.0.0.1:40000"
"""What the golden text has for the feed server, as long as its address."""

AT_HAND = "no broker runs; the feeds are those in "
SETTINGS = 'data = "data"\nallow_networks = ["127.0.0.0/8"]\n'


@pytest.fixture
async def feed_server() -> AsyncIterator[FeedServer]:
    started = await start_feed_server()
    started.pages["/news.xml"] = Page(rss(entries(range(20)), title="Twenty"), etag='"1"')
    link = '<link rel="alternate" type="application/rss+xml" href="/news.xml">'
    started.pages["/"] = Page(f"<html><head>{link}</head></html>")
    started.pages["/bare"] = Page("<html></html>")
    yield started
    await started.close()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int) -> Path:
    """A directory with settings, where no broker runs."""
    directory = tmp_path / "here"
    directory.mkdir()
    monkeypatch.chdir(directory)
    Path("xscl.toml").write_text(f"{SETTINGS}[http]\nport = {unused_tcp_port}\n")
    return directory


@pytest.fixture(params=["a broker elsewhere", "no broker"])
async def xscl(request: pytest.FixtureRequest, here: Path, tmp_path: Path) -> AsyncIterator[Xscl]:
    async with contextlib.AsyncExitStack() as stack:
        named: list[str] = []
        if request.param == "a broker elsewhere":
            url = await stack.enter_async_context(small_broker(tmp_path / "elsewhere"))
            named = ["--broker", url]

        async def run(*arguments: str, expect: int | None = 0) -> Result:
            result = await invoke(*named, "feeds", *arguments)
            assert expect in (result.exit_code, None), result.output
            return result

        yield run
        if named:
            assert not (here / "data").exists()


async def invoke(*arguments: str) -> Result:
    return await asyncio.to_thread(CliRunner().invoke, main, list(arguments))


@pytest.mark.parametrize(
    ("written", "seconds"), [("90", 90), ("2.5 s", 2.5), ("10 min", 600), ("PT2H", 7_200)]
)
async def test_how_often_a_feed_is_checked_is_written_as_times_are(
    xscl: Xscl, written: str, seconds: float
) -> None:
    url = "https://feed.example/"
    added = await xscl("add", url, "--every", written, "--no-check")
    assert added.exit_code == 0, added.output
    shown = json.loads((await xscl("show", url)).stdout)
    assert shown["options"]["every_s"] == seconds


@pytest.mark.parametrize("written", ["10 mun", "-5", "0", "soon", "3 years", "INF"])
def test_what_is_no_time_between_checks_is_a_wrong_command_line(written: str) -> None:
    asked = ["feeds", "add", "https://feed.example/", f"--every={written}"]
    refused = CliRunner().invoke(main, asked)
    assert refused.exit_code == 2
    assert "--every" in refused.stderr


async def test_a_session_reads_the_same_with_a_broker_and_without(feed_server, xscl):
    """The golden text has the commands: `$ xscl feeds ...`, and below each what it prints."""
    site = feed_server.url("").rstrip("/")
    golden = SESSION.read_text()
    shown = []
    for command in re.findall(r"^\$ xscl feeds (.*)$", golden, re.MULTILINE):
        result = await xscl(*shlex.split(command.replace(SITE, site)), expect=None)
        ended = f"exit {result.exit_code}\n" if result.exit_code else ""
        shown.append(f"$ xscl feeds {command}\n{steady(result.output, site)}{ended}")
    if os.environ.get("XSCL_UPDATE_GOLDEN") == "1":
        SESSION.write_text("\n".join(shown))
        return
    assert "\n".join(shown) == golden


def steady(output: str, site: str) -> str:
    """Return what is printed without what differs between runs."""
    lines = output.replace(site, SITE).splitlines(keepends=True)
    kept = "".join(line for line in lines if not line.startswith(AT_HAND))
    return re.sub(r"in \d+\.\d\d s,", "in 0.00 s,", kept)


async def test_documents_of_a_feed_are_a_line_each(feed_server, xscl):
    lines = (await xscl("check", feed_server.url("/news.xml"), "--documents")).stdout.splitlines()
    assert len(lines) == 20
    assert all(line.startswith("<item>") for line in lines)


async def test_what_is_secret_is_sent_to_the_feed_and_not_shown(feed_server, xscl):
    url = feed_server.url("/news.xml").replace("://", "://ann:open-sesame@")
    added = await xscl("add", url, "--header", "X-Key: open-sesame")
    assert feed_server.headers("X-Key") == ["open-sesame"]
    shown = await xscl("show", feed_server.url("/news.xml"))
    assert json.loads(shown.stdout)["has_secrets"] is True
    listed = await xscl("list", "--format", "json")
    exported = await xscl("export")
    for each in (added, shown, listed, exported):
        assert "sesame" not in each.output


async def test_lists_are_exported_and_imported(feed_server, xscl, here):
    await xscl("add", feed_server.url("/news.xml"), "--stream", "news", "--no-check")
    await xscl("export", "feeds.opml")
    assert "added 0 feeds; 1 were subscribed already" in (await xscl("import", "feeds.opml")).output
    await xscl("remove", feed_server.url("/news.xml"))
    assert "added 1 feeds" in (await xscl("import", "feeds.opml")).output
    (row,) = json.loads((await xscl("list", "--format", "json")).stdout)
    assert (row["url"], row["stream"]) == (feed_server.url("/news.xml"), "news")


async def test_of_a_list_is_said_what_was_left_out(xscl, here):
    outlines = '<outline xmlUrl="ftp://a.example/"/><outline xmlUrl="https://a.example/"/>'
    (here / "some.opml").write_text(f"<opml><body>{outlines}</body></opml>")
    taken = await xscl("import", "some.opml", "--stream", "mine")
    assert "left out: unusable address: 'ftp://a.example/' is not an http" in taken.stderr
    assert "added 1 feeds" in taken.stderr
    assert "mine" in (await xscl("list")).stdout
    (here / "bad.opml").write_text("<html/>")
    assert "not an OPML document" in (await xscl("import", "bad.opml", expect=1)).stderr


@pytest.mark.parametrize("url", ["ftp://example.org/", "http://", "https://:99999/"])
async def test_what_is_no_address_is_refused(xscl, url: str):
    refused = (await xscl("add", url, expect=1)).stderr
    assert "is not an http:// or https:// address" in refused or "is not a URL" in refused


async def test_a_token_without_the_scope_sees_and_changes_no_feed(here, tmp_path):
    async with open_house(tmp_path / "house") as house:
        url = house.url
        for scope in (TokenScope.PUBLISH, TokenScope.SUBSCRIBE):
            for command in (["list"], ["add", "https://a.example/", "--no-check"], ["export"]):
                token = house.secrets[scope.value]
                refused = await invoke("--broker", url, "--token", token, "feeds", *command)
                assert refused.exit_code == 1
                assert "does not have the scope 'admin'" in refused.stderr
                assert refused.stdout == ""
        listed = await invoke("--broker", url, "--token", house.secrets["admin"], "feeds", "list")
        assert "a.example" not in listed.stdout


async def test_feeds_added_before_the_first_start_are_those_of_the_broker(here, unused_tcp_port):
    url = "https://a.example/feed"
    added = await invoke("feeds", "add", url, "--no-check", "--stream", "news")
    assert f"{AT_HAND}{here / 'data'}" in added.stderr
    async with small_broker(here / "data", unused_tcp_port):
        listed = await invoke("feeds", "list")
        again = await invoke("feeds", "add", url, "--no-check")
    assert url in listed.stdout
    assert listed.stderr == ""
    assert again.stderr.startswith(f"error: {url} is subscribed already")


async def test_data_that_a_broker_has_is_not_touched_past_it(here, monkeypatch):
    monkeypatch.setattr("broker.cli.connection._START_WAIT_S", 0.0)
    with contextlib.closing(SpoolWriter(here / "data" / "spool")):
        refused = await invoke("feeds", "add", "https://a.example/", "--no-check")
    assert refused.exit_code == 3
    assert "has `http` in xscl.toml changed since it started?" in refused.stderr
    assert not (here / "data" / "feeds.db").exists()


async def test_a_broker_that_was_named_and_is_away_is_not_replaced_by_data_at_hand(
    here, unused_tcp_port
):
    away = f"http://127.0.0.1:{unused_tcp_port}"
    refused = await invoke("--broker", away, "feeds", "add", "https://a.example/", "--no-check")
    assert refused.exit_code == 3
    assert f"no broker answers at {away}" in refused.stderr
    assert not (here / "data").exists()


async def test_who_only_looks_makes_no_data_directory(feed_server, here):
    looked = await invoke("feeds", "check", feed_server.url("/news.xml"))
    assert "Twenty" in looked.stdout
    assert (await invoke("feeds", "list")).exit_code == 0
    assert not (here / "data").exists()


async def test_data_that_cannot_be_written_are_named(here):
    (here / "data").write_text("")
    refused = await invoke("feeds", "add", "https://a.example/", "--no-check")
    assert refused.exit_code == 1
    assert str(here / "data") in refused.stderr
    assert "`data` in xscl.toml" in refused.stderr


async def test_a_file_of_a_newer_version_is_left_alone(here):
    (here / "data").mkdir()
    with contextlib.closing(sqlite3.connect(here / "data" / "feeds.db")) as newer:
        newer.execute("PRAGMA user_version = 99")
    refused = await invoke("feeds", "list")
    assert refused.exit_code == 1
    assert "has format 99" in refused.stderr
