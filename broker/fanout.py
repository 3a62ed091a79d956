"""From the tuples of query classes to the queries that share the classes.

The join answers for classes.  What is a query's own is looked at here, tuple by tuple: its window,
its constants, its registration point, and the residuals that the join does not test.  Constants
are looked up, not compared one by one: a class's clauses are indexed by the values that they ask
for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from broker.queryclasses import Clause
from joins.classes import ClassTuple
from joins.instance import Instance
from xscl import functions
from xscl.query import Query

__all__ = ["BoundNode", "FanOut", "Found", "Subscriber"]


@dataclass(frozen=True, slots=True, eq=False)
class Subscriber:
    """A query under one assignment of its parameters: what matches belong to."""

    query: Query
    parameters: Mapping[str, Any]
    registration_point: int
    name: str


@dataclass(frozen=True, slots=True)
class BoundNode:
    """What a term is bound to: a document node, and its value where it is compared."""

    number: int
    value: str | None


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """A tuple of one clause: its instances, and what its terms are bound to."""

    clause: Clause
    left: Instance
    right: Instance | None
    nodes: Mapping[str, BoundNode]

    @property
    def instances(self) -> tuple[Instance, ...]:
        """The operands' instances."""
        return (self.left,) if self.right is None else (self.left, self.right)

    @property
    def leaves(self) -> tuple[int, ...]:
        """The documents behind the tuple, in block order."""
        return tuple(leaf for instance in self.instances for leaf in instance.leaves)

    @property
    def start_us(self) -> int:
        """The start of the tuple's interval."""
        return min(instance.start_us for instance in self.instances)

    @property
    def end_us(self) -> int:
        """The end of the tuple's interval."""
        return max(instance.end_us for instance in self.instances)

    def handed_on(self, shape: int) -> dict[str, Any]:
        """Return the tuple as an instance for the clause above, a row of `INSTANCE_SCHEMA`."""
        newest = max(self.instances, key=lambda i: (i.docid, i.depth, i.match_id))
        carried = [self.nodes[term] for term in self.clause.carried]
        return {
            "stream": self.clause.stream,
            "key": "",
            "docid": newest.docid,
            "depth": newest.depth,
            "match_id": newest.match_id,
            "docid_min": min(instance.docid_min for instance in self.instances),
            "start_us": self.start_us,
            "end_us": self.end_us,
            "watermark_us": newest.watermark_us,
            "shape": shape,
            "leaves": list(self.leaves),
            "nodes": [0, *(node.number for node in carried)],
            "vals": [None, *(node.value for node in carried)],
        }


@dataclass(slots=True)
class _Uses:
    """The clauses of one class, by where their constants stand and what those are."""

    by_constants: dict[tuple[int, ...], dict[tuple[str, ...], list[tuple[Clause, Subscriber]]]] = (
        field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    )

    def add(self, clause: Clause, subscriber: Subscriber) -> None:
        places = tuple(place for place, _ in clause.constants)
        values = tuple(value for _, value in clause.constants)
        self.by_constants[places][values].append((clause, subscriber))


class FanOut:
    """All clauses by the number of their class."""

    def __init__(self) -> None:
        self._uses: dict[int, _Uses] = defaultdict(_Uses)

    def add(self, query_class: int, clause: Clause, subscriber: Subscriber) -> None:
        """Add one clause of a subscriber's query."""
        self._uses[query_class].add(clause, subscriber)

    def uses(self) -> Iterator[tuple[int, Clause, Subscriber]]:
        """Yield all clauses with the numbers of their classes and their subscribers."""
        for number, uses in self._uses.items():
            for by_values in uses.by_constants.values():
                for entries in by_values.values():
                    for clause, subscriber in entries:
                        yield number, clause, subscriber

    def expand(
        self, tuples: Iterable[ClassTuple], instances: Mapping[int, Instance]
    ) -> Iterator[tuple[Found, Subscriber]]:
        """Yield each tuple once for every clause that it satisfies."""
        for one in tuples:
            left = instances[one.left]
            right = None if one.right is None else instances[one.right]
            docid_min = left.docid_min if right is None else min(left.docid_min, right.docid_min)
            if right is not None and not set(left.leaves).isdisjoint(right.leaves):
                continue
            for clause, subscriber in self._candidates(one, left, right):
                if one.span_us > clause.window_us or docid_min <= subscriber.registration_point:
                    continue
                found = Found(clause, left, right, _resolve(clause, one, left, right))
                if all(_holds(residual, found) for residual in clause.residuals):
                    yield found, subscriber

    def _candidates(
        self, one: ClassTuple, left: Instance, right: Instance | None
    ) -> Iterator[tuple[Clause, Subscriber]]:
        """Yield the clauses of a tuple's class whose constants the tuple has."""
        for places, by_values in self._uses[one.query_class].by_constants.items():
            if not places:
                yield from by_values[()]
                continue
            size = _left_size(by_values)
            values = tuple(_value(one, place, size, left, right) for place in places)
            yield from by_values.get(values, ())  # type: ignore[arg-type]


def _left_size(by_values: Mapping[Any, list[tuple[Clause, Subscriber]]]) -> int:
    clause, _ = next(iter(by_values.values()))[0]
    return clause.query_class.template.left_size


def _value(
    one: ClassTuple, place: int, left_size: int, left: Instance, right: Instance | None
) -> str | None:
    instance = left if place < left_size or right is None else right
    return instance.values[one.nodes[place]]


def _resolve(
    clause: Clause, one: ClassTuple, left: Instance, right: Instance | None
) -> dict[str, BoundNode]:
    """Return what each term of the clause's operands is bound to in a tuple."""
    left_size = clause.query_class.template.left_size
    nodes: dict[str, BoundNode] = {}
    for term, place in clause.places.items():
        instance = left if place < left_size or right is None else right
        i = one.nodes[place]
        nodes[term] = BoundNode(instance.nodes[i], instance.values[i])
    for source, instance in zip(clause.sources, (left, right), strict=False):
        if source.below is not None and instance is not None:
            for i, term in enumerate(source.below.carried, 1):
                nodes[term] = BoundNode(instance.nodes[i], instance.values[i])
    return nodes


def _holds(residual: Any, found: Found) -> bool:
    def value(variable: str) -> str:
        bound = found.nodes[variable].value
        assert bound is not None
        return bound

    return functions.compare(
        functions.values(residual.left, value),
        residual.operator,
        functions.values(residual.right, value),
    )
