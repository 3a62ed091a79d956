"""Constructed elements that are written at once are those that are made as trees."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree
from support.reading import query

from xscl.meter import ExhaustedError, Meter
from xscl.nodes import NumberedTree
from xscl.output import build

EXPRESSIONS = (
    *("x", "x/b", "x/b/text()", "x//c", "x/@n", "x/b/@m", "x/none", "start()", "1.5, 2"),
    *("'a', x/b/text()", "count(x//c)", "$said", "$said, x/c", "string(x)", "1 div count(x/none)"),
)
CHARACTERS = "a &amp; &lt; &gt; &quot; ' é\t\n&#13; ]]&gt; {{ \U0001f600"
TEXTS = st.lists(st.sampled_from([*CHARACTERS.split(" "), " ", "x"]), max_size=4).map("".join)
NAMES = st.sampled_from(["o", "größe", "a.b"])


@st.composite
def constructors(draw: st.DrawFn, depth: int = 2) -> str:
    """Draw an element without prefixes; `{}` stands where a declaration may."""

    def part() -> str:
        kind = draw(st.sampled_from(("text", "expression", "element")))
        if kind == "text":
            return draw(TEXTS)
        if kind == "expression" or not depth:
            return f"{{{draw(st.sampled_from(EXPRESSIONS))}}}"
        return draw(constructors(depth - 1)).replace(DECLARATION, "")

    name = draw(NAMES)
    value = "".join(draw(st.lists(st.one_of(TEXTS, st.just("{x/b}"), st.just("{$said}")))))
    attribute = f' n="{value}"' if draw(st.booleans()) else ""
    content = "".join(part() for _ in range(draw(st.integers(0, 4))))
    return f"<{name}{DECLARATION}{attribute}>{content}</{name}>"


DECLARATION = "\N{MIDDLE DOT}"

DOCUMENTS = (
    "<i n='1'><b m='&lt;2&gt;'>t &amp; u</b>between<b/><c><c>&#13;x</c></c></i>",
    "<i xmlns:p='urn:p'><b>t</b><p:c p:d='1'/><c><p:e/>x</c></i>",
    "<i xmlns='urn:d'><b>t</b></i>",
)


def outcome(select: str, document: str, said: str, limit: int) -> tuple[object, int]:
    """Return an output with its error, and what it has cost."""
    found = query(f"SELECT {select} FROM S/*[b = $said]->x")
    meter = Meter(limit)
    tree = NumberedTree(etree.XML(document))
    try:
        made: object = build(found, [tree], {"x": [(0, 0)]}, 0, 1_500_000, {"said": said}, meter)
    except ExhaustedError:
        made = None
    return made, meter.spent


@given(
    constructors(),
    st.sampled_from(DOCUMENTS),
    st.sampled_from(["s", "<&>\"'\t\r\n", "\x01", "\ud800", "\ufffe", ""]),
    st.sampled_from([10_000_000, 6_000, 5_100]),
)
@example(f"<o{DECLARATION}>{{$said}}</o>", DOCUMENTS[0], "\x01", 10_000_000)
@example(f"<o{DECLARATION}>{{$said}}</o>", DOCUMENTS[0], "", 10_000_000)
def test_what_is_written_at_once_is_what_a_tree_says(
    constructor: str, document: str, said: str, limit: int
) -> None:
    # A declaration that nothing uses goes, and a constructor with one is made as a tree.
    as_tree = constructor.replace(DECLARATION, " xmlns:unused='urn:unused'")
    at_once = constructor.replace(DECLARATION, "")
    assert outcome(at_once, document, said, limit) == outcome(as_tree, document, said, limit)
