"""When a match that was found is due: at once, behind its group, at a digest; in no quiet hour.

A cadence is what of a subscription's options decides that, and nothing else is asked: `due_us` is a
function of it and of the moment at which the match was found.  Times of day are what clocks
in the cadence's time zone show; what a clock shows twice in autumn is quiet both times.

    >>> from datetime import UTC, datetime, tzinfo
    >>> found = int(datetime(2026, 7, 1, 20, 30, tzinfo=UTC).timestamp()) * 1_000_000
    >>> cadence = Cadence(group_us=3_600_000_000, quiet="22:00-07:00", timezone="Europe/Berlin")
    >>> datetime.fromtimestamp(cadence.due_us(found) / 1e6, tz=UTC).isoformat()
    '2026-07-02T05:00:00+00:00'
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from xscl.durations import DurationError, read_duration, render_duration

__all__ = ["NAMED_DIGESTS", "Cadence", "CadenceError", "Throttle", "between", "check_zone"]

_log = logging.getLogger(__name__)

NAMED_DIGESTS = {"hourly": "0 * * * *", "daily": "0 0 * * *", "weekly": "0 0 * * 1"}
"""What the digests that have a name are in cron's notation."""

_SECOND_US = 1_000_000
_DAY_US = 86_400 * _SECOND_US
LENGTH_MAX_US = 30 * _DAY_US
"""As long as deliveries are kept: what was sent is counted among them."""

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_WEEK_MINUTES = 7 * 24 * 60
_QUIET = re.compile(
    r"(?:(?P<first>[A-Z][a-z]{2})(?:-(?P<last>[A-Z][a-z]{2}))? )?"
    r"(?P<from>\d\d:\d\d)-(?P<to>\d\d:\d\d)",
    re.ASCII,
)
_THROTTLE = re.compile(r"(?P<count>\d{1,4}) per (?P<within>\S.*)", re.ASCII)
_QUIET_MAX = 14
"""Intervals of quiet hours: two for each day of a week."""


class CadenceError(ValueError):
    """A digest, a group, a throttle or quiet hours cannot be as they are written."""


@dataclass(frozen=True, slots=True)
class Cadence:
    """`digest` is `immediate`, one of `NAMED_DIGESTS`, or cron's five fields.

    `quiet` has intervals like `22:00-07:00` or `Sat-Sun 00:00-24:00`, with semicolons between.
    """

    digest: str = "immediate"
    group_us: int = 0
    quiet: str = ""
    timezone: str = "UTC"

    @property
    def is_immediate(self) -> bool:
        """Whether each match is due when it is found."""
        return self.digest == "immediate" and not self.group_us and not self.quiet

    def checked(self) -> Cadence:
        """Return the cadence; raise `CadenceError` where it is misspelt, or nothing is ever due.

        Its time zone is another matter: this machine may not have been where it was checked.
        """
        if self.digest != "immediate" and self.group_us:
            raise CadenceError("a digest is a group: give one of `digest` and `group`")
        if self.digest != "immediate":
            _next_digest(self.digest, datetime.now(UTC), self.timezone)
        if len(_quiet_minutes(self.quiet)) == _WEEK_MINUTES:
            raise CadenceError(f"quiet hours of {self.quiet!r} never end")
        return self

    def due_us(self, found_us: int) -> int:
        """Return when the message that begins with a match found then is due."""
        due_us = found_us + self.group_us
        if self.digest != "immediate":
            due_us = _digest_us(self.digest, self.timezone, due_us // _SECOND_US)
        return self.loud_us(due_us)

    def loud_us(self, now_us: int) -> int:
        """Return the first moment from now on that is not in quiet hours."""
        return _after_quiet_us(self.quiet, self.timezone, now_us) if self.quiet else now_us

    def render(self) -> str:
        """Return it as one text; equal cadences have equal texts.

        >>> Cadence("daily").render(), Cadence.parse(Cadence(group_us=5).render())
        ('daily', Cadence(digest='immediate', group_us=5, quiet='', timezone='UTC'))
        """
        rest = (str(self.group_us), self.quiet, self.timezone)
        return "|".join((self.digest, *rest)) if rest != ("0", "", "UTC") else self.digest

    @staticmethod
    @lru_cache(maxsize=1_024)
    def parse(text: str) -> Cadence:
        """Return what `render` made a text of."""
        digest, _, rest = text.partition("|")
        if not rest:
            return Cadence(digest)
        group_us, quiet, timezone = rest.split("|")
        return Cadence(digest, int(group_us), quiet, timezone)


@dataclass(frozen=True, slots=True)
class Throttle:
    """At most `count` messages are begun in any `within_us`."""

    count: int
    within_us: int

    @staticmethod
    @lru_cache(maxsize=1_024)
    def parse(text: str) -> Throttle:
        """Read `3 per 1 h`; raise `CadenceError`."""
        found = _THROTTLE.fullmatch(text)
        if found is None or not 1 <= int(found["count"]) <= 1_000:
            raise CadenceError(
                f"a throttle is `3 per 1 h`, with a count of 1 to 1000, not {text!r}"
            )
        return Throttle(int(found["count"]), between("a throttle", found["within"]))


@lru_cache(maxsize=1_024)
def between(what: str, text: str) -> int:
    """Return the microseconds of a length of time from 1 s to 30 days; raise `CadenceError`."""
    try:
        length_us = read_duration(text)
    except DurationError as error:
        raise CadenceError(f"the time of {what}: {error}") from error
    if not _SECOND_US <= length_us <= LENGTH_MAX_US:
        least, most = render_duration(_SECOND_US), render_duration(LENGTH_MAX_US)
        raise CadenceError(f"the time of {what} is {least} to {most}, not {text!r}")
    return length_us


def check_zone(name: str) -> None:
    """Raise `CadenceError` where this machine knows no time zone of that name."""
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise CadenceError(f"{name!r} is no time zone: write one like `Europe/Berlin`") from error


@lru_cache(maxsize=1_024)
def _zone(name: str) -> tzinfo:
    """Return a time zone; UTC for one that was known where the subscription was made."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        _log.warning("this machine knows no time zone %r: UTC is taken for it", name)
        return UTC


@lru_cache(maxsize=4_096)
def _digest_us(digest: str, timezone: str, after_s: int) -> int:
    # What is found within one second is found before the same digest.
    after = datetime.fromtimestamp(after_s, tz=UTC)
    return int(_next_digest(digest, after, timezone).timestamp()) * _SECOND_US


def _next_digest(digest: str, after: datetime, timezone: str) -> datetime:
    text = NAMED_DIGESTS.get(digest, digest)
    try:
        if len(text.split()) != 5:
            raise CadenceError("five fields, minute to weekday")
        return next(CronSim(text, after.astimezone(_zone(timezone))))
    except (CronSimError, CadenceError, StopIteration) as error:
        names = ", ".join(f"`{name}`" for name in ("immediate", *NAMED_DIGESTS))
        raise CadenceError(
            f"a digest is {names} or times in cron's notation (`0 8 * * Mon-Fri`), not"
            f" {digest!r}: {error or 'it never comes'}"
        ) from error


def _after_quiet_us(quiet: str, timezone: str, due_us: int) -> int:
    """Return the first moment from then on that is not in quiet hours."""
    minute_us = 60 * _SECOND_US
    loud_us = _loud_minute(quiet, timezone, due_us // minute_us) * minute_us
    return max(due_us, loud_us)


@lru_cache(maxsize=4_096)
def _loud_minute(quiet: str, timezone: str, minute: int) -> int:
    """Return the first minute (since 1970) from then on at which clocks show no quiet hour.

    Minute by minute, because clocks jump: about 1 us for each.
    """
    quiet_minutes, zone = _quiet_minutes(quiet), _zone(timezone)
    while _shown(minute, zone) in quiet_minutes:
        minute += 1
    return minute


def _shown(minute: int, zone: tzinfo) -> int:
    """Return the minute of the week, from Monday, that clocks show."""
    shown = datetime.fromtimestamp(minute * 60, tz=zone)
    return (shown.weekday() * 24 + shown.hour) * 60 + shown.minute


@lru_cache(maxsize=1_024)
def _quiet_minutes(quiet: str) -> frozenset[int]:
    """Return the minutes of a week that are quiet; raise `CadenceError`."""
    intervals = [each.strip() for each in quiet.split(";")] if quiet else []
    if len(intervals) > _QUIET_MAX:
        raise CadenceError(f"quiet hours have at most {_QUIET_MAX} intervals")
    return frozenset(minute for each in intervals for minute in _interval(each))


def _interval(text: str) -> Iterator[int]:
    found = _QUIET.fullmatch(text)
    if found is None:
        raise _not_quiet(text)
    begin, end = _minute(found["from"], text), _minute(found["to"], text)
    if begin == end:
        raise CadenceError(
            f"quiet hours from {found['from']} to {found['to']} are none: 00:00-24:00 is a day"
        )
    length = end - begin if begin < end else end + 24 * 60 - begin
    for day in _weekdays(found["first"], found["last"], text):
        for minute in range(length):
            yield (day * 24 * 60 + begin + minute) % _WEEK_MINUTES


def _weekdays(first: str | None, last: str | None, text: str) -> Iterator[int]:
    if first is None:
        yield from range(7)
        return
    if first not in _DAYS or (last or first) not in _DAYS:
        raise _not_quiet(text)
    begin, end = _DAYS.index(first), _DAYS.index(last or first)
    for step in range((end - begin) % 7 + 1):
        yield (begin + step) % 7


def _minute(text: str, interval: str) -> int:
    hour, minute = int(text[:2]), int(text[3:])
    if hour * 60 + minute > 24 * 60 or minute > 59:
        raise _not_quiet(interval)
    return hour * 60 + minute


def _not_quiet(text: str) -> CadenceError:
    return CadenceError(
        f"quiet hours are written `22:00-07:00` or `Sat-Sun 00:00-24:00`, not {text!r}"
    )
