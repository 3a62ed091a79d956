"""What a change that looks back needs is made ready before the change is registered.

    wait     for the one before, until its engine is in use
    make     an engine beside the running one, in a thread, while the stream goes on
    ready    hardly a document is missing: the change is registered
    keep up  until the step that comes to the change takes the engine

Invariant: a change that is called off, or is registered in another way, leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol, TypeVar

from broker.matching.queries.registration import NOTHING, SetChange
from broker.pipeline.beside import Due
from broker.pipeline.joinstate import EngineState
from broker.registry.queries import Registry
from broker.registry.registered import is_registered

__all__ = ["Ahead", "Making"]

T = TypeVar("T")

_log = logging.getLogger(__name__)

_READY_DOCUMENTS = 2_000
"""Documents that may be missing when a change is registered: some milliseconds of work."""

_WAIT_S = 0.05
"""How long the thread waits for more documents, or for the running engine, at a time."""


class Exclusively(Protocol):
    """Runs an action between two documents; see `IngestThread.exclusively`."""

    def __call__(self, action: Callable[[int], T]) -> Future[T]:
        """Run `action` with the newest docid."""


class Making:
    """An engine that is being made for a change.

    `registered` is to be called with the change's version, between the documents on both sides.
    """

    def __init__(self, state: EngineState, change: SetChange) -> None:
        self._state = state
        self._change = change
        self._over = threading.Event()
        self._has_begun = False
        self._is_registered = False

    def registered(self, due: Due) -> None:
        """Hear from which version on the change holds."""
        if self._has_begun:
            self._is_registered = True
            self._state.registered_beside(due)

    def end(self) -> None:
        """Call it off, unless the change is registered."""
        if not self._is_registered:
            self._over.set()

    def stop(self) -> None:
        """Call it off in any case."""
        self._over.set()

    def work(self, on_ready: Callable[[], None]) -> None:
        """Make it and keep it up, until it has been taken; in a thread."""
        begun = None
        while begun is None and not self._over.is_set():
            begun = self._state.begin_beside(self._change, _WAIT_S)
        if not begun:
            on_ready()
            return
        self._has_begun = True
        try:
            self._keep_up(on_ready)
        finally:
            self._state.registered_beside(None)

    def _keep_up(self, on_ready: Callable[[], None]) -> None:
        rounds = _Rounds()
        is_warm = is_ready = False
        while not self._over.is_set():
            missing = self._state.go_on_beside()
            if missing is None:
                break
            if not is_ready and (missing <= _READY_DOCUMENTS or rounds.is_stuck(missing)):
                if is_warm:
                    is_ready = True
                    on_ready()
                else:
                    is_warm = True
                    self._state.warm_up_beside()
            if not missing:
                self._over.wait(_WAIT_S)
        if not is_ready:
            on_ready()


class _Rounds:
    """Whether a stream is faster than who follows it: what is missing does not become less."""

    def __init__(self) -> None:
        self._least = 1 << 62
        self._in_vain = 0

    def is_stuck(self, missing: int) -> bool:
        self._in_vain = 0 if missing < self._least else self._in_vain + 1
        self._least = min(self._least, missing)
        return self._in_vain > _IN_VAIN_MAX


_IN_VAIN_MAX = 1_000
"""Portions in a row after which no fewer documents are missing than before: some seconds."""


class Ahead:
    """Runs actions that change the registry; what they look back at is made ready before.

    That is one state at a time, beside the running engine.
    """

    def __init__(self, state: EngineState, registry: Registry, exclusively: Exclusively) -> None:
        self._state = state
        self._registry = registry
        self._exclusively = exclusively
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._makings: set[Making] = set()

    async def run(self, action: Callable[[int], T], change: SetChange = NOTHING) -> T:
        """Run an action between two documents, once the state is there for what it changes."""
        if change == NOTHING:
            return await asyncio.wrap_future(self._exclusively(action))
        making = Making(self._state, change)
        await self._until_ready(making)

        def register(newest_docid: int) -> T:
            result = action(newest_docid)
            if is_registered(self._registry, change):
                making.registered(Due(self._registry.revision(), newest_docid))
            return result

        try:
            return await asyncio.wrap_future(self._exclusively(register))
        finally:
            making.end()

    async def _until_ready(self, making: Making) -> None:
        """Have it made, and wait until it is ready."""
        is_ready = asyncio.Event()
        self._makings.add(making)
        task = asyncio.create_task(self._make(making, is_ready))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            await is_ready.wait()
        except BaseException:
            making.end()
            raise

    async def _make(self, making: Making, is_ready: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()

        def on_ready() -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(is_ready.set)

        try:
            async with self._turn:
                await asyncio.to_thread(making.work, on_ready)
        except Exception:
            # The change is registered all the same: then all is remembered anew.
            _log.exception("no state could be made beside the stream")
        finally:
            is_ready.set()
            self._makings.discard(making)

    async def stop(self) -> None:
        """End what is being made."""
        for making in self._makings:
            making.stop()
        await asyncio.gather(*self._tasks, return_exceptions=True)
