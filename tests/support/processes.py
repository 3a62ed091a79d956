"""What a process has started, as Linux tells it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

__all__ = ["below", "command_of"]


def below(root: int) -> list[int]:
    """Return the processes that a process has started, and that these have."""
    found = [root]
    for pid in found:
        for path in Path(f"/proc/{pid}/task").glob("*/children"):
            with suppress(OSError):  # it has ended meanwhile
                found += map(int, path.read_text().split())
    return found[1:]


def command_of(pid: int) -> str:
    """Return the command line of a process; nothing where it has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ")
    return ""
