"""A document that is said to be written as it was read is written so."""

from __future__ import annotations

import gzip
import json
import random

import pytest
from lxml import etree
from support.recorded_data import news_file

from xpath_eval.parsing import XmlError, parse_root
from xpath_eval.verbatim import Verbatim, element_count, is_verbatim

PIECES = (
    *(
        "<a>",
        "</a>",
        "<b/>",
        "<b />",
        "<a></a>",
        "</b>",
        "<b>",
        "<a.b-c_1>",
        "</a.b-c_1>",
        "<b\n/>",
    ),
    *('<a k="v">', "<a k='v'>", '<a  k="v">', '<a k="v" l="w"/>', '<a k = "v"/>', '<a k=""/>'),
    *('<a k="&lt;&gt;&amp;"/>', '<a k="&quot;"/>', '<a k="\t"/>', '<a k="é"/>', '<a k="\'"/>'),
    *('<a k=">"/>', '<a k="&#233;"/>', '<a k="%;=?~ "/>', '<a xmlns="urn:n">', "<a xmlns=''/>"),
    *('<a xmlns:p="urn:p">', "<p:a/>", '<a xml:lang="en"/>', '<a xml:space="preserve"> </a>'),
    *("text", " ", "\n", "\t", "\r\n", "\r", "é", "\U0001f600", "\u2028", "\x85", "\ufeff", "]]"),
    *("&amp;", "&lt;", "&gt;", "&quot;", "&apos;", "&#13;", "&#xe9;", ">", '"', "'", "]]>"),
    *("<!--c-->", "<?pi?>", "<![CDATA[d]]>", '<?xml version="1.0"?>', "<!DOCTYPE a>"),
)


def written(root: etree._Element) -> bytes:
    return etree.tostring(root, encoding="unicode", with_tail=False).encode()


def asked(xml: bytes) -> tuple[bool, int, bool]:
    """Return what is said of a document by itself."""
    return is_verbatim(xml), element_count(xml), any(each in xml for each in b'"\\\n\t\r')


def asked_at_once(texts: list[bytes]) -> list[tuple[bool, int, bool]]:
    """Return what is said of documents together, with others behind, so that they are many."""
    read = Verbatim.of([*texts, *[b"<a/>"] * 200])
    columns = (read.are_verbatim, read.elements, read.are_escaped)
    return [*zip(*(column[: len(texts)].tolist() for column in columns), strict=True)]


@pytest.mark.parametrize("piece", PIECES)
def test_each_way_to_write_is_known(piece: str) -> None:
    """What is said of a text with one piece is true, whatever stands around it."""
    for around in ("{}", "<r>{}</r>", "<r>x{}y</r>", "<r>{}z</a></r>", "{}<r/>", "<r/>{}"):
        xml = around.format(piece).encode()
        try:
            root = parse_root(xml)
        except XmlError:
            continue
        if is_verbatim(xml):
            assert written(root) == xml
            assert element_count(xml) == len(list(root.iter()))


def test_generated_documents_are_written_as_they_were_read() -> None:
    chance, verbatim, others = random.Random(1), 0, 0
    texts: list[bytes] = []
    for _ in range(20_000):
        body = "".join(chance.choice(PIECES) for _ in range(chance.randrange(6)))
        for xml in (f"<r>{body}</r>".encode(), body.encode()):
            try:
                root = parse_root(xml)
            except XmlError:
                continue
            texts.append(xml)
            if is_verbatim(xml):
                verbatim += 1
                assert written(root) == xml
                assert element_count(xml) == len(list(root.iter()))
            else:
                others += 1
    assert verbatim > 100
    assert others > 100
    assert asked_at_once(texts) == [*map(asked, texts)]


@pytest.mark.parametrize("name", ["x", "xm", "xml", "xmln", "xmlns", "xmlnsa", "axmlns", "xmlna"])
@pytest.mark.parametrize("behind", ["", "1", "s", "n", ".", "-", "S"])
def test_names_of_attributes_are_told_from_namespaces(name: str, behind: str) -> None:
    texts = [f'<a {name}{behind}="v">{content}</a>'.encode() for content in ("", "t", "<b/>")]
    assert asked_at_once(texts) == [*map(asked, texts)]


def test_recorded_items_are_written_as_they_were_read() -> None:
    with gzip.open(news_file(), "rt", encoding="utf-8") as lines:
        texts = [
            json.loads(line)["xml"].encode() for line, _ in zip(lines, range(2_000), strict=False)
        ]
    verbatim = [xml for xml in texts if is_verbatim(xml)]
    assert asked_at_once(texts) == [*map(asked, texts)]
    assert all(written(parse_root(xml)) == xml for xml in verbatim)
    assert len(verbatim) > len(texts) / 2
