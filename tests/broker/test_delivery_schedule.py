from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.delivery.attempt import Outcome, OutcomeKind
from broker.delivery.endpoints import EndpointLimits, Endpoints
from broker.delivery.schedule import (
    Consequence,
    EndpointHealth,
    Fate,
    RetryPolicy,
    decide,
)
from broker.delivery.worker import LIMITS
from broker.registry.destination import DestinationKind

POLICY = RetryPolicy()
HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US


def judged(
    kind: OutcomeKind,
    *,
    number: int = 1,
    health: EndpointHealth | None = None,
    now_us: int = 0,
    retry_after_us: int | None = None,
    dice: float = 0.0,
) -> Consequence:
    outcome = Outcome(kind, retry_after_us=retry_after_us)
    return decide(
        POLICY,
        outcome,
        number=number,
        health=health or EndpointHealth(),
        now_us=now_us,
        random=lambda: dice,
    )


def test_ten_attempts_over_three_days_then_a_dead_letter() -> None:
    now_us, number, health, attempts = 0, 1, EndpointHealth(), [0]
    while True:
        decision = judged(OutcomeKind.FAILED, number=number, health=health, now_us=now_us)
        if decision.fate is Fate.DEAD:
            break
        assert decision.fate is Fate.RETRY
        now_us, number, health = decision.next_us, number + 1, decision.health
        attempts.append(now_us)
    hours = [2, 5, 10, 14, 20, 24]
    delays_s = [5, 5 * 60, 30 * 60, *(each * 3_600 for each in hours)]
    assert [b - a for a, b in pairwise(attempts)] == [each * 1_000_000 for each in delays_s]
    assert 3 * DAY_US < attempts[-1] < 4 * DAY_US
    assert not decision.disable


@given(dice=st.floats(0, 1, exclude_max=True), number=st.integers(1, 9))
def test_jitter_only_lengthens_a_delay_and_by_a_fifth_at_most(dice: float, number: int) -> None:
    delay_us = POLICY.delays_us[number - 1]
    next_us = judged(OutcomeKind.FAILED, number=number, dice=dice).next_us
    assert delay_us <= next_us <= round(delay_us * 1.2)


@given(
    kind=st.sampled_from(OutcomeKind),
    number=st.integers(1, 12),
    failures=st.integers(0, 50),
    since_us=st.integers(0, 10 * DAY_US),
    now_us=st.integers(10 * DAY_US, 20 * DAY_US),
    retry_after_us=st.none() | st.integers(0, 30 * DAY_US),
    dice=st.floats(0, 1, exclude_max=True),
)
def test_nothing_is_tried_in_the_past_or_put_off_beyond_the_bounds(
    kind: OutcomeKind,
    number: int,
    failures: int,
    since_us: int,
    now_us: int,
    retry_after_us: int | None,
    dice: float,
) -> None:
    health = EndpointHealth(failures, since_us if failures else None)
    decision = judged(
        kind,
        number=number,
        health=health,
        now_us=now_us,
        retry_after_us=retry_after_us,
        dice=dice,
    )
    assert decision.next_us >= now_us
    longest_us = round(max(*POLICY.delays_us, POLICY.retry_after_max_us) * 1.2)
    assert decision.next_us <= now_us + longest_us
    if kind is OutcomeKind.DELIVERED:
        assert (decision.fate, decision.health) == (Fate.DELIVERED, EndpointHealth())
    if decision.fate is Fate.RETRY:
        assert number <= len(POLICY.delays_us)


def test_an_overloaded_endpoint_is_left_in_peace_longer_each_time() -> None:
    health, pauses = EndpointHealth(), []
    for _ in range(10):
        health = judged(OutcomeKind.THROTTLED, health=health).health
        pauses.append(health.paused_until_us)
    assert pauses == sorted(pauses)
    assert pauses[0] == POLICY.pause_first_us
    assert pauses[-1] == POLICY.pause_max_us == 5 * 60 * 1_000_000


def test_one_match_that_an_endpoint_cannot_take_does_not_hold_up_the_others() -> None:
    assert judged(OutcomeKind.FAILED).health.paused_until_us == 0
    assert judged(OutcomeKind.FAILED, health=EndpointHealth(2, 0)).health.paused_until_us > 0


def test_retry_after_is_taken_over_up_to_a_day() -> None:
    assert judged(OutcomeKind.THROTTLED, retry_after_us=HOUR_US).next_us == HOUR_US
    assert judged(OutcomeKind.THROTTLED, retry_after_us=9 * DAY_US).next_us == DAY_US


def test_retry_after_holds_for_the_delivery_and_for_the_whole_endpoint() -> None:
    failed = judged(OutcomeKind.FAILED, retry_after_us=HOUR_US)
    assert (failed.next_us, failed.health.paused_until_us) == (HOUR_US, 0)
    throttled = judged(OutcomeKind.THROTTLED, retry_after_us=HOUR_US)
    assert throttled.health.paused_until_us == HOUR_US


def test_five_days_of_only_failures_disable_and_one_success_forgives() -> None:
    failing = EndpointHealth(failures=40, failing_since_us=0)
    assert not judged(OutcomeKind.FAILED, health=failing, now_us=5 * DAY_US - 1).disable
    assert "5 days" in judged(OutcomeKind.FAILED, health=failing, now_us=5 * DAY_US).disable
    forgiven = judged(OutcomeKind.DELIVERED, health=failing, now_us=5 * DAY_US).health
    assert not judged(OutcomeKind.FAILED, health=forgiven, now_us=6 * DAY_US).disable


def test_sporadic_failures_do_not_disable() -> None:
    """Two failures a week apart are a rare subscription with bad luck, ten are not."""
    for before, disables in ((1, False), (8, False), (9, True)):
        health = EndpointHealth(before, 0)
        assert (
            bool(judged(OutcomeKind.FAILED, health=health, now_us=7 * DAY_US).disable) == disables
        )


def test_gone_disables_at_once_and_keeps_the_delivery() -> None:
    decision = judged(OutcomeKind.GONE)
    assert decision.disable
    assert decision.fate is Fate.RETRY


def test_a_refused_message_says_nothing_about_its_endpoint() -> None:
    health = EndpointHealth(2, 5)
    assert judged(OutcomeKind.REFUSED, health=health).health == health


def test_an_endpoint_at_its_bound_is_parked_and_its_queue_spreads_over_time() -> None:
    endpoints, limits = Endpoints(), EndpointLimits(concurrency=2)
    assert [endpoints.admit([("a", limits)], 0) for _ in range(2)] == [None, None]
    parked = [endpoints.admit([("a", limits)], 0) for _ in range(3)]
    assert parked == sorted(parked)  # type: ignore[type-var]
    assert len(set(parked)) == 3
    assert endpoints.admit([("b", limits)], 0) is None
    endpoints.done([("a", limits)], 1_000, 10)
    assert endpoints.admit([("a", limits)], 10) is None


@pytest.mark.parametrize("rate", [1.0, 10.0, 500.0])
def test_a_rate_is_kept_over_time(rate: float) -> None:
    endpoints, limits = Endpoints(), EndpointLimits(concurrency=1_000, rate_per_s=rate)
    begun, waiting, now_us = 0, [0] * 2_000, 0
    while now_us <= 10_000_000 and waiting:
        now_us = waiting.pop(0)
        turn_us = endpoints.admit([("a", limits)], now_us)
        if turn_us is None:
            begun += 1
            endpoints.done([("a", limits)], 10, now_us)
        else:
            waiting.append(turn_us)
            waiting.sort()
    assert min(2_000, 9 * rate) <= begun <= 11 * rate + rate + 2


def test_one_attempt_at_a_time_writes_to_a_file_of_duckdb() -> None:
    endpoints, claims = Endpoints(), [("found.duckdb", LIMITS[DestinationKind.DUCKDB])]
    assert endpoints.admit(claims, 0) is None
    assert endpoints.admit(claims, 0) is not None
    endpoints.done(claims, 1_000, 1_000)
    assert endpoints.admit(claims, 1_000) is None
