"""`xscl run` but for Spark, as a process: documents are evaluated in a thread of it.

    python -m support.light_broker xscl.toml

It starts in a few seconds, and dies as the real one does.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import threading
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from broker.operations.log import write_log
from broker.pipeline.steps import Pipeline
from broker.pipeline.thisprocess import set_up_process
from broker.service.lifecycle import Service
from broker.service.streaming import Streaming
from broker.settings.config import Settings, load_settings
from broker.settings.directory import Claim, keep_private


class Drained:
    """Takes what the spool holds through the pipeline, until it is told to stop."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._is_over = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._is_over.wait(0.02):
                for _ in self._pipeline.drain():
                    if self._is_over.is_set():
                        return
        except BaseException as error:
            self._failure = error


class Draining(Streaming):
    """Drains a pipeline where Spark would be."""

    def __init__(self, settings: Settings, stack: AsyncExitStack, pipeline: Pipeline) -> None:
        super().__init__(settings, stack, b"")
        self._pipeline = pipeline

    async def start(self) -> None:
        """Start nothing."""

    async def documents(self, plans: Any, step: Any, *, through: Any, on_evaluated: Any) -> Any:
        query = Drained(self._pipeline)
        self._stack.push_async_callback(asyncio.to_thread, query.stop)
        return query


class LightService(Service):
    """The service of `xscl run` without Spark."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._streaming = Draining(settings, self._stack, self._pipeline)


async def _run(path: Path) -> None:
    settings = load_settings(path)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await LightService(settings).run(stop, on_listening=lambda url: None)


def main() -> None:
    path = Path(sys.argv[1]).absolute()
    settings = load_settings(path)
    keep_private(settings.data)
    claim = Claim(settings.data)
    write_log(settings.log, is_verbose=False)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_run(path))
    claim.release()


if __name__ == "__main__":
    set_up_process()
    main()
