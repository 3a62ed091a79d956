"""From the tuples of query classes to the queries that share the classes.

The join finds tuples of classes.  A tuple is one of a query's if the query's own window, constants
and registration point admit it, which is tested here, and its remaining residuals (`holds`), which
the collector tests.  Constants are looked up,
not compared one by one: a class's clauses are indexed by the values that they ask for, and then by
the values that they exclude.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from operator import attrgetter, eq
from typing import Any, NamedTuple

from joins import ClassTuple, Instance, Position
from templates.clause import Clause
from templates.template import Template
from xscl.meter import size
from xscl.query import Call, Query, term

__all__ = ["BoundNode", "FanOut", "FoundTuple", "Subscriber", "Use", "holds"]


@dataclass(frozen=True, slots=True, eq=False)
class Subscriber:
    """A query under one assignment of its parameters.  A match belongs to one of these."""

    query: Query
    parameters: Mapping[str, Any]
    registration_point: int


@dataclass(frozen=True, slots=True, eq=False)
class Use:
    """One subscriber's use of a class: a clause of the query, and the values of its parameters.

    `kept_us` is for how long the instances that it joins are kept: for its window and the windows
    of the clauses above, added up.
    """

    query_class: int
    clause: Clause
    window_us: int
    subscriber: Subscriber
    kept_us: int

    @property
    def is_join(self) -> bool:
        """Whether documents are kept for it: for a block alone they are not."""
        return len(self.clause.sources) > 1 or bool(self.clause.deciding or self.clause.stream)

    def joins(self, stream: str) -> bool:
        """Return whether documents of a stream are joined here."""
        blocks = self.subscriber.query.blocks
        own = (source.block for source in self.clause.sources if source.block is not None)
        return self.is_join and any(blocks[block].stream == stream for block in own)


class BoundNode(NamedTuple):
    """The document node that a term is bound to, and its value where it is compared."""

    number: int
    value: str | None


@dataclass(frozen=True, slots=True, eq=False)
class FoundTuple:
    """A tuple of one clause: its instances, the docid where it stands, the nodes of its terms.

    A tuple that was decided stands where `decided` says.
    """

    clause: Clause
    left: Instance
    right: Instance | None
    docid: int
    nodes: Mapping[str, BoundNode]
    decided: Position | None = None

    @property
    def instances(self) -> tuple[Instance, ...]:
        """The operands' instances."""
        return (self.left,) if self.right is None else (self.left, self.right)

    @property
    def nbytes(self) -> int:
        """The bytes of its values."""
        return sum([size(value) for _, value in self.nodes.values() if value])

    @property
    def leaves(self) -> tuple[int, ...]:
        """The documents behind the tuple, in block order."""
        return self.left.leaves if self.right is None else self.left.leaves + self.right.leaves

    @property
    def start_us(self) -> int:
        """The start of the tuple's interval."""
        return min(instance.start_us for instance in self.instances)

    @property
    def end_us(self) -> int:
        """The end of the tuple's interval."""
        if self.decided is not None:
            return self.decided.end_us
        return max(instance.end_us for instance in self.instances)

    @property
    def position(self) -> Position:
        """Where it stands: where it was decided, or where its newest instance does."""
        if self.decided is not None:
            return self.decided
        newest = max(self.instances, key=attrgetter("position"))
        return Position(newest.docid, newest.depth, newest.watermark_us, self.end_us)

    def handed_on(self, shape: int) -> dict[str, Any]:
        """Return the tuple as an instance for the clause above, a row of `INSTANCE_SCHEMA`."""
        newest = max(self.instances, key=attrgetter("position"))
        position = self.position
        carried = [self.nodes[term] for term in self.clause.carried]
        return {
            "stream": self.clause.stream,
            "key": "",
            "docid": position.docid,
            "depth": position.depth,
            "match_id": newest.match_id if self.decided is None else "",
            "docid_min": min(instance.docid_min for instance in self.instances),
            "start_us": self.start_us,
            "end_us": self.end_us,
            "watermark_us": position.watermark_us,
            "shape": shape,
            "leaves": list(self.leaves),
            "nodes": [0, *(node.number for node in carried)],
            "vals": [None, *(node.value for node in carried)],
        }


class ConstantPlaces(NamedTuple):
    """The meta-variables that a use's constants are asked of, and excluded from."""

    asked: tuple[int, ...]
    excluded: tuple[int, ...]


Constants = tuple[str | None, ...]
"""The values at some places; None where nothing compares the value, which no use asks for."""

ByConstants = dict[Constants, dict[Constants, dict["Use", None]]]
"""Uses with constants in the same places: by the constants asked for, then by the excluded."""


class FanOut:
    """All uses of classes: by class, by the places of constants, then by the constants."""

    def __init__(self) -> None:
        self._uses: dict[int, dict[ConstantPlaces, ByConstants]] = {}

    def add(self, use: Use) -> None:
        """Add a use."""
        places, asked, excluded = _constants(use)
        by_asked = self._uses.setdefault(use.query_class, {}).setdefault(places, {})
        by_asked.setdefault(asked, {}).setdefault(excluded, {})[use] = None

    def remove(self, use: Use) -> None:
        """Undo one `add`."""
        places, asked, excluded = _constants(use)
        by_places = self._uses[use.query_class]
        by_asked = by_places[places]
        by_excluded = by_asked[asked]
        del by_excluded[excluded][use]
        if not by_excluded[excluded]:
            del by_excluded[excluded]
        if not by_excluded:
            del by_asked[asked]
        if not by_asked:
            del by_places[places]
        if not by_places:
            del self._uses[use.query_class]

    def classes(self) -> Set[int]:
        """Return the numbers of the classes in use."""
        return self._uses.keys()

    def uses(self) -> Iterator[Use]:
        """Yield all uses."""
        for query_class in self._uses:
            yield from self.uses_of(query_class)

    def uses_of(self, query_class: int) -> Iterator[Use]:
        """Yield the uses of one class."""
        for by_asked in self._uses.get(query_class, {}).values():
            for by_excluded in by_asked.values():
                for uses in by_excluded.values():
                    yield from uses

    def expand(
        self,
        tuples: Iterable[ClassTuple],
        instances: Mapping[int, Instance],
        looks_at: Callable[[Use, int], bool],
    ) -> Iterator[tuple[FoundTuple, Use]]:
        """Yield each tuple with every use that it satisfies; residuals are not tested.

        `looks_at` returns whether a use takes tuples whose newest document has a docid.
        """
        for one in tuples:
            left = instances[one.left]
            right = None if one.right is None else instances[one.right]
            docid_min = left.docid_min if right is None else min(left.docid_min, right.docid_min)
            if right is not None and not set(left.leaves).isdisjoint(right.leaves):
                continue
            docid = left.docid if right is None else max(left.docid, right.docid)
            if one.position is not None:
                docid = one.position.docid
            found: FoundTuple | None = None
            for use in self._candidates(one, left, right):
                if one.span_us > use.window_us or docid_min <= use.subscriber.registration_point:
                    continue
                if not looks_at(use, docid):
                    continue
                if found is None and not _is_true(
                    use.clause.query_class.template, one, left, right
                ):
                    break
                if found is None or found.clause is not use.clause:
                    nodes = _resolve(use.clause, one, left, right)
                    found = FoundTuple(use.clause, left, right, docid, nodes, one.position)
                yield found, use

    def _candidates(self, one: ClassTuple, left: Instance, right: Instance | None) -> Iterator[Use]:
        """Yield the uses of a tuple's class whose constants the tuple has."""

        def values(places: tuple[int, ...]) -> Constants:
            if not places:
                return ()
            left_size = next(self.uses_of(one.query_class)).clause.query_class.template.left_size
            return tuple(_value(one, place, left_size, left, right) for place in places)

        for places, by_asked in self._uses.get(one.query_class, {}).items():
            has = values(places.excluded)
            for excluded, uses in by_asked.get(values(places.asked), {}).items():
                if not any(map(eq, has, excluded)):
                    yield from uses


def _constants(use: Use) -> tuple[ConstantPlaces, Constants, Constants]:
    """Return the places of a use's constants, the constants asked for, and the excluded ones."""
    clause, given = use.clause, use.subscriber.parameters
    asked, excluded = (
        tuple(c if isinstance(c, str) else given[c.name] for _, c in constants)
        for constants in (clause.constants, clause.excluded)
    )
    places = ConstantPlaces(
        tuple(place for place, _ in clause.constants), tuple(place for place, _ in clause.excluded)
    )
    return places, asked, excluded


def _is_true(template: Template, one: ClassTuple, left: Instance, right: Instance | None) -> bool:
    """Return whether the joined values are equal; an engine has compared their hashes."""
    left_size = template.left_size
    for a, b in template.value_joins:
        if _value(one, a, left_size, left, right) != _value(one, b, left_size, left, right):
            return False
    return True


def _value(
    one: ClassTuple, place: int, left_size: int, left: Instance, right: Instance | None
) -> str | None:
    instance = left if place < left_size or right is None else right
    return instance.values[one.nodes[place]]


def _instant(instant: Call, document: Instance) -> int:
    return document.start_us if instant.function == "start" else document.end_us


def _resolve(
    clause: Clause, one: ClassTuple, left: Instance, right: Instance | None
) -> dict[str, BoundNode]:
    """Return the node of each term of the clause's operands in a tuple."""
    left_size = clause.query_class.template.left_size
    nodes: dict[str, BoundNode] = {}
    for name, place in clause.places.items():
        instance = left if place < left_size or right is None else right
        i = one.nodes[place]
        nodes[name] = BoundNode(instance.nodes[i], instance.values[i])
    for source, operand in zip(clause.sources, (left, right), strict=False):
        if operand is None:
            continue
        if source.below is not None:
            for i, name in enumerate(source.below.carried, 1):
                nodes[name] = BoundNode(operand.nodes[i], operand.values[i])
        for instant in source.instants:
            nodes[term(instant)] = BoundNode(0, str(_instant(instant, operand)))
    return nodes


def holds(found: FoundTuple, use: Use) -> bool:
    """Return whether a tuple satisfies what a use asks that the join does not test."""
    clause = use.clause
    if not (clause.residuals or clause.tests):
        return True
    return clause.condition(_TupleReading(found, use.subscriber.parameters))


@dataclass(frozen=True, slots=True)
class _TupleReading:
    """A tuple under one assignment, as conditions read it."""

    found: FoundTuple
    parameters: Mapping[str, Any]

    @property
    def start_us(self) -> int:
        return self.found.start_us

    @property
    def end_us(self) -> int:
        return self.found.end_us

    def value(self, name: str) -> str:
        value = self.found.nodes[name].value
        assert value is not None
        return value
