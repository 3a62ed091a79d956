"""What the broker's processes take of the machine: itself, the Java virtual machine, its workers.

Read from `/proc`, as Linux has it; elsewhere there are no such figures.  Pages that processes share
are counted in each of them, and Spark's Python workers, which are forked, share most of theirs.
"""

from __future__ import annotations

import os
import resource
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["process_figures"]

_PROC = Path("/proc")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class _Process:
    pid: int
    parent: int
    name: str
    own_ticks: int
    children_ticks: int
    resident_bytes: int


def process_figures() -> dict[str, float]:
    """Return memory, time and open files by the names of their metrics."""
    if not (_PROC / "self" / "stat").exists():
        return {}
    resident: Counter[str] = Counter()
    ticks: Counter[str] = Counter()
    for role, process in _family():
        resident[role] += process.resident_bytes
        ticks[role] += process.own_ticks
        if role == "workers":  # the daemon that forks them outlives them
            ticks[role] += process.children_ticks
    return {
        **{f'process_resident_bytes{{process="{role}"}}': n for role, n in resident.items()},
        **{
            f'process_cpu_seconds_total{{process="{role}"}}': n / _TICKS_PER_S
            for role, n in ticks.items()
        },
        "process_open_files": len(os.listdir(_PROC / "self" / "fd")),
        "process_open_files_max": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    }


def _family() -> Iterator[tuple[str, _Process]]:
    """Yield this process and all below it: `broker`, `java`, and the rest, which are `workers`."""
    present = _processes()
    children = defaultdict(list)
    for process in present.values():
        children[process.parent].append(process)
    own = present[os.getpid()]
    yield "broker", own
    waiting = list(children[own.pid])
    while waiting:
        process = waiting.pop()
        yield "java" if process.name == "java" else "workers", process
        waiting += children[process.pid]


def _processes() -> Mapping[int, _Process]:
    found = {}
    for path in _PROC.iterdir():
        if path.name.isdecimal():
            try:
                text = (path / "stat").read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue  # it has ended meanwhile
            process = _parsed(text)
            found[process.pid] = process
    return found


def _parsed(text: str) -> _Process:
    """Return a process from its line in `/proc` (proc(5)); a name may have any characters.

    >>> line = "7 (a) b) S 1 7 7 0 -1 0 1 2 3 4 50 60 7 8 20 0 1 0 99 1000 3 0"
    >>> found = _parsed(line)
    >>> found.name, found.parent, found.own_ticks, found.children_ticks
    ('a) b', 1, 110, 15)
    """
    head, _, tail = text.rpartition(")")
    pid, _, name = head.partition(" (")
    fields = tail.split()
    utime, stime, children_utime, children_stime = map(int, fields[11:15])
    return _Process(
        pid=int(pid),
        parent=int(fields[1]),
        name=name,
        own_ticks=utime + stime,
        children_ticks=children_utime + children_stime,
        resident_bytes=int(fields[21]) * _PAGE_BYTES,
    )
