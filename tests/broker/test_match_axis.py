"""A match on the axis of time: each of its documents, its windows and its grace."""

from __future__ import annotations

from typing import Any

import pytest

from broker.documents.document import parse_time, render_time
from broker.web.matchaxis import axis_of

HOUR_US = 3_600_000_000
START = "2026-01-01T10:00:00Z"


def line(*hours: float, **further: Any) -> dict[str, Any]:
    """Return what the axis reads of a match line: documents so many hours after ten."""
    times = [render_time(parse_time(START) + round(each * HOUR_US)) for each in hours]
    documents = [
        {"docid": at, "stream": "S", "key": f"k{at}", "time": time} for at, time in enumerate(times)
    ]
    return {"documents": documents, "end": max(times), **further}


def bands(text: str | None, made: dict[str, Any]) -> list[tuple[int, int, str]]:
    found = axis_of(text, made, 24 * HOUR_US)["bands"]
    return [(each.start, each.start + each.width, each.text) for each in found]


def points(text: str, made: dict[str, Any]) -> list[int]:
    return [each["at"] for each in axis_of(text, made, 24 * HOUR_US)["points"]]


def test_a_window_opens_at_the_end_of_what_stands_left_of_it() -> None:
    text = "S->a FOLLOWED BY {, 4 hours} S->b FOLLOWED BY {, $t} S->c"
    made = line(0, 2, 3, parameters={"t": 8 * HOUR_US})
    assert bands(text, made) == [
        (0, 400, "FOLLOWED BY 4 hours"),
        (200, 1_000, "FOLLOWED BY 8 hours"),
    ]
    assert points(text, made) == [0, 200, 300]


def test_a_window_of_join_opens_at_the_earlier_document() -> None:
    assert bands("S->a JOIN {, 4 hours} S->b", line(1, 0)) == [(0, 1_000, "JOIN 4 hours")]


def test_a_run_has_each_element_within_and_the_grace_behind_its_end() -> None:
    text = "FROM S->a NEXT {a/x = b/x} S->b+ WITHIN 8 hours GRACE 1 hour"
    made = line(0, 1, 2, 8, decided=9)
    assert points(text, made) == [0, 111, 222, 889]
    assert bands(text, made) == [(0, 889, "WITHIN 8 hours"), (889, 1_000, "a grace of 1 hour")]


def test_a_grace_that_is_long_goes_over_the_edge() -> None:
    text = "FROM S->a NEXT {a/x = b/x, 4 hours} S->b"
    assert bands(text, line(0, 4, decided=9)) == [
        (0, 800, "NEXT 4 hours"),
        (800, 1_000, "a grace of 1 day"),
    ]


def test_what_must_be_absent_has_its_window() -> None:
    text = "FROM S->a NOT FOLLOWED BY {a/x = b/x, 4 hours} S->b GRACE 1 h"
    end = render_time(parse_time(START) + 4 * HOUR_US)
    assert bands(text, {**line(0, decided=9), "end": end}) == [
        (0, 800, "NOT FOLLOWED BY 4 hours"),
        (800, 1_000, "a grace of 1 hour"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        None,
        "S->a FOLLOWED BY {, INF} S->b",
        "S->a JOIN {, 1 h} (S->b JOIN {, 1 h} S->c)",
        "broken {",
        "S->a; S->b",
        "S//x->a+ {, 1 h} WITHIN INF",
    ],
)
def test_where_no_band_can_be_drawn_there_are_documents(text: str | None) -> None:
    axis = axis_of(text, line(0, 1, 1.5), 0)
    assert axis["bands"] == []
    assert [each["at"] for each in axis["points"]] == [0, 667, 1_000]
    assert axis["apart"] == "1 hour 30 minutes"
