"""Constructors that are compiled write what is written part by part, and cost as much."""

from __future__ import annotations

from typing import Any
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

import xscl
from xscl.construct import _date_time, _duration
from xscl.fragments import Fragments, spelled_duration, spelled_time
from xscl.meter import ExhaustedError, Meter
from xscl.nodes import NumberedTree
from xscl.output import build

TAGS = ("a", "b", "c")
TEXTS = ("", "", "x", " y ", "1 &lt; 2 &amp; 3", "z&#13;\n", "<!--k-->", "é&quot;", "<![CDATA[<]]>")
SPACES = ("", "", "", "", ' xmlns="urn:n"', ' xmlns:p="urn:p"', " k='v'", ' id="&quot;&#10;\'"')
EXPRESSIONS = (
    *("$", "$/a", "$/a/b", "$/*", "$/*/c", "$/text()", "$/a/text()", "$/@id", "$/a/@k"),
    *(
        "start()",
        "end()",
        "dur()",
        "$//a",
        "count($/a)",
        "string($/a)",
        "$w",
        "$/a | $/b",
        "$/b/*/@id",
    ),
)
FIRST_US, LAST_US = -62_135_596_800_000_000, 253_402_300_799_999_999


@st.composite
def elements(draw: Any, depth: int = 3) -> str:
    tag, behind, content = (draw(st.sampled_from(some)) for some in (TAGS, SPACES, TEXTS))
    for _ in range(draw(st.integers(0, 3)) if depth else 0):
        content += draw(elements(depth - 1)) + draw(st.sampled_from(TEXTS))
    return f"<{tag}{behind}>{content}</{tag}>"


@st.composite
def constructors(draw: Any, depth: int = 2) -> str:
    def expression() -> str:
        found: str = draw(st.sampled_from(EXPRESSIONS))
        return "{" + found.replace("$w", "'w'").replace("$", draw(st.sampled_from("xy"))) + "}"

    attributes = "".join(
        f' {name}="{draw(st.sampled_from(("", "v ", "&lt;")))}{expression()}"'
        for name in draw(st.sampled_from(("", "k", "kl")))
    )
    content = ""
    for _ in range(draw(st.integers(0, 3))):
        kind = draw(st.integers(0, 3 if depth else 2))
        content += draw(constructors(depth - 1)) if kind == 3 else expression()
        content += draw(st.sampled_from(("", "", " text &amp; ", "\n")))
    return f"<o{attributes}>{content}</o>" if content else f"<o{attributes}/>"


def outcome(
    text: str, trees: list[NumberedTree], nodes: Any, limit: int
) -> tuple[str | None, str | None, int]:
    """Return what is built, why it failed, and what was spent."""
    meter = Meter(limit)
    query = xscl.parse(f"SELECT {text} FROM S//a->x FOLLOWED BY {{x = y, 1 h}} S//b->y")[0]
    try:
        return *build(query, trees, nodes, 60_000_000, 61_500_000, meter=meter), meter.spent
    except ExhaustedError:
        return None, None, meter.spent


@given(st.lists(elements(), min_size=2, max_size=2), constructors(), st.data())
def test_what_is_compiled_is_written_as_part_by_part(xml: list[str], text: str, data: Any) -> None:
    trees = [NumberedTree(etree.fromstring(each)) for each in xml]
    places = [*enumerate(data.draw(st.sampled_from([*range(len(t.elements))])) for t in trees)]
    nodes = {"x": places[:1], "y": places[1:]}
    if data.draw(st.integers(0, 5)) == 0:
        nodes["x"] = data.draw(st.sampled_from([[], places, places[::-1]]))
    with mock.patch.object(Fragments, "written", return_value=None):
        expected = outcome(text, trees, nodes, 1 << 40)
    spent = expected[2]
    for limit in (1 << 40, spent, spent - 1, data.draw(st.integers(0, spent))):
        with mock.patch.object(Fragments, "written", return_value=None):
            expected = outcome(text, trees, nodes, limit)
        assert outcome(text, trees, nodes, limit) == expected


def test_most_constructors_are_compiled() -> None:
    xml = etree.fromstring("<a id='i'><b>t</b></a>")
    text = "<o k='{x/@id}'>{x/b}<p>{y/b/text()} of {dur()}</p>{start()}</o>"
    with mock.patch("xscl.construct._Construction", side_effect=AssertionError):
        found = outcome(text, [NumberedTree(xml)] * 2, {"x": [(0, 0)], "y": [(1, 0)]}, 1 << 40)
    expected = '<o k="i"><b>t</b><p>t of PT1.5S</p>1970-01-01T00:01:00Z</o>'
    assert found[:2] == (expected, None)


@given(st.integers(FIRST_US, LAST_US) | st.integers(-10_000_000, 10_000_000))
def test_times_are_spelled_as_an_engine_spells_them(time_us: int) -> None:
    assert spelled_time(time_us) == str(_date_time(time_us))


@given(
    st.integers(0, 1 << 58)
    | st.integers(0, 10_000_000)
    | st.integers(0, 10_000).map((60_000_000).__mul__)
)
def test_durations_are_spelled_as_an_engine_spells_them(length_us: int) -> None:
    assert spelled_duration(length_us) == str(_duration(length_us))
