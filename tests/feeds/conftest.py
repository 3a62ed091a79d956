"""What the tests of feeds share: a feed server, a store, a sink and a clock."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest
from support.feed_server import LOOPBACK, FeedServer, ManualClock, start_feed_server
from support.recorded_data import feed_files

from feeds import FeedStore, Hosts, Poller, PollPolicy, networks, open_session


@dataclass
class Inbox:
    """A sink that keeps what it accepts, and refuses while told to."""

    documents: list[tuple[str, str, int | None, bytes]] = field(default_factory=list)
    refuses: bool = False

    async def __call__(self, stream: str, key: str, time_us: int | None, xml: bytes) -> None:
        if self.refuses:
            raise RuntimeError("the spool is full")
        self.documents.append((stream, key, time_us, xml))

    @property
    def keys(self) -> list[str]:
        return [key.partition(" ")[2] for _, key, _, _ in self.documents]


@pytest.fixture
async def server() -> AsyncIterator[FeedServer]:
    started = await start_feed_server()
    yield started
    await started.close()


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with open_session(networks(LOOPBACK)) as opened:
        yield opened


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FeedStore]:
    opened = FeedStore(tmp_path / "feeds.db")
    yield opened
    opened.close()


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def poller_of(
    store: FeedStore, inbox: Inbox, clock: ManualClock, session: aiohttp.ClientSession
) -> Callable[..., Poller]:
    """Return a maker of pollers on the store, as many as a test wants restarts."""

    def make(**options: object) -> Poller:
        defaults: dict[str, object] = {
            "clock": clock,
            "session": session,
            "hosts": Hosts(gap_s=0),
            "policy": PollPolicy(),
            "random": lambda: 0.5,
        }
        return Poller(store, inbox, **{**defaults, **options})  # type: ignore[arg-type]

    return make


@pytest.fixture(scope="session")
def real_feeds() -> list[Path]:
    """The real feed files; they are others' property and not part of the repository."""
    return feed_files()
