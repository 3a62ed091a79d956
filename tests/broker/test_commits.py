"""Waiting for a commit: it ends when it is told to."""

from __future__ import annotations

import asyncio

import pytest

from broker.pipeline.commits import Commits


@pytest.mark.parametrize("turns", range(3))
async def test_who_waits_can_be_cancelled_as_a_commit_comes(turns: int) -> None:
    commits = Commits()
    waiting = asyncio.create_task(commits.wait(20))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    commits.tell()
    for _ in range(turns):
        await asyncio.sleep(0)
    if waiting.cancel():
        with pytest.raises(asyncio.CancelledError):
            await waiting
