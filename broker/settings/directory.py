"""The data directory: its owner's alone, and one broker's at a time.

What a broker keeps is full of secrets: the keys that sign webhooks and links, passwords of feeds,
matches themselves.  They are not encrypted: who can read the directory could read the key as well.
So nobody but its owner can read it: directories have the mode 0700, files 0600, also ones that
were there before.

`Claim` is the broker's lock on the directory.  It is the first thing that a starting broker takes,
seconds before it listens, so that verbs can tell a broker that is starting from none.

A directory may be a copy of another one, beside which it must not deliver (`is_copy`), or half of
one, on which no broker starts.
"""

from __future__ import annotations

import fcntl
import logging
import os
import stat
import tempfile
from pathlib import Path
from typing import IO

__all__ = [
    "ADDRESS_FILE",
    "COPY_FILE",
    "INCOMPLETE_FILE",
    "TOKEN_FILE",
    "Claim",
    "InUseError",
    "is_copy",
    "is_in_use",
    "keep_private",
    "write_private",
]

_log = logging.getLogger(__name__)

ADDRESS_FILE = "address"
"""Where the API listens: its URL, while a broker runs."""

TOKEN_FILE = "admin-token"
"""The token that the verbs of the directory's owner send."""

COPY_FILE = "copy.json"
"""What a copy holds: as long as it is there, the original is taken to be running elsewhere."""

INCOMPLETE_FILE = "incomplete"
"""A copy is being written here, or was broken off."""

_LOCKS = ("lock", "spool/lock")
"""The claim of a broker, and the lock of whoever writes documents."""

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class InUseError(RuntimeError):
    """Another broker has the data directory, or a copy is being written into it."""


def keep_private(directory: Path) -> None:
    """Make a directory, and all that is in it now or will be, readable by its owner alone.

    It is made where it is not there.  What this process makes from now on, anywhere, is its
    owner's alone as well.  A file that cannot be changed is warned of, and stays as it is.
    """
    os.umask(_OTHERS)
    directory.mkdir(parents=True, exist_ok=True)
    _restrict(directory)
    for parent, directories, files in os.walk(directory):
        for name in (*directories, *files):
            _restrict(Path(parent, name))


def write_private(path: Path, text: str) -> None:
    """Write a file that its owner alone can read, on the disk whole or not at all."""
    number, written = tempfile.mkstemp(dir=path.parent)  # of mode 0600
    try:
        with open(number, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(written).replace(path)
    except BaseException:
        Path(written).unlink(missing_ok=True)
        raise


def _restrict(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
        if mode & _OTHERS and not stat.S_ISLNK(mode):
            path.chmod(stat.S_IMODE(mode) & ~_OTHERS)
    except FileNotFoundError:
        return  # merged, or a journal that is done with
    except OSError as error:
        _log.warning("others may read %s: its mode cannot be changed: %s", path, error.strerror)


class Claim:
    """The right to run a broker on a data directory, until `release` or the end of the process."""

    def __init__(self, directory: Path) -> None:
        if (directory / INCOMPLETE_FILE).exists():
            raise InUseError(f"{directory} is a copy that is not complete: it was broken off")
        self._lock = _locked(directory / "lock")

    def release(self) -> None:
        """Let another broker have the directory."""
        self._lock.close()


def _locked(path: Path) -> IO[bytes]:
    lock = path.open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.close()
        raise InUseError(f"a broker runs on {path.parent} already") from error
    return lock


def is_copy(directory: Path) -> bool:
    """Return whether the directory is a copy that has not taken its original's place.

    The original may deliver, so a broker on the copy does not.
    """
    return (directory / COPY_FILE).exists()


def is_in_use(directory: Path) -> bool:
    """Return whether a broker, running or starting, has the data directory."""
    return any(_is_locked(directory / name) for name in _LOCKS)


def _is_locked(path: Path) -> bool:
    try:
        with path.open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False
