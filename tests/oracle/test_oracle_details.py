"""What text cases cannot say about the oracle."""

from __future__ import annotations

import random
from typing import Any

import pytest
from generators.choosers import RandomChooser
from generators.strategies import Generator
from lxml import etree
from support import worked_example
from support.kit import Case, document, parse_case, us
from support.runners import run_oracle

import oracle
import xscl
from broker.documents.document import FIRST_WATERMARK_US, DocumentError, DocumentLine
from oracle.paths import select
from oracle.tree import parse_tree

XML = (
    '<r xmlns:n="urn:n" k="1"><a>x<b k="2"/>y</a><a k="3"><b>x</b><b>z</b></a>'
    "<n:a><b>x</b><c><b k='4'>w</b></c></n:a> <d/></r>"
)


@pytest.mark.parametrize(
    "path",
    [
        "/r/a",
        "//a",
        "//b",
        "//*",
        "/r/*/b",
        "//@k",
        "//a/@k",
        "//b/text()",
        "//text()",
        "//a[b]",
        "//a[not(b = 'x')]",
        "//a[b = 'x' or @k = '3']",
        "//b[1]",
        "//a/b[last()]",
        "//*[b][2]",
        "//*[position() > 1][@k]",
        "//*[.//b[@k]]",
        "//*[b[2]]",
        "//a[@k = 3]",
        "//b[starts-with(., 'z')]",
        "//*[count(b) = 2]",
        "//a[following-sibling::d]//b",
        "//*[@k][b or c]",
        "//*[string-length(b) = 1]",
    ],
)
def test_paths_without_variables_select_what_lxml_selects(path: str) -> None:
    query = xscl.parse(f"S{path}", id="q")[0]
    document = parse_tree(XML.encode())
    found = {node.number for node, _ in select(query.blocks[0].path, document, {})}
    assert found == _numbers(XML, path)


def _numbers(xml: str, path: str) -> set[int]:
    """Number what lxml's own XPath selects: by its place among all nodes of the document."""
    root: Any = etree.fromstring(xml)
    tree = root.getroottree()
    places = [tree.getpath(element) for element in root.iter()]
    for element in root.iter():
        places += sorted(f"{tree.getpath(element)}@{name}" for name in element.attrib)
    for text in root.xpath("//text()"):
        places.append(_place(tree, text))
    return {places.index(_place(tree, node)) for node in root.xpath(path)}


def _place(tree: Any, node: Any) -> str:
    """Return a name for an element, an attribute or a text of a tree."""
    if not isinstance(node, str):
        return tree.getpath(node)
    owner = tree.getpath(node.getparent())
    return f"{owner}@{node.attrname}" if node.is_attribute else f"{owner} {node.is_tail}"


def test_the_first_document_has_no_watermark_and_later_ones_the_largest_time_before() -> None:
    lines = [document("S", minute, "<a/>") for minute in (5, 9, 7, 10)]
    found = oracle.number_documents(lines)
    minutes = [(d.watermark_us - found[0].end_us) // us("1 m") for d in found[1:]]
    assert found[0].watermark_us == FIRST_WATERMARK_US
    assert minutes == [0, 4, 4]


def test_a_clamped_document_keeps_the_time_that_it_claimed() -> None:
    early, late = oracle.number_documents(
        [document("S", 5, "<a/>", arrival=9), document("S", 15, "<a/>", arrival=9)]
    )
    assert early.claimed_us is None
    assert late.claimed_us == late.end_us + us("6 m")
    assert late.end_us == late.arrival_us


def test_a_line_without_any_time_and_none_before_it_is_an_error() -> None:
    with pytest.raises(DocumentError):
        oracle.number_documents([DocumentLine("S", b"<a/>")])


def test_a_document_that_is_not_xml_keeps_its_number_and_has_no_matches() -> None:
    query = xscl.parse("S", id="q")
    lines = [document("S", 1, "<a>"), document("S", 2, "<a/>")]
    matches = run_oracle(Case(queries=query, lines=lines))
    assert [match.position for match in matches] == [2]


def test_match_ids_tell_queries_assignments_documents_and_visible_nodes_apart() -> None:
    queries = [
        xscl.parse(text, id=name)[0]
        for name, text in (
            ("q", "*//c->a JOIN {a = b, 1 h} *//c->b"),
            ("other", "*//c->a JOIN {a = b, 1 h} *//c->b"),
            ("given", "*//c[. = $v]"),
        )
    ]
    lines = [document("S", 1, "<i><c>x</c><c>x</c></i>"), document("T", 2, "<c>x</c>", key="1")]
    case = Case(queries=queries, lines=lines, assignments={"given": [{"v": "x"}, {"v": "y"}]})
    matches = run_oracle(case)
    assert len(matches) == 4 + 4 + 3
    assert len({match.id for match in matches}) == len(matches)
    assert [match.id for match in matches] == [match.id for match in run_oracle(case)]


def test_matches_are_sorted_by_largest_docid_query_and_id() -> None:
    queries = [xscl.parse("S//a JOIN {, INF} S//a", id=name)[0] for name in ("b", "a")]
    lines = [document("S", minute, "<a/>") for minute in (3, 2, 1)]
    matches = run_oracle(Case(queries=queries, lines=lines))
    order = [(match.position, match.query, match.id) for match in matches]
    assert order == sorted(order)
    assert len(order) == 12


def test_the_worked_example_gives_table_6_4_f() -> None:
    queries = [xscl.parse(text, id=name)[0] for name, text in worked_example.QUERIES.items()]
    lines = [
        document("S", minute, xml.decode())
        for minute, xml in enumerate((worked_example.D1, worked_example.D2))
    ]
    matches = run_oracle(Case(queries=queries, lines=lines))
    found = {
        (match.query, tuple(node.node for node in witness.values()), match.roots)
        for match in matches
        for witness in match.witnesses
    }
    assert found == {
        (query, (node2, node3, node5, node6), (node1, node4))
        for query, _, node1, node2, node3, node4, node5, node6, _ in worked_example.R_OUT
    }


COMPARISONS = (
    "v/c = w/c",
    "v/t = w/t",
    "v/c != w/t",
    "v//c = w/t",
    "w/t > 1",
    "upper-case(v/c) = w/t",
    "v/t = v/c",
)


def found(predicate: str, seed: int) -> set[tuple[int, ...]]:
    """Return the documents that a query with a predicate finds among generated ones."""
    generator = Generator(RandomChooser(seed), foci=["residual"])
    lines = "\n".join(generator.document(number) for number in range(1, 9))
    query = f"query q\n    S//i->v FOLLOWED BY {{{predicate}, INF}} S//i->w"
    matches = run_oracle(parse_case(f"# Alternatives.\n{query}\n{lines}\n----\n"))
    return {tuple(document.docid for document in match.documents) for match in matches}


@pytest.mark.parametrize("seed", range(8))
def test_or_finds_what_one_of_its_alternatives_finds(seed: int) -> None:
    a, b, c = random.Random(seed).sample(COMPARISONS, 3)
    assert found(f"{a} OR {b}", seed) == found(a, seed) | found(b, seed)
    assert found(f"{a} OR {b} AND {c}", seed) == found(a, seed) | found(f"{b} AND {c}", seed)
    distributed = found(f"{a} AND {c}", seed) | found(f"{b} AND {c}", seed)
    assert found(f"({a} OR {b}) AND {c}", seed) == distributed
    assert found(f"{c} AND ({a} OR {b})", seed) == distributed
