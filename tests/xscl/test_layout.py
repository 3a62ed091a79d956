"""`xscl fmt`: one form for each query, its comments kept."""

from __future__ import annotations

import pytest

import xscl


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("s", "s"),
        ("select * from s", "SELECT *\nFROM s"),
        ("S/a [ b ] //c/@d", "S/a[b]//c/@d"),
        ("S//a as x[./b->y]", "S//a->x[b->y]"),
        ("S//a[b]->x", "S//a->x[b]"),
        ("S//a- ->x FOLLOWED BY {, 1 d} T- -> y", "S//a- ->x FOLLOWED BY {, 1 day} T- ->y"),
        ("S//a[child::b/attribute::c/self::node()]", "S//a[b/@c/.]"),
        ("S//a[./././b][.//c][././/d]", "S//a[b][.//c][.//d]"),
        ("S//a[(b) and (c or d) and not((e))]", "S//a[b and (c or d) and not(e)]"),
        ("S//a[(b and c) or d]", "S//a[b and c or d]"),
        ("S//a[b AND c OR d]", "S//a[b and c or d]"),
        ('S//a[b="x"]', "S//a[b = 'x']"),
        ("S//a[b='it''s']", 'S//a[b = "it\'s"]'),
        ("S//a[b='''\"']", "S//a[b = '''\"']"),
        ("S//a[b=1.50][c=1e3][d=.5][e=-2][f=1e300]", None),
        ("S//a[1+2*3-(4-5)=6]", "S//a[1 + 2 * 3 - (4 - 5) = 6]"),
        ("S//a[(b|c)[1]/d]", "S//a[(b | c)[1]/d]"),
        ("S//a[- -b = 1]", "S//a[-(-b) = 1]"),
        ("S//a[/]", "S//a[/]"),
        ("S//a[(/)/b = c]", "S//a[(/)/b = c]"),
        ("A JOIN{,PT1H}B JOIN{,90 min}C", "A JOIN {, 1 hour} B JOIN {, 90 minutes} C"),
        ("(A JOIN{,1 h}B) JOIN{,1 d}(C)", "A JOIN {, 1 hour} B JOIN {, 1 day} C"),
        ("A JOIN{,1 h}(B JOIN{,INF}C)", "A JOIN {, 1 hour} (B JOIN {, INF} C)"),
        ("A FOLLOWED BY_{,0.5 s}B", "A FOLLOWED BY {, 500 ms} B"),
        (
            "A->x JOIN{(x=y and (x!='a' or y!='b')),2 w}B->y",
            "A->x JOIN {x = y AND (x != 'a' OR y != 'b'), 14 days} B->y",
        ),
        ("FROM S->x PUBLISH q", "SELECT *\nFROM S->x\nPUBLISH q"),
        ("FROM S->x SELECT x , x/a", "SELECT x, x/a\nFROM S->x"),
        ("SELECT   <a>{ x }</a>   FROM S->x", "SELECT <a>{ x }</a>\nFROM S->x"),
        ("declare namespace p='u';p", "DECLARE NAMESPACE p = 'u';\np"),
        (
            "declare default element namespace 'u';S",
            "DECLARE DEFAULT ELEMENT NAMESPACE = 'u';\nS",
        ),
        ("a;b;;c;", "a;\n\nb;\n\nc"),
    ],
)
def test_canonical_texts(text: str, canonical: str | None) -> None:
    rendered = xscl.render(text)
    if canonical is not None:
        assert rendered == canonical + "\n"
    assert xscl.render(rendered) == rendered


def test_numbers_keep_their_value() -> None:
    text = xscl.render("S//a[b = 1.50][c = 1e3][d = .5][e = -2][f = 1e300][g = 1e-7]")
    assert text == "S//a[b = 1.5][c = 1000][d = 0.5][e = -2][f = 1e300][g = 1e-07]\n"


def test_long_statements_have_operators_and_terms_on_lines_of_their_own() -> None:
    text = (
        "SELECT a FROM news//item->a[author][category] FOLLOWED BY {lower-case(a/title) = "
        "lower-case(b/title) AND a/feed != b/feed AND a/author != 'admin' AND b/author != 'admin',"
        "2 days} news//item->b JOIN {a = c, 1 h} (T JOIN {, 1 h} U//uuuuuuuuuuuuuuuuuuuuuuuu->c "
        "JOIN {, 1 h} U//uuuuuuuuuuuuuuuuuuuuuuuuu)"
    )
    assert xscl.render(text) == (
        "SELECT a\n"
        "FROM news//item->a[author][category]\n"
        "  FOLLOWED BY {\n"
        "    lower-case(a/title) = lower-case(b/title)\n"
        "    AND a/feed != b/feed\n"
        "    AND a/author != 'admin'\n"
        "    AND b/author != 'admin',\n"
        "    2 days\n"
        "  }\n"
        "  news//item->b\n"
        "  JOIN {a = c, 1 hour}\n"
        "  (\n"
        "    T JOIN {, 1 hour} U//uuuuuuuuuuuuuuuuuuuuuuuu->c JOIN {, 1 hour} "
        "U//uuuuuuuuuuuuuuuuuuuuuuuuu\n"
        "  )\n"
    )


def test_comments_stay_inside_the_braces_of_a_long_operator() -> None:
    text = (
        "news//item->first-of-all\n"
        "FOLLOWED BY {\n"
        "  -- the same page\n"
        "  first-of-all/link = second/link -- as it is written\n"
        "  AND first-of-all/feed != second/feed (: any :),\n"
        "  2 days -- the window\n"
        "  -- no more\n"
        "}\n"
        "news//item->second\n"
    )
    assert xscl.render(xscl.render(text)) == xscl.render(text)
    assert [line.strip() for line in xscl.render(text).splitlines() if "--" in line] == [
        line.strip() for line in text.splitlines() if "--" in line
    ]


def test_comments_stay_where_they_stood() -> None:
    text = (
        "(: The head of\n   the file. :)\n\n"
        "-- About a.\n"
        "S//a->x  (: bound :)  [b] -- tail\n"
        "JOIN { x = y -- same\n"
        "AND x != 'z', (: long :) 1 h }   T->y\n"
        "  ; -- beside the first\n"
        "\n\n\n-- About b.\n"
        "S//b\n"
        "-- the end"
    )
    rendered = xscl.render(text)
    assert rendered == (
        "(: The head of\n   the file. :)\n\n"
        "-- About a.\n"
        "S//a->x (: bound :) [b] -- tail\n"
        "JOIN {\n"
        "  x = y -- same\n"
        "  AND x != 'z', (: long :)\n"
        "  1 hour\n"
        "}\n"
        "T->y; -- beside the first\n"
        "\n"
        "-- About b.\n"
        "S//b\n"
        "-- the end\n"
    )
    assert xscl.render(rendered) == rendered


def test_a_constructor_of_several_lines_keeps_them() -> None:
    text = "SELECT\n  <a>\n    {x}\n  </a>\nFROM S->x\n"
    assert xscl.render(text) == text


def test_the_version_of_a_query_ignores_layout_and_comments() -> None:
    [one] = xscl.parse("S//a -- all\n  [ b ] JOIN {,60 min} T")
    [two] = xscl.parse("S//a[b] join {, 1 h} (: here :) T")
    [other] = xscl.parse("S//a[b] JOIN {, 2 h} T")
    assert one.version == two.version != other.version
    assert one.text == two.text == "S//a[b] JOIN {, 1 hour} T"


def test_a_text_that_cannot_be_read_is_not_formatted() -> None:
    with pytest.raises(xscl.XsclError):
        xscl.render("S//a[")
    with pytest.raises(xscl.XsclError):
        xscl.render("")


def test_a_text_is_formatted_whatever_its_names_mean() -> None:
    assert xscl.render("S//foo:a JOIN {x = y, 1 h} T") == "S//foo:a JOIN {x = y, 1 hour} T\n"


def test_a_comment_between_two_parentheses_stays_there() -> None:
    text = (
        "SELECT * FROM (( -- why\nS//first[k->x]/deep[title->t] | S//second[k->x]/deep[title->t])+"
        " {, 1 h} JOIN {, 1 h} S//third[k->y]/deep[title->u] WHERE t = u) JOIN {, 2 days} S//b"
    )
    once = xscl.render(text)
    assert "FROM ( -- why\n" in once
    assert xscl.render(once) == once
