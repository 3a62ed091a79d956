"""Section 3 of the semantics: axes, node tests and steps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.reading import block, child, codes, predicate

import xscl
from xscl.lexer import is_name
from xscl.namespaces import KNOWN_PREFIXES
from xscl.path import (
    ANY,
    Axis,
    Exists,
    NodeTest,
    Path,
    Step,
)


def test_the_axes_are_child_descendant_attribute_and_self() -> None:
    steps = block("S/a//b/@c").path.steps
    assert [(s.axis, s.is_deep) for s in steps] == [
        (Axis.CHILD, False),
        (Axis.CHILD, True),
        (Axis.ATTRIBUTE, False),
    ]
    assert block("S//a//@c").path.steps[1].is_deep


@pytest.mark.parametrize("path", ["./a", "a", "self::node()/a", "child::a", "./././a"])
def test_a_relative_path_may_begin_with_a_dot(path: str) -> None:
    assert predicate(path) == Exists(Path((child("a"),)))


@pytest.mark.parametrize("path", [".//a", "descendant::a", "./descendant-or-self::node()/child::a"])
def test_a_relative_path_may_begin_with_a_dot_and_two_slashes(path: str) -> None:
    assert predicate(path) == Exists(Path((Step(Axis.CHILD, NodeTest("a"), is_deep=True),)))


@pytest.mark.parametrize(
    ("test", "meaning"),
    [
        ("name", NodeTest("name", None)),
        ("dc:creator", NodeTest("creator", KNOWN_PREFIXES["dc"])),
        ("*:name", NodeTest("name", ANY)),
        ("*", NodeTest(ANY, ANY)),
        ("atom:*", NodeTest(ANY, KNOWN_PREFIXES["atom"])),
        ("text()", NodeTest("", None, is_text=True)),
    ],
)
def test_node_tests(test: str, meaning: NodeTest) -> None:
    assert block(f"S//{test}").path.steps[0].test == meaning
    if test != "text()":
        assert block(f"S//a/@{test}").path.steps[1].test == meaning


def test_an_unprefixed_name_is_in_the_default_namespace_if_one_is_declared() -> None:
    text = "DECLARE DEFAULT ELEMENT NAMESPACE = 'urn:d'; S//a[@b]"
    step = block(text).path.steps[0]
    assert step.test == NodeTest("a", "urn:d")
    [attribute] = step.predicates[0].path.steps  # type: ignore[union-attr]
    assert attribute.test == NodeTest("b", None)


@pytest.mark.parametrize("prefix", sorted(KNOWN_PREFIXES))
def test_known_prefixes(prefix: str) -> None:
    assert block(f"S//{prefix}:a").path.steps[0].test.namespace == KNOWN_PREFIXES[prefix]


def test_the_known_prefixes_are_those_of_the_semantics() -> None:
    listed = "atom rss1 rdf dc dcterms content media itunes georss slash wfw sy podcast xml"
    assert set(KNOWN_PREFIXES) == set(listed.split())


def test_other_prefixes_are_declared() -> None:
    assert codes("S//foo:a") == ["XS205"]
    assert codes("DECLARE NAMESPACE foo = 'urn:foo'; S//foo:a[@foo:b]/foo:*") == []


def test_an_unknown_prefix_comes_with_the_nearest_one() -> None:
    _, [found] = xscl.check("S//dcterm:subject")
    assert found.hint == "did you mean `dcterms`?"


def test_plain_self_steps_are_merged_into_the_step_before_them() -> None:
    assert block("S//a/./b/.[c]").path == block("S//a/b[c]").path
    assert block("S//a/.->x").path == block("S//a->x").path


def test_a_self_step_that_counts_is_not_merged() -> None:
    assert len(block("S//a[b]/.[1]").path.steps) == 2
    assert len(block("S//a->x/.->y").path.steps) == 2


@pytest.mark.parametrize("path", ["S/..", "S//a/parent::b", "S//a/following::b", "S//node()"])
def test_other_axes_cannot_stand_on_a_blocks_path(path: str) -> None:
    assert codes(path) == ["XS303"]


@pytest.mark.parametrize(
    ("deepest", "too_deep"),
    [
        ("S" + "/a" * 256, "S" + "/a" * 257),
        ("S" + "/a" * 200 + "[b" + "/b" * 55 + "]", "S" + "/a" * 200 + "[b" + "/b" * 56 + "]"),
    ],
)
def test_no_path_is_deeper_than_documents_are_nested(deepest: str, too_deep: str) -> None:
    assert codes(deepest) == []
    assert codes(too_deep) == ["XS112"]


@given(st.text("aZ_0.-é日٣'·: >*/(\n"))
def test_a_name_is_what_a_query_can_write_for_a_stream(text: str) -> None:
    queries, diagnostics = xscl.check(f"{text}//a")
    is_read = not diagnostics and [each.stream for each in queries[0].blocks] == [text]
    assert is_name(text) == (is_read and text != "*")
