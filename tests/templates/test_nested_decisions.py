"""How much is compiled where decisions stand within each other."""

from __future__ import annotations

from itertools import pairwise

import xscl
from templates.compiler import compile_query
from xpath_eval.catalog import PatternCatalog


def test_an_operator_more_doubles_what_two_alternatives_compile() -> None:
    sizes = []
    for operators in range(1, 4):
        units = ["(S//a->x | S//b->y)", *["(S//a[k = '1'] | S//b[k = '2'])"] * operators]
        [query] = xscl.parse(f"SELECT x FROM {' NEXT {, 1 h} '.join(units)} GRACE 1 s", id="q")
        alternatives = compile_query(query, 0, PatternCatalog(), {})
        assert len(alternatives) == 2 ** (operators + 1)
        sizes.append(sum(len(each.patterns) + len(each.clauses) for each in alternatives))
    # Each of twice as many alternatives has one step more.
    assert all(after < 3.5 * before for before, after in pairwise(sizes)), sizes


def test_what_decisions_within_each_other_ask_for_goes_with_them() -> None:
    catalog = PatternCatalog()
    [query] = xscl.parse(
        "(S//a | S//b) NEXT {, 1 h} (S//a | S//c) NEXT {, 1 h} (S//b | S//c) GRACE 1 s", id="q"
    )
    for alternative in compile_query(query, 0, catalog, {}):
        catalog.unwant(alternative.edges, alternative.valued)
        for pattern in alternative.patterns:
            catalog.remove(pattern)
    assert not catalog.definitions
    assert not catalog.tuple_names()
