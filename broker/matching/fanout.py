"""From the tuples of query classes to the queries that share the classes.

The join finds tuples of classes.  A tuple is one of a query's if it is in the query's box (its
data, window and registration point: `boxes`), and if the remaining residuals hold (`holds`),
which the collector tests.  Boxes are looked up for all tuples of a table at once; only what is
found becomes an object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from broker.matching.blocks import Account
from broker.matching.boxes.forms import Forms, box_of
from broker.matching.boxes.index import Box, BoxIndex
from broker.matching.boxes.points import Points
from joins import Instance, Position
from templates.clause import SPAN, Clause, Measured, Place
from templates.measured import thresholds
from xscl.measures import number_of, sets_of
from xscl.meter import size
from xscl.query import Call, Query, term

Ints = npt.NDArray[np.int64]

__all__ = ["BoundNode", "FanOut", "FoundTuple", "Subscriber", "TupleReading", "Use", "holds"]


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
    of the clauses above, added up.  `box` is that of several assignments (`handedon`), which have
    no values of parameters.
    """

    query_class: int
    clause: Clause
    window_us: int
    subscriber: Subscriber
    kept_us: int
    box: Box | None = None

    @property
    def asked(self) -> Box:
        """What it asks of a tuple."""
        given = self.subscriber
        if self.box is not None:
            return self.box
        return box_of(self.clause, given.parameters, self.window_us, given.registration_point)

    @property
    def least(self) -> tuple[float, ...]:
        """The thresholds of the similarity joins by which the class can be paired."""
        if not self.clause.query_class.similar:
            return ()
        return thresholds(self.clause, self.asked.bounds)

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

    `positions` are those of its meta-variables in the instances.  A tuple that was decided stands
    where `decided` says.
    """

    clause: Clause
    left: Instance
    right: Instance | None
    docid: int
    span_us: int
    positions: tuple[int, ...]
    nodes: Mapping[str, BoundNode]
    decided: Position | None = None

    @classmethod
    def of(
        cls,
        clause: Clause,
        left: Instance,
        right: Instance | None,
        docid: int,
        span_us: int,
        positions: tuple[int, ...],
        decided: Position | None = None,
    ) -> FoundTuple:
        """Return a tuple of a clause's class."""
        nodes = _resolve(clause, positions, left, right)
        return cls(clause, left, right, docid, span_us, positions, nodes, decided)

    def value_at(self, place: Place | Measured) -> str | None:
        """Return the value at a place; of the span, microseconds; of a measure, its double."""
        if isinstance(place, Measured):
            return self._measured(place)
        if place == SPAN:
            return str(self.span_us)
        instance = self.right if place.side and self.right is not None else self.left
        position = self.positions[place.meta] if place.meta >= 0 else place.position
        return instance.values[position]

    def _measured(self, number: Measured) -> str | None:
        texts = self.value_at(number.left), self.value_at(number.right)
        calls = number.left_set, number.right_set
        left, right = (
            [] if text is None else sets_of(call, text)
            for call, text in zip(calls, texts, strict=True)
        )
        return repr(number_of(number.measure, number.operator, left, right))

    def has_equal_values(self) -> bool:
        """Return whether joined values are equal; an engine has compared their hashes."""
        template = self.clause.query_class.template
        return all(
            self._value_of(a, template.left_size) == self._value_of(b, template.left_size)
            for a, b in template.value_joins
        )

    def _value_of(self, meta: int, left_size: int) -> str | None:
        instance = self.left if meta < left_size or self.right is None else self.right
        return instance.values[self.positions[meta]]

    def has_strings(self, equal: Sequence[str]) -> bool:
        """Return whether it has the strings that a box asks for; the index compares hashes."""
        places = [place for place, operator, _ in self.clause.box if operator == "="]
        return all(
            self.value_at(place) == string for place, string in zip(places, equal, strict=False)
        )

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
    def is_block(self) -> bool:
        """Whether it is a document as a block has it, which a decision reads."""
        return self.right is None and self.decided is None and self.left.is_document

    @property
    def account(self) -> Account:
        """Where it counts."""
        return Account(self.docid, max([instance.docid_max for instance in self.instances]))

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
        clause = self.clause
        newest = max(self.instances, key=attrgetter("position"))
        position = self.position
        carried = [self.nodes[term] for term in clause.carried]
        return {
            "stream": clause.stream,
            "key": "",
            "docid": position.docid,
            "depth": position.depth,
            "match_id": newest.match_id if self.decided is None else "",
            "docid_min": min(instance.docid_min for instance in self.instances),
            "docid_max": self.account.newest,
            "start_us": self.start_us,
            "end_us": position.end_us,
            "watermark_us": position.watermark_us,
            "shape": shape,
            "leaves": list(self.leaves),
            # What is only tested is no node: equal values of several nodes are one.
            "nodes": [0, *(node.number for node in carried), *(0 for _ in clause.tested)],
            "vals": [None, *(n.value for n in carried), *map(self.value_at, clause.tested)],
        }


class FanOut:
    """All uses of classes, by their boxes."""

    def __init__(self, boxes_max: int) -> None:
        self._index = BoxIndex(boxes_max)
        self._forms = Forms()
        self._uses: list[Use | None] = []
        self._by_class: dict[int, dict[Use, int]] = {}

    def add(self, use: Use) -> None:
        """Add a use."""
        box = use.asked
        number = self._index.add(self._forms.add(use.query_class, use.clause, box), box)
        self._uses += [None] * (number + 1 - len(self._uses))
        self._uses[number] = use
        self._by_class.setdefault(use.query_class, {})[use] = number

    def remove(self, use: Use) -> None:
        """Undo one `add`."""
        uses = self._by_class[use.query_class]
        number = uses.pop(use)
        if not uses:
            del self._by_class[use.query_class]
        self._uses[number] = None
        self._index.remove(number)
        self._forms.remove(use.query_class, use.clause, use.asked)

    def classes(self) -> Set[int]:
        """Return the numbers of the classes in use."""
        return self._by_class.keys()

    def uses(self) -> Iterator[Use]:
        """Yield all uses."""
        for uses in self._by_class.values():
            yield from uses

    def uses_of(self, query_class: int) -> Iterator[Use]:
        """Yield the uses of one class."""
        yield from self._by_class.get(query_class, ())

    def expand(
        self, points: Points, looks_at: Callable[[Use, Account], bool]
    ) -> Iterator[tuple[FoundTuple, Use]]:
        """Yield each tuple with every use that it satisfies; residuals are not tested.

        `looks_at` returns whether a use takes tuples of an account.
        """
        asks = self._forms.asks(points)
        for which, numbers in self._index.find(asks):
            rows = asks.rows[which]
            some = np.unique(rows)
            places = {*points.left[some].tolist(), *points.right[some].tolist()}
            instances = points.operands.instances(places)
            yield from self._found(points, rows, numbers, instances, looks_at)

    def _found(
        self,
        points: Points,
        rows: Ints,
        numbers: Ints,
        instances: Mapping[int, Instance],
        looks_at: Callable[[Use, Account], bool],
    ) -> Iterator[tuple[FoundTuple, Use]]:
        """Yield tuples, ascending, each with a use whose box has it."""
        table = points.tuples
        lefts, rights = points.left[rows].tolist(), points.right[rows].tolist()
        spans, docids = table.spans[rows].tolist(), points.docids[rows].tolist()
        newest = points.docids_max[rows].tolist()
        is_pair = (table.right[rows] > 0).tolist()
        last, found, is_true = -1, None, False
        for i, (row, number) in enumerate(zip(rows.tolist(), numbers.tolist(), strict=True)):
            use = self._uses[number]
            assert use is not None
            if not looks_at(use, Account(docids[i], newest[i])):
                continue
            if found is None or row != last or found.clause is not use.clause:
                left, right = instances[lefts[i]], instances[rights[i]] if is_pair[i] else None
                nodes, decided = table.nodes(row), table.position(row)
                found = FoundTuple.of(use.clause, left, right, docids[i], spans[i], nodes, decided)
                last, is_true = row, found.has_equal_values()
            if is_true and (not use.clause.box or found.has_strings(use.asked.equal)):
                yield found, use


def _instant(instant: Call, document: Instance) -> int:
    return document.start_us if instant.function == "start" else document.end_us


def _resolve(
    clause: Clause, positions: Sequence[int], left: Instance, right: Instance | None
) -> dict[str, BoundNode]:
    """Return the node of each term of the clause's operands in a tuple."""
    left_size = clause.query_class.template.left_size
    nodes: dict[str, BoundNode] = {}
    for name, place in clause.places.items():
        instance = left if place < left_size or right is None else right
        i = positions[place]
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
    return clause.condition(TupleReading(found, use.subscriber.parameters))


@dataclass(frozen=True, slots=True)
class TupleReading:
    """A tuple under one assignment, as conditions read it."""

    found: FoundTuple
    parameters: Mapping[str, Any]

    @property
    def start_us(self) -> int:
        """The start of its interval."""
        return self.found.start_us

    @property
    def end_us(self) -> int:
        """The end of its interval."""
        return self.found.end_us

    def value(self, name: str) -> str:
        """Return the value of a term."""
        value = self.found.nodes[name].value
        assert value is not None
        return value
