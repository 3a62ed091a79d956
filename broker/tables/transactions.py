"""Runs candidates as transactions: guards, then actions, in order, wave by wave."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Protocol, TypeVar

from broker.tables.locks import Granularity, Locks, Scheduler, waves
from broker.tables.store import Order, Rank, TableVersions

__all__ = ["Acts", "Candidate", "Schedule", "in_transactions", "run"]


class Acts(Protocol):
    """A match, or a row, that acts on tables."""

    @property
    def rank(self) -> Rank:
        """Its place among the matches of one transaction."""

    def act(self, tables: TableVersions) -> None:
        """Do its actions."""


class Candidate(Protocol):
    """A match but for what it asks tables, or all those of one statement in a transaction."""

    @property
    def order(self) -> Order:
        """The place of its transaction."""

    def locks(self) -> Locks:
        """Return what it reads, and what it may write."""

    def ask(self, tables: TableVersions) -> Sequence[Acts]:
        """Return the matches of it that act, by what tables say before its transaction."""


C = TypeVar("C", bound=Candidate)


@dataclass(frozen=True, slots=True)
class Schedule:
    """How transactions are scheduled; it changes cost, never what they leave."""

    scheduler: Scheduler = Scheduler.LWM
    granularity: Granularity = Granularity.ROW


def in_transactions(candidates: Iterable[C]) -> list[list[C]]:
    """Return candidates as the transactions that they are, in order."""
    ordered = sorted(candidates, key=attrgetter("order"))
    return [list(some) for _, some in groupby(ordered, key=attrgetter("order"))]


def run(
    transactions: Sequence[Sequence[Candidate]],
    tables: TableVersions,
    schedule: Schedule | None = None,
) -> int:
    """Run the transactions of one group in a batch, in order; return the number of their waves."""
    schedule = schedule or Schedule()
    if schedule.scheduler is Scheduler.SEI:
        for transaction in transactions:
            _run(transaction, tables)
        return len(transactions)
    wave_of = waves(
        [_locks(each) for each in transactions], schedule.scheduler, schedule.granularity
    )
    by_wave: dict[int, list[Sequence[Candidate]]] = {}
    for wave, transaction in zip(wave_of, transactions, strict=True):
        by_wave.setdefault(wave, []).append(transaction)
    for wave in sorted(by_wave):
        for transaction in by_wave[wave]:
            _run(transaction, tables)
    return len(by_wave)


def _locks(transaction: Sequence[Candidate]) -> Locks:
    if len(transaction) == 1:
        return transaction[0].locks()
    own = [each.locks() for each in transaction]
    return Locks(
        [lock for each in own for lock in each.reads],
        [lock for each in own for lock in each.writes],
    )


def _run(transaction: Sequence[Candidate], tables: TableVersions) -> None:
    matches = [found for each in transaction for found in each.ask(tables)]
    if len(matches) > 1:
        matches.sort(key=attrgetter("rank"))
    for each in matches:
        each.act(tables)
