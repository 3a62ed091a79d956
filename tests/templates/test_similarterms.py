"""Which measures of similarity are looked up: those that ask for a word in common."""

from __future__ import annotations

import pytest

import xscl
from templates.compiler import compile_query
from templates.similarterms import similar_terms
from xpath_eval.catalog import PatternCatalog
from xscl.query import Operator, Query


def asked(bound: str) -> Query:
    text = f"S//i[t->a] JOIN {{similar(a, b) {bound}, 1 h}} S//i[t->b]"
    [query] = xscl.parse(text, id="q")
    return query


@pytest.mark.parametrize(
    ("bound", "threshold"), [("> 0", 0.0), (">= 0.1", 0.1), (">= 0", None), ("> -1", None)]
)
def test_scores_above_nothing_are_looked_up_by_a_decision(
    bound: str, threshold: float | None
) -> None:
    root = asked(bound).root
    assert isinstance(root, Operator)
    found = similar_terms(root.disjuncts[0].similarity_joins)
    assert (None if found is None else found.threshold) == threshold


def test_a_class_without_a_value_join_has_its_measure() -> None:
    [alternative] = compile_query(asked("> 0.1"), 0, PatternCatalog(), {}, 1)
    [pair] = alternative.clauses[-1].query_class.similar
    assert pair.measure == "jaccard"
