"""The engine agrees with itself: what must not show changes no match and no witness."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace

import pytest
from oracle.lines import render
from support.examples import examples
from support.kit import Case, us
from support.runners import ENGINES, case_with_joins, lines, run_engine

from broker.matching.match import Match
from xscl.query import Query


@pytest.mark.parametrize("number", range(examples(1)))
def test_batches_of_any_size_give_the_same_matches(number: int) -> None:
    case = case_with_joins(number)
    expected = lines(run_engine(case))
    for batch_size in (1, 3):
        assert lines(run_engine(case, batch_size=batch_size)) == expected


@pytest.mark.parametrize("number", range(examples(1)))
def test_all_engines_give_the_same_matches(number: int) -> None:
    case = case_with_joins(number)
    found = [lines(run_engine(case, engine)) for engine in ENGINES]
    assert all(each == found[0] for each in found)


@pytest.mark.parametrize("number", range(examples(1)))
def test_a_restart_at_any_document_changes_nothing(number: int) -> None:
    case = case_with_joins(number)
    expected = lines(run_engine(case))
    for restart_after in range(1, len(case.lines)):
        assert lines(run_engine(case, restart_after=restart_after)) == expected


@pytest.mark.parametrize("number", range(examples(2)))
def test_queries_are_not_seen_by_other_queries(number: int) -> None:
    case = case_with_joins(number)
    together = run_engine(case)
    for query in case.queries:
        alone = replace(case, queries=_with_its_publishers(query, case.queries))
        assert _of(query, run_engine(alone)) == _of(query, together)


def _with_its_publishers(query: Query, queries: list[Query]) -> list[Query]:
    """Return a query and all those whose published documents reach it."""
    needed = [query]
    for each in needed:
        streams = {block.stream for block in each.blocks}
        needed += [q for q in queries if q.publish in streams and q not in needed]
    return needed


def _of(query: Query, matches: Iterable[Match]) -> list[str]:
    return [render(match) for match in matches if match.query == query.id]


@pytest.mark.parametrize("number", range(examples(1)))
def test_the_order_of_registration_does_not_show(number: int) -> None:
    case = case_with_joins(number)
    assert lines(run_engine(replace(case, queries=case.queries[::-1]))) == lines(run_engine(case))


@pytest.mark.parametrize("number", range(examples(1)))
def test_equal_queries_find_equal_matches(number: int) -> None:
    case = case_with_joins(number)
    copies = [replace(query, id=f"{query.id} again", publish=None) for query in case.queries]
    again = {
        copy.id: case.assignments[q.id]
        for copy, q in zip(copies, case.queries, strict=True)
        if q.id in case.assignments
    }
    points = {f"{name} again": point for name, point in case.registered.items()}
    doubled = replace(
        case,
        queries=case.queries + copies,
        assignments={**case.assignments, **again},
        registered={**case.registered, **points},
    )
    matches = run_engine(doubled)
    assert lines(m for m in matches if "again" not in m.query) == lines(run_engine(case))
    for query in case.queries:
        assert _contents(matches, f"{query.id} again") == _contents(matches, query.id)


def _contents(matches: Iterable[Match], query: str) -> list[str]:
    """Return the match lines of a query without what its name goes into, sorted."""
    return sorted(
        render(
            replace(m, id="", query="", documents=tuple(replace(d, key="") for d in m.documents))
        )
        for m in matches
        if m.query == query
    )


@pytest.mark.parametrize("number", range(examples(1)))
def test_the_order_of_arrival_does_not_show_while_nothing_is_too_late(number: int) -> None:
    case = case_with_joins(number)
    keyed = [
        replace(line, key=f"d{i}", arrival_us=(line.time_us or 0) + us("30 d"))
        for i, line in enumerate(case.lines)
        if line.time_us is not None
    ]
    shuffled = random.Random(number).sample(keyed, len(keyed))
    in_order = replace(case, lines=keyed, lateness_us=us("1 d"), registered={})
    assert _by_id(run_engine(replace(in_order, lines=shuffled))) == _by_id(run_engine(in_order))


def _by_id(matches: Iterable[Match]) -> dict[str, tuple[object, ...]]:
    """Return what is left of matches when docids are not looked at, by match id."""
    return {
        match.id: (match.query, match.start_us, match.roots, match.witnesses, match.output)
        for match in matches
    }


def test_a_case_without_documents_or_queries_has_no_matches() -> None:
    assert run_engine(Case()) == []
