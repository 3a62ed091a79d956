"""How much of the worker one endpoint may have: attempts at once, and attempts a second.

An endpoint is a host and port, or a mail domain; many subscriptions can share one.  Work for an
endpoint that is at its bound is not begun but *parked*: the endpoint's waiting work is spread
over the time that it will take, so that it neither holds a place in the worker nor is looked at
again and again.  In memory: a restart forgets the waiting and begins it anew.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["EndpointLimits", "Endpoints"]

_SECOND_US = 1_000_000
_FIRST_GUESS_US = 100_000
"""What an attempt is taken to last before one has been seen to end."""

_KNOWN_MAX = 10_000


@dataclass(frozen=True, slots=True)
class EndpointLimits:
    """Bounds for one endpoint; a rate of 0 is no bound."""

    concurrency: int = 16
    rate_per_s: float = 0.0


@dataclass(slots=True)
class _Endpoint:
    in_flight: int = 0
    mean_us: float = _FIRST_GUESS_US
    next_us: float = 0.0
    queue_end_us: float = 0.0


class Endpoints:
    """What is known of the endpoints that are being served."""

    def __init__(self) -> None:
        self._known: dict[str, _Endpoint] = {}

    def admit(self, name: str, limits: EndpointLimits, now_us: int) -> int | None:
        """Begin an attempt and return None, or return when to ask again."""
        endpoint = self._known.setdefault(name, _Endpoint())
        interval_us = _SECOND_US / limits.rate_per_s if limits.rate_per_s else 0.0
        is_full = endpoint.in_flight >= limits.concurrency
        if not is_full and now_us >= endpoint.next_us:
            endpoint.in_flight += 1
            # A second's worth may come at once, where the time for it has gone by unused.
            endpoint.next_us = max(endpoint.next_us, now_us - _SECOND_US) + interval_us
            return None
        turn_us = max(interval_us, endpoint.mean_us / limits.concurrency)
        endpoint.queue_end_us = max(endpoint.queue_end_us, now_us, endpoint.next_us) + turn_us
        return int(endpoint.queue_end_us)

    def done(self, name: str, elapsed_us: int, now_us: int) -> None:
        """End an attempt that was admitted."""
        endpoint = self._known[name]
        endpoint.in_flight -= 1
        endpoint.mean_us += (elapsed_us - endpoint.mean_us) / 8
        if len(self._known) > _KNOWN_MAX:
            self._forget(now_us)

    def _forget(self, now_us: int) -> None:
        """Forget endpoints that have nothing to remember."""
        self._known = {
            name: endpoint
            for name, endpoint in self._known.items()
            if endpoint.in_flight
            or now_us < max(endpoint.next_us + _SECOND_US, endpoint.queue_end_us)
        }
