"""Every query of chapter 6 parses as it is printed there."""

from __future__ import annotations

import pytest
from support.reading import codes, operator, query

import xscl
from xscl.path import Parameter
from xscl.query import OperatorKind, SelectAll, ValueJoin, VariableValue

Q1 = (
    "S//book->x1[./author->x2][./title->x3] FOLLOWED BY {x2=x5 AND x3=x6, T1} "
    "S//blog->x4[./author->x5][./title->x6]"
)
Q2 = (
    "S//book->x1[./author->x2][./category->x7] FOLLOWED BY {x2=x5 AND x7=x8, T2} "
    "S//blog->x4[./author->x5][./category->x8]"
)
Q3 = (
    "S//blog->x4[./author->x5][./title->x6] FOLLOWED BY {x5=x5' AND x6=x6', T3} "
    "S//blog->x4'[./author->x5'][./title->x6']"
)


def test_table_6_2() -> None:
    for text, pairs in (
        (Q1, ("x2 x5", "x3 x6")),
        (Q2, ("x2 x5", "x7 x8")),
        (Q3, ("x5 x5'", "x6 x6'")),
    ):
        root = operator(text)
        assert root.kind is OperatorKind.FOLLOWED_BY
        [disjunct] = root.disjuncts
        joins = [(VariableValue(a), VariableValue(b)) for a, b in map(str.split, pairs)]
        assert disjunct.value_joins == tuple(ValueJoin(a, b) for a, b in joins)
        assert disjunct.residuals == ()


def test_the_symbolic_windows_of_table_6_2_are_parameters() -> None:
    assert operator(Q1).window == Parameter("T1")
    assert query(Q1).parameters == (("T1", "duration"),)
    assert codes(Q1, warnings=True) == ["XS405"]


def test_the_roots_and_variables_of_table_6_2() -> None:
    found = query(Q3)
    assert [block.root for block in found.blocks] == ["x4", "x4'"]
    assert [block.variables for block in found.blocks] == [
        ("x4", "x5", "x6"),
        ("x4'", "x5'", "x6'"),
    ]


@pytest.mark.parametrize("text", ["SELECT * FROM blog", "blog"])
def test_a_stream_is_a_query(text: str) -> None:
    found = query(text)
    assert found.select == SelectAll()
    assert found.blocks[0].stream == "blog"


@pytest.mark.parametrize(
    "text",
    [
        "S//blog//title",
        "//book[.//author][.//title]".replace("//book", "S//book"),
        "S//blog[.//author][.//title]",
    ],
)
def test_paths_in_the_running_text(text: str) -> None:
    assert codes(text) == []


@pytest.mark.parametrize("keyword", ["FOLLOWED BY", "JOIN"])
@pytest.mark.parametrize("braces", ["_{x = y, T}", " _{x = y, T}", "_ {x = y, T}", "{x = y, T}"])
def test_subscripts_of_operators(keyword: str, braces: str) -> None:
    [found] = xscl.parse(f"A//a->x {keyword}{braces} B//b->y")
    assert found.text == f"A//a->x {keyword} {{x = y, $T}} B//b->y"


def test_the_as_clause_binds() -> None:
    assert query("S//book AS x1[./author AS x2]") == query("S//book->x1[./author->x2]")
