"""When to try again, when to give up, when to leave an endpoint in peace.  Decisions only.

A delivery is tried at the delays of Standard Webhooks 1.0, 10 times over 3 days, each delay
longer by a random part of itself so that what failed together does not come back together.
Beside that a subscription as a whole has a record of success: while its endpoint fails, its
first attempts pause too (an endpoint that is down for an hour must not use up the schedule of
each match of that hour), and after 5 days of nothing but failures it is disabled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum

from broker.delivery.attempt import Outcome, OutcomeKind

__all__ = ["Consequence", "EndpointHealth", "Fate", "RetryPolicy", "decide"]

_US = timedelta(microseconds=1)
SECOND_US = 1_000_000


def _us(**units: float) -> int:
    return timedelta(**units) // _US


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The numbers that `decide` goes by, in microseconds.

    `delays_us[n]` follows attempt n + 1; behind the last the delivery is a dead letter.
    """

    delays_us: tuple[int, ...] = (
        _us(seconds=5),
        _us(minutes=5),
        _us(minutes=30),
        _us(hours=2),
        _us(hours=5),
        _us(hours=10),
        _us(hours=14),
        _us(hours=20),
        _us(hours=24),
    )
    jitter: float = 0.2
    pause_first_us: int = _us(seconds=5)
    pause_max_us: int = _us(minutes=5)
    retry_after_max_us: int = _us(days=1)
    disable_after_us: int = _us(days=5)
    failures_to_pause: int = 3
    failures_to_disable: int = 10

    def faster(self, factor: float) -> RetryPolicy:
        """Return the same policy in a world where time runs `factor` times faster."""
        return RetryPolicy(
            delays_us=tuple(round(delay / factor) for delay in self.delays_us),
            jitter=self.jitter,
            pause_first_us=round(self.pause_first_us / factor),
            pause_max_us=round(self.pause_max_us / factor),
            retry_after_max_us=round(self.retry_after_max_us / factor),
            disable_after_us=round(self.disable_after_us / factor),
            failures_to_pause=self.failures_to_pause,
            failures_to_disable=self.failures_to_disable,
        )


@dataclass(frozen=True, slots=True)
class EndpointHealth:
    """A subscription's record since its last success.

    Nothing is begun before `paused_until_us`.  `failing_since_us` is None after a success.
    """

    failures: int = 0
    failing_since_us: int | None = None
    paused_until_us: int = 0


class Fate(Enum):
    """What becomes of a delivery after an attempt."""

    DELIVERED = "delivered"
    RETRY = "retry"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class Consequence:
    """What follows from an outcome: for the delivery, and for its subscription.

    `disable` is the reason for which the subscription is to be disabled, or empty.
    """

    fate: Fate
    next_us: int
    health: EndpointHealth = field(default_factory=EndpointHealth)
    disable: str = ""


def decide(
    policy: RetryPolicy,
    outcome: Outcome,
    *,
    number: int,
    health: EndpointHealth,
    now_us: int,
    random: Callable[[], float],
) -> Consequence:
    """Return what follows from the outcome of a delivery's attempt `number` (from 1).

    `random` gives numbers in [0, 1).
    """
    if outcome.kind is OutcomeKind.DELIVERED:
        return Consequence(Fate.DELIVERED, now_us)
    if outcome.kind is OutcomeKind.REFUSED:
        # The message, not the endpoint: a refusal says nothing about the others.
        return Consequence(Fate.DEAD, now_us, health)
    later = _after_failure(policy, outcome, health, now_us, random)
    disable = _reason_to_disable(policy, outcome, later, now_us)
    if number > len(policy.delays_us):
        return Consequence(Fate.DEAD, now_us, later, disable)
    delay_us = _jittered(policy, policy.delays_us[number - 1], random)
    next_us = max(now_us + max(delay_us, _retry_after(policy, outcome)), later.paused_until_us)
    return Consequence(Fate.RETRY, next_us, later, disable)


def _after_failure(
    policy: RetryPolicy,
    outcome: Outcome,
    health: EndpointHealth,
    now_us: int,
    random: Callable[[], float],
) -> EndpointHealth:
    failures = health.failures + 1
    since_us = now_us if health.failing_since_us is None else health.failing_since_us
    throttled = outcome.kind is OutcomeKind.THROTTLED
    if not throttled and failures < policy.failures_to_pause:
        # It may be this match that the endpoint cannot take.
        return EndpointHealth(failures, since_us, health.paused_until_us)
    # The exponent is bounded only so that the power stays a small number.
    pause_us = min(policy.pause_first_us * 2 ** min(failures - 1, 20), policy.pause_max_us)
    pause_us = max(_jittered(policy, pause_us, random), _retry_after(policy, outcome))
    return EndpointHealth(failures, since_us, max(health.paused_until_us, now_us + pause_us))


def _reason_to_disable(
    policy: RetryPolicy, outcome: Outcome, health: EndpointHealth, now_us: int
) -> str:
    if outcome.kind is OutcomeKind.GONE:
        return f"the endpoint answered {outcome.status or 'that it is gone'}"
    since_us = now_us if health.failing_since_us is None else health.failing_since_us
    # Two failures a week apart are a rare subscription with bad luck, not a dead endpoint.
    often = health.failures >= policy.failures_to_disable
    if often and now_us - since_us >= policy.disable_after_us:
        return f"only failures for {timedelta(microseconds=now_us - since_us)}"
    return ""


def _jittered(policy: RetryPolicy, delay_us: int, random: Callable[[], float]) -> int:
    return delay_us + round(delay_us * policy.jitter * random())


def _retry_after(policy: RetryPolicy, outcome: Outcome) -> int:
    return min(outcome.retry_after_us or 0, policy.retry_after_max_us)
