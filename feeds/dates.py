"""Dates as feeds write them, in the wild, to microseconds since 1970.

The two standard forms are read here; everything else (asctime, Greek, Hungarian, Korean,
two-digit years, zone names) by feedparser's date handlers, which have seen more.
"""

from __future__ import annotations

import calendar
import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import lru_cache

from feedparser.datetimes import _parse_date as parse_date_in_the_wild

__all__ = ["parse_date"]

_ISO = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d([.,]\d{1,9})?)?(Z|z|[+-]\d\d:?\d\d)?")
_RFC822 = re.compile(
    r"(?:[A-Z][a-z]{2}, )?(\d{1,2}) ([A-Z][a-z]{2}) (\d{4}) (\d\d):(\d\d):(\d\d) "
    r"(?:GMT|UT|UTC|Z|([+-])(\d\d):?(\d\d))"
)
_MONTHS = {name: number for number, name in enumerate(calendar.month_abbr) if name}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TEXT_MAX = 100
"""No date is longer; date handlers are not run over whole articles."""


@lru_cache(maxsize=4096)
def parse_date(text: str) -> int | None:
    """Return the moment that `text` names, or None.  Without a zone it is UTC.

    >>> parse_date("Thu, 01 Jan 1970 00:00:01 GMT")
    1000000
    >>> parse_date("yesterday") is None
    True
    """
    text = text.strip()
    if not text or len(text) > _TEXT_MAX:
        return None
    try:
        moment = _rfc822(text) or _iso(text) or _other(text)
    except (ValueError, OverflowError, TypeError, IndexError):
        return None
    return None if moment is None else (moment - _EPOCH) // timedelta(microseconds=1)


def _rfc822(text: str) -> datetime | None:
    found = _RFC822.fullmatch(text)
    if found is None or found[2] not in _MONTHS:
        return None
    day, month, year = int(found[1]), _MONTHS[found[2]], int(found[3])
    moment = datetime(year, month, day, int(found[4]), int(found[5]), int(found[6]), tzinfo=UTC)
    if found[7] is None:
        return moment
    offset = timedelta(hours=int(found[8]), minutes=int(found[9]))
    return moment - offset if found[7] == "+" else moment + offset


def _iso(text: str) -> datetime | None:
    if _ISO.fullmatch(text) is None:
        return None
    moment = datetime.fromisoformat(text.upper().replace(",", "."))
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _other(text: str) -> datetime | None:
    parsed = parse_date_in_the_wild(text)
    if parsed is not None:
        return _EPOCH + timedelta(seconds=calendar.timegm(parsed))
    moment = parsedate_to_datetime(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
