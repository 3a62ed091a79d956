"""Texts at a place of a document: every way to write one, against XPath."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree
from support.examples import examples

from broker.documents.places import texts_at


def tree(random_: random.Random, depth: int = 0) -> str:
    name = random_.choice("abc")
    attributes = "".join(
        f' {n}="{n}{random_.randrange(9)}"' for n in "ab" if random_.random() < 0.3
    )
    inner = "".join(tree(random_, depth + 1) for _ in range(random_.randrange(4 - depth)))
    return f"<{name}{attributes}>{random_.randrange(99)}{inner}</{name}>"


@settings(max_examples=examples(200), deadline=None)
@given(
    seed=st.integers(0, 2**32),
    steps=st.lists(st.sampled_from(["a", "b", "*"]), min_size=1, max_size=4),
    between=st.lists(st.sampled_from(["/", "//"]), min_size=4, max_size=4),
    kind=st.sampled_from(["", "@"]),
)
def test_a_place_is_what_xpath_selects(
    seed: int, steps: list[str], between: list[str], kind: str
) -> None:
    root = etree.fromstring(tree(random.Random(seed)))
    *above, last = (gap + step for gap, step in zip(between, steps, strict=False))
    path = "".join(above)
    gap, name = last.rstrip("ab*"), last.lstrip("/")
    attributes = {str(each) for each in root.xpath(f"{path}{gap}@{name}")}
    if path:
        attributes = {str(each) for each in root.getroottree().xpath(f"{path}{gap}@{name}")}
    elif gap == "/":
        attributes = set()
    elements = root.getroottree().xpath(f"{path}{gap}{name}")
    texts = [] if kind else ["".join(map(str, each.itertext())) for each in elements]
    found = [*texts_at(root, f"{path}{gap}{kind}{name}")]
    assert [each for each in found if each.isdigit()] == texts
    assert {each for each in found if not each.isdigit()} == attributes


@pytest.mark.parametrize(
    "place", ["x:title", "title", "//title", "*/title", "rss//y:title", "@no/title"]
)
def test_prefixes_and_what_is_above_are_left_out(place: str) -> None:
    root = etree.fromstring("<rss xmlns:d='u'><d:title>Flood</d:title></rss>")
    assert [*texts_at(root, place)] == ([] if place.startswith("@") else ["Flood"])


def test_a_place_of_nothing_is_everywhere() -> None:
    root = etree.fromstring("<a>1<b>2</b></a>")
    assert [*texts_at(root, "/")] == [*texts_at(root, "//")] == ["12", "2"]
