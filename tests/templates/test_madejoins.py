"""Texts that functions make of several values, or of data: joined as values of tuples."""

from __future__ import annotations

import pytest

import xscl
from broker.matching.queries.queryset import QuerySet
from broker.matching.queries.registration import RegisteredQuery
from joins import ClassRegistry
from templates.box import Made
from templates.clause import Clause
from templates.compiler import compile_query
from xpath_eval.catalog import PatternCatalog

NAMES = "S//i->a FOLLOWED BY {concat(a/first, ' ', a/last) = b/author, %s} S//i->b"


def clauses(text: str) -> list[Clause]:
    [query] = xscl.parse(text, id="q")
    found = compile_query(query, 0, PatternCatalog(), {})
    return [clause for alternative in found for clause in alternative.clauses]


@pytest.mark.parametrize(
    ("text", "made"),
    [
        (NAMES % "1 h", 1),
        ("S//i->a JOIN {concat(a/k, $x) = concat(b/k, $y), 1 h} S//i->b", 2),
        ("(S//i->a JOIN {, 1 h} S//j->c) FOLLOWED BY {concat(a/k, c/k) = b/k, 1 h} S//i->b", 1),
        ("S//i->a JOIN {concat(a/k, a/l) = b/k AND a/k = b/k, 1 h} S//i->b", 0),
        ("S//i->a JOIN {concat(a/k, 'x') = b/k, 1 h} S//i->b", 0),
        ("S//i->a JOIN {concat(a/k, b/l) = b/k, 1 h} S//i->b", 0),
        ("S//i->a JOIN {concat(a/k, a/l) = a/m, 1 h} S//i->b", 0),
        ("S//i->a JOIN {a/k + a/l = b/k, 1 h} S//i->b", 0),
        ("S//i->a JOIN {concat($x, 'l') = b/k, 1 h} S//i->b", 0),
        (f"{NAMES % '1 h'} LIMIT 2 PER 1 h", 1),
        ("S//i->a JOIN {concat(a/k, $x) = b/k, 1 h} S//i->b LIMIT 2 PER 1 h", 1),
    ],
)
def test_a_text_of_one_operand_is_made_where_nothing_else_pairs(text: str, made: int) -> None:
    *below, root = clauses(text)
    places = [place for clause in below for place in clause.tested if isinstance(place, Made)]
    assert len(places) == made
    joins = [each.query_class.template.value_joins for each in (*below, root)]
    assert bool(made) <= any(joins)


def test_a_block_that_is_handed_on_with_a_text_is_not_kept() -> None:
    [block, root] = clauses(NAMES % "1 h")
    assert block.window_us == 0
    assert root.reach.under({}) == 3_600_000_000


def test_alternatives_with_the_same_matches_have_one_stratum() -> None:
    text = "S//i->a JOIN {concat(a/k, a/l) = b/k OR a/k = concat(b/k, b/l), 1 h} S//i->b"
    roots = [clause for clause in clauses(text) if not clause.stream]
    assert [root.query_class.stratum for root in roots] == [1, 1]


def test_equal_operators_of_statements_have_one_stream() -> None:
    registry = ClassRegistry()
    queries = QuerySet(registry)
    for number, window in enumerate(("1 h", "2 h", "30 days")):
        [query] = xscl.parse(NAMES % window, id=f"q{number}")
        queries.add(RegisteredQuery(query, number))
    assert len(registry.by_number) == 2
