"""A copy holds its deliveries back: the original may be sending the same."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from broker.delivery.worker import DeliveryWorker
from broker.settings.directory import is_copy

__all__ = ["deliver"]

_log = logging.getLogger(__name__)

_LOOK_S = 0.5


async def deliver(data: Path, worker: DeliveryWorker) -> None:
    """Run the worker, on a copy from when it has taken the original's place."""
    await _until_taken_over(data)
    await worker.run()


async def _until_taken_over(data: Path) -> None:
    if not is_copy(data):
        return
    _log.warning("this is a copy: it delivers nothing until `xscl restore --take-over`")
    while True:
        await asyncio.sleep(_LOOK_S)
        if not is_copy(data):
            break
    _log.info("this copy has taken over: it delivers from now on")
