"""Dates in the wild, read as feedparser reads them."""

from __future__ import annotations

import calendar
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime

import pytest
from feedparser.datetimes import _parse_date
from hypothesis import given
from hypothesis import strategies as st

from feeds.dates import FIRST_DATE_US, parse_date

WILD = [
    "Thu, 01 Jan 2026 00:00:00 GMT",
    "Thu, 1 Jan 2026 00:00:00 +0100",
    "01 Jan 2026 00:00:00 EST",
    "Thu, 01 jan 2026 00:00:00 GMT",
    "Thu, 01 Jan 26 00:00 UT",
    "Thu Jan  1 00:00:00 2026",
    "2026-01-01",
    "2026-01-01T00:00:00Z",
    "2026-01-01T00:00:00.5+01:00",
    "2026-01-01 00:00:00",
    "20260101",
    "2026-01",
    "Thursday, January 1, 2026",
    "2026-02-30",
    "32 Jan 2026 00:00:00 GMT",
    "Thu, 01 Jan 2026 25:00:00 GMT",
    "yesterday",
    "",
    "0",
]


@pytest.mark.parametrize("text", WILD)
def test_dates_are_read_as_feedparser_reads_them(text: str):
    theirs = _parse_date(text) if text else None
    ours = parse_date(text)
    if theirs is not None and ours is not None:
        assert ours // 1_000_000 == calendar.timegm(theirs)
    assert (ours is None) == (theirs is None) or ours is not None


FIRST, LAST = datetime(1980, 1, 3), datetime(2190, 1, 1)  # noqa: DTZ001
ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(st.datetimes(FIRST, LAST, timezones=ZONES))
def test_the_standard_forms_come_back_exactly(moment: datetime):
    microseconds = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    assert parse_date(moment.isoformat()) == microseconds
    assert parse_date(format_datetime(moment)) == microseconds // 1_000_000 * 1_000_000


@given(st.text(max_size=120))
def test_whatever_the_text_a_moment_or_none_comes_out(text: str):
    assert parse_date(text) is None or isinstance(parse_date(text), int)


@pytest.mark.parametrize(
    "text",
    [
        "0001-01-01T00:00:00Z",
        "0001-01-01T00:00:00+00:00",
        "Mon, 01 Jan 0001 00:00:00 +0000",
        "1970-01-01T00:00:00Z",
        "Thu, 01 Jan 1970 00:00:00 GMT",
        "Wed, 31 Dec 1969 19:00:00 -0500",
        "1979-12-31T23:59:59Z",
    ],
)
def test_what_programs_write_for_no_date_is_none(text: str):
    assert parse_date(text) is None


def test_dates_begin_with_1980():
    assert parse_date("1980-01-01T00:00:00Z") == FIRST_DATE_US
