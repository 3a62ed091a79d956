"""Of an excerpt of a node's tree a condition says what it says of the node."""

from __future__ import annotations

import random
from dataclasses import replace
from unittest.mock import patch

import pytest
from lxml import etree
from oracle.paths import select
from oracle.tree import Node, parse_tree
from support.examples import some

import xscl
from xpath_eval.conditions import Conditions
from xpath_eval.structure import parse_xml
from xscl import excerpttests
from xscl.excerpttests import excerpted, passes_excerpt, selected_in_excerpt
from xscl.excerpttexts import NAMED, ExcerptedNode, excerpt_below, places_in
from xscl.path import And, Axis, Condition, Excerpt, Path, PathValue, counts_positions
from xscl.prefilters import Values
from xscl.sharedtexts import held, name_of
from xscl.treepattern import tree_pattern

DECLARED = "DECLARE NAMESPACE n = 'urn:n'; S//x"
NAMES = ("j", "k", "n:k", "xml:lang")
GIVEN: list[str | float] = ["a", "b", "ab", "", "1", 1.0, 2.0, "'", "\x01", "urn:n"]
WRITTEN = ["a", "n:a", "m:a", "k", "n:k", "m:k", ""]


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
            *("..", "../@k", "../a", "../..", "parent::a", "../text()", "a/..", "@k/..", ".//.."),
            *("following-sibling::a", "preceding-sibling::*/b", "following-sibling::node()"),
            *("following::b", "preceding::a/@k", "/x", "/x/a", "//n:a", "/", "/n:a/.."),
            *("ancestor::*", "ancestor::a/b", "ancestor-or-self::b", "ancestor::node()/@k"),
            *("text()/following-sibling::a", "ancestor::a[last()]", ".//text()/../@k"),
            *("namespace::*", "namespace::m", "a/namespace::*[last()]", "../namespace::n/.."),
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
            *("lang($x)", "{}[lang($x)]", "count({}[. = $x]) = count(id($x))"),
            *("name({}) = $p", "name() != $p", "name({}[name() = $p]) = name({other})"),
            *("boolean({}) != ({other} = $x)", "namespace-uri({}) != $x", "string-length({}) < $n"),
        ]
    )
    return form.format(own, other=other)


def tree(chance: random.Random, depth: int = 3) -> str:
    """Return an element with texts between nested ones of few names."""
    prefix = chance.choice(["n", "n", "m"])
    name = chance.choice(["a", "a", "b", f"{prefix}:a", "x"])
    names = f" xmlns:{prefix}='urn:n'" if prefix == "m" or chance.random() < 0.2 else ""
    attributes = "".join(
        f" {each}='{text(chance)}'"
        for each in ("j", "k", "xml:lang", f"{prefix}:k")
        if chance.random() < 0.4
    )
    inner = text(chance)
    for _ in range(chance.randrange(4) if depth else 0):
        inner += tree(chance, depth - 1) + text(chance)
    return f"<{name}{names}{attributes}>{inner}</{name}>"


def text(chance: random.Random) -> str:
    return chance.choice(["", "", "a", "ab", "1", "2", " ", "&#13;&#10;", "&lt;&quot;"])


def random_step(chance: random.Random) -> str:
    """Return a step with conditions that are asked of an excerpt."""
    selected = chance.choice(["*", "a", "b", "@*", "@k", "text()", "."])
    asked = "".join(f"[{predicate(chance, 2)}]" for _ in range(chance.choice([1, 1, 2, 3])))
    return selected + asked


def check(seed: int, written: str = "") -> int:
    """Compare what is said of excerpts with what the oracle says; return how often it holds."""
    chance, count = random.Random(seed), 0
    xml = f"<x xmlns:n='urn:n'>{tree(chance)}{text(chance)}{tree(chance)}</x>".encode()
    if chance.random() < 0.3:
        xml = xml.replace(b"<b", b"<b xmlns=''").replace(b"<x ", b"<x xmlns='urn:d' ")
    parsed = parse_xml(xml)
    at_nodes = Conditions(parsed, parsed.structure())
    document = parse_tree(xml)
    try:
        (query,) = xscl.parse(f"{DECLARED}//{written or random_step(chance)}")
    except xscl.XsclError:  # a function that XPath 1.0 lacks, within what only it has
        return 0
    step = query.blocks[0].path.steps[-1]
    is_alone = seed % 2 and not any(map(counts_positions, step.predicates))
    read = excerpted(And(step.predicates)) if is_alone else selected_in_excerpt(step)
    assert read is not None
    excerpt, asked = read
    given = {"x": chance.choice(GIVEN), "n": chance.choice([1.0, 2.0, 0.0, 1.5])}
    given["p"] = chance.choice(WRITTEN)
    wanted = asked.text(given)

    def nodes(predicates: tuple[Condition, ...]) -> set[Node]:
        path = Path((replace(step, predicates=predicates, is_deep=True),))
        context = document.children[0] if step.axis is Axis.SELF else document
        return {node for node, _ in select(path, context, given)}

    passing = nodes(step.predicates)
    if excerpt.leads_upwards and chance.random() < 0.8:  # else each node has a text of its own
        at_nodes.place(excerpt, sorted(node.number for node in nodes(())))
    for node in nodes(()):
        (of_node,) = at_nodes.values(excerpt, node.number)
        texts = held(at_nodes.shared.values())
        holds = node in passing
        with patch.object(excerpttests, "_ONE_BY_ONE", 16 * (seed % 4 == 3)):
            found = passes_excerpt(str(of_node), wanted)
        assert found == holds, (step, xml, node.number, texts)
        count += holds
    return count


@pytest.mark.parametrize("seeds", some(range(100), 2))
def test_an_excerpt_says_what_the_node_does(seeds: int) -> None:
    held = [check(seed) for seed in range(seeds * 100, seeds * 100 + 100)]
    assert sum(map(bool, held)) > 10


OF_ABOVE = [
    "*[count(../a[. = $x]) = count(b[. = $x])]",
    *("*[count(../text()[. = $x]) = count(text())]", "*[string(..) != $x][2]"),
    *("*[string(/) != $x]", "*[count(.//node()[. = $x]) = 1]"),
    *("*[count(ancestor::node()[not(@k = $x)]) = 2]", "*[lang($x)]", "text()[lang($x)]"),
    *("*[count(../b[1]/preceding-sibling::a[. != $x]) = 1]", "@*[../@j = $x]"),
    *("@*[. = $x][1]", "*[count(//@k[. = $x]) = 1]", ".[.//../@k = $x]"),
    *("a[.//following-sibling::a = $x]", "*[lang(string(../@k)) or @k = $x]"),
    *("b[following::a = $x]", "text()[. = $x][../@k][last()]", "*[a/following::b != $x]"),
    *("*[b[//n:a != $x]]", "text()[../a = $x]", "a[preceding::b/@k = $x]"),
    *("b[following-sibling::a != $x]", "@*[ancestor-or-self::node()/../@j = $x]"),
    *("@*[../@j = $x or . = $x]", "b[.//following-sibling::a != $x]"),
    "*[string-length(..) > string-length(text()[2])]",
    *("*[../namespace::n != $x]", "b[preceding-sibling::*/namespace::* != $x]"),
    *("@*[count(../namespace::*) = $n + 1]", "a[name(namespace::*[last()]) != $x]"),
]


@pytest.mark.parametrize(
    ("asked", "inner", "places"),
    [
        ("../@k = $x", "<a/><b/><a/>", "/0 /1 /0"),
        ("../@k = $x or b = $x", "<a><b>1</b></a><a/><a><b>1</b></a>", "/0 /1 /0"),
        ("../b = $x", "<a/><a/><b/><a/><a/>", "/0 /0 /1 /2 /2"),
        ("../b = $x", "<a/><n:a/><m:a/><n:a/>", "/0 /1 /2 /1"),
        ("../text() = $x", "<a/>t<a/>", "/0 /1"),
        ("../b = $x and . = $x", "<a>t</a><a>u</a><a>t</a>", "/0 /1 /2"),
        ("..//@k = $x", "<a/><a/>", "/0 /0"),
        ("..//@k = $x", "<a k='1'/><a/>", "/0 /1"),
        ("(. | ..//@k)[1] = $x", "<a/><b k='1'/><a/>", "/0 /1 /2"),
    ],
)
def test_nodes_of_which_a_condition_says_the_same_have_one_place(
    asked: str, inner: str, places: str
) -> None:
    (query,) = xscl.parse(f"{DECLARED}/*[{asked}]")
    found = excerpted(query.blocks[0].path.steps[1].predicates[0])
    assert found is not None
    tree = etree.XML(f"<x xmlns:n='urn:n' xmlns:m='urn:n'>{inner}</x>")
    assert places_in(found[0], [*map(ExcerptedNode, tree)])[1] == places.split()


OF_SETS = [
    *("*[following-sibling::a != $x]", "a[preceding-sibling::*/@k = $x]", "*[../b = $x]"),
    *("*[following::n:a[@j] < $n or k]", "*[preceding::a[b or @k] != 'a' and not(.. = $x)]"),
    *("b[ancestor::*[@j != $x]/@j]", "*[ancestor-or-self::a/following-sibling::* = $x]"),
    *("*[/x/a[@k != $x]/..]", "*[.//following-sibling::a != $x]", "*[..//@n:k = $x]"),
    *("a[descendant::b/parent::a != $x]", "*[$n != ../preceding-sibling::*:a/@j]"),
    *("*[boolean(/) and .//.. != $x]", "*[descendant::*[.//@* = $x]]", "*[-1 < //a[. = $x]]"),
]


@pytest.mark.parametrize("written", OF_SETS)
def test_what_is_often_asked_is_found_for_all_nodes(written: str) -> None:
    assert sum(check(seed, written) for seed in range(12, 20))


@pytest.mark.parametrize("written", OF_ABOVE)
def test_an_excerpt_says_what_is_above_or_beside_a_node(written: str) -> None:
    assert sum(check(seed, written) for seed in range(12))


def test_what_is_read_of_the_document_begins_there() -> None:
    for asked in ("a/following::b[. = $x]", "a[b][count(/x/a[. = $x]) > 1]"):
        (query,) = xscl.parse(f"{DECLARED}[{asked}]")
        found = excerpted(query.blocks[0].path.steps[0].predicates[0])
        assert found is not None
        axes = [[step.axis for step in each.steps] for each in found[0].paths + found[0].texts]
        assert [each.index(Axis.DOCUMENT) for each in axes if Axis.DOCUMENT in each] == [0]


def test_no_attribute_is_an_identity() -> None:
    (query,) = xscl.parse(f"{DECLARED}[count(id($x)) = 0][count(//@xml:id[. = $x]) = 1]")
    found = excerpted(And(query.blocks[0].path.steps[0].predicates))
    assert found is not None
    text, [place] = places_in(found[0], [ExcerptedNode(etree.XML("<x><a xml:id='i'/></x>"))])
    [shared] = held([text])
    assert passes_excerpt(f"{place}{NAMED}{name_of(shared.text)}", found[1].text({"x": "i"}))


def spelled(asked: str, xml: str) -> str:
    (query,) = xscl.parse(f"{DECLARED}[{asked}]")
    found = excerpted(query.blocks[0].path.steps[0].predicates[0])
    assert found is not None
    return excerpt_below(found[0], ExcerptedNode(etree.XML(xml)), "")


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
            '<x xmlns="u"><m:a xmlns:m="urn:n">t</m:a></x>',
        ),
        (
            "not(n:a[@* = $x][b])",
            "<x xmlns='u' xmlns:m='urn:n'><o:a xmlns:o='urn:n' o:k='&#9;' m:j='1'>"
            "<b xmlns='' xml:lang='n'/></o:a></x>",
            '<x xmlns="u"><o:a xmlns:m="urn:n" xmlns:o="urn:n" m:j="1" o:k="&#9;">'
            '<b xmlns=""/></o:a></x>',
        ),
        ("not(a[. = $x][b])", "<x><a>&#13;&lt;</a></x>", "<x><a>&#13;&lt;</a></x>"),
        ("count(a[@* = $x]) > 1", "<x><a k='1' j='2'/></x>", '<x><a j="2" k="1"/></x>'),
        (
            "not(a[namespace::node() = $x][b])",
            "<x xmlns='u' xmlns:m='v' xmlns:n='w'><a xmlns='' xmlns:n='y'><b/></a><o/></x>",
            '<x xmlns="u"><a xmlns="" xmlns:n="y" xmlns:m="v"><b/></a></x>',
        ),
    ],
)
def test_an_excerpt_has_what_is_read(asked: str, xml: str, excerpt: str) -> None:
    assert spelled(asked, xml) == excerpt


def test_attributes_have_no_default_namespace() -> None:
    declared = "DECLARE DEFAULT ELEMENT NAMESPACE = 'urn:d'; S//x"
    (query,) = xscl.parse(f"{declared}[count(a[@k = $x]) > 1]")
    found = excerpted(query.blocks[0].path.steps[0].predicates[0])
    assert found is not None
    xml = "<x xmlns='urn:d'><a k='1'>t</a></x>"
    assert (
        excerpt_below(found[0], ExcerptedNode(etree.XML(xml)), "")
        == '<x xmlns="urn:d"><a k="1"/></x>'
    )


def test_a_position_is_never_what_is_no_number() -> None:
    (query,) = xscl.parse(f"{DECLARED}[not(a[b][position() != $n])]")
    found = excerpted(query.blocks[0].path.steps[0].predicates[0])
    assert found is not None
    assert passes_excerpt("<x><a><b/></a></x>", found[1].text({"n": float("nan")}))


@pytest.mark.parametrize(
    ("asked", "count"),
    [
        *(("a[b = $x][c < $n]", 0), ("not(a = $x)", 0), ("a = $x or b = $x", 0), ("a[$n]", 0)),
        *(
            ("last() - $n", 0),
            ("position() = $n + 1", 0),
            ("last() * $n != 2", 0),
            ("last() = $n", 0),
        ),
        *(("b = $x][2", 1), ("$n][1", 1), ("b][$n", 1), ("position() = count(a[. = $x])", 1)),
        *(("not(a[b = $x][c < $n])", 1), ("a[b = $x][2]", 1), ("a[not(b[c = $x][d < $n])]/e", 1)),
    ],
)
def test_what_has_another_form_has_no_excerpt(asked: str, count: int) -> None:
    (query,) = xscl.parse(f"{DECLARED}[{asked}]")
    pattern = tree_pattern(query.blocks[0], (), texts={"x"})
    values = [node.derivation for node in pattern.nodes if isinstance(node.derivation, Values)]
    assert sum(isinstance(e, Excerpt) for each in values for e in each.operands) == count


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("a[b = $x][2]", ["a/b"]),
        ("a[b[. = $x][1]/c < $n][last()]/d = 'e'", ["a/b", "a/b/c"]),
        ("a[contains(., $x) and b][2]", ["a"]),
        ("a = $x][@k > $n][1", ["@k", "a"]),
        ("a[not(b = $x)][2]", []),
        (f"a{''.join(f'[b{i} = $x]' for i in range(9))}[2]", [f"a/b{i}" for i in range(7)]),
        ("not(a[b = $x][2])", []),
    ],
)
def test_who_is_asked_is_found_by_what_follows(asked: str, found: list[str]) -> None:
    (query,) = xscl.parse(f"{DECLARED}[{asked}]")
    pattern = tree_pattern(query.blocks[0], (), texts={"x"})
    values = [node.derivation for node in pattern.nodes if isinstance(node.derivation, Values)]
    (operands,) = [each.operands for each in values]
    paths = [each.path for each in operands if isinstance(each, PathValue)]
    assert [
        "/".join("@" * (s.axis is Axis.ATTRIBUTE) + s.test.name for s in p.steps) for p in paths
    ] == found
