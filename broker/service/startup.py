"""A start that can be called off: what takes seconds runs apart, and a stop overtakes it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

__all__ = ["apart", "unless"]

T = TypeVar("T")


async def unless(stop: asyncio.Event, work: Coroutine[Any, Any, T]) -> T | None:
    """Return what work comes to, or None, at once, where `stop` is set before."""
    stopping, working = asyncio.create_task(stop.wait()), asyncio.create_task(work)
    await asyncio.wait({stopping, working}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if working.done():
        return working.result()
    working.cancel()
    await asyncio.wait({working})
    return None


async def apart(work: Callable[[], T]) -> T:
    """Run work in a thread that nobody waits for when the process ends.

    For the start, which takes seconds and changes nothing that a crash would not leave as well.
    """
    future: Future[T] = Future()

    def run() -> None:
        future.set_running_or_notify_cancel()
        try:
            result = work()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=run, name="start", daemon=True).start()
    return await asyncio.wrap_future(future)
