"""What one query may cost, and what happens when it costs more: it is paused at a document.

Matches are counted by document and by blocks of 1,000 documents: 1 to 1,000, 1,001 to 2,000, and
so on.  A query goes over its budget at the first document that has too many matches by itself, or
with which its block has too many.  This document depends on the query and the documents alone,
however they are grouped into batches.  Matches of earlier documents stay; later matches, and
matches of the document itself, do not exist.

What was decided stands at the document that settled it, which may be a tick that settles a whole
night.  It counts at the newest document behind it, as if it had been found there, but apart at each
position (`Account`), so that a position stops a query by what has been found up to it only.

Tuples of inner operators are state, and other operators join them.  One document may make as many
tuples of each operator as it may have matches, and in a block they count like matches.

Of several bounds that one document breaks, the reason names the one that is broken in the first
**step** there: tuples are found stratum by stratum, and matches are made of those of a stratum
before the next.  In one step it is the first in the order of `Broken`.  So the reason is a matter
of the query and the documents, too.

Work is counted in bytes, by document: its matches read and write bytes, and work that does neither
counts as many bytes as could be written in its time.  Output and compared values stay in memory
until they are committed, so their bytes are counted in blocks too, at their positions: a tick's are
all in memory together.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from broker.matching.boxes.columns import Ints
from broker.matching.costs.blocks import (
    BLOCK_DOCUMENTS,
    NO_PLACE,
    Account,
    BlockCounts,
    CountPlace,
    block_of,
)
from joins import UNBOUNDED

__all__ = [
    "DEFAULT_BUDGET",
    "PUBLISHED_COST",
    "TUPLE_COST",
    "Broken",
    "Budget",
    "Pause",
    "Spent",
    "Tally",
    "bound_of",
]

TUPLE_COST = 400
"""What a tuple of nodes costs beside its values, in bytes."""

PUBLISHED_COST = 7
"""What a byte of output costs besides where it is published: it is evaluated as a document."""

_HINT = "join on something rarer as well, or shorten the window"


@dataclass(frozen=True, slots=True)
class Budget:
    """Bounds on what one query costs, and on what all remember together; 0 is no bound.

    `matches_per_document` and `matches_per_1000_documents` bound its matches, `pairs_per_document`
    the pairs that one document makes by its most selective value join.  While more than
    `remembered_documents` are kept that some query can use, the queries with most of them are
    paused.  `bytes_per_document` bounds the bytes that the matches of one document read and write:
    at 10 to 20 ns a byte, a second of work.  `output_bytes_per_1000_documents` bounds the memory
    that they take until they are committed.
    """

    matches_per_document: int = 10_000
    matches_per_1000_documents: int = 100_000
    pairs_per_document: int = 100_000
    remembered_documents: int = 10_000_000
    bytes_per_document: int = 50_000_000
    output_bytes_per_1000_documents: int = 500_000_000

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            if getattr(self, name) < 0:
                raise ValueError(f"{name!r} must not be negative; 0 is no bound")

    @property
    def pairs_max(self) -> int:
        """`pairs_per_document` as the join takes it."""
        return self.pairs_per_document or UNBOUNDED


DEFAULT_BUDGET = Budget()


@dataclass(frozen=True, slots=True)
class Pause:
    """A query is evaluated no more from the document `docid` on, and why.

    It holds for the query as the registry's `revision` states it; whoever resumes or replaces it
    states it anew.
    """

    query: str
    revision: int
    docid: int
    reason: str


class Spent(NamedTuple):
    """The matches of a query, tuples of inner operators included, and its output, in a block.

    They stand in `block`; the newest documents behind them are in `newest_block`.
    """

    query: str
    revision: int
    block: int
    newest_block: int
    matches: int
    nbytes: int


def bound_of(value: int) -> int:
    """Return a bound of a budget, of which 0 is none."""
    return value or UNBOUNDED


class Broken(IntEnum):
    """Which bound of a budget is broken, in the order in which one of several is named.

    A bound stands behind those that may keep it from being noticed: of too many pairs none is
    compared, what is skewed has no tuples, and of too many tuples not all are found.
    """

    PAIRS = 0
    SKEW = 1
    BYTES = 2
    WITNESSES = 3
    INNER = 4
    MATCHES = 5
    BLOCK = 6


class Tally:
    """What one query has found in the batch in hand, and in the block that it began in.

    `limit` is the first document over the budget so far, `step` the one in which it counts now.
    The query `has_inner` operators, or not, and `asks_each` of the data of some, or not.
    """

    def __init__(
        self,
        query: str,
        revision: int,
        budget: Budget,
        begun: Iterable[Spent] = (),
        *,
        has_inner: bool = False,
        asks_each: bool = False,
    ) -> None:
        self.query = query
        self.revision = revision
        self.step = 0
        self._limit = NO_PLACE
        self._has_inner = has_inner
        self._asks_each = asks_each
        self._budget = budget
        # The first in order that is broken at the limit, the newest document there, and words.
        self._why: tuple[Broken, int, str] = Broken.BLOCK, 0, ""
        self._is_explained = False
        held = {(one.block, one.newest_block): one for one in begun}
        matches = {block: one.matches for block, one in held.items()}
        nbytes = {block: one.nbytes for block, one in held.items()}
        self._counted = BlockCounts(bound_of(budget.matches_per_1000_documents), matches)
        self._kept = BlockCounts(bound_of(budget.output_bytes_per_1000_documents), nbytes)
        self._most_matches = bound_of(budget.matches_per_document)
        self._most_bytes = bound_of(budget.bytes_per_document)
        self._matches: dict[Account, int] = {}
        self._inner: Counter[tuple[str, Account]] = Counter()
        self._found: dict[Account, int] = {}
        self._bytes: dict[Account, int] = {}
        self._read: set[tuple[Account, int]] = set()

    @property
    def limit(self) -> int:
        """The first document over the budget so far."""
        return self._limit.docid

    @property
    def is_over(self) -> bool:
        """Whether the query is over its budget."""
        return self.limit < UNBOUNDED

    @property
    def closed_from(self) -> int:
        """The first document of which tuples need not be found in this step.

        Those at the limit are needed, to know why it is over, until no more of them can tell.
        """
        return self.limit + (self._limit.step == self.step and not self._is_explained)

    def looks_at(self, newest: int) -> bool:
        """Return whether tuples at the limit still count, matches or not, in an account there."""
        # They are counted on, to know why it is over the budget.
        return not self._has_spent(Account(self.limit, newest))

    def takes(self, newest: int) -> bool:
        """Return whether matches at the limit still count, in an account there."""
        return self.looks_at(newest) and not self._is_full(Account(self.limit, newest))

    def _is_full(self, account: Account) -> bool:
        return self._matches.get(account, 0) > self._most_matches

    def _has_spent(self, account: Account) -> bool:
        return self._bytes.get(account, 0) > self._most_bytes

    def _has_many(self, account: Account) -> bool:
        return self._found.get(account, 0) > self._budget.pairs_max

    def copy(self) -> Tally:
        """Return a tally of what has been found up to now, which counts on by itself."""
        copied = copy.copy(self)
        copied._counted, copied._kept = self._counted.copy(), self._kept.copy()
        copied._inner = self._inner.copy()
        copied._matches, copied._found = self._matches.copy(), self._found.copy()
        copied._bytes, copied._read = self._bytes.copy(), self._read.copy()
        return copied

    def find_all(
        self, docids: Ints, newest: Ints, tuples: Ints, nbytes: Ints, matches: Ints
    ) -> None:
        """Count the tuples of nodes of accounts, each account once; see `find`."""
        accounts = [*map(Account, docids.tolist(), newest.tolist())]
        spent = tuples * TUPLE_COST + nbytes
        each = [*map(np.ndarray.tolist, (tuples, spent, matches))]
        dicts = self._found, self._bytes, self._matches
        totals = [
            [counted.get(account, 0) + more for account, more in zip(accounts, column, strict=True)]
            for counted, column in zip(dicts, each, strict=True)
        ]
        bounds = self._budget.pairs_max, self._most_bytes, self._most_matches
        is_within = (
            int(docids.max()) < self.limit
            and all(max(total) <= most for total, most in zip(totals, bounds, strict=True))
            and self._kept.has_room(docids, docids, nbytes)
            and self._counted.has_room(docids, newest, matches)
        )
        if not is_within:
            for account, *counts in zip(
                accounts, *map(np.ndarray.tolist, (tuples, nbytes, matches)), strict=True
            ):
                self.find(account, *counts)
            return
        for counted, total in zip(dicts, totals, strict=True):
            counted.update(zip(accounts, total, strict=True))
        self._kept.add_all(docids, docids, self.step, nbytes)
        self._counted.add_all(docids, newest, self.step, matches)

    def find(self, account: Account, tuples: int, nbytes: int, matches: int) -> None:
        """Count tuples of nodes, whatever they are for, of which a match may have many.

        `nbytes` are those of their values, `matches` the matches that they begin.
        """
        self._found[account] = self._found.get(account, 0) + tuples
        if self._has_many(account):
            self._break(Broken.WITNESSES, account)
        self.pay(account, tuples * TUPLE_COST + nbytes, nbytes)
        if matches:
            self._matches[account] = self._matches.get(account, 0) + matches
            self._count(self._counted, account, matches)
            if self._is_full(account):
                self._break(Broken.MATCHES, account)

    def hand_on(self, operator: str, account: Account, tuples: int) -> None:
        """Count tuples of an inner operator."""
        self._inner[operator, account] += tuples
        self._count(self._counted, account, tuples)
        if self._inner[operator, account] > self._most_matches:
            self._break(Broken.INNER, account)

    def pay(self, account: Account, spent: int, kept: int) -> None:
        """Count what tuples and matches cost, in bytes, and what of it stays until the commit."""
        total = self._bytes[account] = self._bytes.get(account, 0) + spent
        if total > self._most_bytes:
            self._break(Broken.BYTES, account)
        if kept:
            self._count(self._kept, Account(account.docid, account.docid), kept)

    def left(self, account: Account) -> int:
        """Return how many bytes an account may still spend."""
        return self._most_bytes - self._bytes.get(account, 0)

    def has_read(self, account: Account, leaf: int) -> bool:
        """Return whether a document has been read for an account."""
        return (account, leaf) in self._read

    def reads(self, account: Account, leaf: int) -> bool:
        """Return whether a document is read for an account for the first time, and note it."""
        before = len(self._read)
        self._read.add((account, leaf))
        return len(self._read) > before

    def _count(self, blocks: BlockCounts, account: Account, count: int) -> None:
        """Count in the block of an account, up to the limit."""
        place = CountPlace(account.docid, self.step)
        if place == self._limit:
            blocks.at_limit[account.blocks] += count
        elif place < self._limit and (over := blocks.add(account, self.step, count)) is not None:
            # What the block has too much of, matches or bytes, is asked at the end.
            self._stop(over, (Broken.BLOCK, 0, ""))

    def _break(self, bound: Broken, account: Account) -> None:
        """Count nothing from a document on whose account is over a bound."""
        self._stop(CountPlace(account.docid, self.step), (bound, account.newest, ""))

    def stop(self, docid: int, cause: str, bound: Broken = Broken.PAIRS) -> None:
        """Count nothing from a document on; `cause` says why."""
        self._stop(CountPlace(docid, self.step), (bound, 0, cause))

    def _stop(self, place: CountPlace, why: tuple[Broken, int, str]) -> None:
        if place > self._limit:
            return
        if place < self._limit:
            for blocks in (self._counted, self._kept):
                blocks.drop_from(place)
            self._limit, self._why, self._is_explained = place, why, False
        self._why = min(self._why, why)
        most = Broken.BYTES if self._budget.bytes_per_document else Broken.WITNESSES
        self._is_explained |= why[0] <= most

    def spent_in(self, block: int) -> list[Spent]:
        """Return the query's counts in a block of positions, zeros left out."""
        counts = [
            (each, self._counted.by_block[each], self._kept.by_block[each])
            for each in sorted({*self._counted.by_block, *self._kept.by_block})
            if each[0] == block
        ]
        return [
            Spent(self.query, self.revision, *each, matches, nbytes)
            for each, matches, nbytes in counts
            if matches or nbytes
        ]

    def reason(self) -> str:
        """Return why the query went over its budget at `limit`."""
        budget, (bound, at, cause) = self._budget, self._why
        if cause:
            return cause
        match bound:
            case Broken.BYTES:
                return (
                    f"the matches of document {at} read and write more than"
                    f" {budget.bytes_per_document:,} bytes (budget.bytes_per_document); select less"
                    f" of its documents, or {_HINT}"
                )
            case Broken.WITNESSES:
                return (
                    f"document {at} has more than {budget.pairs_per_document:,}"
                    f" witness tuples (budget.pairs_per_document):{self._why_many()} many nodes"
                    f" have the same value; {_HINT}"
                )
            case Broken.INNER:
                return (
                    f"an inner operator has more than {_matches(budget)} at document {at}; {_HINT}"
                )
            case Broken.MATCHES:
                return f"document {at} alone has more than {_matches(budget)}; {_HINT}"
        if (block := self._counted.over(self._limit)) is not None:
            inner = ", those of inner operators included" if self._has_inner else ""
            return (
                f"{self._stretch(block)} have more than"
                f" {budget.matches_per_1000_documents:,} matches{inner}"
                f" (budget.matches_per_1000_documents); {_HINT}"
            )
        return (
            f"{self._stretch((block_of(self.limit),) * 2)} have more than"
            f" {budget.output_bytes_per_1000_documents:,} bytes of output and compared values"
            f" (budget.output_bytes_per_1000_documents); select less of each, or {_HINT}"
        )

    def _why_many(self) -> str:
        """Return why a document may have many witness tuples, though its values are different."""
        if not self._asks_each:
            return ""
        return " one for each of the data that subscriptions ask for, of which many hold of it, or"

    def _stretch(self, block: tuple[int, int]) -> str:
        """Return which documents a block at the limit is about."""
        own, newest = (each * BLOCK_DOCUMENTS + 1 for each in block)
        if own == newest:
            return f"documents {own} to {self.limit}"
        return (
            f"documents {newest} to {newest + BLOCK_DOCUMENTS - 1}, by what was decided at"
            f" documents {own} to {self.limit},"
        )


def _matches(budget: Budget) -> str:
    return f"{budget.matches_per_document:,} matches (budget.matches_per_document)"
