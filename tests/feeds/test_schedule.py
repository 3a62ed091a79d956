"""When a feed is looked at again, and why then."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from feeds import Fault, FeedError, FeedState, PollPolicy, schedule

NOW = int(datetime(2026, 1, 1, 12, 30, tzinfo=UTC).timestamp()) * 1_000_000
HOUR = 3_600.0
DAY = 24 * HOUR
POLICY = PollPolicy()
BUSY = FeedState(etag='"1"', gap_s=600, span_s=12_000, newest_us=NOW, last_check_us=NOW)


def wait(state: FeedState, **facts: object) -> tuple[float, str]:
    check = schedule.after_success(state, NOW, 0.5, POLICY, **facts)  # type: ignore[arg-type]
    return (check.at_us - NOW) / 1e6, check.why


@pytest.mark.parametrize(
    ("state", "facts", "seconds", "why"),
    [
        (FeedState(etag="x"), {}, HOUR, "not known yet"),
        (BUSY, {}, HOUR, "not more often"),
        (replace(BUSY, gap_s=6 * HOUR), {}, 3 * HOUR, "half the usual distance"),
        (replace(BUSY, newest_us=NOW - int(100 * HOUR * 1e6)), {}, 10 * HOUR, "a tenth"),
        (replace(BUSY, gap_s=90 * DAY), {}, DAY, "at least this often"),
        (replace(BUSY, ttl_s=1_800), {}, 1_800, "not more often"),
        (replace(BUSY, ttl_s=60), {}, 900, "not more often"),
        (BUSY, {"fresh_s": 1_200.0}, 1_200, "not more often"),
        (BUSY, {"fresh_s": 2 * HOUR}, 2 * HOUR * 1.05, "fresh for so long"),
        (replace(BUSY, ttl_s=4 * HOUR), {}, 4 * HOUR * 1.05, "ttl"),
        (replace(BUSY, ttl_s=400 * DAY), {}, 7 * DAY * 1.05, "ttl"),
        (replace(BUSY, etag=None, span_s=0), {}, DAY, "no validators"),
        (replace(BUSY, etag=None), {}, 6_000, "no validators"),
        (BUSY, {"interval_s": 0.5}, 0.5, "asked for"),
        (replace(BUSY, ttl_s=60), {"interval_s": 0.5}, 63, "ttl"),
        (BUSY, {"is_pushed": True}, DAY, "backup"),
        (BUSY, {"is_pushed": True, "interval_s": 5.0}, 5, "asked for"),
    ],
)
def test_after_success(state: FeedState, facts: dict[str, object], seconds: float, why: str):
    waited, reason = wait(state, **facts)
    assert waited == pytest.approx(seconds)
    assert why in reason


def test_skipped_hours_and_days_move_the_check_to_the_first_hour_that_is_not():
    hours = replace(BUSY, skip_hours=(13, 14))
    waited, why = wait(hours)
    assert waited == 2.5 * HOUR + 0.5 * HOUR, "15:30, the minute stays"
    assert "skipHours" in why
    thursday = replace(BUSY, skip_days=(3,))
    assert datetime.fromtimestamp(NOW / 1e6 + wait(thursday)[0], UTC).weekday() == 4


@given(
    st.floats(0, 0.999),
    st.floats(0, 30 * DAY),
    st.floats(0, 10 * DAY),
    st.floats(0, 10 * DAY),
)
def test_no_jitter_comes_before_what_the_publisher_named(
    random: float, gap_s: float, ttl_s: float, fresh_s: float
):
    state = replace(BUSY, gap_s=gap_s, ttl_s=ttl_s)
    check = schedule.after_success(state, NOW, random, POLICY, fresh_s=fresh_s)
    waited = (check.at_us - NOW) / 1e6
    assert waited >= min(max(ttl_s, fresh_s), POLICY.publisher_max_s) - 1e-3
    assert waited >= POLICY.invited_min_s * 0.9 - 1e-3


@pytest.mark.parametrize(
    ("failures", "fault", "asked_s", "seconds"),
    [
        (1, Fault.SERVER, None, 300),
        (4, Fault.SERVER, None, 2_400),
        (60, Fault.SERVER, None, DAY),
        (1, Fault.RATE_LIMITED, None, 900),
        (1, Fault.RATE_LIMITED, 7_200.0, 7_200 + 45),
        (1, Fault.RATE_LIMITED, 0.0, 900),
        (1, Fault.SERVER, 1e9, 7 * DAY + 15),
    ],
)
def test_after_failure(failures: int, fault: Fault, asked_s: float | None, seconds: float):
    error = FeedError(fault, "https://example.org", "x", retry_after_s=asked_s)
    check = schedule.after_failure(FeedState(failures=failures), error, NOW, 0.5, POLICY)
    assert (check.at_us - NOW) / 1e6 == pytest.approx(seconds)


def test_gone_at_once_by_410_and_after_two_weeks_of_404():
    now = NOW + int(14 * DAY * 1e6)
    gone = FeedError(Fault.GONE, "", "")
    missing = FeedError(Fault.NOT_FOUND, "", "")
    assert schedule.is_gone(FeedState(failing_since_us=now), gone, now, POLICY)
    assert schedule.is_gone(FeedState(failing_since_us=NOW), missing, now, POLICY)
    assert not schedule.is_gone(FeedState(failing_since_us=NOW + 1), missing, now - 1, POLICY)


def test_a_permanent_redirect_is_adopted_after_days_of_agreement_only():
    state = FeedState()
    for day in range(4):
        for _ in range(2):
            state = schedule.after_redirect(
                state, "https://new.example/", NOW + int(day * DAY * 1e6), POLICY
            )
        assert bool(state.moved_to) == (day == 3)
    assert state.moved_to == "https://new.example/"


def test_a_redirect_that_wavers_is_not_adopted():
    state = FeedState()
    for day in range(30):
        target = f"https://{day // 2 % 2}.example/" if day % 5 else None
        state = schedule.after_redirect(state, target, NOW + int(day * DAY * 1e6), POLICY)
    assert not state.moved_to


def test_what_fell_due_while_nobody_ran_is_spread_out():
    states = [
        FeedState(last_check_us=NOW - int(2e9), next_check_us=NOW - number)
        for number in range(1000)
    ]
    later = FeedState(last_check_us=NOW, next_check_us=NOW + 5, why="later")
    randoms = [number / 1001 for number in range(1001)]
    checks = schedule.on_start([*states, later], NOW, randoms, POLICY)
    waits = [(check.at_us - NOW) / 1e6 for check in checks[:-1]]
    assert max(waits) > 250
    assert all(
        sum(start <= each < start + 10 for each in waits) < 50 for start in range(0, 300, 10)
    )
    assert checks[-1] == schedule.Check(NOW + 5, "later")


def test_an_old_archive_does_not_make_a_busy_feed_look_quiet():
    times = [0, int(1e15), *(NOW + hour * 3_600_000_000 for hour in range(10))]
    gap_s, span_s = schedule.publishing_rate(times)
    assert gap_s == HOUR
    assert span_s > 10 * DAY
    assert schedule.publishing_rate(times[:1]) == (0.0, 0.0)


def test_the_feeds_of_a_paused_domain_come_back_spread_over_a_minute():
    held = (NOW + 10_000_000, "it answered 429")
    checks = [schedule.during_pause(held, random, POLICY) for random in (0.0, 0.5, 1.0)]
    assert [(check.at_us - held[0]) // 1_000_000 for check in checks] == [0, 30, 60]
    assert checks[0].why == "the domain is left alone (it answered 429)"
