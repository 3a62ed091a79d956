"""Follow the outbox: every committed match since a cursor, and then each as it is committed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from broker.committed import CommittedMatch
from broker.outbox import Outbox

__all__ = ["follow"]


async def follow(
    outbox: Outbox,
    *,
    after: int | None = None,
    query: str | None = None,
    poll_s: float = 0.1,
    batch: int = 500,
) -> AsyncIterator[CommittedMatch]:
    """Yield matches numbered above `after` (from now on, if None), without end, in order.

    Matches that another process commits are seen within `poll_s`, those committed through this
    `outbox` at once.
    """
    loop, committed = asyncio.get_running_loop(), asyncio.Event()

    def notify() -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(committed.set)

    cursor = await asyncio.to_thread(outbox.matches.last_seq) if after is None else after
    outbox.listen(notify)
    try:
        while True:
            committed.clear()
            found = await asyncio.to_thread(outbox.matches.find, cursor, query=query, limit=batch)
            for match in found:
                yield match
                cursor = match.seq
            if not found:
                await _either(committed, poll_s)
    finally:
        outbox.unlisten(notify)


async def _either(committed: asyncio.Event, poll_s: float) -> None:
    try:
        await asyncio.wait_for(committed.wait(), poll_s)
    except TimeoutError:
        return
