"""Runs as the paths of a graph: what a statement has that counts runs and does not list them.

A node has a **label**: what one sees of an element.  Each path from one of the `first` nodes to a
node without a successor spells a sequence of labels, which is a run.  Two paths may spell the same
run: where an element binds its variables in several ways, each is a node, and they have one label.

    deterministic   each run is one path: its nodes are sets of nodes with one label (the subset
                    construction), so runs are counted as paths are
    minimal         nodes with one label behind which the same runs go on are one
    through         the paths that have one of some nodes: each stands twice, before and behind it

Nodes stand in an order in which steps lead onward only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["CountedRuns", "PathGraph", "size_of_count", "union"]

L = TypeVar("L", bound=Hashable)


@dataclass(frozen=True, slots=True)
class PathGraph(Generic[L]):
    """A graph without cycles; `behind` are the successors of each node, all of larger number."""

    labels: tuple[L, ...]
    behind: tuple[tuple[int, ...], ...]
    first: tuple[int, ...]

    def count(self) -> int:
        """Return how many paths there are."""
        ways = [0] * len(self.labels)
        for node in reversed(range(len(ways))):
            ways[node] = sum(map(ways.__getitem__, self.behind[node])) if self.behind[node] else 1
        return sum(map(ways.__getitem__, self.first))

    def steps(self) -> Iterable[tuple[int, int]]:
        """Yield each pair of nodes that stand next to each other in a path."""
        return ((node, each) for node, behind in enumerate(self.behind) for each in behind)

    @property
    def is_deterministic(self) -> bool:
        """Whether each run is one path."""
        return len(set(self.labels)) == len(self.labels) or all(
            len({self.labels[node] for node in nodes}) == len(nodes)
            for nodes in (self.first, *self.behind)
        )

    def deterministic(self) -> PathGraph[L]:
        """Return a graph of the same runs in which each is one path."""
        if self.is_deterministic:
            return self
        behind: dict[frozenset[int], list[frozenset[int]]] = {}
        first = self._by_label(self.first)
        waiting = list(first)
        while waiting:
            nodes = waiting.pop()
            if nodes not in behind:
                behind[nodes] = self._by_label(n for node in nodes for n in self.behind[node])
                waiting += behind[nodes]
        return _numbered(first, behind, lambda nodes: self.labels[min(nodes)])

    def _by_label(self, nodes: Iterable[int]) -> list[frozenset[int]]:
        found: dict[L, set[int]] = {}
        for node in nodes:
            found.setdefault(self.labels[node], set()).add(node)
        return [frozenset(each) for each in found.values()]

    def minimal(self) -> PathGraph[L]:
        """Return a graph of the same runs: nodes of one label have different ones behind them."""
        if len(set(self.labels)) == len(self.labels):
            return self
        kept: dict[tuple[L, frozenset[int]], int] = {}
        into: dict[int, int] = {}
        for node in reversed(range(len(self.labels))):
            behind = frozenset(into[each] for each in self.behind[node])
            into[node] = kept.setdefault((self.labels[node], behind), node)
        steps = {
            n: list(dict.fromkeys(map(into.__getitem__, self.behind[n]))) for n in kept.values()
        }
        first = list(dict.fromkeys(map(into.__getitem__, self.first)))
        return _numbered(first, steps, self.labels.__getitem__)

    def through(self, are_some: Sequence[bool]) -> PathGraph[L]:
        """Return a graph of the paths that have one of some nodes."""
        if all(are_some):
            return self
        behind: dict[tuple[int, bool], list[tuple[int, bool]]] = {}
        first = [(node, are_some[node]) for node in self.first]
        for node in reversed(range(len(self.labels))):
            for has in (False, True):
                further = [(n, has or are_some[n]) for n in self.behind[node]]
                further = [each for each in further if each in behind]
                if further or (has and not self.behind[node]):
                    behind[node, has] = further
        reached = [each for each in first if each in behind]
        return _numbered(reached, behind, lambda each: self.labels[each[0]])


N = TypeVar("N", bound=Hashable)


def _numbered(
    first: Sequence[N], behind: Mapping[N, Sequence[N]], label_of: Callable[[N], L]
) -> PathGraph[L]:
    """Return a graph with what is reached, numbered so that steps lead onward."""
    order: list[N] = []
    seen: set[N] = set()
    stack: list[tuple[N, bool]] = [(each, False) for each in first]
    while stack:
        node, is_done = stack.pop()
        if is_done:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack += [(each, False) for each in behind[node]]
    order.reverse()
    number = {node: i for i, node in enumerate(order)}
    return PathGraph(
        tuple(map(label_of, order)),
        tuple(tuple(sorted(map(number.__getitem__, behind[node]))) for node in order),
        tuple(sorted(map(number.__getitem__, first))),
    )


def union(graphs: Sequence[PathGraph[L]]) -> PathGraph[L]:
    """Return a graph of the runs of several, each of them once."""
    labels: list[L] = []
    behind: list[tuple[int, ...]] = []
    first: list[int] = []
    for graph in graphs:
        size = len(labels)
        labels += graph.labels
        behind += [tuple([size + each for each in own]) for own in graph.behind]
        first += [size + each for each in graph.first]
    return PathGraph(tuple(labels), tuple(behind), tuple(first)).deterministic()


_NO_MORE = '", [], [], null]'
"""How the text of runs ends of which nothing is known but how many they are."""

_SIZE = len('["0x') + len(_NO_MORE)


def size_of_count(count: int) -> int:
    """Return how many characters runs are as a text of which nothing is known but their number."""
    return _SIZE + (max(1, count.bit_length()) + 3) // 4


@dataclass(slots=True)
class CountedRuns:
    """Runs that end at one time, as a tuple carries them: how many, and of which documents.

    It never changes, once made.  `keys` are what the statement tells them apart by.  The nodes of
    `graph` are labelled by the places of their documents among those of the tuple; `places` are the
    block and the root of each of these.  A statement that counts only has no graph.
    """

    count: int
    keys: tuple[str, ...]
    places: tuple[tuple[int, int], ...] = ()
    graph: PathGraph[int] | None = None

    @property
    def size(self) -> int:
        """How many characters it is as a text."""
        if self.graph is None and not (self.keys or self.places):
            return size_of_count(self.count)
        return len(self.spell())

    def spell(self) -> str:
        """Return it as a text."""
        graph = self.graph
        if graph is None and not (self.keys or self.places):
            return f'["{hex(self.count)}{_NO_MORE}'
        steps = None if graph is None else [graph.labels, graph.behind, graph.first]
        # In hex: Python reads and writes no decimal number of more than 4,300 digits.
        return json.dumps([hex(self.count), self.keys, self.places, steps])

    @classmethod
    def read(cls, text: str) -> CountedRuns:
        """Return what `spell` wrote."""
        if text.endswith(_NO_MORE):
            return cls(int(text[2 : -len(_NO_MORE)], 16), ())
        count, keys, places, steps = json.loads(text)
        graph = None
        if steps is not None:
            labels, behind, first = steps
            graph = PathGraph(tuple(labels), tuple(map(tuple, behind)), tuple(first))
        return cls(
            int(count, 16), tuple(keys), tuple((block, node) for block, node in places), graph
        )
