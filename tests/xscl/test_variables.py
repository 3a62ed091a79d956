"""Section 3 of the semantics: variables and block roots."""

from __future__ import annotations

import pytest
from support.reading import block, child, codes, predicate, query

from xscl.path import (
    Comparison,
    Literal,
    Path,
    PathValue,
)


def test_a_comparison_may_bind() -> None:
    assert predicate("./author->x = 'Ann'") == Comparison(
        PathValue(Path((child("author", "x"),))), "=", Literal("Ann")
    )


@pytest.mark.parametrize(
    "text",
    [
        "S//a->x/b[c->y/d->z]",
        "S//a[b[c->x]]",
        "S//a[b->x and c->y]",
        "S//a[contains(b->x, 'c')]",
        "S//a[lower-case(b->x) = 'c']",
        "S//a[.->x = 'b']",
        "S//a[@b->x]",
        "S//a[text()->x]",
    ],
)
def test_variables_bind_in_positive_conjunctive_places(text: str) -> None:
    assert codes(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "S//a[b->x or c]",
        "S//a[not(b->x)]",
        "S//a[b[not(c or d->x)]]",
        "S//a[count(b->x) > 2]",
        "S//a[b->x = c]",
        "S//a[(b or c->x) and d]",
    ],
)
def test_variables_under_or_not_and_opaque_conditions_are_an_error(text: str) -> None:
    assert codes(text) == ["XS203"]


def test_variables_are_listed_in_the_order_of_the_text() -> None:
    found = query("S//a->x1[b->x2[c->x3]]/d->x4")
    assert found.blocks[0].variables == ("x1", "x2", "x3", "x4")
    assert [(v.name, v.block, v.label) for v in found.variables] == [
        (name, 0, name) for name in ("x1", "x2", "x3", "x4")
    ]


@pytest.mark.parametrize(
    ("text", "root"),
    [
        ("S//book->x1[./author->x2]", "x1"),
        ("S//a/b->x", "x"),
        ("S//a->x/b", "#0"),
        ("S", "#0"),
        ("S->x", "x"),
        ("S//a/@b->x", "x"),
    ],
)
def test_the_block_root_is_what_the_last_step_of_the_main_path_selects(
    text: str, root: str
) -> None:
    found = block(text)
    assert found.root == root == found.path.steps[-1].variable


def test_block_roots_without_a_variable_are_named_by_their_block() -> None:
    assert [b.root for b in query("S JOIN {, 1 h} T//a->x JOIN {, 1 h} U//b").blocks] == [
        "#0",
        "x",
        "#2",
    ]


def test_primes_end_variables_only() -> None:
    assert codes("S//a'") == ["XS208"]


def test_equal_definitions_are_two_variables() -> None:
    found = query("S//a[b->x][b->y]")
    assert found.blocks[0].variables == ("#0", "x", "y")
