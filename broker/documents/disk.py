"""The few things that the broker asks of a disk, so that tests can crash between any two of them.

Invariant: `publish` is atomic and durable.  When it has returned, the file is there after a power
failure; until it has returned, the file is there whole or not at all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

__all__ = ["Disk", "Reached", "nothing", "sync"]

Reached = Callable[[str], None]
"""Called with the name of each commit point as it is passed; a test may kill the process there."""

_TEMPORARY = ".tmp"


def nothing(point: str) -> None:
    """Pass a commit point without doing anything."""


def sync(path: Path) -> None:
    """Have a file, or the names in a directory, on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Disk:
    """A real file system.  `is_durable=False` skips the fsyncs, for spools that may be lost."""

    def __init__(self, *, is_durable: bool = True, reached: Reached = nothing) -> None:
        self._is_durable = is_durable
        self._reached = reached

    def publish(self, path: Path, chunks: Iterable[bytes | memoryview]) -> None:
        """Write a file under a temporary name, flush it to the disk and rename it into place.

        On an error (a full disk, for example) the temporary file is removed and nothing else has
        changed.
        """
        temporary = path.with_name(path.name + _TEMPORARY)
        try:
            self._write(temporary, chunks)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        self._reached("file written")
        temporary.rename(path)
        self._reached("file renamed")
        self._sync_directory(path.parent)
        self._reached("file durable")

    def probe(self, directory: Path, nbytes: int) -> None:
        """Write so many bytes, and remove them again; raise `OSError` where there is no room."""
        temporary = directory / f"probe{_TEMPORARY}"
        try:
            self._write(temporary, [bytes(nbytes)])
        finally:
            temporary.unlink(missing_ok=True)

    def remove(self, path: Path) -> None:
        """Delete a file if it is there."""
        path.unlink(missing_ok=True)

    def names(self, directory: Path) -> list[str]:
        """Return the names of the complete files in a directory, sorted."""
        return sorted(name for name in os.listdir(directory) if not name.endswith(_TEMPORARY))

    def clean(self, directory: Path) -> None:
        """Remove what a crash left half written.  Only for the one writer of the directory."""
        for name in os.listdir(directory):
            if name.endswith(_TEMPORARY):
                (directory / name).unlink(missing_ok=True)

    def _write(self, path: Path, chunks: Iterable[bytes | memoryview]) -> None:
        with path.open("wb") as file:
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            if self._is_durable:
                os.fsync(file.fileno())

    def _sync_directory(self, directory: Path) -> None:
        if self._is_durable:
            sync(directory)
