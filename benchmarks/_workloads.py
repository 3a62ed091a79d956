"""Workloads of the join alone: query classes, and instances as ready witnesses."""

from __future__ import annotations

import gzip
import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from broker.documents.document import DocumentLine, parse_document_line
from joins.engines import Processor
from joins.memory.instance import INSTANCE_SCHEMA
from templates.joingraph import GraphNode, JoinGraph, reduce
from templates.queryclass import QueryClass
from templates.template import template_of

__all__ = ["ROW", "Side", "flat_side", "join_class", "news_lines", "random_classes", "table"]

ROW = pa.schema(list(INSTANCE_SCHEMA)[1:])
NEWS = Path(__file__).parents[2] / "shared" / "data" / "news-2026.docs.jsonl.gz"

US = 1_000_000


@dataclass(frozen=True)
class Side:
    """A schema as a side of join graphs: parents by node, which are leaves, variables from `first`.

    Variable `first + i` binds node `i`, and nothing else.
    """

    parents: tuple[int, ...]
    leaves: tuple[int, ...]
    first: int = 1

    def edges(self) -> list[tuple[int, int, int, int]]:
        """Return the witness shape of a document of this schema: all ancestor pairs, and selves."""
        found = []
        for node in range(len(self.parents)):
            above = node
            while above >= 0:
                found.append((self.first + above, self.first + node, above, node))
                above = self.parents[above]
        return found

    def graph(self, leaves: Sequence[int]) -> tuple[GraphNode, ...]:
        """Return the tree of a pattern that binds some leaves and all that is above them.

        Nodes stand in the order of the leaves, so that most queries have one form: it costs time to
        find the template of a new one.
        """
        order: list[int] = []
        for leaf in leaves:
            path = [leaf]
            while self.parents[path[-1]] >= 0:
                path.append(self.parents[path[-1]])
            order += [node for node in reversed(path) if node not in order]
        place = {node: i for i, node in enumerate(order)}
        return tuple(
            GraphNode(self.first + node, place.get(self.parents[node], -1)) for node in order
        )

    def place(self, leaves: Sequence[int], leaf: int) -> int:
        """Return where a leaf stands in `graph(leaves)`."""
        return [node.variable for node in self.graph(leaves)].index(self.first + leaf)


def flat_side(leaves: int, first: int = 1) -> Side:
    """Return the two-level schema of Hong, section 6.6.1: a root and its leaves."""
    return Side((-1, *[0] * leaves), tuple(range(1, leaves + 1)), first)


def complex_side(first: int = 1) -> Side:
    """Return the three-level schema of Hong, section 6.6.1: 4 inner nodes with 4 leaves each."""
    inner = tuple(range(1, 5))
    parents = (-1, *[0] * 4, *(node for node in inner for _ in range(4)))
    return Side(parents, tuple(range(5, 21)), first)


def join_class(
    side: Side, pairs: Sequence[tuple[int, int]], *, is_symmetric: bool = False
) -> QueryClass:
    """Return the class of a query that joins pairs of (left leaf, right leaf) of one schema."""
    lefts, rights = [a for a, _ in pairs], [b for _, b in pairs]
    joins = tuple((side.place(lefts, a), side.place(rights, b)) for a, b in pairs)
    graph = JoinGraph((side.graph(lefts), side.graph(rights)), joins)
    template, row, _ = template_of(reduce(graph)[0])
    return QueryClass(template, row, is_symmetric, 0)


def random_classes(
    side: Side, count: int, *, joins_max: int, zipf: float, seed: int = 1
) -> Iterator[QueryClass]:
    """Yield the classes of random queries as Hong, section 6.6.1, makes them.

    The number of value joins is Zipf-distributed from 1 to `joins_max`; that many leaves are drawn
    on either side, and joined in order.
    """
    random_ = random.Random(seed)
    weights = [1 / k**zipf for k in range(1, joins_max + 1)]
    known: dict[tuple[tuple[int, int], ...], QueryClass] = {}
    for _ in range(count):
        k = random_.choices(range(1, joins_max + 1), weights)[0]
        lefts, rights = random_.sample(side.leaves, k), random_.sample(side.leaves, k)
        pairs = tuple(sorted(zip(lefts, rights, strict=True)))
        if pairs not in known:
            known[pairs] = join_class(side, pairs)
        yield known[pairs]


def table(
    shapes: Sequence[int], values: Sequence[Sequence[str | None]], times: Sequence[int], first: int
) -> pa.Table:
    """Return instances as rows; the watermark of each is the time of the one before it."""
    count = len(values)
    numbers = list(range(first, first + count))
    return pa.table(
        {
            "stream": ["S"] * count,
            "key": [str(n) for n in numbers],
            "docid": numbers,
            "depth": [0] * count,
            "match_id": [""] * count,
            "docid_min": numbers,
            "docid_max": numbers,
            "start_us": times,
            "end_us": times,
            "watermark_us": [times[0], *times[:-1]],
            "shape": shapes,
            "leaves": [[n] for n in numbers],
            "nodes": [list(range(len(row))) for row in values],
            "vals": values,
        },
        schema=ROW,
    )


def news_lines(count: int) -> list[DocumentLine]:
    """Return the first recorded news items; `FileNotFoundError` where they are not there."""
    with gzip.open(NEWS) as lines:
        return [parse_document_line(line) for line in itertools.islice(lines, count)]


def run(processor: Processor, rows: pa.Table) -> int:
    """Absorb a batch and probe it; return how many tuples there are."""
    processor.begin_batch()
    processor.absorb(rows)
    columns = getattr(processor, "probe_columns", None)
    if columns is not None:
        return sum(len(found) for found in columns(0))
    return len(processor.probe(0))
