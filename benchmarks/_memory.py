"""Memory of a process and of all below it, as Linux counts it."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

__all__ = ["Memory", "memory_mb"]


def memory_mb(root: int) -> float:
    """Return the resident memory of a process and all below it."""
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
    return sum(sizes.get(pid, 0) for pid in ours) * os.sysconf("SC_PAGE_SIZE") / 2**20


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
