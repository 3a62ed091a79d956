"""A start of Spark may take longer than what goes on beside it waits."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from broker.service.streaming import Streaming
from broker.settings.config import Settings


def test_what_spark_leaves_behind_can_be_ended_before_there_is_a_spark(tmp_path: Path) -> None:
    async def end() -> None:
        async with AsyncExitStack() as stack:
            await Streaming(Settings(data=tmp_path), stack, key=b"").end_planners()

    asyncio.run(end())
