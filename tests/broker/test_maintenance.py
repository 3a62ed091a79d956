from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.standin import StandInEngine

from broker.documents.disk import Disk
from broker.documents.document import DocumentLine
from broker.documents.ingest import Ingest
from broker.documents.spool import Spool, SpoolWriter
from broker.pipeline.evaluation import PlanStore
from broker.pipeline.outbox import Outbox
from broker.pipeline.steps import Pipeline
from broker.service.maintenance import RetentionNeeds, at_once, maintain

FOREVER = 1 << 62
WINDOW_US = 10


def spool_of(directory: Path, times: list[int]) -> SpoolWriter:
    """Return a spool with one segment for each event time."""
    spool = SpoolWriter(directory, Disk(is_durable=False))
    ingest = Ingest(spool)
    for time_us in times:
        line = DocumentLine("S", b"<v>x</v>", time_us)
        ingest.append([line], arrival_us=1000 + time_us, registry_version=1)
    return spool


@pytest.mark.parametrize(
    ("needs", "kept"),
    [
        (RetentionNeeds(through=2, event_us=FOREVER, arrival_us=FOREVER), [3, 4]),
        (RetentionNeeds(through=4, event_us=3, arrival_us=FOREVER), [3, 4]),
        (RetentionNeeds(through=4, event_us=FOREVER, arrival_us=1002), [2, 3, 4]),
        (RetentionNeeds(through=4, event_us=FOREVER, arrival_us=FOREVER), [4]),
        (RetentionNeeds(through=4, event_us=0, arrival_us=FOREVER), [1, 2, 3, 4]),
    ],
)
def test_a_segment_stays_while_anybody_needs_it(
    tmp_path: Path, needs: RetentionNeeds, kept: list[int]
) -> None:
    spool = spool_of(tmp_path, [1, 2, 3, 4])
    maintain(spool, lambda: needs)
    numbers = [n for s in spool.all_segments() for n in range(s.first, s.last + 1)]
    assert numbers == kept


def test_a_late_document_keeps_what_came_after_it(tmp_path: Path) -> None:
    spool = spool_of(tmp_path, [1, 9, 2, 3])
    needs = RetentionNeeds(through=4, event_us=5, arrival_us=FOREVER)
    maintain(spool, lambda: needs)
    assert sorted(spool.documents(range(10))) == [2, 3, 4]


def test_a_restart_on_a_pruned_spool_finds_the_same_matches(tmp_path: Path) -> None:
    times = list(range(0, 60, 3))
    matches = []
    for is_maintained in (False, True):
        directory = tmp_path / str(is_maintained)
        matches.append(_run_with_restarts(directory, times, is_maintained=is_maintained))
    assert matches[0] == matches[1] != []


def _run_with_restarts(directory: Path, times: list[int], *, is_maintained: bool) -> list[str]:
    outbox = Outbox(directory / "outbox.db", now_us=lambda: 0)
    for time_us in times:
        spool = spool_of(directory / "spool", [time_us])
        pipeline = Pipeline(
            Spool(directory / "spool"),
            outbox,
            lambda version: StandInEngine(window_us=WINDOW_US),
            PlanStore(directory / "plans"),
        )
        pipeline.recover(1)
        for _ in pipeline.drain():
            pass
        if is_maintained:
            through, horizon_us = pipeline.through, pipeline.horizon_us()
            maintain(spool, partial(RetentionNeeds, through, horizon_us, arrival_us=FOREVER))
        spool.close()
    lines = [match.line for match in outbox.matches.find(limit=10_000)]
    outbox.close()
    if is_maintained:
        assert len(list((directory / "spool").glob("*.segment"))) < len(times) / 2
    return lines


def test_documents_are_accepted_while_segments_are_merged(tmp_path: Path) -> None:
    spool = SpoolWriter(tmp_path, Disk(is_durable=False))
    ingest = Ingest(spool)

    def accept(number: int) -> None:
        line = DocumentLine("S", b"<i/>", key=str(number))
        ingest.append([line], arrival_us=number, registry_version=1)

    def accept_before(action: Callable[[int], Any]) -> Future[Any]:
        accept(spool.next_docid)
        return at_once(action)

    for number in range(1, 11):
        accept(number)
    needs = RetentionNeeds(through=10, event_us=0, arrival_us=0)
    maintain(spool, lambda: needs, accept_before)
    assert [(s.first, s.last) for s in spool.all_segments()] == [(1, 10), (11, 11), (12, 12)]
    assert sorted(Spool(tmp_path).documents(range(1, 99))) == list(range(1, 13))
    spool.close()
