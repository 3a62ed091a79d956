"""By which equality what is absent is looked up."""

from __future__ import annotations

import pytest

import xscl
from templates.compiler import compile_query
from templates.decision import Decided, Decision
from templates.rule import Rule, values_in_lists
from xpath_eval.catalog import PatternCatalog
from xscl.evaluation import optional_values


def decision_of(text: str) -> Decision:
    """Return what a statement decides."""
    [query] = xscl.parse(text, id="q")
    decided = compile_query(query, 0, PatternCatalog(), {})[0].root.query_class.decided
    assert isinstance(decided, Decided)
    return decided.decision


def looked_up(text: str) -> set[str | None]:
    """Return the terms of what is absent that are looked up in lists, in a statement's cases."""
    absences = decision_of(text).absences
    rules = [Rule(case.asked, case.stream.terms) for absent in absences for case in absent.cases]
    return {None if rule.listed is None else rule.listed[1] for rule in rules}


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("S//a->a NOT FOLLOWED BY {a/k = b/k, 1 h} S//b->b", {"b/k"}),
        ("S//a->a NOT FOLLOWED BY {y = a/k, 1 h} S//b[k->y]", {"y"}),
        ("S//a->a UNLESS {a/k = b/k OR a/m = b/m, 1 h} S//b->b", {"b/k", "b/m"}),
        ("S//a->a NEXT {, 1 h} S//b->b UNLESS {b/k = c/k AND a/m < c/m} S//c->c", {"c/k"}),
        ("S//a->a NOT JOIN {a/k = b/k, 1 h} (S//b->b | S//c)", {"b/k", None}),
        # These say nothing of what is absent, or are joined by variables.
        ("S//a->a NEXT {, 1 h} S//b->b UNLESS {a/k = b/k} S//c", {None}),
        ("S//a[k->x] NOT FOLLOWED BY {x = y, 1 h} S//b[k->y]", {None}),
        ("S//a->a NOT FOLLOWED BY {a/k != b/k, 1 h} S//b->b", {None}),
    ],
)
def test_an_equality_with_a_path_that_need_not_be_there_is_looked_up(
    text: str, terms: set[str | None]
) -> None:
    assert looked_up(text) == terms


def test_the_values_of_such_a_path_are_read_one_by_one() -> None:
    lists = [[], ["x"], ["x", "", 'y"'], ["\\"]]
    assert values_in_lists(map(optional_values, lists)) == lists


@pytest.mark.parametrize(
    ("text", "had"),
    [
        ("S//a[k = $k] NOT FOLLOWED BY {, 1 h} S//b[k = $k]", ("k", "")),
        ("S//a NEXT {, 1 h} S//b[k = $k] UNLESS S//c[k = $k] UNLESS S//d", ("", "k")),
        ("(S//a[k = $k] | S//b[k = $k]) FOLLOWED BY {, 1 h} S//c UNLESS S//d[k = $k]", ("k", "")),
        ("S//a[k = $k][m = $m] UNLESS {, 1 h} S//b[contains(m, $m)][k = $k]", ("km", "")),
        (
            "S//a[k = $k] NEXT {, 1 h} S//b[k = $k][m = $m] UNLESS S//c[k = $k][m = $m]",
            ("k", "m"),
        ),
        ("S//a[k = $k][m = $m] UNLESS {, 1 h} (S//b[k = $k] | S//c[k = $k][m = $m])", ("km", "")),
        # All that an operand may be must have the value.
        ("(S//a[k = $k] | S//b) FOLLOWED BY {, 1 h} S//c UNLESS S//d[k = $k]", ("", "")),
        ("S//a[k = $k] NOT FOLLOWED BY {, 1 h} S//b[k = $m]", ("", "")),
        ("S//a[n > $n] NOT FOLLOWED BY {, 1 h} S//b[n > $n]", ("", "")),
    ],
)
def test_data_that_an_operand_has_are_asked_beside_it(text: str, had: tuple[str, str]) -> None:
    first, second = decision_of(text).had
    assert ("".join(first), "".join(second)) == had
