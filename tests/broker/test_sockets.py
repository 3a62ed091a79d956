"""The sockets between Spark and Python are in a directory of this user's, where that is short."""

import fcntl
import os
import stat
import tempfile
from pathlib import Path

import pytest

from broker.pipeline.jvm import socket_directory


def test_nobody_else_gets_to_the_sockets() -> None:
    found = socket_directory()
    assert found is not None
    assert stat.S_IMODE(Path(found.name).stat().st_mode) == 0o700
    other = os.open(found.name, os.O_RDONLY)
    with pytest.raises(BlockingIOError):  # so no cleaner of old files takes it away
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(other)
    found.cleanup()
    assert not Path(found.name).exists()


def test_where_paths_are_too_long_there_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("long" * 20)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    assert socket_directory() is None
    assert not any(long.iterdir())
