"""Of an excerpt of a node's tree a condition says what it says of the node."""

from __future__ import annotations

import random

import pytest
from lxml import etree
from oracle.paths import select
from oracle.tree import parse_tree
from support.examples import some

import xscl
from xpath_eval.conditions import Conditions
from xpath_eval.structure import parse_xml
from xscl.excerpts import excerpt_of
from xscl.excerpttests import excerpted, passes_excerpt
from xscl.path import ANY, Axis, Condition, Excerpt, NodeTest, Path, Step, counts_positions
from xscl.prefilters import Values
from xscl.treepattern import tree_pattern

DECLARED = "DECLARE NAMESPACE n = 'urn:n'; S//x"
GIVEN: list[str | float] = ["a", "ab", "", "1", 1.0, 2.0, "'", "\x01"]


def step(chance: random.Random) -> str:
    return chance.choice(
        [
            "a",
            "b",
            "a",
            "*",
            "n:a",
            "*:b",
            "@k",
            "@*",
            "text()",
            ".//a",
            ".//@k",
            ".//text()",
            ".",
            ".//.",
        ]
    )


def of_xpath(chance: random.Random) -> str:
    """Return a step or two that only XPath 1.0 has here."""
    return chance.choice(
        [
            *("descendant::a", "descendant-or-self::*", "self::b", "node()", "(a | b)[1]"),
            *("descendant-or-self::node()", ".//node()", "attribute::node()", "(.//a)[last()]/b"),
        ]
    )


def path(chance: random.Random, depth: int) -> str:
    text = step(chance) if chance.random() < 0.8 else of_xpath(chance)
    if chance.random() < 0.3 and not text.startswith((".", "@", "(")):
        text += "/" + chance.choice(["a", "b", "*", "text()", "@k", "/a"])
    while depth and chance.random() < 0.5 and text != ".":
        depth -= 1
        text += f"[{predicate(chance, depth)}]"
    return text


def predicate(chance: random.Random, depth: int) -> str:
    """Return a condition, of the fragment or not, with a parameter or a position."""
    own, other = path(chance, depth), path(chance, 0)
    form = chance.choice(
        [
            *("{} = $x", "{} != $x", "{} < $x", "not({})", "{}", "contains({}, $x)"),
            *("$n", "position() < $n", "last()", "last() - $n", "position() mod 2 = $n - 1"),
            *("count({}) > 1", "{} > {other} * $n", "string({}) = $x", "concat({}, $x) = 'aba'"),
            *("{} = $x or {other}", "not({} and {other} != $x)", "lower-case({}) = $x"),
            *(
                "string-length() > $n",
                "normalize-space() = $x",
                "local-name({}) = $x",
                "sum(a) > $n",
            ),
            *("boolean({}) != ({other} = $x)", "namespace-uri({}) != $x", "string-length({}) < $n"),
        ]
    )
    return form.format(own, other=other)


def tree(chance: random.Random, depth: int = 3) -> str:
    """Return an element with texts between nested ones of few names."""
    name = chance.choice(["a", "a", "b", "n:a", "x"])
    names = " xmlns:n='urn:n'" if chance.random() < 0.2 else ""
    attributes = "".join(
        f" {each}='{text(chance)}'" for each in ("j", "k", "n:k") if chance.random() < 0.4
    )
    inner = text(chance)
    for _ in range(chance.randrange(4) if depth else 0):
        inner += tree(chance, depth - 1) + text(chance)
    return f"<{name}{names}{attributes}>{inner}</{name}>"


def text(chance: random.Random) -> str:
    return chance.choice(["", "", "a", "ab", "1", "2", " ", "&#13;&#10;", "&lt;&quot;"])


def conditions(chance: random.Random) -> list[Condition]:
    """Return a condition that does not count the positions of its own step, if it is one."""
    try:
        (query,) = xscl.parse(f"{DECLARED}[{predicate(chance, 2)}]")
    except xscl.XsclError:  # a function that XPath 1.0 lacks, within what only it has
        return []
    step = query.blocks[0].path.steps[0]
    return [each for each in step.predicates if not counts_positions(each)]


def check(seed: int) -> int:
    """Compare what is said of excerpts with what the oracle says; return how often it holds."""
    chance, count = random.Random(seed), 0
    xml = f"<x xmlns:n='urn:n'>{tree(chance)}{text(chance)}{tree(chance)}</x>".encode()
    parsed = parse_xml(xml)
    at_nodes = Conditions(parsed, parsed.structure())
    document = parse_tree(xml)
    nodes = [*document.descendants_or_self()][1:]
    nodes += [each for node in nodes for each in node.attributes]
    for condition in conditions(chance):
        found = excerpted(condition)
        assert found is not None
        excerpt, asked = found
        given = {"x": chance.choice(GIVEN), "n": chance.choice([1.0, 2.0, 0.0, 1.5])}
        wanted = asked.text(given)
        alone = Path((Step(Axis.SELF, NodeTest(ANY, ANY), predicates=(condition,)),))
        for node in nodes:
            (of_node,) = at_nodes.values(excerpt, node.number)
            holds = bool(select(alone, node, given))
            assert passes_excerpt(str(of_node), wanted) == holds, (condition, xml, node)
            count += holds
    return count


@pytest.mark.parametrize("seeds", some(range(100), 3))
def test_an_excerpt_says_what_the_node_does(seeds: int) -> None:
    held = [check(seed) for seed in range(seeds * 100, seeds * 100 + 100)]
    assert sum(map(bool, held)) > 10


def spelled(asked: str, xml: str) -> str:
    (query,) = xscl.parse(f"{DECLARED}[{asked}]")
    found = excerpted(query.blocks[0].path.steps[0].predicates[0])
    assert found is not None
    return excerpt_of(etree.XML(xml), found[0])


@pytest.mark.parametrize(
    ("asked", "xml", "excerpt"),
    [
        ("not(a[. = $x][b])", "<x>t<a k='1'>p<c/>q</a>r</x>", "<x><a>p<c/>q</a></x>"),
        ("a[b][$n]", "<x><a>t</a><c><a/></c><a><b>u</b></a></x>", "<x><a/><a><b/></a></x>"),
        ("not(a[@k = $x])", "<x k='2'><a k='1' j='2'>t</a></x>", '<x><a k="1"/></x>'),
        ("count(.//a[. = $x]) > 1", "<x>t<b>u<a>v</a></b><c/></x>", "<x><b><a>v</a></b></x>"),
        (
            "count((.//a)[last()]/b[. = $x]) > 1",
            "<x><b>u</b><c><a><b>t</b><d/></a></c></x>",
            "<x><c><a><b>t</b></a></c></x>",
        ),
        (
            "count(node()[. = $x]) > count(descendant-or-self::a[@*])",
            "<x>t<b>u<a k='1'/></b></x>",
            '<x>t<b>u<a k="1"/></b></x>',
        ),
        ("count((a)[b = $x]) > 1", "<x><a>t<b>u</b></a></x>", "<x><a><b>u</b></a></x>"),
        ("not(text()[$n])", "<x>t<a>u</a>v</x>", "<x>t<a/>v</x>"),
        (
            "not(n:a[. = $x][b])",
            "<x xmlns:m='urn:n' xmlns:o='urn:o' xmlns='u'><m:a>t</m:a></x>",
            '<x xmlns:m="urn:n" xmlns="u"><m:a>t</m:a></x>',
        ),
        ("not(a[. = $x][b])", "<x><a>&#13;&lt;</a></x>", "<x><a>&#13;&lt;</a></x>"),
    ],
)
def test_an_excerpt_has_what_is_read(asked: str, xml: str, excerpt: str) -> None:
    assert spelled(asked, xml) == excerpt


@pytest.mark.parametrize(
    "asked",
    [
        *("../a[. = $x]", "count(/a[. = $x]) > 1", "a[lang($x)]", "count(id($x)) > 1"),
        *("not(a[name() = $x][b])", "following-sibling::a[. = $x]", "a[preceding::b = $x]"),
    ],
)
def test_what_reads_more_than_is_below_a_node_is_not_asked_of_an_excerpt(asked: str) -> None:
    (query,) = xscl.parse(f"{DECLARED}[{asked}]")
    assert excerpted(query.blocks[0].path.steps[0].predicates[0]) is None


def test_attributes_have_no_default_namespace() -> None:
    declared = "DECLARE DEFAULT ELEMENT NAMESPACE = 'urn:d'; S//x"
    (query,) = xscl.parse(f"{declared}[count(a[@k = $x]) > 1]")
    found = excerpted(query.blocks[0].path.steps[0].predicates[0])
    assert found is not None
    xml = "<x xmlns='urn:d'><a k='1'>t</a></x>"
    assert excerpt_of(etree.XML(xml), found[0]) == '<x xmlns="urn:d"><a k="1"/></x>'


def test_a_position_is_never_what_is_no_number() -> None:
    (query,) = xscl.parse(f"{DECLARED}[not(a[b][position() != $n])]")
    found = excerpted(query.blocks[0].path.steps[0].predicates[0])
    assert found is not None
    assert passes_excerpt("<x><a><b/></a></x>", found[1].text({"n": float("nan")}))


@pytest.mark.parametrize(
    ("asked", "count"),
    [
        *(("a[b = $x][c < $n]", 0), ("not(a = $x)", 0), ("a = $x or b = $x", 0), ("a[$n]", 0)),
        *(("not(a[b = $x][c < $n])", 1), ("a[b = $x][2]", 1), ("a[not(b[c = $x][d < $n])]/e", 1)),
    ],
)
def test_what_has_another_form_has_no_excerpt(asked: str, count: int) -> None:
    (query,) = xscl.parse(f"{DECLARED}[{asked}]")
    pattern = tree_pattern(query.blocks[0], (), texts={"x"})
    values = [node.derivation for node in pattern.nodes if isinstance(node.derivation, Values)]
    assert sum(isinstance(each.operands[0], Excerpt) for each in values) == count
