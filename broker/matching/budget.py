"""What one query may cost, and what happens when it costs more: it is paused at a document.

Matches are counted by document and by blocks of 1,000 documents: 1 to 1,000, 1,001 to 2,000, and
so on.  A query goes over its budget at the first document that has too many matches by itself, or
with which its block has too many.  This document depends on the query and the documents alone,
however they are grouped into batches.  Matches of earlier documents stay; later matches, and
matches of the document itself, do not exist.

Tuples of inner operators are state, and other operators join them.  One document may make as many
tuples of each operator as it may have matches, and in a block they count like matches.

Work is counted in bytes, by document: its matches read and write bytes, and work that does neither
counts as many bytes as could be written in its time.  Output and compared values stay in memory
until they are committed, so their bytes are counted in blocks too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from joins import UNBOUNDED

__all__ = ["DEFAULT_BUDGET", "Budget", "Pause", "Spending", "Spent", "Tally", "block_of"]

BLOCK_DOCUMENTS = 1_000

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
    """The matches of a query, tuples of inner operators included, and its output, in a block."""

    query: str
    revision: int
    block: int
    matches: int
    nbytes: int


def block_of(docid: int) -> int:
    """Return the number of a document's block.

    >>> block_of(1), block_of(1_000), block_of(1_001)
    (0, 0, 1)
    """
    return (docid - 1) // BLOCK_DOCUMENTS


def _bound(value: int) -> int:
    return value or UNBOUNDED


class _Blocks:
    """A count in blocks of documents, kept by document, before the limit of a query.

    `at_limit` is the count of the document at the limit.
    """

    def __init__(self, most: int, block: int, begun: int) -> None:
        self.most = _bound(most)
        self.by_block = Counter({block: begun})
        self.at_limit = 0
        self._by_document: Counter[int] = Counter()

    def add(self, docid: int, count: int) -> int | None:
        """Count more of a document; return the one with which its block goes over the bound."""
        block = block_of(docid)
        self._by_document[docid] += count
        self.by_block[block] += count
        over = self.by_block[block] - self.most
        if over <= 0:
            return None
        last = docid
        for last in sorted((n for n in self._by_document if block_of(n) == block), reverse=True):
            over -= self._by_document[last]
            if over <= 0:
                break
        return last

    def drop_from(self, docid: int) -> None:
        """Take a document as the limit: from it on nothing counts."""
        self.at_limit = self._by_document[docid]
        for each in [each for each in self._by_document if each >= docid]:
            self.by_block[block_of(each)] -= self._by_document.pop(each)

    def is_over(self, limit: int) -> bool:
        """Return whether a block is over the bound with the document at the limit."""
        return self.by_block[block_of(limit)] + self.at_limit > self.most


class Tally:
    """What one query has found in the batch in hand, and in the block that it began in.

    `limit` is the first document over the budget so far.
    """

    def __init__(self, query: str, revision: int, budget: Budget, begun: Spent | None) -> None:
        self.query = query
        self.revision = revision
        self.limit = UNBOUNDED
        self._budget = budget
        self._cause = ""
        block, matches, nbytes = begun[2:] if begun else (0, 0, 0)
        self._counted = _Blocks(budget.matches_per_1000_documents, block, matches)
        self._kept = _Blocks(budget.output_bytes_per_1000_documents, block, nbytes)
        self._matches: Counter[int] = Counter()
        self._inner: Counter[tuple[str, int]] = Counter()
        self._found: Counter[int] = Counter()
        self._bytes: Counter[int] = Counter()
        self._read: set[tuple[int, int]] = set()

    @property
    def is_over(self) -> bool:
        """Whether the query is over its budget."""
        return self.limit < UNBOUNDED

    def looks_at(self, docid: int) -> bool:
        """Return whether tuples of a document still count, matches or not."""
        # Those of the very document are counted on, to know why it alone is over the budget.
        return docid < self.limit or (docid == self.limit and not self._has_spent(docid))

    def takes(self, docid: int) -> bool:
        """Return whether a document's matches still count."""
        return docid < self.limit or (
            docid == self.limit and not self._is_full(docid) and not self._has_spent(docid)
        )

    def _is_full(self, docid: int) -> bool:
        return self._matches[docid] > _bound(self._budget.matches_per_document)

    def _has_spent(self, docid: int) -> bool:
        return self._bytes[docid] > _bound(self._budget.bytes_per_document)

    def _has_many(self, docid: int) -> bool:
        return self._found[docid] > self._budget.pairs_max

    def find(self, docid: int) -> None:
        """Count a tuple of nodes, whatever it is for, of which a match may have many."""
        self._found[docid] += 1
        if self._has_many(docid):
            self.stop(docid)

    def match(self, docid: int) -> None:
        """Count a match whose newest document this is."""
        self._matches[docid] += 1
        self._count(self._counted, docid, 1)
        if docid < self.limit and self._is_full(docid):
            self.stop(docid)

    def tuple(self, operator: str, docid: int) -> None:
        """Count a tuple of an inner operator."""
        self._inner[operator, docid] += 1
        self._count(self._counted, docid, 1)
        if self._inner[operator, docid] > _bound(self._budget.matches_per_document):
            self.stop(
                docid,
                f"an inner operator has more than {_matches(self._budget)} at document"
                f" {docid}; {_HINT}",
            )

    def spend(self, docid: int, nbytes: int) -> None:
        """Count what a document's tuples and matches cost, in bytes."""
        self._bytes[docid] += nbytes
        if docid < self.limit and self._has_spent(docid):
            self.stop(docid)

    def keep(self, docid: int, nbytes: int) -> None:
        """Count bytes of a document that stay until they are committed."""
        self._count(self._kept, docid, nbytes)

    def left(self, docid: int) -> int:
        """Return how many bytes a document may still spend."""
        return _bound(self._budget.bytes_per_document) - self._bytes[docid]

    def reads(self, docid: int, leaf: int) -> bool:
        """Return whether a document is the first to be read for another's matches, and note it."""
        is_first = (docid, leaf) not in self._read
        self._read.add((docid, leaf))
        return is_first

    def _count(self, blocks: _Blocks, docid: int, count: int) -> None:
        """Count in the block of a document, up to the one at the limit."""
        if docid == self.limit:
            blocks.at_limit += count
        elif docid < self.limit and (over := blocks.add(docid, count)) is not None:
            self.stop(over)

    def stop(self, docid: int, cause: str = "") -> None:
        """Count nothing from a document on; `cause` says why, unless a count does."""
        if docid > self.limit:
            return
        if docid == self.limit:
            self._cause = min(filter(None, (self._cause, cause)), default="")
            return
        for blocks in (self._counted, self._kept):
            blocks.drop_from(docid)
        self.limit, self._cause = docid, cause

    def spent_in(self, block: int) -> Spent | None:
        """Return the query's count in a block, None if it is nothing."""
        matches, nbytes = self._counted.by_block[block], self._kept.by_block[block]
        if not matches and not nbytes:
            return None
        return Spent(self.query, self.revision, block, matches, nbytes)

    def reason(self) -> str:
        """Return why the query went over its budget at `limit`."""
        if self._cause:
            return self._cause
        budget = self._budget
        if self._has_spent(self.limit):
            return (
                f"the matches of document {self.limit} read and write more than"
                f" {budget.bytes_per_document:,} bytes (budget.bytes_per_document); select less of"
                f" its documents, or {_HINT}"
            )
        if self._is_full(self.limit):
            return f"document {self.limit} alone has more than {_matches(budget)}; {_HINT}"
        if self._has_many(self.limit):
            return (
                f"document {self.limit} has more than {budget.pairs_per_document:,}"
                " witness tuples (budget.pairs_per_document): many nodes have the same value;"
                f" {_HINT}"
            )
        first = block_of(self.limit) * BLOCK_DOCUMENTS + 1
        if self._counted.is_over(self.limit):
            inner = ", those of inner operators included" if self._inner else ""
            return (
                f"documents {first} to {self.limit} have more than"
                f" {budget.matches_per_1000_documents:,} matches{inner}"
                f" (budget.matches_per_1000_documents); {_HINT}"
            )
        return (
            f"documents {first} to {self.limit} have more than"
            f" {budget.output_bytes_per_1000_documents:,} bytes of output and compared values"
            f" (budget.output_bytes_per_1000_documents); select less of each, or {_HINT}"
        )


def _matches(budget: Budget) -> str:
    return f"{budget.matches_per_document:,} matches (budget.matches_per_document)"


class Spending:
    """The tallies of an engine's queries; remembers from batch to batch the block begun."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._tallies: dict[str, Tally] = {}
        self._begun: dict[tuple[str, int], Spent] = {}

    def begin_batch(self) -> None:
        """Forget tallies; the block begun goes on."""
        self._tallies = {}

    def of(self, query: str, revision: int) -> Tally:
        """Return a query's tally in this batch."""
        tally = self._tallies.get(query)
        if tally is None:
            begun = self._begun.get((query, revision))
            tally = self._tallies[query] = Tally(query, revision, self.budget, begun)
        return tally

    def end_batch(self, last_docid: int) -> list[Tally]:
        """Keep the counts of the last document's block; return the queries over the budget."""
        block = block_of(last_docid)
        begun = {key: held for key, held in self._begun.items() if held.block == block}
        for tally in self._tallies.values():
            key = (tally.query, tally.revision)
            if tally.is_over:
                begun.pop(key, None)
            elif (spent := tally.spent_in(block)) is not None:
                begun[key] = spent
        self._begun = begun
        return [tally for tally in self._tallies.values() if tally.is_over]

    def spent(self) -> list[Spent]:
        """Return the counts in the block begun of the queries with matches in this batch."""
        begun = (self._begun.get((tally.query, tally.revision)) for tally in self)
        return [spent for spent in begun if spent is not None]

    def resume(self, spent: Iterable[Spent]) -> None:
        """Take over the counts of an earlier process; counts made since are dropped."""
        self._begun = {(one.query, one.revision): one for one in spent}

    def __iter__(self) -> Iterator[Tally]:
        return iter(self._tallies.values())
