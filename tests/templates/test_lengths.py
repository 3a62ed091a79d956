"""For how long a class keeps: for each assignment what it needs if it is compiled alone."""

from __future__ import annotations

import pytest

import xscl
from templates.clause import Clause
from templates.compiler import compile_query
from templates.lengths import longest_of
from xpath_eval.catalog import PatternCatalog
from xscl.path import Parameter
from xscl.query import INFINITE_US, Query
from xscl.substitution import substitute

VALUES = {"t": 7, "u": 5, "v": 11, "k": "x"}


@pytest.mark.parametrize(
    ("text", "kept_us"),
    [
        ("S//a UNLESS {, $t} S//n UNLESS {, $u} S//m", 7),
        ("S//a UNLESS {, $t} S//n UNLESS {, 6 us} S//m UNLESS {, 9 us} S//n", 9),
        ("S//a NEXT S//b NEXT S//c WITHIN $t", 7),
        ("S//a FOLLOWED BY {, $t} S//b+ FOLLOWED BY {, $u} S//c MATCH NEXT", 12),
        ("S//a FOLLOWED BY {, $t} S//b+ FOLLOWED BY {, 4 us} S//c MATCH STRICT", 22),
        ("S//a UNLESS {, $u} S//n UNLESS {, $v} S//m FOLLOWED BY {, $t} S//b+ MATCH NEXT", 18),
        ("S//a FOLLOWED BY S//b+ FOLLOWED BY {, $u} S//c WITHIN $t SAME (//k) MATCH PARTITION", 14),
        ("SELECT COMPRESSED FROM S//a FOLLOWED BY {, $t} S//b+ WITHIN $v MATCH ANY", 7),
        ("S//b+ FOLLOWED BY {, $u} S//c WITHIN $t MATCH NEXT", 7),
        ("S//a[k = $k] FOLLOWED BY {, $t} S//b+ UNLESS {, $u} S//n", 7),
        ("S//b[k = $k]+ WITHIN $t", 7),
    ],
)
def test_an_assignment_needs_what_it_would_alone(text: str, kept_us: int) -> None:
    [query] = xscl.parse(f"{text} GRACE 0 s", id="q")
    root, alone = _root(query), _root(substitute(query, VALUES))
    assert root.window_under(VALUES) == alone.window_under({}) == kept_us
    assert root.reach.under(VALUES) == alone.reach.under({})


def _root(query: Query) -> Clause:
    return compile_query(query, 0, PatternCatalog(), {})[0].root


def test_the_longest_of_some_lengths_is_one_of_them_where_that_is_known() -> None:
    t, u = Parameter("t"), Parameter("u")
    assert longest_of([3, 5]) == 5
    assert longest_of([t, t]) == t
    assert longest_of([t, INFINITE_US]) == INFINITE_US
    of_both = longest_of([t, u, 3])
    assert not isinstance(of_both, int | Parameter)
    assert [of_both.under({"t": n, "u": 4}) for n in (2, 4, 9)] == [4, 4, 9]
    assert of_both.under({"t": 1, "u": 2}) == 3
    assert of_both.plus(of_both).under({"t": 1, "u": 2}) == 6
