"""Makes the broker's new SQLite files of copies: to lay one out takes milliseconds.

Tests of the API open five for each.  The layout of each kind is made once for a test process, in
memory, by the broker's own steps.  Files that are there are opened, and brought up to date, as
ever; so are all that programs of their own open.
"""

from __future__ import annotations

import itertools
import os
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from broker.settings import database

__all__ = ["OPENED", "copy_new_files"]

OPENED = database._connected
"""What opens files as a broker does."""

_NUMBERS = itertools.count()


def copy_new_files() -> Iterator[None]:
    """Have new files be copies, until it is asked to go on."""

    def connected(path: Path | str, steps: Any, synchronous: str, page: int, cached: int) -> Any:
        if not any(map(os.path.exists, (path, f"{path}-wal"))):
            # What cannot be written so is told by who opens it.
            with suppress(OSError):
                _copy(_layout(tuple(steps), page), path)
        return OPENED(path, steps, synchronous, page, cached)

    database._connected = connected
    yield
    database._connected = OPENED


@cache
def _layout(steps: tuple[str, ...], page_bytes: int) -> bytes:
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.execute(f"PRAGMA page_size = {page_bytes}")
    database._upgrade(db, ":memory:", steps)
    layout = db.serialize()
    db.close()
    return layout


def _copy(layout: bytes, path: Path | str) -> None:
    """Make the file at once, unless somebody else has made it meanwhile."""
    beside = Path(f"{path}.new{os.getpid()}-{next(_NUMBERS)}")
    try:
        beside.write_bytes(layout)
        os.link(beside, path)
    finally:
        beside.unlink(missing_ok=True)
