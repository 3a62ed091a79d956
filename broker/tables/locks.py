"""Locks of transactions, and the waves in which transactions can run.

All locks are known before anything runs.  A transaction's wave is one behind the last one that it
waits for; it is found in one pass over the transactions in their order, since for each row, and for
each table as a whole, only the last waves of its readers and writers count.

The schedulers are those of *Active Complex Event Processing over Event Streams* (Wang,
Rundensteiner, Ellison, 2011), section 5: its Algorithm 1 inserts locks by event types, which are
here those of candidates.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Granularity", "Lock", "Locks", "Scheduler", "waves"]


class Scheduler(enum.Enum):
    """Which transactions before it a transaction waits for.

    `SEI` waits for all, `S2PL` for those with a lock that does not go with one of its own, `LWM`
    for writers alone: readers of older versions hold nobody up.
    """

    SEI = "sei"
    S2PL = "s2pl"
    LWM = "lwm"


class Granularity(enum.Enum):
    """What is locked: rows, where their keys are known, or always whole tables."""

    ROW = "row"
    TABLE = "table"


class Lock(NamedTuple):
    """A row, or a whole table where `key` is None."""

    table: str
    key: str | None


@dataclass(frozen=True, slots=True)
class Locks:
    """What a transaction reads, and what it may write."""

    reads: frozenset[Lock] = frozenset()
    writes: frozenset[Lock] = frozenset()


class _Waves:
    """The last wave of each row and each table, of readers or of writers."""

    def __init__(self) -> None:
        self._rows: defaultdict[Lock, int] = defaultdict(int)
        self._whole: defaultdict[str, int] = defaultdict(int)
        self._any: defaultdict[str, int] = defaultdict(int)

    def last(self, locks: Iterable[Lock]) -> int:
        """Return the last wave that holds something of what is locked."""
        waves = [
            self._any[lock.table]
            if lock.key is None
            else max(self._rows[lock], self._whole[lock.table])
            for lock in locks
        ]
        return max(waves, default=0)

    def enter(self, locks: Iterable[Lock], wave: int) -> None:
        """Have a wave hold locks."""
        for lock in locks:
            if lock.key is None:
                self._whole[lock.table] = max(wave, self._whole[lock.table])
            else:
                self._rows[lock] = max(wave, self._rows[lock])
            self._any[lock.table] = max(wave, self._any[lock.table])


def waves(
    transactions: Sequence[Locks],
    scheduler: Scheduler = Scheduler.LWM,
    granularity: Granularity = Granularity.ROW,
) -> list[int]:
    """Return the wave of each transaction, from 1; transactions are given in their order."""
    if scheduler is Scheduler.SEI:
        return list(range(1, len(transactions) + 1))
    writers, readers = _Waves(), _Waves()
    found: list[int] = []
    for locks in transactions:
        reads, writes = locks.reads, locks.writes
        if granularity is Granularity.TABLE:
            reads, writes = _whole(reads), _whole(writes)
        wave = writers.last(reads | writes)
        if scheduler is Scheduler.S2PL:
            wave = max(wave, readers.last(writes))
        wave += 1
        writers.enter(writes, wave)
        if scheduler is Scheduler.S2PL:
            readers.enter(reads, wave)
        found.append(wave)
    return found


def _whole(locks: frozenset[Lock]) -> frozenset[Lock]:
    return frozenset(Lock(lock.table, None) for lock in locks)
