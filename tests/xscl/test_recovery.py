"""Several independent errors are reported at one go, and none that follows from another."""

from __future__ import annotations

import pickle

import pytest
from support.reading import codes

import xscl
from xscl.diagnostics import Diagnostic


def places(text: str) -> list[tuple[str, str]]:
    """Return the code and the text under the caret of each error."""
    _, found = xscl.check(text)
    return [(each.code, text[each.span.start : each.span.end]) for each in found if each.is_error]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "S//a[b = 'x FOLLOWED BY {x = y, 1 h} T//b",
            [("XS102", "'")],
        ),
        (
            "S//a[b->x FOLLOWED BY {x = y, 1 h} T//b->y",
            [("XS110", "FOLLOWED")],
        ),
        (
            "S//a[[b->x]] FOLOWED BY {x = y, 3 dayz} T//b->y[",
            [("XS101", "["), ("XS109", "FOLOWED"), ("XS403", "3 dayz"), ("XS101", "")],
        ),
        (
            "S//a->x JOIN {x = z AND x == y AND w = y, 0 s} T//b->y",
            [("XS201", "z"), ("XS101", "=="), ("XS201", "w"), ("XS401", "0 s")],
        ),
        (
            "S//a->x JOIN x = y, 1 h} T//b->y",
            [("XS106", "JOIN")],
        ),
        (
            "S//a->x FOLLOWED BY T//b->y; T/; U",
            [("XS106", "FOLLOWED BY"), ("XS101", ";")],
        ),
        (
            "S//a->x JOIN {x = y} T//b->y",
            [("XS107", "{x = y}")],
        ),
        (
            "S//a->x JOIN {x = y 1 h} T//b->y",
            [("XS107", "1 h")],
        ),
        (
            "S//a->x JOIN {2 days} T//b->y",
            [("XS107", "2 days")],
        ),
        (
            "S//a->x JOIN {x = y, 5} T//b->y",
            [("XS404", "5")],
        ),
        (
            "SELECT x1, FROM S//a->x1; SELECT <a>{x9</a> FROM S//a->x1; SELECT x FORM S->x",
            [("XS101", "FROM"), ("XS111", "{"), ("XS109", "FORM")],
        ),
        (
            "(S JOIN {, 1 h} T; U//a[",
            [("XS110", ";"), ("XS101", "")],
        ),
        (
            "S//a-->x[foo:b] JOIN {x = nope, 1 month} T//b[c-->d or e->f]",
            [
                ("XS105", "-->"),
                ("XS205", "foo:b"),
                ("XS201", "nope"),
                ("XS402", "1 month"),
                ("XS105", "-->"),
                ("XS203", "d"),
                ("XS203", "f"),
            ],
        ),
        ("S//a->x JOIN {x = y, 1 h T//b->y[", [("XS110", "T"), ("XS101", "")]),
        ("S//a->x JOIN {x = y, 1 h T//b->y JOIN {, 0 h} U", [("XS110", "T"), ("XS401", "0 h")]),
        ("S//a->x JOIN x = y T//b->y; U//c[", [("XS106", "JOIN"), ("XS101", "")]),
        ("S//a->x JOIN lower-case(x) = y, 1 h T//b->y", [("XS106", "JOIN")]),
        ("S//a->x JOIN [x = y, 1 h] T//b->y", [("XS106", "JOIN")]),
        ("S//a->x JOIN (x = y, 1 h) T//b->y", [("XS106", "JOIN")]),
        ("S JOIN (T JOIN {, 0 h} U)", [("XS106", "JOIN"), ("XS401", "0 h")]),
        ("DECLARE NAMESPACE a = 'b' S//a:b", [("XS101", "S")]),
        ("DECLARE NAMESPACE a = 'b', S//a:b; T[", [("XS101", ","), ("XS114", "[")]),
        ("SELECT if (x/a) then x/b else x/c FROM S->x", [("XS101", "if")]),
        ("S//a[lower-case(b) = lower-case(c)]", [("XS305", "lower-case(b)")]),
        ("FOLLOWED BY {, 1 h} T", [("XS101", "FOLLOWED")]),
        ("S JOIN {, 1 h}", [("XS101", "")]),
        ("S JOIN {, 1 h} JOIN {, 1 h} T", [("XS101", "JOIN")]),
        ("//book", [("XS101", "//")]),
        ("S//a & T//b", [("XS104", "&")]),
        ("S//a (: open", [("XS103", "(:")]),
        ("S//a T//b", [("XS101", "T")]),
        ("SELECT FROM S", [("XS101", "FROM")]),
        ("DECLARE NAMESPACE = 'x'; S//a", [("XS101", "=")]),
        ("DECLARE DEFAULT NAMESPACE 'x'; S//a[", [("XS101", "NAMESPACE"), ("XS101", "")]),
        ("", [("XS115", "")]),
        ("(: nothing :) ;;", [("XS115", "(")]),
    ],
)
def test_errors_of_a_text(text: str, expected: list[tuple[str, str]]) -> None:
    found = places(text)
    assert [code for code, _ in found] == [code for code, _ in expected]
    for (_, place), (_, wanted) in zip(found, expected, strict=True):
        assert place.startswith(wanted)


def test_statements_without_errors_are_returned_beside_the_errors() -> None:
    found, diagnostics = xscl.check("S//a; T//b[; U//c")
    assert [query.blocks[0].stream for query in found] == ["S", "U"]
    assert len(diagnostics) == 1


def test_what_an_unreadable_part_seems_to_bind_counts_as_known() -> None:
    assert codes("S//a[[b->x]]->z JOIN {x = y AND z = y, 1 h} T//b->y") == ["XS101"]


def test_parse_raises_all_errors_at_once() -> None:
    with pytest.raises(xscl.XsclError) as raised:
        xscl.parse("S//a[; T//b]; U JOIN {, 0 h} V")
    assert [each.code for each in raised.value.diagnostics] == ["XS101", "XS101", "XS401"]


def test_warnings_do_not_raise() -> None:
    assert xscl.parse("S JOIN {, 1 h} T")


def test_diagnostics_come_in_the_order_of_the_text() -> None:
    _, found = xscl.check("S//foo:a JOIN {, 0 h} T//bar:b; U//baz:c[")
    assert [each.span for each in found] == sorted(each.span for each in found)


def test_the_text_points_with_a_caret() -> None:
    with pytest.raises(xscl.XsclError) as raised:
        xscl.parse("S//book->x1\n  FOLLOWED BY {x1 = x2, 30 days}\n  S//blog", path="q.xscl")
    assert str(raised.value) == (
        "error[XS201]: no block binds the variable `x2`\n"
        " --> q.xscl:2:21\n"
        "2 |   FOLLOWED BY {x1 = x2, 30 days}\n"
        "  |                     ^^\n"
        "  help: did you mean `x1`?"
    )


def test_colour_is_optional() -> None:
    _, found = xscl.check("S JOIN {, 1 h} T")
    assert "\x1b[" not in xscl.render_diagnostics(found)
    assert "\x1b[33m" in xscl.render_diagnostics(found, color=True)


def test_a_long_line_is_shown_around_the_caret() -> None:
    _, [found] = xscl.check("S//" + "a" * 1000 + "/b[c = ]/" + "d" * 1000)
    text = str(found)
    assert max(map(len, text.splitlines())) < 200
    line, caret = text.splitlines()[2:4]
    assert line[caret.index("^")] == "]"


def test_tabs_keep_the_caret_in_place() -> None:
    _, [found] = xscl.check("\tS//a[")
    assert "| \t     ^" in str(found)


@pytest.mark.parametrize(
    "text",
    [
        "S//" + "a[" * 39 + "b" + "]" * 39,
        "S//a[" + "not(" * 38 + "b" + ")" * 38 + "]",
        "S//a[count(b" + "[c = d" * 37 + "]" * 37 + ") > 1]",
        "S//a[" + "b and (c or " * 38 + "d" + ")" * 38 + "]",
        "S//a[" + "+".join("1" * 100) + " = b]",
        " JOIN {, 1 h} ".join("S" * 100),
        "(" * 39 + "S" + ")" * 39,
        "SELECT " + "<a>" * 60 + "</a>" * 60 + " FROM S",
    ],
)
def test_what_is_just_within_the_bounds_is_read(text: str) -> None:
    [query] = xscl.parse(text)
    assert pickle.loads(pickle.dumps(query)) == query
    assert xscl.render(xscl.render(text)) == xscl.render(text)


@pytest.mark.parametrize(
    "text",
    [
        "S//" + "a[" * 5000,
        "S//a[" + "(" * 5000 + "b",
        "S//a[" + "not(" * 5000 + "b",
        "(" * 5000 + "S",
        "S//a[" + "-" * 5000 + "1]",
        "S//a[" + "1+" * 5000 + "1]",
        "S//a[" + "b|" * 5000 + "c]",
        "S JOIN {, 1 h} " * 5000 + "T",
        "SELECT " + "<a>" * 5000 + " FROM S",
        "S//a[" + "b or " * 5000 + "c]",
        "S//a" + "/a" * 5000,
        "S//a" + "[b]" * 5000,
        "(:" * 20000,
        "x" * 1_000_001,
        "S//a[b = " + "9" * 5000 + "]",
        "S//a[b = 1e400]",
        "S JOIN {, " + "9" * 5000 + " h} T",
        "S JOIN {, P" + "9" * 5000 + "D} T",
        "SELECT <a>{" + "(" * 2000 + "x" + ")" * 2000 + "}</a> FROM S->x",
        "SELECT <a>{" + "x/a + " * 2000 + "1}</a> FROM S->x",
        "SELECT <a>{x" + "[a" * 500 + "]" * 500 + "}</a> FROM S->x",
    ],
)
def test_size_and_depth_are_bounded(text: str) -> None:
    _, found = xscl.check(text)
    assert all(isinstance(each, Diagnostic) for each in found)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("S//a[b and ]", "as in `x/author`, `'Ann'` or `3`"),
        ("S//a[]", "an empty predicate says nothing; remove the brackets"),
        ("S//a->x JOIN {x <> y, 1 h} T->y", "unequal is written `!=`"),
        (
            "SELECT a/t, <o/> FROM S//i->a",
            "an element stands alone behind SELECT, with all that is shown: `<o>{x1/title}</o>`",
        ),
        ("S//a => x", "a variable is bound with `->`, as in `book->x1`"),
        ("S//a+->x {, 1 h}", "`+` stands behind the variable: `item->x+`"),
        ("S//a]", "no bracket is open here"),
        (
            "S//a, T//b",
            "two blocks are combined with `FOLLOWED BY {...}` or `JOIN {...}`, conditions with AND",
        ),
        (
            "S//a FILTER a = 'b'",
            "conditions stand on steps, in an operator's braces, or behind WHERE",
        ),
        ("S//a UNLES T//b", "did you mean `UNLESS`?"),
        ("S//a->x JOIN {x = y, 1 h} T->y WITHN 1 h", "did you mean `WITHIN`?"),
        ("S//a UNLESS {, 1 h} (T JOIN {, 1 h} U)", "behind UNLESS stands a block, or `( a | b )`"),
        ("S//a[lenght(b) > 3]", "did you mean `string-length`?"),
        ("S//a->x JOIN {lower(x) = y, 1 h} T->y", "did you mean `lower-case`?"),
        ("S//a->x JOIN {X = y, 1 h} T->y", "did you mean `x`?"),
        ("S//d->a JOIN {a.v = b/v, 1 h} S//d->b", "write `a/v`"),
        (
            "S//d->a JOIN {a/v = b/v, 1 h} S//d->b GROUP BY a/v",
            "rows for each value are made by `WINDOW duration BY key`, behind the from",
        ),
        ("S//a[regex-replace(b, 'x', 'y') = 'z']", "did you mean `replace`?"),
        ("S//x:a", "declare it first: `DECLARE NAMESPACE x = 'http://...';`"),
    ],
)
def test_a_hint_says_what_was_probably_meant(text: str, hint: str | None) -> None:
    _, found = xscl.check(text)
    assert [each.hint for each in found if each.is_error] == [hint]
