"""What one query may cost, and what happens when it costs more: it is paused at a document.

Matches are counted by document and by blocks of 1,000 documents: 1 to 1,000, 1,001 to 2,000, and
so on.  The document at which a query goes over its budget is the first one that alone has too many
matches, or with which its block has.  It depends on the query and the documents alone, however
they are grouped into batches.  Matches of documents before it stay; those from it on do not exist.

Tuples of inner operators are state, and others join them.  Those of each operator are held against
the bound of one document too, and in a block they count like matches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from joins import UNBOUNDED

__all__ = ["DEFAULT_BUDGET", "Budget", "Pause", "Spending", "Spent", "Tally", "block_of"]

BLOCK_DOCUMENTS = 1_000

_HINT = "join on something rarer as well, or shorten the window"


@dataclass(frozen=True, slots=True)
class Budget:
    """Bounds on what one query costs, and on what all remember together; 0 is no bound.

    `matches_per_document` and `matches_per_1000_documents` bound its matches, `pairs_per_document`
    the pairs that one document makes by its most selective value join.  Above
    `remembered_documents` that some query can use the queries are paused that most are kept for.
    """

    matches_per_document: int = 10_000
    matches_per_1000_documents: int = 100_000
    pairs_per_document: int = 100_000
    remembered_documents: int = 10_000_000

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
    """The matches of a query, and the tuples of its inner operators, in the block begun."""

    query: str
    revision: int
    block: int
    matches: int


def block_of(docid: int) -> int:
    """Return the number of a document's block.

    >>> block_of(1), block_of(1_000), block_of(1_001)
    (0, 0, 1)
    """
    return (docid - 1) // BLOCK_DOCUMENTS


def _bound(value: int) -> int:
    return value or UNBOUNDED


@dataclass(slots=True)
class Tally:
    """What one query has found in the batch in hand, and in the block that it began in.

    `limit` is the first document over the budget so far.  `counted` is what counts in blocks, by
    document: matches and tuples of inner operators that lie before the limit.  `found` are all
    tuples of nodes that a document makes, of which a match may have many.
    """

    query: str
    revision: int
    budget: Budget
    limit: int = UNBOUNDED
    cause: str = ""
    by_document: Counter[int] = field(default_factory=Counter)
    counted: Counter[int] = field(default_factory=Counter)
    by_block: Counter[int] = field(default_factory=Counter)
    by_operator: Counter[tuple[str, int]] = field(default_factory=Counter)
    found: Counter[int] = field(default_factory=Counter)

    @property
    def is_over(self) -> bool:
        """Whether the query is over its budget."""
        return self.limit < UNBOUNDED

    def takes(self, docid: int) -> bool:
        """Return whether a document's matches still count."""
        if docid < self.limit:
            return True
        # Those of the very document are counted on, to know whether it alone has too many.
        return docid == self.limit and not self._is_full(docid)

    def _is_full(self, docid: int) -> bool:
        return self.by_document[docid] > _bound(self.budget.matches_per_document)

    def find(self, docid: int) -> None:
        """Count a tuple of nodes, whatever it is for."""
        self.found[docid] += 1
        if self._has_many(docid):
            self.stop(docid)

    def _has_many(self, docid: int) -> bool:
        return self.found[docid] > self.budget.pairs_max

    def match(self, docid: int) -> None:
        """Count a match whose newest document this is."""
        self.by_document[docid] += 1
        if docid < self.limit:
            self._count(docid)
            if self._is_full(docid):
                self.stop(docid)

    def tuple(self, operator: str, docid: int) -> None:
        """Count a tuple of an inner operator."""
        self.by_operator[operator, docid] += 1
        if self.by_operator[operator, docid] > _bound(self.budget.matches_per_document):
            self.stop(
                docid,
                f"an inner operator has more than {_matches(self.budget)} at document"
                f" {docid}; {_HINT}",
            )
        elif docid < self.limit:
            self._count(docid)

    def _count(self, docid: int) -> None:
        """Count one more in the block of a document before the limit."""
        block = block_of(docid)
        self.counted[docid] += 1
        self.by_block[block] += 1
        if self.by_block[block] > _bound(self.budget.matches_per_1000_documents):
            self._stop_in(block)

    def stop(self, docid: int, cause: str = "") -> None:
        """Count nothing from a document on; `cause` where it is not the number of matches."""
        if docid > self.limit:
            return
        if docid == self.limit:
            self.cause = min(filter(None, (self.cause, cause)), default="")
            return
        for each in [each for each in self.counted if each >= docid]:
            self.by_block[block_of(each)] -= self.counted.pop(each)
        for each in [each for each in self.by_document if each > docid]:
            del self.by_document[each]
        self.limit, self.cause = docid, cause

    def _stop_in(self, block: int) -> None:
        """Stop at the document with which a block goes over the budget."""
        docids = [n for n in self.counted if block_of(n) == block]
        over = self.by_block[block] - self.budget.matches_per_1000_documents
        for docid in sorted(docids, reverse=True):
            over -= self.counted[docid]
            if over <= 0:
                self.stop(docid)
                return

    def reason(self) -> str:
        """Return why the query went over its budget at `limit`."""
        if self.cause:
            return self.cause
        if self._is_full(self.limit):
            return f"document {self.limit} alone has more than {_matches(self.budget)}; {_HINT}"
        if self._has_many(self.limit):
            return (
                f"document {self.limit} has more than {self.budget.pairs_per_document:,}"
                " witness tuples (budget.pairs_per_document): many nodes have the same value;"
                f" {_HINT}"
            )
        first = block_of(self.limit) * BLOCK_DOCUMENTS + 1
        inner = ", those of inner operators included" if self.by_operator else ""
        return (
            f"documents {first} to {self.limit} have more than"
            f" {self.budget.matches_per_1000_documents:,} matches{inner}"
            f" (budget.matches_per_1000_documents); {_HINT}"
        )


def _matches(budget: Budget) -> str:
    return f"{budget.matches_per_document:,} matches (budget.matches_per_document)"


class Spending:
    """The tallies of an engine's queries; remembers from batch to batch the block begun."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._tallies: dict[str, Tally] = {}
        self._begun: dict[tuple[str, int], tuple[int, int]] = {}

    def begin_batch(self) -> None:
        """Forget tallies; the block begun goes on."""
        self._tallies = {}

    def of(self, query: str, revision: int) -> Tally:
        """Return a query's tally in this batch."""
        tally = self._tallies.get(query)
        if tally is None:
            tally = self._tallies[query] = Tally(query, revision, self.budget)
            block, matches = self._begun.get((query, revision), (0, 0))
            tally.by_block[block] = matches
        return tally

    def end_batch(self, last_docid: int) -> list[Tally]:
        """Keep what belongs to the block of the last document; return who is over the budget."""
        block = block_of(last_docid)
        begun = {key: held for key, held in self._begun.items() if held[0] == block}
        for tally in self._tallies.values():
            key = (tally.query, tally.revision)
            if tally.is_over:
                begun.pop(key, None)
            elif tally.by_block[block]:
                begun[key] = (block, tally.by_block[block])
        self._begun = begun
        return [tally for tally in self._tallies.values() if tally.is_over]

    def spent(self) -> list[Spent]:
        """Return what belongs to the block begun of the queries that matched in this batch."""
        begun = ((tally, self._begun.get((tally.query, tally.revision))) for tally in self)
        return [Spent(t.query, t.revision, *held) for t, held in begun if held is not None]

    def resume(self, spent: Iterable[Spent]) -> None:
        """Begin where an earlier process ended, whatever has been counted since."""
        self._begun = {(one.query, one.revision): (one.block, one.matches) for one in spent}

    def __iter__(self) -> Iterator[Tally]:
        return iter(self._tallies.values())
