"""The process that fills a replay's spool does what this one would, and ends with its driver."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.documents.document import tick
from broker.documents.recorded import RecordedError
from broker.documents.segment import read_rows
from broker.documents.spool import Spool
from broker.pipeline.lookback.filling import Filled, Recording, fill
from broker.pipeline.lookback.fillingprocess import FillingProcess


def written(path: Path, count: int, *, has_repetitions: bool = False) -> Path:
    """Return a file of lines, some of which are none."""
    numbers = [n % 20 if has_repetitions else n for n in range(count)]
    fields = {"stream": "S", "time": "2026-01-01T00:00:00Z"}
    texts = [json.dumps({**fields, "key": str(n % 40), "xml": f"<d>{n}</d>"}) for n in numbers]
    texts[3:3] = ["", "no JSON", '{"stream": "S"}', '{"stream": "P", "xml": "<d/>"}']
    path.write_text("".join(f"{text}\n" for text in texts))
    return path


def recording(directory: Path, *documents: Path, group_documents: int = 30) -> Recording:
    (directory / "spool").mkdir(parents=True)
    return Recording(
        directory / "spool",
        documents,
        last=(("", tick(2_000_000_000_000_000)),),
        closed_streams=("P",),
        group_documents=group_documents,
    )


def told_by_process(recorded: Recording) -> list[Filled]:
    told: list[Filled] = []
    filling = FillingProcess(recorded, told.append)
    filling.start()
    try:
        filling.finish()
    finally:
        filling.stop()
    return told


def contents(directory: Path) -> list[object]:
    spool = Spool(directory)
    return [(each, read_rows(directory / each.name).to_pylist()) for each in spool.all_segments()]


def test_a_process_fills_a_spool_as_this_one_does(tmp_path: Path) -> None:
    paths = [written(tmp_path / "a", 100, has_repetitions=True), written(tmp_path / "b", 7)]
    here = recording(tmp_path / "here", *paths)
    there = recording(tmp_path / "there", *paths)
    assert told_by_process(there) == list(fill(here, 500))
    assert contents(there.spool) == contents(here.spool) != []


def test_all_lines_are_told_of(tmp_path: Path) -> None:
    path = written(tmp_path / "a", 100, has_repetitions=True)
    told = told_by_process(recording(tmp_path / "there", path))
    assert [sum(each.documents for each in told), sum(each.duplicates for each in told)] == [20, 80]
    assert [problem.partition(": ")[0] for each in told for problem in each.problems] == [
        f"{path}:{number}" for number in (5, 6, 7)
    ]


def test_a_damaged_file_is_told_with_its_line(tmp_path: Path) -> None:
    path = written(tmp_path / "plain", 2_000)
    packed = gzip.compress(path.read_bytes())
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(RecordedError, match=rf"{path}:\d+: Compressed file ended"):
        told_by_process(recording(tmp_path / "there", path))


def test_a_file_that_is_gone_is_an_error_of_the_driver(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        told_by_process(recording(tmp_path / "there", tmp_path / "nowhere"))


def test_a_process_that_is_killed_is_missed(tmp_path: Path) -> None:
    recorded = recording(tmp_path / "there", written(tmp_path / "a", 3_000), group_documents=1)
    filling: list[FillingProcess] = []

    def take(filled: Filled) -> None:
        os.kill(filling[0].pid, signal.SIGKILL)

    filling.append(FillingProcess(recorded, take))
    filling[0].start()
    with pytest.raises(ChildProcessError, match=r"has ended \(exit code -9\)"):
        filling[0].finish()
    assert len(Spool(recorded.spool).all_segments()) < 3_000


def test_it_is_ended_wherever_it_is(tmp_path: Path) -> None:
    recorded = recording(tmp_path / "there", written(tmp_path / "a", 3_000), group_documents=1)
    told: list[Filled] = []
    filling = FillingProcess(recorded, told.append)
    filling.start()
    wait_for(lambda: bool(told))
    filling.stop()
    assert not filling.is_reading
    assert has_ended(filling.pid)


DRIVER = """
import sys, time
from pathlib import Path
from broker.pipeline.lookback.filling import Recording
from broker.pipeline.lookback.fillingprocess import FillingProcess

def take(filled):
    print(filling.pid, flush=True)
    time.sleep(3600)

spool, documents = map(Path, sys.argv[1:])
filling = FillingProcess(Recording(spool, (documents,), group_documents=1), take)
filling.start()
filling.finish()
"""


def test_it_ends_when_its_driver_is_killed(tmp_path: Path) -> None:
    # Nobody reads what it tells, so it waits for room in the pipe when the driver is killed.
    path = written(tmp_path / "a", 5_000)
    recorded = recording(tmp_path / "there", path)
    command = (sys.executable, "-c", DRIVER, recorded.spool, path)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        pid = int(driver.stdout.readline())
        driver.kill()
    wait_for(lambda: has_ended(pid))
    assert 0 < len(Spool(recorded.spool).all_segments()) < 5_000


def has_ended(pid: int) -> bool:
    """Return whether a process is no more, or only waits to be buried."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
