"""Put a copy in the place of a broker's data, and have it take over.

The copy is read whole before anything is written.  What is restored delivers nothing until it is
told that the original has ended: two brokers that deliver the same matches send everything twice.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from broker.operations.copies import (
    CopyError,
    Manifest,
    check_copy,
    complete,
    link_or_copy,
    mark,
)
from broker.registry.audit import local_change
from broker.settings.directory import COPY_FILE, Claim, is_copy, keep_private

__all__ = ["restore", "take_over"]


def restore(source: Path, data: Path, *, takes_over: bool = False) -> Manifest:
    """Put the copy in `source` into `data`, where no broker's data may be; `source` stays.

    With `takes_over` a broker on it delivers; otherwise not before `take_over`.  Raises
    `CopyError`, and `InUseError` where a broker runs there.
    """
    manifest = check_copy(source)
    for name in ("spool", "outbox.db"):
        if (data / name).exists():
            raise CopyError(f"{data} holds a broker's data")
    keep_private(data)
    claim = Claim(data)
    try:
        mark(data)
        (data / "spool").mkdir()
        for name in manifest.files:
            _put(source / name, data / name)
        complete(data, manifest)
        keep_private(data)
        if takes_over:
            take_over(data)
    finally:
        claim.release()
    return manifest


def take_over(data: Path) -> None:
    """Let a copy deliver, also where a broker runs on it; raise `CopyError` if it is none."""
    if not is_copy(data):
        raise CopyError(f"{data} is not a copy, or has taken over already")
    with local_change(data, "take_over", ""):
        (data / COPY_FILE).unlink()


def _put(path: Path, copy: Path) -> None:
    if path.suffix != ".db":
        link_or_copy(path, copy)
        return
    for journal in ("-wal", "-shm"):  # of a database that is replaced: not to be applied to this
        copy.with_name(copy.name + journal).unlink(missing_ok=True)
    copy.unlink(missing_ok=True)
    shutil.copyfile(path, copy)
