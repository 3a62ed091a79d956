"""Decisions in a broker: committed once, whatever is lost in between."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from generators.choosers import RandomChooser
from generators.ordered_cases import ordered_case
from support.examples import examples
from support.kit import CASES, Case, cases, parse_case
from support.matching_broker import MatchingBroker
from support.runners import lines, run_oracle

from broker.documents.disk import Disk
from broker.pipeline.snapshot import Snapshot

ALL = dict(cases(CASES / "ordered"))


def run_broker(case: Case, directory: Path, cut: random.Random) -> list[str]:
    """Return the lines of a broker that ends now and then, with its snapshot or without."""

    def start() -> MatchingBroker:
        snapshot = Snapshot(directory / "state", disk=Disk(is_durable=False))
        has_snapshot = cut.random() < 0.7
        return MatchingBroker(
            directory, lateness_us=case.lateness_us, snapshot=snapshot if has_snapshot else None
        )

    broker = start()
    for query in case.queries:
        broker.register(query, point=case.registered.get(query.id, 0))
        for values in case.assignments.get(query.id, ()):
            broker.subscribe(query, values)
    rest = case.lines
    while rest:
        count = cut.randint(1, 4)
        broker.take(rest[:count])
        rest = rest[count:]
        if cut.random() < 0.6:
            broker.close()
            broker = start()
    found = broker.found()
    broker.close()
    return found


def searched() -> list[int]:
    return list(range(examples(6)))


@pytest.mark.parametrize("seed", searched())
def test_a_broker_that_ends_now_and_then_commits_what_the_oracle_finds(
    seed: int, tmp_path: Path
) -> None:
    case = parse_case(ordered_case(RandomChooser(seed)))
    # Who subscribes sees what comes after; the case has all from the start.
    found = run_broker(case, tmp_path, random.Random(seed))
    assert found == sorted(lines(run_oracle(case)))
