"""Times as texts: what Python's own dates say of them, and back again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import example, given
from hypothesis import strategies as st

from broker.documents.document import LAST_US, parse_time, render_time

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST_US = (datetime(1, 1, 1, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)


@example(0)
@example(-1)
@example(59_999_999)
@example(LAST_US)
@given(st.integers(FIRST_US, LAST_US) | st.integers(-100, 100).map(lambda s: s * 1_000_000))
def test_a_time_is_written_as_iso_8601_says(time_us: int) -> None:
    moment = EPOCH + timedelta(microseconds=time_us)
    assert render_time(time_us) == moment.isoformat().replace("+00:00", "Z")
    assert parse_time(render_time(time_us)) == time_us
