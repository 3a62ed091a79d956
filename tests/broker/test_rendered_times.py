"""Times of many matches are rendered as each by itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.documents.document import LAST_US, parse_time, render_time
from broker.matching.rendering.times import render_times

FIRST_US = parse_time("0001-01-01T00:00:00Z")


@pytest.mark.parametrize("others", [0, 200])
@given(st.lists(st.integers(FIRST_US, LAST_US) | st.integers(-3_000_000, 3_000_000), max_size=20))
def test_many_times_are_rendered_as_one(others: int, times: list[int]) -> None:
    times = [*times, FIRST_US, LAST_US, 0, -1, 1_500_000]
    found = render_times(np.array(times + [0] * others))
    assert found[: len(times)] == [*map(render_time, times)]
