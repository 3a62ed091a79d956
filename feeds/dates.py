"""Dates as feeds write them, in the wild, to microseconds since 1970.

The two standard forms are read here; everything else (asctime, Greek, Hungarian, Korean,
two-digit years, zone names) by feedparser's date handlers, which have seen more.
"""

from __future__ import annotations

import calendar
import re
from datetime import UTC, date, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import lru_cache

from feedparser.datetimes import _parse_date as parse_date_in_the_wild

__all__ = ["FIRST_DATE_US", "parse_date", "usable"]

FIRST_DATE_US = 315_532_800_000_000
"""1980 begins.  What is before it was not meant: the year 1 and the epoch stand for "no date" in
many programs, and no feed is older."""

_ISO = re.compile(r"\d{4}-\d\d-\d\d([Tt ]\d\d:\d\d(:\d\d([.,]\d{1,9})?)?(Z|z|[+-]\d\d:?\d\d)?)?")
_RFC822 = re.compile(
    r"(?:[A-Z][a-z]{2}, )?(\d{1,2}) ([A-Z][a-z]{2}) (\d{4}) (\d\d):(\d\d):(\d\d) "
    r"(?:GMT|UT|UTC|Z|([+-])(\d\d):?(\d\d))"
)
_MONTHS = {name: number for number, name in enumerate(calendar.month_abbr) if name}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_TEXT_MAX = 100
"""No date is longer; date handlers are not run over whole articles."""


@lru_cache(maxsize=4096)
def parse_date(text: str) -> int | None:
    """Return the moment that `text` names, or None.  Without a zone it is UTC.

    >>> parse_date("Tue, 01 Jan 1980 00:00:01 GMT")
    315532801000000
    >>> parse_date("yesterday") is None, parse_date("0001-01-01T00:00:00Z") is None
    (True, True)
    """
    text = text.strip()
    if not text or len(text) > _TEXT_MAX:
        return None
    try:
        if (found := _RFC822.fullmatch(text)) and found[2] in _MONTHS:
            return usable(_rfc822_us(*found.groups()))
        return usable(_since_epoch_us(_iso(text) or _other(text)))
    except (ValueError, OverflowError, TypeError, IndexError):
        return None


def usable(time_us: int | None) -> int | None:
    """Return a time that says when something was, None where it stands for no date."""
    return None if time_us is None or time_us < FIRST_DATE_US else time_us


def _rfc822_us(
    day: str, month: str, year: str, hour: str, minute: str, second: str, sign: str, *zone: str
) -> int:
    # Whole numbers throughout: most dates take this way, and datetime arithmetic is slow.
    days = date(int(year), _MONTHS[month], int(day)).toordinal() - _EPOCH_DAY
    minutes = days * 1_440 + int(hour) * 60 + int(minute)
    if sign:
        offset = int(zone[0]) * 60 + int(zone[1])
        minutes += offset if sign == "-" else -offset
    if not (int(hour) < 24 and int(minute) < 60 and int(second) <= 60):
        raise ValueError("no such time of day")
    return (minutes * 60 + int(second)) * 1_000_000


def _since_epoch_us(moment: datetime | None) -> int | None:
    if moment is None:
        return None
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _iso(text: str) -> datetime | None:
    if _ISO.fullmatch(text) is None:
        return None
    try:
        moment = datetime.fromisoformat(text.upper().replace(",", "."))
    except ValueError:  # such as 30 February, which others read as 2 March
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _other(text: str) -> datetime | None:
    parsed = parse_date_in_the_wild(text)
    if parsed is not None:
        return _EPOCH + timedelta(seconds=calendar.timegm(parsed))
    moment = parsedate_to_datetime(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
