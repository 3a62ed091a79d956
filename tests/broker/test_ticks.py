"""Ticks move time, and are no document of anybody's: nobody is shown them, nothing counts them."""

from __future__ import annotations

from pathlib import Path

from support.kit import time_us
from support.matching_broker import MatchingBroker

from broker.documents.document import CLOCK, DocumentLine, tick
from broker.documents.late import late_data, spell_late
from broker.documents.stored import documents_between, newest_documents
from broker.pipeline.lookback.dryrun import DryRun, dry_run, render_dry_run
from broker.registry.streams import Streams

QUIET = "S//a NOT FOLLOWED BY {, 1 m} S//b GRACE 1 s"


def ticking(directory: Path) -> MatchingBroker:
    """Return a broker that has two documents, and three ticks behind the first."""
    broker = MatchingBroker(directory)
    lines = [
        DocumentLine("S", b"<a/>", time_us("00:00")),
        *(tick(time_us(f"00:0{minute}")) for minute in (1, 2, 3)),
        DocumentLine("S", b"<b/>", time_us("00:04")),
    ]
    version = broker.registry.revision()
    broker.pipeline.prepare(version)
    broker.ingest.append(lines, registry_version=version)
    broker.spool.refresh()
    return broker


def test_what_people_are_shown_leaves_ticks_out(tmp_path: Path) -> None:
    broker = ticking(tmp_path)
    streams = Streams(broker.spool).streams(broker.registry, 0)
    assert [(each.name, each.documents) for each in streams] == [("S", 2)]
    assert [document.docid for document in newest_documents(broker.spool, 2)] == [1, 5]
    (step,) = broker.pipeline.drain()
    assert (step.documents, step.ticks) == (5, 3)
    broker.close()


def test_a_dry_run_is_over_documents_and_decides_by_ticks(tmp_path: Path) -> None:
    broker = ticking(tmp_path)
    broker.close()
    found = dry_run(DryRun(str(tmp_path / "spool"), ("q", QUIET), 10**9), lambda seen, of: None)
    assert (found["documents"], found["retained"], found["is_complete"]) == (2, 2, True)
    assert [match["decided"] for match in found["newest_matches"]] == [3]
    assert "among all 2 documents that are kept" in render_dry_run(found)


def test_what_the_clock_made_late_is_not_said_to_be_of_a_stream(tmp_path: Path) -> None:
    broker = ticking(tmp_path)
    broker.ingest.append([tick(time_us("09:00"))], registry_version=broker.registry.revision())
    newest = broker.ingest.late.newest
    assert newest is not None
    assert newest.stream == CLOCK
    late = late_data(3, newest)
    assert late is not None
    assert spell_late(late).endswith("which is the time of the broker's clock")
    broker.close()


def test_documents_among_which_some_were_decided_have_the_ticks(tmp_path: Path) -> None:
    broker = ticking(tmp_path)
    between = documents_between(broker.spool, 2, 5)
    assert [document.stream for document in between] == [CLOCK, CLOCK, CLOCK, "S"]
    broker.close()
