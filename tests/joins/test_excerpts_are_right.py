"""What is above or beside a node is asked in all places as the oracle says."""

from __future__ import annotations

import pytest
from generators.choosers import RandomChooser
from generators.excerpt_cases import PLACES, excerpt_case
from support.examples import examples, is_searching
from support.kit import parse_case
from support.runners import ENGINES, lines, run_engine, run_oracle
from support.ways import random_case_way

import xscl
from templates.box import FoundBy
from templates.compiler import compile_query
from templates.handedontexts import reads_handed_on_text
from templates.prepared import is_prepared
from xpath_eval.catalog import PatternCatalog


def test_the_engine_finds_what_the_oracle_finds() -> None:
    wrong: list[int] = []
    for seed in range(examples(6)):
        case = parse_case(excerpt_case(RandomChooser(seed)))
        way = random_case_way(seed, case, tuple(ENGINES), by_default=4)
        found = way.run(case, {}) if is_searching() else run_engine(case, batch_size=2)
        if lines(found) != lines(run_oracle(case)):
            wrong.append(seed)
    assert not wrong


OF_OPERANDS = (
    "S//f->v JOIN {exists(v/a?) OR v/k = u/k, W} S//b->u JOIN {, W} S//c",
    "S//f->v JOIN {if (exists(v/a?)) then v/t else u/k = 'x', W} S//b->u JOIN {, W} S//c",
    "(S//f->v NEXT {, W} S//b) NEXT {exists(v/a?) OR v/t = u/t, W} S//f->u",
    "S//c NEXT {, W} (S//f->v NEXT {, W} S//b->u WHERE exists(v/a?) OR v/t = u/k)",
    "S//f->v FOLLOWED BY {, W} S//c UNLESS {exists(v/a?) OR u/k = 'x', W} S//b->u",
    "S//a FOLLOWED BY {, W} S//c UNLESS {exists(u/a?) OR u/t = 'x', W} S//f->u",
    "S//f->v NEXT {exists(u/a?) OR v/k = u/k, W} S//f->u",
    "S//f->v NOT FOLLOWED BY {exists(v/a?) OR v/t = u/t, W} S//f->u",
    "S//a NOT FOLLOWED BY {contains(u/k, $x) OR exists(u/k?), W} S//b->u",
)
"""What asks of nodes of operands by values that are handed on: their texts are held."""


@pytest.mark.parametrize("place", PLACES)
def test_what_is_handed_on_has_no_text_of_a_document(place: str) -> None:
    text = place.replace("?", "[../@m = $x]").replace("W}", "5 s}")
    [query] = xscl.parse(text, id="q")
    alternatives = compile_query(query, 0, PatternCatalog(), {})
    assert is_prepared(alternatives)
    reads = [reads_handed_on_text(e) for each in alternatives for e in each.clauses]
    assert any(reads) is (place in OF_OPERANDS)
    for clause in (each for alternative in alternatives for each in alternative.clauses):
        asked = {test.place for test in clause.box if test.reads_shared_text and clause.stream}
        assert not asked & set(clause.tested)
        by_data = sum(isinstance(each, FoundBy) for each in clause.tested)
        assert by_data >= len(asked)
        assert not (asked and clause.is_common)
