"""The Pygments lexer: it reads every text, and calls the parts of a query by their kinds."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from generators.xscl_queries import queries
from hypothesis import given, settings
from hypothesis import strategies as st
from pygments.token import Comment, Error, Keyword, Name, Number, String, _TokenType
from support.examples import examples

from xscl.highlight import XsclLexer

ROOT = Path(__file__).parents[2]
QUERY = """-- what
SELECT <a by="{x2}">{x1/title} (: text :)</a>
FROM S//book->x1[@id = 'k']->x2 FOLLOWED BY {host(x1/l) = x3 AND x1/n > 2.5, 30 days} T AS x3
PUBLISH out"""


def tokens(text: str) -> list[tuple[_TokenType, str]]:
    lexer = XsclLexer(stripnl=False, ensurenl=False)
    return list(lexer.get_tokens(text))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Comment.Single, "-- what"),
        (Keyword, "SELECT"),
        (Keyword, "FOLLOWED BY"),
        (Keyword, "AND"),
        (Keyword, "PUBLISH"),
        (Name.Tag, "a"),
        (Name.Variable, "x1"),
        (Name.Attribute, "@id"),
        (String, "'k'"),
        (Name.Function, "host"),
        (Number, "2.5"),
        (Keyword.Type, "days"),
    ],
)
def test_parts_of_a_query_have_their_kinds(kind: _TokenType, text: str) -> None:
    assert (kind, text) in tokens(QUERY)


SEQUENCE = """SELECT DISJOINT <a>{x}</a>
FROM S//a->x NEXT {x = y AND dur() < 30 min} S//b->y+ WHILE {y > prev(y)} UNLESS (T | U)
WITHIN 1 h SAME (//@id) MATCH NEXT WHERE worker[x].status = 'safe'
GRACE 1 min ON MATCH SET worker[x].n = 1"""


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Keyword, "SELECT DISJOINT"),
        (Keyword, "NEXT"),
        (Keyword, "WHILE"),
        (Keyword, "UNLESS"),
        (Keyword, "WITHIN"),
        (Keyword, "SAME"),
        (Keyword, "MATCH NEXT"),
        (Keyword, "WHERE"),
        (Keyword, "GRACE"),
        (Keyword, "ON MATCH"),
        (Keyword, "SET"),
        (Name.Function, "prev"),
        (Name.Function, "dur"),
        (Keyword.Type, "min"),
    ],
)
def test_parts_of_a_sequence_have_their_kinds(kind: _TokenType, text: str) -> None:
    assert (kind, text) in tokens(SEQUENCE)


@pytest.mark.parametrize(
    ("text", "kind", "word"),
    [
        ("SELECT x FROM (S//a->x | T->x)", Keyword, "FROM"),
        ("SELECT <o>{x}</o>\nFROM (S//a->x | T->x)", Keyword, "FROM"),
        ("S//a->x JOIN {x = y AND (x/n > 1 OR x/m > 1), 1 h} T->y", Keyword, "AND"),
        ("S//a->x JOIN {x = y OR (x/n = y/n AND x/m = y/m), 1 h} T->y", Keyword, "OR"),
        ("S//a->x WINDOW 1 h HAVING (count() > 1)", Keyword, "HAVING"),
        ("S//a AS x JOIN {x = x, 1 h} T AS y", Name.Variable, "y"),
        ("S->x WHERE if (x > 1) then x else 2 = 2", Keyword, "then"),
        ("S->x WHERE if (x > 1) then x else 2 = 2", Keyword, "else"),
        ("S->x WHERE x div (2 + 1) mod 3 = 1", Keyword, "div"),
        ("S->x WHERE x div (2 + 1) mod 3 = 1", Keyword, "mod"),
        ("S//div->x WHERE x/div = 1", Name, "div"),
        ("SELECT COMPRESSED FROM S//a->x+", Keyword, "COMPRESSED"),
        ("SELECT <n>{count(distinct x)}</n> FROM S->x WINDOW 1 h", Keyword, "distinct"),
        ("S->x WINDOW 1 h HAVING count(distinct x) > 1", Keyword, "distinct"),
        ("S->x JOIN {x/distinct = y, 1 h} T->y", Name, "distinct"),
        ("S LOSS 0.1 DELAY uniform(0 s, 1 s)", Name.Function, "uniform"),
        ("S LOSS 0.1 DELAY exp(1 s)", Name.Function, "exp"),
        ("S LOSS 0.1 DELAY cdf(1 s: 0.5)", Name.Function, "cdf"),
        ("S LOSS 0.1 DELAY learned", Keyword, "learned"),
        ("S//learned->x", Name, "learned"),
    ],
)
def test_a_word_has_its_kind_beside_brackets_and_names(
    text: str, kind: _TokenType, word: str
) -> None:
    assert {each for each, found in tokens(text) if found == word} == {kind}


@settings(max_examples=examples(25))
@given(st.one_of(queries(), st.text(max_size=60)))
def test_nothing_is_lost_and_nothing_is_an_error(text: str) -> None:
    text = text.replace("\r", "\n").removeprefix("\ufeff")
    found = tokens(text)
    assert "".join(value for _, value in found) == text
    assert all(kind is not Error for kind, _ in found)


def test_the_lexer_is_registered() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pygments.lexers"] == {"xscl": "xscl.highlight:XsclLexer"}
    assert XsclLexer.aliases == ["xscl"]
    assert XsclLexer.filenames == ["*.xscl"]
