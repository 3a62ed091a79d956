"""Hostile and odd documents: a reason that the publisher understands, in bounded time."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.registered import register

import xscl
from xpath_eval import parsing
from xpath_eval.parsing import XmlError, parse_elements

BOMB = (
    b'<!DOCTYPE a [<!ENTITY a "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx">'
    + b"".join(b'<!ENTITY %c "%b">' % (98 + i, b"&%c;" % (97 + i) * 20) for i in range(8))
    + b']><a k="&i;"/>'
)


@pytest.mark.parametrize(
    ("xml", "reason"),
    [
        (b"<a>" * 257 + b"</a>" * 257, "more than 256 levels"),
        (b"<a>" + b"x" * (parsing.TEXT_BYTES_MAX + 1) + b"</a>", "a text has more than"),
        (b"<a k='" + b"x" * (parsing.TEXT_BYTES_MAX + 1) + b"'/>", "an attribute has more than"),
        (
            b"<a><![CDATA[" + b"x" * (parsing.TEXT_BYTES_MAX + 1_000) + b"]]></a>",
            "a text has more than",
        ),
        (b"<" + b"a" * (parsing.NAME_BYTES_MAX + 1) + b"/>", "a name has more than 50000 bytes"),
        (b"<a>\x00</a>", "Char 0x0 out of allowed range, line 1"),
        (b" " * (parsing.DOCUMENT_BYTES_MAX + 1), "bytes, the limit is"),
        (BOMB, "multiply"),
        (b'<!DOCTYPE a [<!ENTITY a "&a;">]><a k="&a;"/>', "refer to themselves"),
        (b'<!DOCTYPE a SYSTEM "x.dtd"><a>&foo;</a>', "refers to the entity &foo;"),
        (b"<a>\xff</a>", "not in the encoding that it declares"),
        (b"", "the document is empty"),
    ],
)
def test_what_is_over_a_limit_is_refused_with_a_reason(xml: bytes, reason: str) -> None:
    with pytest.raises(XmlError, match=reason):
        parse_elements(xml)


def test_too_many_elements_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "ELEMENTS_MAX", 3)
    parse_elements(b"<a><b/><c/></a>")
    with pytest.raises(XmlError, match="4 elements, the limit is 3"):
        parse_elements(b"<a><b/><c/><d/></a>")


def test_text_is_bounded_where_it_counts_for_each_element_around_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    xml = "<a>x<b>é<c/>yy</b>z</a>".encode()  # 1 + 2 * 2 + 2 * 2 + 1
    monkeypatch.setattr(parsing, "NESTED_TEXT_BYTES_MAX", 10)
    parse_elements(xml)
    monkeypatch.setattr(parsing, "NESTED_TEXT_BYTES_MAX", 9)
    with pytest.raises(XmlError, match="has 10 bytes of text where"):
        parse_elements(xml)


def test_too_many_attributes_are_refused() -> None:
    attributes = " ".join(f"k{i}=''" for i in range(parsing.ATTRIBUTES_MAX + 1))
    with pytest.raises(XmlError, match="1001 attributes, the limit is 1000"):
        parse_elements(f"<a><b {attributes}/></a>".encode())


@given(st.binary(max_size=60))
def test_whatever_the_bytes_there_is_a_tree_or_a_reason(xml: bytes) -> None:
    for text in (xml, b"<a>" + xml + b"</a>", b"<a " + xml + b"/>"):
        try:
            found: object = parse_elements(text)
        except XmlError as error:
            found = str(error)
        assert found


def test_a_tree_outlives_the_parser_of_its_thread() -> None:
    trees = [parse_elements(f"<a{i}><b>{i}</b></a{i}>".encode()) for i in range(500)]
    assert [tree[0].tag for tree in trees] == [f"a{i}" for i in range(500)]
    assert [tree[1].text for tree in trees] == [str(i) for i in range(500)]


def test_a_deep_document_is_right() -> None:
    (query,) = xscl.parse("S//a//a[b]->x[.//c->y]")
    registered, evaluator = register(query.blocks)
    depth = 200
    xml = b"<a>" * depth + b"<b/><c/>" + b"</a>" * depth
    # x is the innermost `a`, which has the only `b`; elements 0 to 199 are the `a`.
    assert registered[0].bindings(evaluator.evaluate("S", xml)) == {
        frozenset({("x", depth - 1), ("y", depth + 1)})
    }


def test_a_wide_document_takes_linear_time() -> None:
    (query,) = xscl.parse("S//item[not(@no)]->x[title->t][contains(title, '7')]")
    registered, evaluator = register(query.blocks)

    def seconds(count: int) -> float:
        xml = b"<r>" + b"<item no='1'><title>x</title></item>" * count
        xml += b"<item><title>7</title></item></r>"
        start = time.process_time()
        witnesses = evaluator.evaluate("S", xml)
        spent = time.process_time() - start
        assert registered[0].bindings(witnesses) == {
            frozenset({("x", 2 * count + 1), ("t", 2 * count + 2)})
        }
        return spent

    small = min(seconds(2_000 + i) for i in range(3))
    # Ten times as large; quadratic work would take a hundred times as long.
    assert seconds(20_000) < 45 * small + 0.5
