"""why_not says that documents match exactly where the engine finds the match."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations, islice
from typing import Any

import oracle
import pytest
from generators.choosers import RandomChooser
from generators.ordered_cases import ordered_case
from generators.run_cases import run_case
from generators.strategies import case_texts, random_case
from hypothesis import HealthCheck, given, settings
from oracle.lines import read_lines
from support.examples import examples, some
from support.kit import Case, cases, parse_case
from support.runners import engine_of

from broker.documents.document import Document
from broker.matching.match import Match
from broker.whynot import Surroundings, why_not
from xscl.query import Query
from xscl.sequence import documents_of

COMBINATIONS_MAX = 200

ELEMENTS_MORE = 3
"""Documents that are named of a run: as many as there are units, and up to two further ones."""


def run(case: Case) -> tuple[list[Match], list[Document]]:
    """Return what the engine finds, and all documents that there were, published ones too."""
    documents = oracle.number_documents(case.lines)
    xml = {document.docid: document.xml for document in documents}
    engine = engine_of(case, "mmqjp-views")
    step = engine.process(engine.evaluate(documents), lambda docids: {d: xml[d] for d in docids})
    return read_lines(step.matches), [*documents, *step.published]


def assignments(case: Case, query: Query) -> Iterable[Mapping[str, Any]]:
    return case.assignments.get(query.id, []) if query.parameters else [{}]


def candidates(
    query: Query, documents: list[Document], most: int
) -> Iterator[tuple[Document, ...]]:
    streams = {block.stream for block in query.blocks}
    readable = [d for d in documents if d.stream in streams or ("*" in streams and d.depth == 0)]
    fewest = documents_of(query.root)
    sizes = range(fewest, fewest + (ELEMENTS_MORE if query.has_runs else 1))
    chosen = (each for size in sizes for each in combinations(readable, size))
    yield from islice(chosen, most)


def disagreements(case: Case, most: int = COMBINATIONS_MAX) -> Iterator[str]:
    matches, documents = run(case)
    outside = [document for document in documents if not document.depth]
    published = {query.publish for query in case.queries}
    for query in case.queries:
        if query.is_ordered and not published.isdisjoint(block.stream for block in query.blocks):
            continue
        for values in assignments(case, query):
            found = {
                frozenset((d.stream, d.key) for d in match.documents)
                for match in matches
                if match.query == query.id and match.parameters == dict(values)
            }
            for chosen in candidates(query, documents, most):
                reason = why_not(
                    query,
                    chosen,
                    lateness_us=case.lateness_us,
                    parameters=values,
                    registration_point=case.registered.get(query.id, 0),
                    around=Surroundings(outside),
                )
                is_found = frozenset((d.stream, d.key) for d in chosen) in found
                if reason.holds != is_found:
                    yield f"{query.id} {[d.docid for d in chosen]}: engine {is_found}, {reason}"
                assert reason.holds or list(reason.failures())


@pytest.mark.parametrize("seed", range(examples(1)))
def test_why_not_and_the_engine_agree_on_what_is_decided(seed: int) -> None:
    # Each answer runs the query over all documents.
    case = parse_case(ordered_case(RandomChooser(seed)))
    assert not list(disagreements(case, most=8))


@pytest.mark.parametrize("seed", range(examples(2)))
def test_why_not_and_the_engine_agree_on_runs(seed: int) -> None:
    case = parse_case(run_case(RandomChooser(seed)))
    assert not list(disagreements(case, most=12))


CONDITIONED = [
    text for name, text in cases() if name.split(":")[0] in ("conditions", "clauses", "units")
]


@pytest.mark.parametrize("text", some(CONDITIONED, 4))
def test_why_not_and_the_engine_agree_on_conditions_clauses_and_units(text: str) -> None:
    assert not list(disagreements(parse_case(text)))


@pytest.mark.parametrize("part", range(2))
def test_why_not_and_the_engine_agree_on_seeded_cases(part: int) -> None:
    wrong = [
        (seed, text)
        for seed in range(part, examples(2), 2)
        for text in disagreements(parse_case(random_case(seed)))
    ]
    assert not wrong


@settings(
    max_examples=examples(3),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(text=case_texts())
def test_why_not_says_it_matches_exactly_where_the_engine_finds_the_match(text: str) -> None:
    assert list(disagreements(parse_case(text))) == []
