"""Memory of a process and of all below it, as Linux counts it."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Memory", "ProcessMemory", "memory_mb", "processes_below"]


@dataclass(frozen=True, slots=True)
class ProcessMemory:
    """What one process has of the memory: all that it sees, and its part of what is shared."""

    pid: int
    name: str
    resident_mb: float
    proportional_mb: float


def processes_below(root: int) -> list[ProcessMemory]:
    """Return a process and all below it, in the order of their starts."""
    ours, _ = _tree(root)
    return [found for pid in sorted(ours) if (found := _process(pid)) is not None]


def _process(pid: int) -> ProcessMemory | None:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:  # it has ended
        return None
    kb = {name: int(value.split()[0]) for name, _, value in (s.partition(":") for s in lines[1:])}
    name = " ".join([Path(words[0]).name, *words[1:]][-3:]).strip()
    return ProcessMemory(pid, name, kb["Rss"] / 1024, kb["Pss"] / 1024)


def memory_mb(root: int) -> float:
    """Return the resident memory of a process and all below it."""
    ours, sizes = _tree(root)
    return sum(sizes.get(pid, 0) for pid in ours) * os.sysconf("SC_PAGE_SIZE") / 2**20


def _tree(root: int) -> tuple[set[int], dict[int, int]]:
    """Return the processes below one, itself included, and the resident pages of all there are."""
    parents: dict[int, int] = {}
    sizes: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(") ", 1)[1].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
            sizes[int(entry.name)] = int(fields[21])
    ours = {root}
    while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return ours, sizes


class Memory:
    """Watches the memory of a process and all below it in a thread: seconds and MB."""

    def __init__(self, root: int | None = None, every_s: float = 0.5) -> None:
        self._root = root or os.getpid()
        self._every_s = every_s
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.samples: list[tuple[float, float]] = []

    @property
    def peak_mb(self) -> float:
        return max((mb for _, mb in self.samples), default=0.0)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._is_over.wait(self._every_s):
            self.samples.append((time.time(), memory_mb(self._root)))

    def __exit__(self, *exc: object) -> None:
        self._is_over.set()
        self._thread.join()
