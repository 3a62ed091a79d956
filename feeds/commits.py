"""What checks remember, committed together: one transaction for all that wait for the last one.

Each transaction costs an fsync and a hand-over to a thread, whatever is in it.  Checks that end
while one is under way share the next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field

from feeds.state import FeedState
from feeds.store import FeedStore, Memory, Seen

__all__ = ["StoreCommits"]


@dataclass(slots=True)
class StoreCommits:
    """The commits to one store, made in `worker`."""

    store: FeedStore
    worker: Executor
    _waiting: list[tuple[Memory, asyncio.Future[None]]] = field(default_factory=list)
    _task: asyncio.Task[None] | None = None

    async def commit(
        self, url: str, state: FeedState, entries: Mapping[str, Seen] | None = None
    ) -> None:
        """Return when the state and the entries are stored, or raise why they are not.

        A caller that is cancelled still waits: what has been asked for is stored.
        """
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((Memory(url, state, entries or {}), stored))
        if self._task is None:
            self._task = asyncio.create_task(self._work_off())
        try:
            await asyncio.shield(stored)
        except asyncio.CancelledError:
            await asyncio.wait([stored])
            raise

    async def _work_off(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            batch, self._waiting = self._waiting, []
            memories = [memory for memory, _ in batch]
            try:
                await loop.run_in_executor(self.worker, self.store.commit, memories)
            except Exception as error:
                for _, stored in batch:
                    stored.set_exception(error)
            else:
                for _, stored in batch:
                    stored.set_result(None)
        self._task = None
