"""Whatever crashes between a fetch and its commit, each entry is accepted, and known once."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples
from support.feed_server import ManualClock, Page, entry, rss, start_feed_server

from feeds import FeedStore, Hosts, Poller, feed_at, networks, open_session


class Crash(BaseException):
    """The process dies here."""


@dataclass
class Spool:
    """A sink that knows documents again by key and content, and dies when it is told to."""

    accepted: dict[str, list[bytes]] = field(default_factory=dict)
    until_crash: int = -1

    async def __call__(self, stream: str, key: str, time_us: int | None, xml: bytes) -> None:
        self.until_crash -= 1
        if self.until_crash == 0:
            raise Crash
        await asyncio.sleep(0)
        versions = self.accepted.setdefault(key, [])
        if xml not in versions:
            versions.append(xml)


NUMBERS = st.lists(st.integers(0, 12), max_size=8)


@settings(max_examples=examples(15), deadline=None)
@given(st.lists(st.tuples(NUMBERS, st.integers(0, 6)), min_size=1, max_size=6))
def test_every_entry_a_fetch_has_shown_is_accepted_once(rounds: list[tuple[list[int], int]]):
    asyncio.run(_live_through(rounds))


async def _live_through(rounds: list[tuple[list[int], int]]) -> None:
    server, spool, clock = await start_feed_server(), Spool(), ManualClock()
    with tempfile.TemporaryDirectory() as directory:
        store = FeedStore(Path(directory) / "feeds.db")
        store.add(feed_at(server.url(), "news"))
        async with open_session(networks(["127.0.0.0/8"])) as session:
            shown = set()
            for numbers, crash in rounds:
                server.pages["/feed"] = Page(rss(*map(entry, numbers)), etag=f'"{numbers}"')
                shown |= set(numbers)
                spool.until_crash = crash
                # The first check may die; the next process finds the same page, as it was.
                for _ in range(2):
                    poller = Poller(
                        store, spool, clock=clock, session=session, hosts=Hosts(gap_s=0)
                    )
                    with contextlib.suppress(Crash):
                        await poller.check_due()
                    clock.advance(3 * 86_400)
        store.close()
    await server.close()
    assert {int(key.rpartition(":")[2]) for key in spool.accepted} == shown
    assert all(len(versions) == 1 for versions in spool.accepted.values())


PROCESS = """
import asyncio, os, sys
from pathlib import Path
from feeds import FeedStore, Hosts, Poller, networks

async def sink(stream, key, time_us, xml):
    with open(sys.argv[2], "ab") as spool:
        spool.write(key.encode() + b"\\n")
        spool.flush()
        os.fsync(spool.fileno())
    if key.endswith(":3") and not Path(sys.argv[2] + ".survived").exists():
        print("here", flush=True)
        await asyncio.sleep(60)

store = FeedStore(Path(sys.argv[1]))
say = lambda report: print(report.outcome, flush=True)
poller = Poller(store, sink, allowed=networks(["127.0.0.0/8"]), on_report=say)
asyncio.run(poller.run())
"""


async def test_a_kill_between_fetch_and_commit_refetches(server, store, tmp_path):
    server.pages["/feed"] = Page(rss(*map(entry, range(5))), etag='"1"')
    store.add(feed_at(server.url(), "news"))
    spool = tmp_path / "spool"
    command = [sys.executable, "-c", PROCESS, str(tmp_path / "feeds.db"), str(spool)]
    root = Path(__file__).parents[2]
    for survives in (False, True):
        if survives:
            Path(f"{spool}.survived").touch()
        process = await asyncio.create_subprocess_exec(
            *command, stdout=subprocess.PIPE, cwd=root, env={**os.environ, "PYTHONPATH": str(root)}
        )
        assert process.stdout is not None
        async with asyncio.timeout(30):
            said = (await process.stdout.readline()).decode().strip()
        process.send_signal(signal.SIGKILL)
        await process.wait()
        assert said == ("new items" if survives else "here")
    assert server.headers("If-None-Match") == [None, None]
    keys = spool.read_text().split("\n")
    assert {key.rpartition(":")[2] for key in keys if key} == {"0", "1", "2", "3", "4"}
    assert store.get(server.url()).state.etag == '"1"'


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_feed_removed_while_it_is_checked_stays_removed(
    server, store, inbox, poller_of, moment: str
):
    server.pages["/feed"] = Page(rss(entry(1)))
    store.add(feed_at(server.url(), "news"))
    poller = poller_of()
    if moment == "before":
        store.remove(server.url())
    else:
        original = inbox.documents.append

        def append(document: object) -> None:
            store.remove(server.url())
            original(document)

        inbox.documents = type("L", (list,), {"append": lambda self, d: append(d)})()
    await poller.check_due()
    assert store.all() == []
