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
from collections.abc import Sequence
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


class Locks(NamedTuple):
    """What a transaction reads, and what it may write; a lock may be there several times."""

    reads: Sequence[Lock] = ()
    writes: Sequence[Lock] = ()


class _Waves:
    """The last wave of each row and each table, of readers or of writers."""

    def __init__(self) -> None:
        self._rows: dict[Lock, int] = {}
        self._whole: dict[str, int] = {}
        self._any: dict[str, int] = {}

    def last(self, locks: Sequence[Lock]) -> int:
        """Return the last wave that holds something of what is locked."""
        last = 0
        for lock in locks:
            if lock.key is None:
                last = max(last, self._any.get(lock.table, 0))
            else:
                last = max(last, self._rows.get(lock, 0), self._whole.get(lock.table, 0))
        return last

    def enter(self, locks: Sequence[Lock], wave: int) -> None:
        """Have a wave hold locks."""
        for lock in locks:
            table = lock.table
            if lock.key is None:
                self._whole[table] = max(wave, self._whole.get(table, 0))
            else:
                self._rows[lock] = max(wave, self._rows.get(lock, 0))
            self._any[table] = max(wave, self._any.get(table, 0))


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
        reads, writes = locks
        if granularity is Granularity.TABLE:
            reads, writes = _whole(reads), _whole(writes)
        wave = max(writers.last(reads), writers.last(writes))
        if scheduler is Scheduler.S2PL:
            wave = max(wave, readers.last(writes))
        wave += 1
        writers.enter(writes, wave)
        if scheduler is Scheduler.S2PL:
            readers.enter(reads, wave)
        found.append(wave)
    return found


def _whole(locks: Sequence[Lock]) -> list[Lock]:
    return [Lock(table, None) for table in {lock.table for lock in locks}]
