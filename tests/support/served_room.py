"""The broker's API in a thread beside the test, so that verbs and clients that block can ask it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from aiohttp import web
from click.testing import Result

from broker.api.access import Gate
from broker.api.http import add_deliveries, make_application
from broker.api.pickup import Pickup
from broker.registry.tokens import Tokens
from support.api_room import Room
from support.verbs import xscl

__all__ = ["ServedRoom"]

T = TypeVar("T")


class ServedRoom:
    """The API of a broker, with its deliveries; with `tokens` it wants one of each request."""

    def __init__(self, directory: Path, tokens: Tokens | None = None) -> None:
        self._tokens = tokens
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self.room = self.run(self._open(directory))
        self.url = self.run(self._serve())

    async def _open(self, directory: Path) -> Room:
        room = Room(directory)
        room.ingest.start()
        return room

    async def _serve(self) -> str:
        gate = None if self._tokens is None else Gate(self._tokens)
        application = make_application(self.room.backend, body_bytes_max=1 << 20, gate=gate)
        add_deliveries(application, Pickup(self.room.outbox, self.room.registry))
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what work in the loop of the API comes to."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(20)

    def xscl(self, *arguments: str, given: bytes | None = None) -> Result:
        """Run a verb against the API."""
        return xscl("--broker", self.url, *arguments, given=given)

    def close(self) -> None:
        self.run(self._runner.cleanup())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self.room.close()
