"""A delay that is learned is of the document number of matches, also after crashes."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing, suppress
from itertools import product
from pathlib import Path

import pytest
from generators.choosers import RandomChooser
from generators.loss_cases import learned_case
from support.crashing_broker import POINTS, Crash, CrashAt, CrashingBroker
from support.examples import examples, some
from support.kit import parse_case
from support.runners import lines, run_engine, run_oracle

import xscl
from broker.documents.document import DocumentLine, tick
from broker.matching.outcomes.kept import Note
from broker.matching.stepresult import StepResult
from broker.pipeline.lookback.backfill import LookBackError, check_unread
from broker.pipeline.outbox import Outbox
from broker.pipeline.shards import Join
from xscl.delays import LEARNED_LEAST, LEARNED_MOST

SECOND_US = 1_000_000
STATEMENT = """SELECT * FROM S//a[k->x] FOLLOWED BY {x = y, 20 s} S//b[k->y] LOSS 0.5 DELAY learned
    FOLLOWED BY {y = z, 20 s} S//c->c[k->z] GRACE 5 s PUBLISH P"""
READER = "P//c[k->p] NEXT {p != s, 90 s} S//a[k->s] GRACE 5 s"
STATEMENTS = {"learns": STATEMENT, "reads": READER}


class Broker(CrashingBroker):
    """A broker with a statement that learns, and one that reads what it infers."""

    def __init__(
        self, directory: Path, reached: Callable[[str], None] = lambda point: None
    ) -> None:
        super().__init__(directory, reached, lateness_us=9 * SECOND_US)

    def live(self, size: int = 12) -> None:
        """Register, accept and process everything that is not there yet."""
        self.catch_up(STATEMENTS, documents(), size)


def documents() -> list[DocumentLine]:
    """Return groups of an `a`, a `b` where it is not lost, and a `c`, each some seconds apart."""
    found = []
    for group in range(60):
        start = group * 30
        delay = 1 + group * group % 11
        times = {"a": start, "b": start + delay, "c": start + 2 + 3 * delay % 17}
        for kind, second in times.items():
            if kind != "b" or group % 5:
                at_us = 1_000_000_000_000_000 + second * SECOND_US
                xml = f"<{kind}><k>{group}</k></{kind}>".encode()
                key = f"{kind}{group}"
                found.append(DocumentLine("S", xml, at_us, at_us + 10**9, key=key))
    return [*found, tick(2_000_000_000_000_000)]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str]]:
    with Broker(tmp_path_factory.mktemp("undisturbed")) as broker:
        broker.live()
        state = broker.found_lines()
    inferred = [line for query, line in state if query == "learns" and '"missing": [{' in line]
    assert inferred
    assert {query for query, _ in state} == set(STATEMENTS)
    return state


def test_nothing_is_inferred_before_enough_is_known(undisturbed: list[tuple[str, str]]) -> None:
    found = sorted(
        (match["decided"], bool(match["missing"]))
        for query, line in undisturbed
        if query == "learns"
        for match in [json.loads(line)]
    )
    first = next(at for at, is_missing in found if is_missing)
    assert sum(at < first and not is_missing for at, is_missing in found) >= LEARNED_LEAST


@pytest.mark.parametrize(("point", "visit"), some(product(POINTS, [1, 5, 9, 12]), 2))
def test_a_crash_at_a_commit_point_changes_nothing_that_is_inferred(
    tmp_path: Path, undisturbed: list[tuple[str, str]], point: str, visit: int
) -> None:
    crash = CrashAt(point, visit)
    with Broker(tmp_path, crash) as broker, suppress(Crash):
        broker.live()
    assert crash.has_crashed
    with Broker(tmp_path) as broker:
        broker.live()
        assert broker.found_lines() == undisturbed


@pytest.mark.parametrize("size", [5, 500])
def test_batches_change_nothing_that_is_inferred(
    tmp_path: Path, undisturbed: list[tuple[str, str]], size: int
) -> None:
    with Broker(tmp_path) as broker:
        broker.live(size)
        assert broker.found_lines() == undisturbed


def test_no_more_delays_are_kept_than_are_learned_from(tmp_path: Path) -> None:
    def note(docid: int, parameters: str) -> Note:
        return Note("learns", 1, parameters, "LEARNED", "[1]", docid, 0, 0, 1 << 62)

    with closing(Outbox(tmp_path / "outbox.db")) as outbox:
        for end in range(1, 1_400, 100):
            notes = [note(docid, "{}") for docid in range(end, end + 100)]
            step = StepResult(notes=[*notes, note(end, "other")])
            assert outbox.commit(after=end - 1, through=end + 99, step=step)
        kept = [each.docid for each in outbox.notes() if each.parameters == "{}"]
        others = [each.docid for each in outbox.notes() if each.parameters == "other"]
    assert kept == list(range(1_401 - LEARNED_MOST, 1_401))
    assert len(others) == 14


def test_engines_in_batches_and_shards_learn_what_the_oracle_does() -> None:
    wrong: list[int] = []
    for seed in range(examples(2)):
        case = parse_case(learned_case(RandomChooser(seed)))
        expected = lines(run_oracle(case))
        join = Join(case.lateness_us, 1 + 2 * (seed % 2))
        found = run_engine(
            case,
            batch_size=(1, 3, None)[seed % 3],
            restart_after=len(case.lines) // 2 * (seed % 2),
            processors=lambda join=join: join.processor(None),
        )
        if lines(found) != expected:
            wrong.append(seed)
    assert not wrong, "cases of learned_case(RandomChooser(seed)) with these seeds"


def test_what_learns_cannot_look_back(tmp_path: Path) -> None:
    [query] = xscl.parse(STATEMENT, id="learns")
    with Broker(tmp_path) as broker, pytest.raises(LookBackError, match="what it learned"):
        check_unread(broker.registry, query)
