"""When to look at a feed again, and why then.  Decisions only: no clock, no network.

Every function takes the time and a random number in [0, 1) as arguments and returns a `Check`,
a moment with its reason in words.

After a success the next check is the latest of

    adaptive     half the typical distance of the feed's entries; a tenth of a longer silence
    publisher    ttl, sy:update*, Cache-Control max-age, Expires, Retry-After: never before
    validators   a feed without any is sent whole each time, so it is asked once a day only,
                 or as often as it takes not to miss entries

moved out of the publisher's skip hours and days.  A failure backs off exponentially.  Random
jitter keeps feeds that were added together from being asked together for ever; it never moves
a check before a moment that the publisher has named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from feeds.errors import Fault, FeedError
from feeds.state import FeedState

__all__ = [
    "Check",
    "PollPolicy",
    "after_failed_move",
    "after_failure",
    "after_redirect",
    "after_success",
    "domain_pause_s",
    "during_pause",
    "is_gone",
    "on_start",
    "publishing_rate",
]

SECOND_US = 1_000_000
HOUR_S = 3_600.0
MOVE_FAILURES_MAX = 3
DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class PollPolicy:
    """The numbers that checks go by, with their reasons.

    One hour between conditional requests and one day between unconditional ones are the
    bounds of the Feed Reader Behavior Project.  A publisher who names a shorter lifetime
    invites us to come sooner, down to `invited_min_s`.
    """

    interval_min_s: float = HOUR_S
    interval_max_s: float = DAY_S
    invited_min_s: float = 900.0
    unconditional_min_s: float = DAY_S
    first_interval_s: float = HOUR_S
    pushed_interval_s: float = DAY_S
    publisher_max_s: float = 7 * DAY_S
    jitter: float = 0.1
    backoff_first_s: float = 300.0
    backoff_max_s: float = DAY_S
    backoff_jitter: float = 0.2
    rate_limit_first_s: float = 900.0
    retry_after_max_s: float = 7 * DAY_S
    not_found_gone_s: float = 14 * DAY_S
    move_after_s: float = 3 * DAY_S
    move_after_checks: int = 5
    start_spread_s: float = 300.0
    pause_spread_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Check:
    """When a feed is looked at again, and why then."""

    at_us: int
    why: str


def after_success(
    state: FeedState,
    now_us: int,
    random: float,
    policy: PollPolicy,
    *,
    fresh_s: float = 0.0,
    interval_s: float | None = None,
    is_pushed: bool = False,
) -> Check:
    """Return the next check of a feed that has just been read, or found unchanged.

    `fresh_s` is how long the answer calls itself fresh (max-age, Expires); `interval_s` is the
    subscriber's own choice, in place of the adaptive interval.  A feed whose hub pushes is
    asked seldom, but it is asked: hubs die in silence.
    """
    wanted_s, why = _wanted(state, now_us, policy, interval_s, fresh_s)
    if is_pushed and interval_s is None and wanted_s < policy.pushed_interval_s:
        wanted_s, why = policy.pushed_interval_s, "its hub pushes; this is the backup check"
    wanted_s *= 1 + policy.jitter * (2 * random - 1)
    bound_s, bound_why = _publisher_bound(state, policy, fresh_s)
    if bound_s > wanted_s:
        wanted_s, why = bound_s * (1 + policy.jitter * random), bound_why
    return _outside_skipped(Check(now_us + int(wanted_s * SECOND_US), why), state)


def _wanted(
    state: FeedState, now_us: int, policy: PollPolicy, interval_s: float | None, fresh_s: float
) -> tuple[float, str]:
    if interval_s is not None:
        return interval_s, "the interval that was asked for"
    least_s = _least(state, policy, fresh_s)
    if state.gap_s <= 0:
        return max(policy.first_interval_s, least_s), "the publishing rate is not known yet"
    silence_s = max(0.0, (now_us - state.newest_us) / SECOND_US) if state.newest_us else 0.0
    wanted_s, why = state.gap_s / 2, "half the usual distance of entries"
    if silence_s / 10 > wanted_s:
        wanted_s, why = silence_s / 10, "a tenth of the time since the newest entry"
    if wanted_s < least_s:
        wanted_s, why = least_s, "not more often than this, however busy the feed is"
    if not state.validators:
        wanted_s, why = _unconditional(state, wanted_s, why, policy)
    if wanted_s > policy.interval_max_s:
        wanted_s, why = policy.interval_max_s, "at least this often, however quiet the feed is"
    return wanted_s, why


def _least(state: FeedState, policy: PollPolicy, fresh_s: float) -> float:
    """The publisher who names a lifetime under an hour invites checks that often."""
    named_s = max(state.ttl_s, fresh_s)
    if 0 < named_s < policy.interval_min_s:
        return max(policy.invited_min_s, named_s)
    return policy.interval_min_s


def _unconditional(
    state: FeedState, wanted_s: float, why: str, policy: PollPolicy
) -> tuple[float, str]:
    seldom_s = policy.unconditional_min_s
    if state.span_s > 0:
        # Asked once in half the time that its document covers, no entry passes unseen.
        seldom_s = min(seldom_s, max(state.span_s / 2, policy.interval_min_s))
    if seldom_s <= wanted_s:
        return wanted_s, why
    return seldom_s, "the server has no validators, so each check transfers the whole feed"


def _publisher_bound(state: FeedState, policy: PollPolicy, fresh_s: float) -> tuple[float, str]:
    bound_s, why = max(
        (state.ttl_s, "the feed asks for this interval (ttl or sy:updatePeriod)"),
        (fresh_s, "the answer is fresh for so long (Cache-Control or Expires)"),
    )
    return min(bound_s, policy.publisher_max_s), why


def _outside_skipped(check: Check, state: FeedState) -> Check:
    """Return `check`, moved to the end of the hours and days that the feed asks to skip."""
    moment = datetime.fromtimestamp(check.at_us / SECOND_US, UTC)
    moved = moment
    for _ in range(7 * 24):
        if moved.hour not in state.skip_hours and moved.weekday() not in state.skip_days:
            break
        moved = moved.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    else:
        return check
    if moved == moment:
        return check
    # The minute within the hour is kept, so that not all come on the hour.
    later_us = int(moved.timestamp() + moment.timestamp() % HOUR_S) * SECOND_US
    return Check(later_us, "the feed asks to be left alone before (skipHours, skipDays)")


def after_failure(
    state: FeedState, error: FeedError, now_us: int, random: float, policy: PollPolicy
) -> Check:
    """Return the next check of a feed whose `state.failures` already counts this failure."""
    first_s = policy.backoff_first_s
    if error.fault is Fault.RATE_LIMITED:
        first_s = policy.rate_limit_first_s
    wait_s = min(first_s * 2.0 ** min(state.failures - 1, 30), policy.backoff_max_s)
    wait_s *= 1 + policy.backoff_jitter * (2 * random - 1)
    why = f"after {state.failures} failure{'s' if state.failures > 1 else ''} in a row"
    asked_s = min(error.retry_after_s or 0.0, policy.retry_after_max_s)
    if asked_s > wait_s:
        wait_s, why = asked_s + wait_s * policy.jitter * random, "the server asked for this pause"
    return Check(now_us + int(wait_s * SECOND_US), why)


def during_pause(held: tuple[int, str], random: float, policy: PollPolicy) -> Check:
    """Return the next check of a feed whose registrable domain is left alone until `held[0]`.

    The feeds of one domain come back spread over a minute, not all in the first second.
    """
    until_us, why = held
    later_us = int(random * policy.pause_spread_s * SECOND_US)
    return Check(until_us + later_us, f"the domain is left alone ({why})")


def is_gone(state: FeedState, error: FeedError, now_us: int, policy: PollPolicy) -> bool:
    """Return whether a feed is not to be asked again: 410, or 404 for two weeks."""
    if error.fault is Fault.GONE:
        return not state.moved_to
    missing_s = (now_us - state.failing_since_us) / SECOND_US
    return error.fault is Fault.NOT_FOUND and missing_s >= policy.not_found_gone_s


def domain_pause_s(error: FeedError, policy: PollPolicy) -> float:
    """Return how long no feed of the same registrable domain is asked, 0 for not at all."""
    if error.fault is Fault.RATE_LIMITED:
        if error.retry_after_s is not None:
            return min(error.retry_after_s, policy.retry_after_max_s)
        return policy.rate_limit_first_s
    if error.status == 503 and error.retry_after_s is not None:
        return min(error.retry_after_s, policy.retry_after_max_s)
    return 0.0


def after_redirect(
    state: FeedState, moved_to: str | None, now_us: int, policy: PollPolicy
) -> FeedState:
    """Return the state with what was learnt of a permanent move.

    A move is adopted after days of agreement only: servers in trouble, captive portals and
    expired domains redirect "permanently" too.  Any other answer starts the count anew.
    """
    if moved_to is None:
        return replace(state, moving_to="", moving_since_us=0, moving_checks=0)
    if moved_to != state.moving_to:
        return replace(state, moving_to=moved_to, moving_since_us=now_us, moving_checks=1)
    checks = state.moving_checks + 1
    agreed_s = (now_us - state.moving_since_us) / SECOND_US
    if agreed_s < policy.move_after_s or checks < policy.move_after_checks:
        return replace(state, moving_checks=checks)
    return replace(state, moved_to=moved_to, moving_to="", moving_since_us=0, moving_checks=0)


def publishing_rate(times_us: Sequence[int]) -> tuple[float, float]:
    """Return the typical distance of entries and the time that they cover, in seconds.

    `times_us` are the event times of one feed document, sorted; the distance is the mean over
    the newer half, so that an archive of ten years does not make a busy feed look quiet.
    """
    if len(times_us) < 2:
        return 0.0, 0.0
    recent = times_us[len(times_us) // 2 - 1 :] if len(times_us) > 3 else times_us
    gap_s = (recent[-1] - recent[0]) / (len(recent) - 1) / SECOND_US
    return gap_s, (times_us[-1] - times_us[0]) / SECOND_US


def after_failed_move(state: FeedState) -> FeedState:
    """Return the state of a feed whose adopted address fails: back to the subscribed one.

    An address that was adopted is not trusted for ever: the domain may have expired.
    """
    if state.moved_to and state.failures >= MOVE_FAILURES_MAX:
        return replace(state, moved_to="", etag=None, last_modified=None, gone=False)
    return state


def on_start(
    states: Sequence[FeedState], now_us: int, randoms: Sequence[float], policy: PollPolicy
) -> list[Check]:
    """Return the next checks after a restart: what fell due meanwhile is spread, not fired.

    Feeds never checked before come at once; limits per host hold for them too.
    """
    overdue = [0 < state.next_check_us <= now_us for state in states]
    spread_s = min(policy.start_spread_s, float(sum(overdue)))
    return [
        Check(
            now_us + int(random * min(spread_s, _planned_wait_s(state)) * SECOND_US),
            "it fell due while nobody was running",
        )
        if is_overdue
        else Check(max(state.next_check_us, now_us), state.why)
        for state, is_overdue, random in zip(states, overdue, randoms, strict=True)
    ]


def _planned_wait_s(state: FeedState) -> float:
    return max(0.0, (state.next_check_us - state.last_check_us) / SECOND_US)
