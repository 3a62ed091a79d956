"""Who asks for one of several values, as in SQL or XPath 2.0, is told what to write."""

from __future__ import annotations

import pytest

import xscl
from xscl.cursor import LIST_HINT

PAIR = "news//item->a FOLLOWED BY {%s, 1 day} news//item->b"


@pytest.mark.parametrize(
    "text",
    [
        "news//item[author in ('Ann', 'Bob')]",
        "news//item[author IN ('Ann')]",
        "news//item[author not in ('Ann', 'Bob')]",
        "news//item[author = ('Ann', 'Bob')]",
        "news//item[author != ('Ann', 'Bob')]",
        PAIR % "a/author in ('Ann', 'Bob')",
        PAIR % "a/author NOT IN ('Ann', 'Bob')",
        PAIR % "a/author = ('Ann', 'Bob')",
        PAIR % "a/author in b/author",
    ],
)
def test_the_hint_is_to_compare_one_value_at_a_time(text: str) -> None:
    with pytest.raises(xscl.XsclError) as refused:
        xscl.parse(text)
    assert refused.value.diagnostics[0].hint == LIST_HINT


@pytest.mark.parametrize(
    "text", ["news//item[(author = 'Ann'", "news//item[contains(a, 'b', 'c')]"]
)
def test_other_brackets_keep_their_hints(text: str) -> None:
    with pytest.raises(xscl.XsclError) as refused:
        xscl.parse(text)
    assert refused.value.diagnostics[0].hint != LIST_HINT


def test_what_the_hint_says_can_be_written() -> None:
    for condition in ("author = 'a' or author = 'b'", "author != 'a' and author != 'b'"):
        assert xscl.parse(f"news//item[{condition}]")
