"""A database that several processes open."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from broker.settings.database import DatabaseError, connect

STEPS = ["CREATE TABLE t (n INTEGER)"]


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
