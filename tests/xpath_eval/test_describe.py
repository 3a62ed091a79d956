"""The automaton prints itself."""

from __future__ import annotations

from support.registered import Registered

import xscl
from xpath_eval.catalog import PatternCatalog
from xpath_eval.describe import describe, describe_dot

TEXT = """
    S//item->x[title->t][not(@id) and category > 3][2];
    S//item[.//a/b[text()]][starts-with(lower-case(link), 'h')]->y/*:author->z;
    T/a[count(b) = 2]->w
"""


def _catalog() -> PatternCatalog:
    catalog = PatternCatalog()
    for query in xscl.parse(TEXT):
        Registered(catalog, query.blocks[0])
    return catalog


def test_steps_stand_once_and_filters_below_them() -> None:
    catalog = _catalog()
    assert describe(catalog.plan(), catalog.names).splitlines() == [
        "S",
        "  //item",
        "    filter x: title and not(@id) and category > 3 and position() = 2",
        "    filter y: .//a/b[text()] and starts-with(lower-case(link), 'h')",
        "    /title  t",
        "    /*:author  z",
        "T",
        "  /a",
        "    filter w: count(b) = 2 (XPath 1.0, by itself)",
    ]


def test_filters_are_written_as_a_query_would_have_them() -> None:
    catalog = PatternCatalog()
    wanted = """matches(a, 'x', 'i') and b < 1234567.5 and not(c = "it's") and position() < 3"""
    (query,) = xscl.parse(f"S//item[{wanted}]->x")
    Registered(catalog, query.blocks[0])
    assert f"filter x: ({wanted})" in describe(catalog.plan(), catalog.names)


def test_the_drawing_has_each_step_once() -> None:
    catalog = _catalog()
    drawing = describe_dot(catalog.plan(), catalog.names)
    assert drawing.startswith("digraph automaton {")
    assert drawing.count(" -> ") == 4
    assert 'label="//item", style=dashed' in drawing
