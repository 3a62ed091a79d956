"""Section 6 of the semantics, as far as the language goes: SELECT, constructors, node numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from support.reading import codes, query
from support.stringvalues import string_value

import xscl
from xscl.nodes import AttributeNode, Node, NumberedTree, TextNode
from xscl.output import build
from xscl.query import Constructor, SelectNodes

HOUR_US = 3_600_000_000
BOOK = "<book id='7'><author>Ann</author><title>T &amp; U</title><c>x</c><c>y</c></book>"


def output(
    text: str,
    *documents: str,
    nodes: Mapping[str, tuple[int, int]] | None = None,
    times: tuple[int, int] = (0, HOUR_US),
    parameters: Mapping[str, str | float | int] | None = None,
) -> tuple[str, str | None]:
    """Build the output of a match whose block roots are the documents' root elements."""
    found = query(text)
    trees = [NumberedTree(etree.XML(document)) for document in documents or (BOOK,)]
    roots = {block.root: (index, 0) for index, block in enumerate(found.blocks)}
    places = {name: [place] for name, place in {**roots, **(nodes or {})}.items()}
    return build(found, trees, places, *times, parameters)


def constructed(content: str, *documents: str) -> str:
    text, error = output(
        f"SELECT {content} FROM S//book->x1[author->x2]", *documents, nodes={"x2": (0, 1)}
    )
    assert error is None
    return text


def number_nodes(tree: Any) -> list[Node]:
    numbered = NumberedTree(tree)
    nodes = [*numbered.elements, *numbered.attributes, *numbered.texts]
    assert all(numbered.node(number) is node for number, node in enumerate(nodes))
    return nodes


def test_elements_then_attributes_then_texts_are_numbered() -> None:
    root = etree.XML(
        "<a xmlns:p='urn:a' z='1' p:b='2' a='3'>one<b c='4'/>two<!-- no -->three<?no no?></a>"
    )
    nodes = number_nodes(root)
    assert [each.tag for each in nodes[:2]] == ["a", "b"]
    assert [(each.name, each.value) for each in nodes[2:6]] == [
        ("a", "3"),
        ("z", "1"),
        ("{urn:a}b", "2"),
        ("c", "4"),
    ]
    assert [each.value for each in nodes[6:]] == ["one", "twothree"]


def test_texts_are_numbered_in_document_order() -> None:
    nodes = number_nodes(etree.XML("<a>1<b>2<c/>3</b>4<d>5</d> </a>"))
    assert [each.value for each in nodes[4:]] == ["1", "2", "3", "4", "5", " "]


def test_a_tree_is_numbered_from_its_root_element() -> None:
    root = etree.XML("<!-- before --><a><b/></a>")
    assert number_nodes(root.getroottree()) == number_nodes(root)
    tree = NumberedTree(root)
    assert tree.node(0) is root
    for number in (2, -1):
        with pytest.raises(IndexError):
            tree.node(number)


def test_string_values_are_those_of_xpath() -> None:
    root = etree.XML("<a b='v'>1<!-- no --><c>2<?no no?></c> 3</a>")
    nodes = number_nodes(root)
    assert [string_value(each) for each in nodes] == ["12 3", "2", "v", "1", "2", " 3"]
    assert isinstance(nodes[2], AttributeNode)
    assert isinstance(nodes[3], TextNode)


def test_select_all_copies_each_block_root_in_the_order_of_the_blocks() -> None:
    text = "S JOIN {, 1 h} (T JOIN {, 1 h} U)"
    assert output(text, "<a/>", "<b>1</b>", "<c/>") == (
        "<match><a/><b>1</b><c/></match>",
        None,
    )


def test_select_all_copies_what_the_last_step_selects() -> None:
    assert output("S//book/author", nodes={"#0": (0, 1)})[0] == (
        "<match><author>Ann</author></match>"
    )


def test_a_list_copies_nodes_in_its_order() -> None:
    text = "SELECT x4, x1 FROM S//book->x1[title->x4]"
    assert query(text).select == SelectNodes(("x4", "x1"))
    assert query("SELECT $x4 FROM S//book->x4").select == SelectNodes(("x4",))
    assert output(text, nodes={"x4": (0, 2), "x1": (0, 1)})[0] == (
        "<match><title>T &amp; U</title><author>Ann</author></match>"
    )


def test_a_copied_attribute_becomes_an_element_and_a_text_text() -> None:
    text = "SELECT x2, x3 FROM S//book[@id->x2][title/text()->x3]"
    assert output(text, nodes={"x2": (0, 5), "x3": (0, 7)})[0] == (
        "<match><id>7</id>T &amp; U</match>"
    )


def test_a_list_may_hold_paths() -> None:
    found = query("SELECT x1/c, x1 FROM S//book->x1")
    assert isinstance(found.select, Constructor)
    assert found.select.variables == ("x1",)
    assert output("SELECT x1/c FROM S//book->x1")[0] == "<match><c>x</c><c>y</c></match>"


def test_a_variable_may_be_asked_for_twice() -> None:
    assert output("SELECT x, x FROM S//book->x", "<book/>")[0] == "<match><book/><book/></match>"
    assert query("SELECT x, x FROM S//book->x").visible() == ("x",)


def test_visible_nodes_are_the_roots_and_what_the_clause_mentions() -> None:
    text = "FROM S//a[b->x][c->y] JOIN {x = z, 1 h} T->z"
    assert query(text).visible() == ("#0", "z")
    assert query(f"{text} SELECT y, z").visible() == ("#0", "z", "y")
    assert query(f"{text} SELECT <r a='{{x}}'>{{y/d}}</r>").visible() == ("#0", "z", "x", "y")


@pytest.mark.parametrize(
    ("content", "result"),
    [
        ("<a/>", "<a/>"),
        ("<a b='1' c=\"x&quot;y\"/>", '<a b="1" c="x&quot;y"/>'),
        ("<a by='{x2}'>{x1/title}</a>", '<a by="Ann"><title>T &amp; U</title></a>'),
        ("<a>{x1/c}</a>", "<a><c>x</c><c>y</c></a>"),
        ("<a b='{x1/c}'/>", '<a b="x y"/>'),
        ("<a b='-{x1/c}-{x2}'/>", '<a b="-x y-Ann"/>'),
        ("<a>{string(x1/title)}</a>", "<a>T &amp; U</a>"),
        ("<a>{x1/@id}</a>", "<a><id>7</id></a>"),
        ("<a>{x1/title/text()}!</a>", "<a>T &amp; U!</a>"),
        ("<a>{{ and }}</a>", "<a>{ and }</a>"),
        ("<a b='{{}}'/>", '<a b="{}"/>'),
        ("<a>{1, 2, 'x'}{3}</a>", "<a>1 2 x3</a>"),
        ("<a>{1 + 1, 1.50, 1e3, 1 div 4, 5 idiv 2}</a>", "<a>2 1.5 1000 0.25 2</a>"),
        ("<a>{count(x1/c)} of {x2}</a>", "<a>1 of <author>Ann</author></a>".replace("1", "2")),
        ("<a> <b/> </a>", "<a><b/></a>"),
        ("<a> x <b/> </a>", "<a> x <b/></a>"),
        ("<a>&#32;<b/></a>", "<a> <b/></a>"),
        ("<a><![CDATA[<&]]></a>", "<a>&lt;&amp;</a>"),
        ("<a><!-- no --></a>", "<a/>"),
        ("<a>{x1/c[. = 'y']}</a>", "<a><c>y</c></a>"),
        ("<a>{x1/c[2] = 'y'}</a>", "<a>true</a>"),
        ("<a>{x1/*[name() = 'c'][1]}</a>", "<a><c>x</c></a>"),
        ("<a>{$x1/c[. = $x1/c[1]]}</a>", "<a><c>x</c></a>"),
        ("<a>{for $v in x1/c return concat($v, '.')}</a>", "<a>x. y.</a>"),
        ("<a>{if (x1/d) then 'yes' else 'no'}</a>", "<a>no</a>"),
        ("<a>{string-join(x1/c, '+')}</a>", "<a>x+y</a>"),
        ("<a>{x1/(title|author)}</a>", "<a><author>Ann</author><title>T &amp; U</title></a>"),
        ("<a>{(x1/title, x2)}</a>", "<a><title>T &amp; U</title><author>Ann</author></a>"),
        ("<a>{x1/c (: all of them :)}</a>", "<a><c>x</c><c>y</c></a>"),
        ("<a>{some $v in x1/c satisfies $v = 'y'}</a>", "<a>true</a>"),
        ("<a>{x1/@id cast as xs:integer + 1}</a>", "<a>8</a>"),
        ("<a>{x1/*:c[1]}{x1/*[*:c or 2 * 3 = 6][1]}</a>", "<a><c>x</c><author>Ann</author></a>"),
        ("<a>{'}'}</a>", "<a>}</a>"),
        (
            "<a><b c='{x2}'/>{x2}<b>{x2}</b>tail</a>",
            '<a><b c="Ann"/><author>Ann</author><b><author>Ann</author></b>tail</a>',
        ),
    ],
)
def test_constructors(content: str, result: str) -> None:
    assert constructed(content) == result


def test_the_interval_is_at_hand() -> None:
    text = (
        "SELECT <a from='{start()}' to='{end()}' long='{dur()}'>"
        "{dur() gt xs:dayTimeDuration('PT1H')}</a> FROM S"
    )
    times = (1_767_225_600_000_000, 1_767_225_600_000_000 + 90 * 60_000_000 + 500_000)
    assert output(text, times=times)[0] == (
        '<a from="2026-01-01T00:00:00Z" to="2026-01-01T01:30:00.5Z" long="PT1H30M0.5S">true</a>'
    )


def test_variables_with_primes_are_at_hand() -> None:
    text = "SELECT <a>{x'/b, $x''[c = $x'/b]}</a> FROM S//d->x' JOIN {, 1 h} T//e->x''"
    assert output(text, "<d><b>1</b></d>", "<e><c>1</c></e>")[0] == (
        "<a><b>1</b><e><c>1</c></e></a>"
    )


def test_parameters_are_at_hand() -> None:
    found = output("SELECT <a>{$p, x/c[. = $p]}</a> FROM S//book->x", parameters={"p": "y"})
    assert found[0] == "<a>y<c>y</c></a>"


def test_namespaces_are_kept() -> None:
    document = "<r xmlns='urn:d' xmlns:p='urn:p'><p:a b='1'><c/></p:a></r>"
    text = "DECLARE NAMESPACE q = 'urn:p'; SELECT <out>{x/q:a}</out> FROM S->x"
    found, error = output(text, document)
    assert error is None
    tree = etree.XML(found)
    assert tree[0].tag == "{urn:p}a"
    assert tree[0][0].tag == "{urn:d}c"


@pytest.mark.parametrize("select", ["<out>{x}</out>", "<out><in xmlns=''>{x}</in>{x/*}</out>"])
@pytest.mark.parametrize(
    "document",
    [
        "<i>e<b/></i>",
        "<i xmlns='urn:d'><b xmlns=''><c xmlns='urn:d'/></b></i>",
        "<i xmlns='urn:n'><b xmlns=''><c xmlns='urn:n'/></b></i>",
        "<p:i xmlns='urn:d' xmlns:p='urn:n'><b xmlns=''><p:c><e xmlns='urn:n'/></p:c></b></p:i>",
    ],
)
def test_a_default_element_namespace_swallows_nothing_that_is_copied(
    select: str, document: str
) -> None:
    text = f"DECLARE DEFAULT ELEMENT NAMESPACE = 'urn:n'; SELECT {select} FROM *->x"
    found, error = output(text, document)
    assert error is None
    source = [each.tag for each in etree.XML(document).iter()]
    expected = ["{urn:n}out", *source]
    if "in" in select:
        inside = [each.tag for child in etree.XML(document) for each in child.iter()]
        expected = ["{urn:n}out", "in", *source, *inside]
    assert [each.tag for each in etree.XML(found).iter()] == expected


def test_an_element_without_namespace_says_so_below_a_default_one() -> None:
    text = "DECLARE DEFAULT ELEMENT NAMESPACE = 'urn:n'; SELECT <out>{x}</out> FROM *->x"
    assert output(text, "<i/>")[0] == '<out xmlns="urn:n"><i xmlns=""/></out>'


@pytest.mark.parametrize("select", ["*", "x", "x/.", "x/b, x"])
def test_the_match_element_is_in_no_namespace(select: str) -> None:
    text = f"DECLARE DEFAULT ELEMENT NAMESPACE = 'urn:n'; SELECT {select} FROM *->x"
    assert etree.XML(output(text, "<i xmlns='urn:n'><b/></i>")[0]).tag == "match"


@pytest.mark.parametrize(
    ("document", "copied"),
    [
        ("<r><a k='1'>b</a></r>", '<a k="1">b</a>'),
        ("<r xmlns:p='urn:p'><a>b</a></r>", "<a>b</a>"),
        ("<r xmlns:p='urn:p'><a p:k='1'>b</a></r>", '<a xmlns:p="urn:p" p:k="1">b</a>'),
        ("<r xmlns:p='urn:p'><a> xmlns=b</a></r>", "<a> xmlns=b</a>"),
    ],
)
def test_a_copy_declares_the_prefixes_that_it_uses(document: str, copied: str) -> None:
    assert output("SELECT <out>{x/a}</out> FROM S->x", document)[0] == f"<out>{copied}</out>"


def test_the_default_element_namespace_holds_in_constructors() -> None:
    text = "DECLARE DEFAULT ELEMENT NAMESPACE = 'urn:d'; SELECT <out>{x/a}</out> FROM S->x"
    found, _ = output(text, "<r xmlns='urn:d'><a/></r>")
    assert [each.tag for each in etree.XML(found).iter()] == ["{urn:d}out", "{urn:d}a"]


def test_a_constructor_may_declare_namespaces() -> None:
    text = "SELECT <p:out xmlns:p='urn:p' p:k='v'><in xmlns='urn:i'/>{x/p:a}</p:out> FROM S->x"
    found, _ = output(text, "<r xmlns:q='urn:p'><q:a/></r>")
    tree = etree.XML(found)
    assert [each.tag for each in tree.iter()] == ["{urn:p}out", "{urn:i}in", "{urn:p}a"]
    assert tree.get("{urn:p}k") == "v"


def test_known_prefixes_stand_in_constructors() -> None:
    found, _ = output("SELECT <atom:entry>{x/dc:creator}</atom:entry> FROM S->x", "<r/>")
    assert etree.XML(found).tag == "{http://www.w3.org/2005/Atom}entry"


def test_a_path_copies_nodes_in_document_order() -> None:
    document = "<i><c>1<b><c>2</c></b></c><c>3</c></i>"
    assert output("SELECT x//c FROM S->x", document)[0] == (
        "<match><c>1<b><c>2</c></b></c><c>2</c><c>3</c></match>"
    )


def test_text_within_an_element_stands_before_the_text_behind_it() -> None:
    text = "SELECT <o a='{x}'>{string(x)}, {x = 'hyz'}, {data(x)}</o> FROM S->x"
    assert output(text, "<i><c><b>h</b></c>y<c>z</c></i>")[0] == ('<o a="hyz">hyz, true, hyz</o>')


def test_nodes_of_two_documents_are_not_mixed() -> None:
    text = "SELECT <o>{y/c | x/c}</o> FROM S->x JOIN {, 1 h} T->y"
    assert output(text, "<i><c>1</c><c>2</c></i>", "<i><c>3</c><c>4</c></i>")[0] == (
        "<o><c>1</c><c>2</c><c>3</c><c>4</c></o>"
    )


AXES = ["/", "//", "/parent::", "/ancestor::", "/following::", "/preceding::"]
AXES += ["/self::", "/descendant::", "/following-sibling::", "/preceding-sibling::"]
PREDICATES = ["", "", "[1]", "[2]", "[last()]", "[b]", "[.='x']"]
STEPS = st.tuples(*map(st.sampled_from, (AXES, "bc*", PREDICATES))).map("".join)


@st.composite
def mixed_trees(draw: st.DrawFn) -> str:
    """Draw a document of elements and texts that stand between them."""
    texts = st.sampled_from(["", "x", "y"])

    def content(depth: int) -> str:
        children = draw(st.integers(0, 3 if depth else 0))
        return draw(texts) + "".join(element(depth - 1) + draw(texts) for _ in range(children))

    def element(depth: int) -> str:
        name = draw(st.sampled_from("bc"))
        return f"<{name}>{content(depth)}</{name}>"

    return f"<i>{content(3)}</i>"


@given(
    mixed_trees(),
    st.lists(STEPS, min_size=1, max_size=3),
    st.sampled_from(["", "//text()"]),
)
def test_paths_select_what_libxml2_selects_in_its_order(
    document: str, steps: list[str], last: str
) -> None:
    path = "".join(steps) + last
    expected = etree.XML(document).xpath("." + path)
    copies = "".join(
        x if isinstance(x, str) else etree.tostring(x, with_tail=False).decode() for x in expected
    )
    values = " ".join(f"[{x if isinstance(x, str) else x.xpath('string()')}]" for x in expected)
    select = f"<o><m>{{x{path}}}</m>{{for $n in x{path} return concat('[', $n, ']')}}</o>"
    found, error = output(f"SELECT {select} FROM S->x", document)
    assert error is None
    assert found == etree.tostring(etree.XML(f"<o><m>{copies}</m>{values}</o>")).decode()


def test_comments_and_processing_instructions_are_not_copied() -> None:
    document = "<a>x<!-- no -->y<?no no?><b/></a>"
    assert output("S", document)[0] == "<match><a>xy<b/></a></match>"
    assert output("SELECT <o>{x/text()}</o> FROM S->x", document)[0] == "<o>xy</o>"


def test_the_given_trees_are_not_changed() -> None:
    root = etree.XML("<a>x<!-- no -->y<b>1</b>tail</a>")
    before = etree.tostring(root)
    build(query("SELECT <o>{x/b}</o> FROM S->x"), [NumberedTree(root)], {"x": [(0, 0)]}, 0, 0)
    build(query("S//b"), [NumberedTree(root)], {"#0": [(0, 1)]}, 0, 0)
    assert etree.tostring(root) == before


@pytest.mark.parametrize(
    "expression",
    [
        "xs:integer(x/b)",
        "x/b cast as xs:date",
        "1 idiv (count(x/none))",
        "x/b + 1",
        "exactly-one(x/none)",
        "number(x/b) to 3",
    ],
)
def test_a_constructor_that_fails_notes_the_error_and_keeps_the_match(expression: str) -> None:
    text = f"SELECT <o>{{{expression}}}</o> FROM S->x"
    found, error = output(text, "<a><b>no number</b></a>")
    assert found == "<match><a><b>no number</b></a></match>"
    assert error


@pytest.mark.parametrize(
    ("select", "code"),
    [
        ("<a>", "XS111"),
        ("<a></b>", "XS111"),
        ("<a b=1/>", "XS111"),
        ("<a b='1' b='2'/>", "XS111"),
        ("<a>}</a>", "XS111"),
        ("<a>{}</a>", "XS111"),
        ("<a>{x</a>", "XS111"),
        ("<a>&nope;</a>", "XS111"),
        ("<a>&</a>", "XS111"),
        ("<a b='<'/>", "XS111"),
        ("<a>{z}</a>", "XS201"),
        ("<a>{title}</a>", "XS201"),
        ("<a>{/x}</a>", "XS201"),
        ("<a>{*:c}</a>", "XS201"),
        ("<a>{*}</a>", "XS201"),
        ("<a>{.}</a>", "XS201"),
        ("<a>{x/}</a>", "XS310"),
        ("<a>{x +}</a>", "XS310"),
        ("<a>{nope(x)}</a>", "XS310"),
        ("<a>{count(1 to 10000000000)}</a>", "XS310"),
        ("<p:a/>", "XS205"),
        ("<a p:b='1'/>", "XS205"),
        ("z", "XS201"),
        ("z/a", "XS201"),
    ],
)
def test_what_is_no_select_clause_is_an_error(select: str, code: str) -> None:
    assert codes(f"SELECT {select} FROM S->x") == [code]


def test_an_error_in_a_constructor_points_into_it() -> None:
    text = "SELECT <a>{x/title}{y/b}</a> FROM S->x"
    _, [found] = xscl.check(text)
    assert text[found.span.start : found.span.end] == "y"


def test_who_selects_by_a_function_of_runs_is_told_of_positions() -> None:
    _, [found] = xscl.check("SELECT <a>{first(p)}</a> FROM S//b[c->p]+ {, 1 h} WITHIN 2 h")
    assert found.hint == "a repeated variable is all its nodes here: write `p[1]` or `p[last()]`"


def test_publish_names_the_stream_of_the_outputs() -> None:
    assert query("FROM S PUBLISH alerts").publish == "alerts"
    for name in ("p:q", "x'", "*", "'a'"):
        assert len(codes(f"FROM S PUBLISH {name}")) == 1


def test_a_window_that_is_a_parameter_is_a_duration() -> None:
    found = output("SELECT <a>{$w}</a> FROM S", parameters={"w": HOUR_US})
    assert found[0] == "<a>PT1H</a>"


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("{matches(x, '^(a+)+$')}", "false"),
        ("{replace(x, '(a)(a)', '$2$1!')}", "aa!" * 10_000 + "!"),
        ("{count(tokenize(x, 'a!|x'))}", "2"),
        ("{tokenize((), ',')}", ""),
        ("{for $w in tokenize('a, b', ',\\s*') return upper-case($w)}", "A B"),
    ],
)
def test_regular_expressions_of_a_constructor_take_bounded_time(expression: str, text: str) -> None:
    found = query(f"SELECT <a>{expression}</a> FROM S->x")
    tree = NumberedTree(etree.fromstring(f"<r>{'a' * 20_000}!</r>"))
    output, error = build(found, [tree], {"x": [(0, 0)]}, 0, 0)
    assert error is None
    assert etree.fromstring(output).xpath("string()") == text


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("matches(x, '(')", "not a regular expression"),
        (r"replace(x, '(a)\1', 'b')", "back-references"),
        ("replace(x, 'a*', '')", "fits the empty text"),
        ("tokenize(x, 'a?')", "fits the empty text"),
        ("replace(x, 'a', '$')", "not a replacement"),
        ("matches(x, 'a', 'q')", "flags"),
        ("count(1 to 10 * xs:integer(string-length(x) * 1000000))", "a range of more than"),
    ],
)
def test_what_is_no_regular_expression_is_told_beside_the_match(
    expression: str, reason: str
) -> None:
    found = query(f"SELECT <a>{{{expression}}}</a> FROM S->x")
    output, error = build(
        found, [NumberedTree(etree.fromstring("<r>a</r>"))], {"x": [(0, 0)]}, 0, 0
    )
    assert output == "<match><r>a</r></match>"
    assert error is not None
    assert reason in error
    assert "err:" not in error
