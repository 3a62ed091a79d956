"""How many requests each caller may make: so many a second, and what was left unused at once.

A caller is a token, or an address where no token was needed or the one given was wrong.  In
memory: a restart begins anew.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from http import HTTPStatus

from broker.api.problem import Problem

__all__ = ["BURST_S", "RateLimit"]

BURST_S = 2.0
"""A caller that was silent may make the requests of this long at once."""

_CALLERS_MAX = 10_000
"""Those who have been silent for longest are forgotten, as if they had been silent for long."""


class RateLimit:
    """At most `per_second` requests of each caller; 0 is no bound.  For one thread.

    >>> seconds = iter([0.0, 0.0, 0.0, 0.5, 2.0])
    >>> limit = RateLimit(1, now_s=lambda: next(seconds))
    >>> [limit.wait_s("ann") for _ in range(5)]
    [0.0, 0.0, 1.0, 0.5, 0.0]
    """

    def __init__(self, per_second: float, *, now_s: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._now_s = now_s
        # When the allowance of each caller will be whole again.
        self._whole_at: OrderedDict[str, float] = OrderedDict()

    def wait_s(self, caller: str, *, counts: bool = True) -> float:
        """Count a request and return 0, or return how long to wait; then it is not counted."""
        if not self._per_second:
            return 0.0
        now_s, each_s = self._now_s(), 1 / self._per_second
        whole_at = max(self._whole_at.get(caller, now_s), now_s) + each_s
        wait_s = whole_at - now_s - max(BURST_S, each_s)
        if wait_s > 1e-9:
            return wait_s
        if counts:
            self._whole_at[caller] = whole_at
            self._whole_at.move_to_end(caller)
            if len(self._whole_at) > _CALLERS_MAX:
                self._whole_at.popitem(last=False)
        return 0.0

    def admit(self, caller: str, *, counts: bool = True) -> None:
        """Count a request, or end it with 429."""
        wait_s = self.wait_s(caller, counts=counts)
        if wait_s:
            raise Problem(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"more than {self._per_second:g} requests a second; the broker serves others too",
                extra={
                    "hint": "send several documents in one request, wait with ?wait=, or ask"
                    " who runs the broker to raise http.requests_per_second"
                },
                headers={"Retry-After": str(math.ceil(wait_s))},
            )
