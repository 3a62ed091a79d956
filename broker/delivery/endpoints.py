"""How much of the worker one endpoint may have: attempts at once, and attempts a second.

An endpoint is a host and port, or a mail domain; many subscriptions can share one.  Work for an
endpoint that is at its bound is not begun but *parked*: the endpoint's waiting work is spread
over the time that it will take, so that it neither holds a place in the worker nor is looked at
again and again.  In memory: a restart forgets the waiting and begins it anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Claim", "EndpointLimits", "Endpoints"]

_SECOND_US = 1_000_000
_FIRST_GUESS_US = 100_000
"""What an attempt is taken to last before one has been seen to end."""

_KNOWN_MAX = 10_000
_REMEMBERED_US = 60 * _SECOND_US


@dataclass(frozen=True, slots=True)
class EndpointLimits:
    """Bounds for one endpoint; a rate of 0 is no bound.

    What was left unused for `burst_s` seconds may come at once.
    """

    concurrency: int = 16
    rate_per_s: float = 0.0
    burst_s: float = 1.0


Claim = tuple[str, EndpointLimits]
"""An endpoint that an attempt needs, and its bounds."""


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

    def admit(self, claims: Sequence[Claim], now_us: int) -> int | None:
        """Begin an attempt that needs all of these and return None, or return when to ask again."""
        endpoints = [self._known.setdefault(name, _Endpoint()) for name, _ in claims]
        for endpoint, (_, limits) in zip(endpoints, claims, strict=True):
            if endpoint.in_flight >= limits.concurrency or now_us < endpoint.next_us:
                return _parked_until(endpoint, limits, now_us)
        for endpoint, (_, limits) in zip(endpoints, claims, strict=True):
            endpoint.in_flight += 1
            unused_since_us = now_us - limits.burst_s * _SECOND_US
            endpoint.next_us = max(endpoint.next_us, unused_since_us) + _interval_us(limits)
        return None

    def done(self, claims: Sequence[Claim], elapsed_us: int, now_us: int) -> None:
        """End an attempt that was admitted."""
        for name, _ in claims:
            endpoint = self._known[name]
            endpoint.in_flight -= 1
            endpoint.mean_us += (elapsed_us - endpoint.mean_us) / 8
        if len(self._known) > _KNOWN_MAX:
            self._forget(now_us)

    def _forget(self, now_us: int) -> None:
        """Forget endpoints that nothing has been asked of for a while."""
        self._known = {
            name: endpoint
            for name, endpoint in self._known.items()
            if endpoint.in_flight
            or now_us < max(endpoint.next_us, endpoint.queue_end_us) + _REMEMBERED_US
        }


def _parked_until(endpoint: _Endpoint, limits: EndpointLimits, now_us: int) -> int:
    turn_us = max(_interval_us(limits), endpoint.mean_us / limits.concurrency)
    endpoint.queue_end_us = max(endpoint.queue_end_us, now_us, endpoint.next_us) + turn_us
    return int(endpoint.queue_end_us)


def _interval_us(limits: EndpointLimits) -> float:
    return _SECOND_US / limits.rate_per_s if limits.rate_per_s else 0.0
