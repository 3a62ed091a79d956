"""Hear of commits in the event loop: batches are committed in the pipeline's thread."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

from broker.pipeline.outbox import Outbox

__all__ = ["Commits", "announce", "commits_of"]


class Commits:
    """What has been committed since one last looked: something, or nothing."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def tell(self) -> None:
        """Hear of a commit, in any thread."""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._event.set)

    def forget(self) -> None:
        """Count only what is committed from now on; to be called before one looks."""
        self._event.clear()

    async def wait(self, timeout_s: float | None = None) -> None:
        """Return when something has been committed, or after some seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._event.wait()


@contextlib.contextmanager
def commits_of(outbox: Outbox) -> Iterator[Commits]:
    """Yield the commits that are made through an outbox."""
    commits = Commits()
    outbox.listen(commits.tell)
    try:
        yield commits
    finally:
        outbox.unlisten(commits.tell)


async def announce(outbox: Outbox, committed: asyncio.Condition) -> None:
    """Notify all who wait for a condition after each commit, without end."""
    with commits_of(outbox) as commits:
        while True:
            await commits.wait()
            commits.forget()
            async with committed:
                committed.notify_all()
