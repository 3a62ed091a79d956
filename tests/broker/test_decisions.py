"""Decisions in a broker: committed once, whatever is lost in between."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from generators.choosers import RandomChooser
from generators.ordered_cases import ordered_case
from support.ending_broker import run_broker
from support.examples import examples, some
from support.kit import Case, parse_case, time_us
from support.matching_broker import MatchingBroker
from support.runners import lines, run_oracle

from broker.documents.document import tick
from broker.pipeline.lookback.backfill import backfill
from broker.registry.queries import QueryState


def of_text(text: str) -> Case:
    return parse_case(f"# A case.\n{text}\n----\n")


def searched() -> list[int]:
    return list(range(examples(2)))


NEXT = """query q
    S//a[k->i] NEXT {i = j, 1 m} S//b[k->j] GRACE 2 s
document 1 S 00:00:10  <a><k>x</k></a>
document 2 S 00:00:12  <b><k>x</k></b>
document 3 S 00:00:13  <a><k>x</k></a>
tick 4 00:00:20
document 5 S 00:00:21  <b><k>x</k></b>
tick 6 00:00:30
"""


def test_what_is_not_decided_when_a_query_is_removed_or_paused_is_not_decided(
    tmp_path: Path,
) -> None:
    case = of_text(NEXT)
    for state, docids in ((QueryState.PAUSED, [4]), (None, [4, 6])):
        broker = MatchingBroker(tmp_path / str(state), lateness_us=case.lateness_us)
        [query] = case.queries
        broker.register(query)
        broker.take(case.lines[:5])
        if state is not None:
            broker.set_state(query, state)
        broker.take(case.lines[5:])
        found = [json.loads(line)["decided"] for line in broker.found()]
        broker.close()
        assert sorted(found) == docids


CHANGES = (QueryState.PAUSED, QueryState.ACTIVE, QueryState.REMOVED)


def changed(case: Case, directory: Path, cut: tuple[int, int, int], *, restarts: bool) -> list[int]:
    """Return at which documents a query decided that was paused, resumed and removed."""
    broker = MatchingBroker(directory, lateness_us=case.lateness_us)
    [query] = case.queries
    broker.register(query)
    for at, line in enumerate(case.lines):
        for place, state in zip(cut, CHANGES, strict=True):
            if place == at:
                broker.set_state(query, state)
        if restarts:
            broker.close()
            broker = MatchingBroker(directory, lateness_us=case.lateness_us)
        broker.take([line])
    found = sorted(json.loads(line)["decided"] for line in broker.found())
    broker.close()
    return found


@pytest.mark.parametrize(
    ("cut", "docids"),
    some(
        [
            ((9, 9, 9), [4, 6]),
            ((3, 4, 9), [6]),
            ((4, 5, 9), [4, 6]),
            ((3, 9, 9), []),
            ((9, 9, 5), [4]),
            ((3, 4, 5), []),
        ],
        1,
    ),
)
def test_a_query_that_was_paused_decides_what_is_settled_when_it_goes_on(
    cut: tuple[int, int, int], docids: list[int], tmp_path: Path
) -> None:
    case = of_text(NEXT)
    once, again = (
        changed(case, tmp_path / str(restarts), cut, restarts=restarts)
        for restarts in (False, True)
    )
    assert once == again == docids


def test_a_query_that_begins_in_the_middle_sees_nothing_before(tmp_path: Path) -> None:
    case = of_text(NEXT)
    broker = MatchingBroker(tmp_path, lateness_us=case.lateness_us)
    [query] = case.queries
    broker.take(case.lines[:1])
    broker.register(query)
    broker.take(case.lines[1:])
    found = [json.loads(line) for line in broker.found()]
    broker.close()
    assert [[d["docid"] for d in match["documents"]] for match in found] == [[3, 5]]


@pytest.mark.parametrize("seed", searched())
def test_looking_back_decides_what_was_decided(seed: int, tmp_path: Path) -> None:
    case = parse_case(ordered_case(RandomChooser(1_000 + seed)))
    case.registered = {query.id: 1 for query in case.queries}
    published = {query.publish for query in case.queries} - {None}
    broker = MatchingBroker(tmp_path, lateness_us=case.lateness_us)
    half = len(case.lines) // 2
    broker.take(case.lines[:half])
    for query in case.queries:
        broker.register(query, since=1)
        for values in case.assignments.get(query.id, ()):
            broker.subscribe(query, values, since=0)
    broker.ingest.closed_streams = published
    broker.take(case.lines[half:])
    backfill(broker.registry, broker.outbox, broker.spool, lateness_us=case.lateness_us)
    found = broker.found()
    broker.close()
    assert found == sorted(lines(run_oracle(case)))


def test_ticks_are_no_dead_letters(tmp_path: Path) -> None:
    broker = MatchingBroker(tmp_path)
    broker.take([tick(time_us("00:00"))])
    assert broker.outbox.dead_letter_count() == 0
    broker.close()


@pytest.mark.parametrize("seed", searched())
def test_a_broker_that_ends_now_and_then_commits_what_the_oracle_finds(
    seed: int, tmp_path: Path
) -> None:
    case = parse_case(ordered_case(RandomChooser(seed)))
    # Who subscribes sees what comes after; the case has all from the start.
    found = run_broker(case, tmp_path, random.Random(seed))
    assert found == sorted(lines(run_oracle(case)))
