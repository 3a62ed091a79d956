"""Documents are numbered as the semantics say, and hostile ones are refused with a reason."""

from __future__ import annotations

import pytest
from oracle.tree import parse_tree

from xpath_eval.parsing import parse_elements
from xpath_eval.structure import Detail, XmlError, parse_xml, structure_key

MIXED = (
    b"<a z='1' y='2'>one<b>two<!-- no -->three</b><?pi?>four<c xmlns:n='urn:n' n:k='3' k='4'/>"
    b"<d><e>five</e>six</d>seven</a>"
)


def test_elements_come_first_then_attributes_by_name_then_texts() -> None:
    tree = parse_xml(MIXED)
    structure = tree.structure()
    assert structure.names == ["a", "b", "c", "d", "e"]
    assert [name for _, name in structure.attributes] == ["y", "z", "k", "{urn:n}k"]
    values = [tree.value(structure, n) for n in range(structure.text_base, structure.text_base + 6)]
    assert values == ["one", "twothree", "four", "five", "six", "seven"]


def test_numbers_and_values_are_those_of_the_oracle() -> None:
    tree = parse_xml(MIXED)
    structure = tree.structure()
    waiting = [parse_tree(MIXED)]
    seen = 0
    while waiting:
        node = waiting.pop()
        waiting += [*node.children, *node.attributes]
        if node.number >= 0:
            seen += 1
            assert tree.value(structure, node.number) == node.value
    assert seen == structure.text_base + len(structure.texts)


def test_equal_keys_mean_equal_structures() -> None:
    one = parse_elements(b"<a><b>x</b>y<c/></a>")
    two = parse_elements(b"<a><b>other</b>z<c/></a>")
    three = parse_elements(b"<a><b k='1'>x</b><c>y</c></a>")
    assert structure_key(one, Detail.TEXTS) == structure_key(two, Detail.TEXTS)
    assert structure_key(one, Detail.TEXTS) != structure_key(three, Detail.TEXTS)
    assert structure_key(one, Detail.NAMES) == structure_key(three, Detail.NAMES)


@pytest.mark.parametrize(
    ("xml", "reason"),
    [
        (b"", "empty"),
        (b"not xml", "Start tag expected"),
        (b"<a><b></a>", "mismatch"),
        (b'<!DOCTYPE a [<!ENTITY e "x">]><a>&e;</a>', "entities"),
        (b'<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]><a>&e;</a>', "entities"),
        (b"<a>" * 300 + b"</a>" * 300, "256 levels deep"),
        (b"<?xml version='1.0' encoding='nonsense'?><a/>", "encoding"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_reason(xml: bytes, reason: str) -> None:
    with pytest.raises(XmlError, match=f"(?i){reason}"):
        parse_xml(xml)


@pytest.mark.parametrize(
    "xml",
    [
        "\ufeff<a>é</a>".encode(),
        "<?xml version='1.0' encoding='UTF-16'?><a>é</a>".encode("utf-16"),
        "<?xml version='1.0' encoding='ISO-8859-1'?><a>é</a>".encode("latin-1"),
        "<a><![CDATA[é]]></a>".encode(),
        b"<a>&#233;</a>",
        '<!DOCTYPE a SYSTEM "nowhere.dtd"><a>é</a>'.encode(),
    ],
)
def test_encodings_and_escapes_give_the_same_value(xml: bytes) -> None:
    tree = parse_xml(xml)
    assert tree.value(tree.structure(), 0) == "é"
