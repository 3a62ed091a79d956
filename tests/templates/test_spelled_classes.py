"""The text of a class, after which streams of tuples are called and shards are chosen, for good."""

from __future__ import annotations

import pytest
from support.reading import query

from templates.compiler import compile_query
from xpath_eval.catalog import PatternCatalog

TEXTS = [
    "S//a->x FOLLOWED BY {x = y, 1 h} S//b->y FOLLOWED BY {y = z, 1 h} S//c->z",
    "S//a[k->x] JOIN {x = y AND x != z, 1 h} S//b[l->y][m->z]",
    "S//a->x FOLLOWED BY {jaccard(words(x), words(y)) >= 0.5, 1 h} S//b->y",
    "S//a->x FOLLOWED BY {, 1 h} S//b->y UNLESS S//c->z WITHIN 1 h",
    "S//a->x",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_class_is_spelled_as_it_prints_itself(text: str) -> None:
    catalog = PatternCatalog()
    clauses = [
        clause
        for alternative in compile_query(query(text), 0, catalog, {})
        for clause in alternative.clauses
    ]
    assert clauses
    for each in clauses:
        spelled = each.query_class.spelled_in_no_stratum()
        assert spelled == repr(each.query_class.in_no_stratum())
