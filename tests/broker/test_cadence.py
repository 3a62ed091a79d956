"""When a match is due: digests, groups and quiet hours, by the clocks of a time zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.registry.cadence import Cadence, CadenceError, Throttle, between, check_zone
from broker.registry.subscription import Digest

HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US
BERLIN = ZoneInfo("Europe/Berlin")
MOMENTS = st.integers(0, 4_000_000_000_000_000)


def us(moment: datetime) -> int:
    return int(moment.timestamp()) * 1_000_000


def shown(at_us: int, zone: ZoneInfo = BERLIN) -> str:
    return datetime.fromtimestamp(at_us // 1_000_000, tz=zone).strftime("%a %d %H:%M %z")


@given(digest=st.sampled_from(Digest), now_us=MOMENTS)
def test_a_digest_is_due_at_the_next_boundary(digest: Digest, now_us: int) -> None:
    length_us = {"immediate": 0, "hourly": HOUR_US, "daily": DAY_US, "weekly": 7 * DAY_US}[digest]
    due_us = Cadence(digest).due_us(now_us)
    assert now_us <= due_us <= now_us + length_us
    due = datetime.fromtimestamp(due_us // 1_000_000, tz=UTC)
    if digest is not Digest.IMMEDIATE:
        assert due_us > now_us
        assert (due.minute, due.second) == (0, 0)
    if digest in (Digest.DAILY, Digest.WEEKLY):
        assert due.hour == 0
    if digest is Digest.WEEKLY:
        assert due.strftime("%A") == "Monday"


@given(
    now_us=MOMENTS,
    group_s=st.sampled_from([0, 600]),
    digest=st.sampled_from(["immediate", "30 2 * * *", "*/15 8-18 * * Mon-Fri"]),
    quiet=st.sampled_from(["", "22:00-07:00", "Sat-Sun 00:00-24:00; 01:30-03:15", "00:00-23:59"]),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu"]),
)
def test_nothing_is_due_before_it_is_found_or_in_a_quiet_hour(
    now_us: int, group_s: int, digest: str, quiet: str, zone: str
) -> None:
    group_us = 0 if digest != "immediate" else group_s * 1_000_000
    cadence = Cadence(digest, group_us, quiet, zone)
    due_us = cadence.due_us(now_us)
    assert due_us >= now_us + group_us
    assert Cadence("immediate", 0, quiet, zone).due_us(due_us) == due_us
    assert Cadence.parse(cadence.render()) == cadence
    assert cadence.due_us(now_us + 1) >= due_us, "what is found later is not due before"


@pytest.mark.parametrize(
    ("found", "due"),
    [
        # The night in which 2:00 becomes 3:00, and the one in which 3:00 becomes 2:00.
        (datetime(2026, 3, 29, 1, 45, tzinfo=BERLIN), "Sun 29 03:00 +0200"),
        (datetime(2026, 10, 25, 1, 45, tzinfo=BERLIN), "Sun 25 02:30 +0200"),
        (datetime(2026, 10, 25, 2, 10, fold=1, tzinfo=BERLIN), "Sun 25 02:30 +0100"),
        (datetime(2026, 10, 25, 2, 40, tzinfo=BERLIN), "Sun 25 02:40 +0200"),
    ],
)
def test_an_hour_is_quiet_whenever_clocks_show_it(found: datetime, due: str) -> None:
    cadence = Cadence(quiet="01:30-02:30", timezone="Europe/Berlin")
    assert shown(cadence.due_us(us(found))) == due


def test_a_digest_at_an_hour_that_is_skipped_or_comes_twice_comes_once() -> None:
    cadence = Cadence("30 2 * * *", timezone="Europe/Berlin")
    for day, due in (
        (datetime(2026, 3, 28, 12, tzinfo=BERLIN), "Sun 29 03:00 +0200"),
        (datetime(2026, 10, 24, 12, tzinfo=BERLIN), "Sun 25 02:30 +0200"),
        (datetime(2026, 10, 25, 2, 31, tzinfo=BERLIN), "Mon 26 02:30 +0100"),
    ):
        assert shown(cadence.due_us(us(day))) == due


def test_a_digest_within_quiet_hours_comes_when_they_end() -> None:
    cadence = Cadence("daily", quiet="22:00-07:00")
    found = datetime(2026, 7, 1, 12, tzinfo=UTC)
    assert cadence.due_us(us(found)) == us(found + timedelta(hours=19))


def test_quiet_hours_of_a_saturday_night_reach_into_sunday() -> None:
    cadence = Cadence(quiet="Sat 22:00-07:00")
    night = datetime(2026, 7, 5, 1, tzinfo=UTC)
    assert cadence.due_us(us(night)) == us(night.replace(hour=7))
    assert cadence.due_us(us(night + timedelta(days=1))) == us(night + timedelta(days=1))


@pytest.mark.parametrize(
    ("cadence", "said"),
    [
        (Cadence("sometimes"), "a digest is `immediate`, `hourly`"),
        (Cadence("0 0 30 2 *"), "Bad day-of-month"),
        (Cadence("* * * * * *"), "five fields"),
        (Cadence("daily", group_us=5), "a digest is a group"),
        (Cadence(quiet="22-7"), "quiet hours are written `22:00-07:00`"),
        (Cadence(quiet="Sam 22:00-07:00"), "quiet hours are written"),
        (Cadence(quiet="25:00-07:00"), "quiet hours are written"),
        (Cadence(quiet="07:00-07:00"), "00:00-24:00 is a day"),
        (Cadence(quiet="00:00-24:00"), "never end"),
        (Cadence(quiet="Mon-Fri 00:00-24:00; Sat-Sun 00:00-24:00"), "never end"),
        (Cadence(quiet=";".join(["01:00-02:00"] * 15)), "at most 14"),
    ],
)
def test_what_is_never_due_or_misspelt_is_refused(cadence: Cadence, said: str) -> None:
    with pytest.raises(CadenceError, match=said):
        cadence.checked()


@pytest.mark.parametrize("name", ["Berlin", "../etc/passwd", "Europe", "", "a\0b"])
def test_a_zone_that_nobody_knows_is_refused_and_kept_ones_are_read(name: str) -> None:
    with pytest.raises(CadenceError, match="is no time zone"):
        check_zone(name)
    noon = datetime(2026, 7, 1, 12, tzinfo=UTC)
    assert Cadence("daily", timezone=name).due_us(us(noon)) == us(noon + timedelta(hours=12))


def test_a_throttle_has_a_count_and_a_time() -> None:
    assert Throttle.parse("3 per 1 h") == Throttle(3, HOUR_US)
    for text in ("3", "0 per 1 h", "1001 per 1 h", "3 per hour", "3 per 31 days", "1 per 1 ms"):
        with pytest.raises(CadenceError):
            Throttle.parse(text)
    with pytest.raises(CadenceError, match="1 second to 30 days"):
        between("a group", "0 s")
