"""Orders, answers and pieces: the values that pass between the driver and its shards.

Instances travel as **pieces**: immutable tables in a store that the driver and all shards reach,
written once under a name of their own.  An order names all pieces of a shard's state.  So any
process that gets it, whatever it remembers, comes to the same state and finds the same tuples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from joins.budget.pairs import SkewedPair
from joins.budget.probe import Probe, ProbeRow
from joins.classes import UseKind
from joins.memory.slots import Ints
from joins.memory.tupletable import TupleTable
from joins.shards.anchors import Epochs
from templates.queryclass import QueryClass

__all__ = [
    "SHAPE_SCHEMA",
    "Answer",
    "Asked",
    "ClassCatalog",
    "ClassLimit",
    "Finisher",
    "LeftOut",
    "Order",
    "Piece",
    "Question",
    "Store",
]

SHAPE_SCHEMA = pa.schema([("shape", pa.int32()), ("edges", pa.list_(pa.list_(pa.int32())))])
"""Witness shapes by number, each with its edges.  They come now and then with any document, so
they are apart from classes, of which there may be a hundred thousand."""


class Store(Protocol):
    """Where pieces are, and what all shards know: a shared directory, or one process's memory."""

    def put(self, name: str, rows: pa.Table) -> None:
        """Keep a table under a name that nothing has yet."""

    def put_all(self, tables: Mapping[str, pa.Table]) -> None:
        """Keep tables under such names."""

    def get(self, name: str) -> pa.Table:
        """Return the table of a name."""

    def put_value(self, name: str, value: object) -> None:
        """Keep a value that can be pickled, and does not change, under a name not used yet."""

    def get_value(self, name: str) -> Any:
        """Return the value of a name."""

    def remove(self, names: Sequence[str]) -> None:
        """Forget tables and values; names that nothing has are left out."""


Rows = Callable[[Iterable[int]], Iterator[tuple[list[int], pa.RecordBatch]]]
"""Yields the rows of instances by number."""


class Asked(NamedTuple):
    """For whom shards are to finish tuples of documents from outside, and who takes what they made.

    `take` gets the parts of all answers, None for what was too much, and returns whether they hold;
    else shards are asked for the tuples.  `documents` returns texts, for shards in this process.
    """

    readers: object
    take: Callable[[Sequence[Any]], bool]
    documents: Callable[[Iterable[int]], Mapping[int, bytes]]


class Finisher(Protocol):
    """Makes of tuples, where they are found, what comes of them."""

    def learn(self, readers: Any, read: Callable[[str], Any]) -> None:
        """Take over for whom that is; `read` returns what shards are told under other names."""

    def finish(self, tuples: TupleTable, rows: Rows) -> tuple[TupleTable, object | None]:
        """Return the tuples that are not for these readers, and what the others come to.

        That can be pickled; it is None where it is too much.
        """


@dataclass(frozen=True, slots=True)
class Piece:
    """Instances of one shard, `first` to `last` by number, some of them elsewhere or nowhere."""

    name: str
    first: int
    last: int
    rows: int


@dataclass(frozen=True, slots=True)
class ClassCatalog:
    """The classes as all shards know them: each with its widest window, and its anchors.

    `retention` says for how long instances that can fill a class are kept beside its window, where
    they are, `thresholds` what its similarity joins ask at least.  Those that are `held` read
    instances that not everybody has: whose they are the driver knows.
    """

    classes: Mapping[int, tuple[QueryClass, int]]
    epochs: Mapping[int, Epochs]
    retention: Mapping[int, int]
    thresholds: Mapping[int, tuple[float, ...]]
    held: frozenset[int]


class ClassLimit(NamedTuple):
    """From a document on a class is asked for within a window only (`pairs`)."""

    query_class: int
    docid: int
    window_us: int


class LeftOut(NamedTuple):
    """Pairs of a new instance in a class of which nobody wants tuples: as (left, right)."""

    query_class: int
    instance: int
    left: Ints
    right: Ints


@dataclass(frozen=True, slots=True)
class Question:
    """Asks how many pairs an instance makes in a class, by each value join and for each use.

    Where it `is_listed` it asks which these are.
    """

    probe_row: ProbeRow
    query_class: int
    kinds: tuple[UseKind, ...]
    is_listed: bool = False


@dataclass(frozen=True, slots=True)
class Order:
    """The work of one shard.

    It learns the shapes (`SHAPE_SCHEMA`) and the classes under the names `shapes` and `catalog`.
    It takes on the state of `pieces`: its instances up to number `last`, of which those from
    `first_new` on are new; useless ones at `horizon_us` may be gone.  Then it answers `questions`,
    finds the tuples of `stratum`, if there is one, without those outside `limits` and those of
    pairs that are `left_out`, reads the instances `wanted`, and makes one piece of `merged`.  With
    `asked` the newest instance of each tuple is in that range.  With `readers`, a name, tuples that
    are for these alone are finished.  With `rows_max` it takes on no more earlier instances than
    that, and where some are left, no new ones; such an order asks nothing.
    """

    shard: int
    shapes: str
    catalog: str
    pieces: tuple[Piece, ...]
    last: int
    first_new: int
    horizon_us: int
    stratum: int | None = None
    asked: range | None = None
    limits: tuple[ClassLimit, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    questions: tuple[Question, ...] = ()
    wanted: tuple[int, ...] = ()
    merged: tuple[Piece, ...] = ()
    readers: str = ""
    rows_max: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of an order: tuples, and the older instances in them and among the wanted ones.

    Instances are rows of `INSTANCE_SCHEMA`, in the order of their numbers.  There are no tuples of
    `skewed` pairs, which other shards may have found too.  `figures` say how much the shard
    remembers (`Processor.figures`).  `counts` are this shard's part of the answer to each question,
    by value join and use, and `probes` the pairs, by value join, of each that is listed; `piece` is
    the merged one, `finished` what has been made of tuples.  It `is_behind` where instances are
    left to take on.
    """

    shard: int
    tuples: TupleTable
    instances: pa.Table
    figures: Mapping[str, int]
    counts: list[list[Ints]] = field(default_factory=list)
    probes: list[list[Probe]] = field(default_factory=list)
    skewed: list[SkewedPair] = field(default_factory=list)
    piece: Piece | None = None
    finished: object | None = None
    is_behind: bool = False
