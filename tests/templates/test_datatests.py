"""What an operator need not ask, because what stands above it asks for it as well."""

from __future__ import annotations

import pytest

import xscl
from templates.clause import Clause
from templates.compiler import compile_query
from xpath_eval.catalog import PatternCatalog


def clauses_of(text: str) -> tuple[Clause, ...]:
    [query] = xscl.parse(text, id="q")
    [alternative] = compile_query(query, 0, PatternCatalog(), {}, 1)
    return tuple(alternative.clauses)


@pytest.mark.parametrize("length", ["7 m", "$length"])
def test_an_operator_whose_window_is_no_longer_is_asked_for_no_duration(length: str) -> None:
    inner, outer = clauses_of(f"S//a FOLLOWED BY S//b FOLLOWED BY S//c WITHIN {length}")
    assert (inner.box, inner.residuals) == ((), ())
    assert len(outer.box) == 2


def test_one_whose_window_is_longer_is_asked() -> None:
    inner, _ = clauses_of("S//a FOLLOWED BY {, 8 m} S//b FOLLOWED BY S//c WITHIN 7 m")
    assert len(inner.box) == 1
