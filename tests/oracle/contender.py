"""Contenders: what a decision chooses among, and what the clauses around it ask of them (12 to 17).

A contender is a choice of documents and of nodes for the author's variables that the query looks
at.  Paths from variables are existential: a contender has as many rows as there are choices of all
other nodes, and a predicate holds of contenders if it does of some row of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from broker.documents.document import Document
from oracle.tree import Node as DocumentNode
from oracle.values import Atom
from xscl.query import INFINITE_US, Key, SimilarityJoin

__all__ = [
    "Around",
    "Contender",
    "Nodes",
    "Read",
    "Row",
    "Run",
    "Timeline",
    "follows",
    "is_within",
    "joined_runs",
    "open_tuple",
    "same",
    "share",
]

Read = Sequence[tuple[Document, DocumentNode]]
"""The documents that a block reads, with their trees."""

Nodes = frozenset[tuple[str, DocumentNode]]


@dataclass(frozen=True, slots=True)
class Row:
    """A node for each variable, and the variables and similarity joins of the predicates so far."""

    nodes: Nodes
    compared: frozenset[str] = frozenset()
    similar: frozenset[SimilarityJoin] = frozenset()


@dataclass(frozen=True, slots=True)
class Contender:
    """A tuple of an operand; `chosen` are the nodes of the author's variables looked at."""

    blocks: tuple[int, ...]
    documents: tuple[Document, ...]
    chosen: Nodes
    rows: frozenset[Row]
    start_us: int
    end_us: int
    position: tuple[int, int, str]
    watermark_us: int
    parts: tuple[Contender, ...] = ()
    runs: tuple[Run, ...] = ()

    @property
    def repeated(self) -> set[int]:
        """The places of documents that are elements of runs."""
        return {place for run in self.runs for place in run.places}

    def nodes(self, place: int) -> dict[str, DocumentNode]:
        """Return the chosen nodes of the document at a place, or of the tuple's plain units."""
        for run in self.runs:
            if place in run.places:
                return dict(run.elements[place - run.first].chosen)
        return dict(self.chosen)

    def key(self, key: Key) -> str:
        """Return the value of a key, which all documents have."""
        return self.nodes(0)[key.variable(self.blocks[0])].value


@dataclass(frozen=True, slots=True)
class Run:
    """The elements of a repetition, from a place among a tuple's documents on, and its FOLD values.

    `blocks` are those of its unit.
    """

    first: int
    blocks: tuple[int, ...]
    elements: tuple[Contender, ...]
    folds: tuple[tuple[str, tuple[Atom, ...]], ...] = ()

    @property
    def places(self) -> range:
        """The places of its elements among the documents."""
        return range(self.first, self.first + len(self.elements))

    def behind(self, documents: int) -> Run:
        """Return the run where so many documents stand before its tuple."""
        return replace(self, first=self.first + documents)


@dataclass(frozen=True, slots=True)
class Timeline:
    """The documents from outside in order, as (docid, event time), and the grace of a query."""

    documents: Sequence[tuple[int, int]]
    grace_us: int

    def settled(self, time_us: int) -> int | None:
        """Return the document that settles a time, None while none does."""
        for docid, end_us in self.documents:
            if end_us > time_us + self.grace_us:
                return docid
        return None


@dataclass(frozen=True, slots=True)
class Around:
    """What the clauses around a node ask of it: all WITHIN, all SAME."""

    within: tuple[int, ...] = ()
    keys: tuple[Key, ...] = ()

    def reach_us(self, window_us: int) -> int:
        """Return a window, or the innermost WITHIN's where it has no bound."""
        return window_us if window_us < INFINITE_US else [INFINITE_US, *self.within][-1]


def open_tuple(left: Contender, right: Contender, rows: frozenset[Row]) -> Contender:
    """Return the tuple of an open operator: it stands where its newest part does."""
    newest = max(left, right, key=lambda each: each.position)
    return Contender(
        left.blocks + right.blocks,
        left.documents + right.documents,
        left.chosen | right.chosen,
        rows,
        min(left.start_us, right.start_us),
        max(left.end_us, right.end_us),
        newest.position,
        newest.watermark_us,
        (),
        joined_runs(left, right),
    )


def follows(later: Contender, earlier: Contender) -> bool:
    return earlier.end_us < later.start_us


def is_within(distance_us: int, window_us: int) -> bool:
    return window_us >= INFINITE_US or distance_us <= window_us


def share(left: Contender, right: Contender) -> bool:
    """Return whether two tuples have a document in common."""
    return not {id(d) for d in left.documents}.isdisjoint(id(d) for d in right.documents)


def same(around: Around, left: Contender, right: Contender) -> bool:
    """Return whether two tuples have the same keys: all documents of each have the same."""
    return all(left.key(key) == right.key(key) for key in around.keys)


def joined_runs(*parts: Contender) -> tuple[Run, ...]:
    """Return the runs of tuples whose documents stand one after the other."""
    found: list[Run] = []
    before = 0
    for part in parts:
        found += [run.behind(before) for run in part.runs]
        before += len(part.documents)
    return tuple(found)
