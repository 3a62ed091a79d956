"""What a constructor looks up by itself is what an XPath 2.0 engine finds there."""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import escape, quoteattr

from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

import xscl
from xscl.meter import Meter
from xscl.nodes import NumberedTree
from xscl.output import build
from xscl.plainpaths import plain_path

TAGS = st.sampled_from(["a", "b", "c"])
TEXTS = st.sampled_from(["", "", "x", " y ", "1 < 2 & 3", "z\r\n", "<!--k-->", "<![CDATA[<]]>"])
SPACES = st.sampled_from(["", "", "", ' xmlns="urn:n"', ' xmlns:p="urn:p"', ' xmlns=""'])


def _text(text: str) -> str:
    return text if text.startswith("<!") else escape(text, {"\r": "&#13;"})


@st.composite
def elements(draw: Any, depth: int = 4) -> str:
    tag, space = draw(TAGS), draw(SPACES)
    attributes = "".join(
        f" {name}={quoteattr(value)}"
        for name, value in draw(
            st.dictionaries(
                st.sampled_from(["id", "k"]), st.sampled_from(["", "v", '"&\n']), max_size=2
            )
        ).items()
    )
    content = _text(draw(TEXTS))
    for _ in range(draw(st.integers(0, 3)) if depth else 0):
        content += draw(elements(depth - 1)) + _text(draw(TEXTS))
    return f"<{tag}{space}{attributes}>{content}</{tag}>"


STEPS = st.sampled_from(["/a", "/b", "//a", "//b", "/*", "//*", "/c//a"])
ENDS = st.sampled_from(["", "", "/text()", "//text()", "/@id", "//@id", "//@k"])
PATHS = st.builds(lambda steps, end: "".join(steps) + end, st.lists(STEPS, max_size=3), ENDS)


@given(st.lists(elements(), min_size=1, max_size=3), st.lists(PATHS, min_size=1), st.data())
def test_paths_are_looked_up_as_an_engine_finds_them(
    xml: list[str], paths: list[str], data: Any
) -> None:
    assert all(plain_path(f"$x{path}") is not None for path in paths)
    trees = [NumberedTree(etree.fromstring(each)) for each in xml]
    # The engine takes an attribute for its own attribute.
    asks_attributes = any("@" in path for path in paths)
    where = []
    for place, tree in enumerate(trees):
        first = len(tree.elements) + len(tree.attributes)
        numbers = [*range(len(tree.elements)), *range(first, first + len(tree.texts))]
        if not asks_attributes:
            numbers += range(len(tree.elements), first)
        where.append((place, data.draw(st.sampled_from(numbers))))
    nodes = {"x": data.draw(st.permutations(where))}

    def made(before: str, behind: str) -> str:
        parts = "".join(
            f"<p q='{{{before}x{path}{behind}}}'>{{{before}x{path}{behind}}}</p>" for path in paths
        )
        query = xscl.parse(f"SELECT <o>{parts}</o> FROM S//a->x")[0]
        output, error = build(query, trees, nodes, 0, 0, meter=Meter())
        assert error is None
        return output

    # In parentheses it is left to the engine.
    assert made("", "") == made("(", ")")
