"""Follow the outbox: every committed match since a cursor, and then each as it is committed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from broker.pipeline.commits import commits_of
from broker.pipeline.matchlog import CommittedMatch
from broker.pipeline.outbox import Outbox

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
    cursor = await asyncio.to_thread(outbox.matches.last_seq) if after is None else after
    with commits_of(outbox) as commits:
        while True:
            commits.forget()
            found = await asyncio.to_thread(outbox.matches.find, cursor, query=query, limit=batch)
            for match in found:
                yield match
                cursor = match.seq
            if not found:
                await commits.wait(poll_s)
