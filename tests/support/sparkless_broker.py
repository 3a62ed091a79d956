"""A broker that has everything but Spark, in this process: nothing is evaluated."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp

from broker.service.lifecycle import Service
from broker.service.streaming import Streaming
from broker.settings.config import Settings


class NoQuery:
    """What the service watches of Spark: here it never has anything to do."""

    is_running = True

    def check(self) -> None:
        """All is well."""


class NoStreaming(Streaming):
    async def start(self) -> None:
        """Start nothing."""

    async def documents(self, plans: Any, step: Any, *, through: Any, on_evaluated: Any) -> Any:
        return NoQuery()


class Sparkless(Service):
    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._streaming = NoStreaming(settings, self._stack, key=b"")


class Unstarted(Service):
    """A broker that listens, and stays starting."""

    async def _start(self) -> None:
        await asyncio.Event().wait()


@contextlib.asynccontextmanager
async def running(settings: Settings, kind: type[Service] = Sparkless) -> AsyncIterator[str]:
    """Run a broker; yields the URL of its API, or raises why the broker has ended."""
    stop, url = asyncio.Event(), asyncio.get_running_loop().create_future()
    broker = asyncio.create_task(kind(settings).run(stop, on_listening=url.set_result))
    try:
        await asyncio.wait([broker, url], return_when=asyncio.FIRST_COMPLETED)
        if not url.done():
            raise AssertionError(f"the broker has ended: {await broker}")
        yield url.result()
    finally:
        stop.set()
        await broker


def session_of(directory: Path) -> aiohttp.ClientSession:
    """Return a session with the token of the broker that runs there."""
    token = (directory / "data" / "admin-token").read_text().strip()
    return aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"})


async def get(session: aiohttp.ClientSession, url: str) -> Any:
    async with session.get(url) as answer:
        return await (answer.json() if "json" in answer.content_type else answer.text())


async def when(session: aiohttp.ClientSession, url: str, holds: Callable[[Any], bool]) -> Any:
    """Return the first answer of which `holds` is true."""
    async with asyncio.timeout(30):
        while True:
            answer = await get(session, url)
            if holds(answer):
                return answer
            await asyncio.sleep(0.02)
