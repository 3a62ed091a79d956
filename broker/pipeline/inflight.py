"""Batches in flight: while one is joined, the next one is evaluated.

Who evaluates hands a batch over and evaluates the next one; it is joined in a thread of its own.
At most two are in flight, since the second one is handed over when the first one is done.

Invariants: batches are joined in the order in which they are handed over, one at a time; behind one
that failed none is joined.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

__all__ = ["InFlight"]

T = TypeVar("T")


class InFlight(Generic[T]):
    """The batches of one streaming query that have been evaluated and are not joined yet.

    `on_failure` gets what `join` raises, in its thread.  Batches are handed over by one thread.
    """

    def __init__(
        self,
        join: Callable[[T], object],
        on_failure: Callable[[BaseException], None] = lambda error: None,
    ) -> None:
        self._join = join
        self._on_failure = on_failure
        self._thread = ThreadPoolExecutor(1, "join")
        self._newest: Future[None] = Future()
        self._newest.set_result(None)

    def hand_over(self, batch: T) -> None:
        """Have a batch joined; waits for the one before it, and raises what made that one fail."""
        self._newest.result()
        self._newest = self._thread.submit(self._joined, batch)

    def wait(self) -> None:
        """Wait until nothing is in flight; raises what made the last batch fail."""
        self._newest.result()

    def close(self) -> None:
        """Wait for the same, and end the thread; what failed has been told."""
        self._thread.shutdown()

    def _joined(self, batch: T) -> None:
        try:
            self._join(batch)
        except BaseException as error:
            self._on_failure(error)
            raise
