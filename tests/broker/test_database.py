"""A database that several processes open."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from support.new_files import OPENED

from broker.settings import database
from broker.settings.database import DatabaseError, connect

STEPS = ["CREATE TABLE t (n INTEGER)"]


@pytest.fixture(autouse=True)
def no_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_connected", OPENED)


def test_several_may_open_a_new_file_at_once(tmp_path: Path) -> None:
    failures: list[BaseException] = []
    for number in range(30):
        ready = threading.Barrier(4)
        path = tmp_path / f"{number}.db"

        def open_it(path: Path = path, ready: threading.Barrier = ready) -> None:
            ready.wait()
            try:
                connect(path, STEPS).close()
            except DatabaseError as error:
                failures.append(error)

        threads = [threading.Thread(target=open_it) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []


def test_what_is_no_database_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "t.db").write_bytes(b"not a database" * 100)
    with pytest.raises(DatabaseError, match="cannot be used") as found:
        connect(tmp_path / "t.db", STEPS)
    assert isinstance(found.value.__cause__, sqlite3.DatabaseError)


def test_a_bound_on_the_size_of_files_is_named(tmp_path: Path) -> None:
    script = (
        "import resource, sys; from broker.settings.database import connect;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (8192, resource.RLIM_INFINITY));"
        "connect(sys.argv[1], [f'CREATE TABLE t{n} (n INTEGER)' for n in range(9)])"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "t.db")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "t.db cannot be used: disk I/O error; a file may have 8,192 bytes" in done.stderr
    assert "see `ulimit -f`" in done.stderr
