"""A restart remembers documents from files, and finds what a broker without a restart finds."""

from __future__ import annotations

import json
import logging
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.examples import examples, size
from support.kit import Case
from support.matching_broker import DAY_US, MatchingBroker
from support.runners import case_with_joins

import xscl
from broker.documents.document import DocumentLine
from broker.pipeline import snapshot as snapshot_module
from broker.pipeline.compaction import rows_in
from broker.pipeline.limits import PipelineLimits
from broker.pipeline.snapshot import Snapshot
from broker.registry.queries import QueryState
from joins.files.witnessfile import read_header

SAME = "S//i->a FOLLOWED BY {a/t = b/t, 1 h} S//i->b"
OTHER = "S//i->a FOLLOWED BY {a/u = b/u, 1 h} S//i->b"


class Broker(MatchingBroker):
    """A file of the snapshot has some documents only."""

    def __init__(self, directory: Path, *, lateness_us: int = DAY_US, documents: int = 3) -> None:
        snapshot = None
        if documents:
            limits = PipelineLimits(file_documents=documents)
            snapshot = Snapshot(directory / "state", limits=limits)
        super().__init__(directory, lateness_us=lateness_us, snapshot=snapshot)


Restart = Callable[[Broker], Broker]


def live(case: Case, directory: Path, *, documents: int, is_restarted: bool) -> list[str]:
    """Take the documents of a case while its queries come and go; restart after every few."""
    directory.mkdir()

    def begin() -> Broker:
        return Broker(directory, lateness_us=case.lateness_us, documents=documents)

    plain = [query for query in case.queries if not query.parameters]
    broker = begin()
    for query in plain[::2]:
        broker.register(query)
    for start in range(0, len(case.lines), 2):
        if start == 2:
            for query in plain[1::2]:
                broker.register(query)
        if start == 4:
            broker.set_state(plain[0], QueryState.PAUSED)
        if start == 6:
            broker.set_state(plain[0], QueryState.ACTIVE)
            broker.set_state(plain[-1], QueryState.REMOVED)
        broker.take(case.lines[start : start + 2])
        if is_restarted:
            broker.close()
            broker = begin()
    found = broker.found()
    broker.close()
    return found


@pytest.mark.parametrize("number", range(examples(1)))
def test_a_restart_changes_nothing_with_and_without_a_snapshot(number: int, tmp_path: Path) -> None:
    case = case_with_joins(number)
    expected = live(case, tmp_path / "undisturbed", documents=0, is_restarted=False)
    for documents in (0, 1, 6):
        directory = tmp_path / str(documents)
        assert live(case, directory, documents=documents, is_restarted=True) == expected


def query(text: str, name: str = "q") -> xscl.Query:
    (parsed,) = xscl.parse(text, id=name)
    return parsed


def items(start: int, stop: int) -> list[DocumentLine]:
    return [
        DocumentLine("S", f"<i><t>{n % 5}</t><u>{n % 3}</u></i>".encode(), n * 60_000_000)
        for n in range(start, stop)
    ]


@pytest.fixture
def read(caplog: pytest.LogCaptureFixture) -> Callable[[], int]:
    """How many documents the last restart took from files."""
    caplog.set_level(logging.INFO, snapshot_module.__name__)

    def count() -> int:
        return [int(n) for n in re.findall(r"(\d+) documents were remembered", caplog.text)][-1]

    return count


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """What a broker leaves that had taken 30 documents, 3 at a time."""
    broker = Broker(tmp_path)
    broker.register(query(SAME))
    for start in range(0, 30, 3):
        broker.take(items(start, start + 3))
    broker.close()
    return tmp_path


def restarted(directory: Path, start: int = 30, stop: int = 40) -> list[str]:
    """Restart a broker, let it take more documents, and return what it has found."""
    broker = Broker(directory)
    broker.take(items(start, stop))
    found = broker.found()
    broker.close()
    return found


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    broker = Broker(tmp_path_factory.mktemp("undisturbed"), documents=0)
    broker.register(query(SAME))
    for start in range(0, 30, 3):
        broker.take(items(start, start + 3))
    broker.take(items(30, 40))
    found = broker.found()
    broker.close()
    return found


def test_documents_are_remembered_without_evaluating_them(
    directory: Path, expected: list[str], read: Callable[[], int]
) -> None:
    assert restarted(directory) == expected
    assert read() == 30


def test_a_query_that_came_later_needs_nothing_of_earlier_documents(
    directory: Path, read: Callable[[], int]
) -> None:
    broker = Broker(directory)
    broker.register(query(OTHER, "late"))
    broker.take(items(30, 34))
    broker.close()
    Broker(directory).close()
    assert read() == 34


def test_a_later_assignment_needs_nothing_of_earlier_documents(
    directory: Path, read: Callable[[], int]
) -> None:
    opaque = query("S//i->a[contains(u, $part)] FOLLOWED BY {a/t = b/t, 1 h} S//i->b", "opaque")
    broker = Broker(directory)
    broker.register(opaque, point=0)
    broker.subscribe(opaque, {"part": "1"})
    broker.take(items(30, 34))
    broker.close()
    restarted(directory)
    assert read() == 34


def test_what_a_query_needs_that_looks_back_is_evaluated_again(
    directory: Path, read: Callable[[], int]
) -> None:
    broker = Broker(directory)
    broker.register(query(OTHER, "back"), point=15)
    broker.close()
    found = restarted(directory)
    assert read() == 15
    pairs = [(m, n) for n in range(30, 40) for m in range(15, n) if m % 3 == n % 3 and n - m <= 60]
    assert sum(json.loads(line)["query"] == "back" for line in found) == len(pairs)
    assert restarted(directory, 40, 43)
    assert read() == 40


def test_a_query_that_is_gone_is_no_reason_to_evaluate_again(
    directory: Path, read: Callable[[], int]
) -> None:
    broker = Broker(directory)
    broker.register(query(OTHER, "late"))
    broker.take(items(30, 34))
    broker.set_state(query(SAME), QueryState.REMOVED)
    broker.close()
    restarted(directory)
    assert read() == 34


@pytest.mark.parametrize("kept", [0, 100, -1])
def test_torn_files_are_evaluated_again(
    directory: Path, expected: list[str], read: Callable[[], int], kept: int
) -> None:
    for path in sorted((directory / "state").glob("*.witnesses"))[2:5]:
        path.write_bytes(path.read_bytes()[:kept])
    assert restarted(directory) == expected
    assert read() == 21
    restarted(directory, 40, 43)
    assert read() == 40


def test_files_of_another_release_are_evaluated_once(
    directory: Path, expected: list[str], read: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_module, "version", lambda name: "another")
    assert restarted(directory) == expected
    assert read() == 0
    restarted(directory, 40, 43)
    assert read() == 40


def test_files_without_what_their_plan_asked_for_are_not_trusted(
    directory: Path, expected: list[str], read: Callable[[], int]
) -> None:
    for path in (directory / "state").glob("*.asked"):
        path.write_bytes(path.read_bytes()[16:])
    assert restarted(directory) == expected
    assert read() == 0
    restarted(directory, 40, 43)
    assert read() == 40


def test_files_that_lead_the_commit_are_removed(
    directory: Path, expected: list[str], read: Callable[[], int]
) -> None:
    # As when an older outbox is put back: everything is found again.
    for path in directory.glob("outbox.db*"):
        path.unlink()
    assert restarted(directory) == expected
    names = sorted(path.name for path in (directory / "state").glob("*.witnesses"))
    assert names[0].startswith("000000000000001-")
    assert len(names) < 10


def test_files_that_no_window_reaches_are_removed(tmp_path: Path) -> None:
    broker = Broker(tmp_path, lateness_us=0)
    broker.register(query(SAME))
    for start in range(0, 150, 3):
        broker.take(items(start, start + 3))
    broker.close()
    # An hour's worth of minutes, and the document that the oldest of them shares a file with.
    assert len(list((tmp_path / "state").glob("*.witnesses"))) <= 60 // 3 + 2
    assert len(list((tmp_path / "state").glob("*.asked"))) == 1


def test_a_directory_that_cannot_be_written_is_a_warning(
    directory: Path, expected: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    broker = Broker(directory)
    shutil.rmtree(directory / "state")
    (directory / "state").write_text("in the way")
    broker.take(items(30, 40))
    assert broker.found() == expected
    broker.close()
    assert "was not kept for a restart" in caplog.text


RARE = "R//i->a FOLLOWED BY {a/t = b/t, INF} R//i->b"


def mixed(start: int, stop: int) -> list[DocumentLine]:
    """Return documents of a busy stream, one a minute, and now and then one of another."""
    return [
        DocumentLine("S" if n % 30 else "R", f"<i><t>{n % 5}</t></i>".encode(), n * 60_000_000)
        for n in range(start, stop)
    ]


@pytest.mark.slow
def test_files_keep_nothing_of_a_busy_stream_for_a_wide_window_over_another(
    tmp_path: Path, read: Callable[[], int]
) -> None:
    found, count = [], size(408, 1_200)
    for name, documents, is_restarted in (("whole", 0, False), ("files", 12, True)):
        broker = Broker(tmp_path / name, lateness_us=0, documents=documents)
        broker.register(query(SAME))
        broker.register(query(RARE, "rare"))
        for start in range(1, count + 1, 12):
            broker.take(mixed(start, start + 12))
            if is_restarted and start % 396 == 1:
                broker.close()
                broker = Broker(tmp_path / name, lateness_us=0, documents=documents)
        found.append(broker.found())
        broker.close()
    assert found[0] == found[1]
    assert read() == count
    files = list((tmp_path / "files" / "state").glob("*.witnesses"))
    # An hour's worth of files, and what is left of all others in a few.
    assert len(files) < 5 + 2 + 20
    kept = sum(rows_in(read_header(path)) for path in files)
    assert kept < 60 + 3 * len(files) + count // 30


def test_what_a_file_has_lost_is_evaluated_again_for_a_query_that_looks_back(
    tmp_path: Path,
) -> None:
    broker = Broker(tmp_path, lateness_us=0, documents=12)
    broker.register(query(RARE, "rare"))
    broker.register(query(SAME))
    count = size(240, 600)
    for start in range(1, count + 1, 12):
        broker.take(mixed(start, start + 12))
    broker.register(query(SAME.replace("1 h", "INF"), "back"), point=0)
    broker.close()
    broker = Broker(tmp_path, lateness_us=0, documents=12)
    broker.take([DocumentLine("S", b"<i><t>1</t></i>", (count + 1) * 60_000_000)])
    earlier = [n for n in range(1, count + 1) if n % 30 and n % 5 == 1]
    assert sum(json.loads(line)["query"] == "back" for line in broker.found()) == len(earlier)
    broker.close()
