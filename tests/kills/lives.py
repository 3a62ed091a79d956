"""The processes of a broker, one after the other on one directory, and their ends."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import urllib.request
from contextlib import suppress
from pathlib import Path

from support.processes import below

_READY_WAIT_S = 300.0

REAL = ("-m", "broker.cli", "--config", "xscl.toml", "run")
LIGHT = ("-m", "support.light_broker", "xscl.toml")
"""What is run: `xscl run`, or the same without Spark, which is ten times as fast to kill."""


class Life:
    """One process of a broker, and all that it has started."""

    def __init__(self, directory: Path, url: str, kind: tuple[str, ...]) -> None:
        self.log = directory / "broker.log"
        self._url = url
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, *kind],
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    async def ready(self) -> None:
        """Return when it takes documents and evaluates them."""
        async with asyncio.timeout(_READY_WAIT_S):
            while not await asyncio.to_thread(self._is_ready):  # noqa: ASYNC110
                await asyncio.sleep(0.1)

    def _is_ready(self) -> bool:
        if self._process.poll() is not None:
            raise AssertionError(f"the broker has ended: {self.log.read_text()[-3000:]}")
        try:
            with urllib.request.urlopen(f"{self._url}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    async def kill(self, chosen: random.Random, *, at_start: bool) -> None:
        """Kill it with all its processes, or it alone: the others have to see to their end."""
        if at_start:
            await asyncio.sleep(chosen.random() * 8)
            self._check()
        else:
            await self.ready()
            await asyncio.sleep(chosen.random() * 10)
            self._check()
        ours = below(self._process.pid) if chosen.random() < 0.5 else []
        for pid in [self._process.pid, *ours]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await asyncio.to_thread(self._process.wait)

    async def stop(self) -> None:
        """Ask it to end, and see that it does."""
        self._process.terminate()
        code = await asyncio.to_thread(self._process.wait, 120)
        assert code == 0, f"it ended with {code}: {self.log.read_text()[-3000:]}"

    def _check(self) -> None:
        code = self._process.poll()
        assert code is None, f"it ended by itself, {code}: {self.log.read_text()[-3000:]}"

    def end(self) -> None:
        """Leave nothing behind."""
        for pid in [self._process.pid, *below(self._process.pid)]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
