"""Who asked for the tuples of a class: subscribers, and their uses of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from broker.matching.boxes.forms import box_of
from broker.matching.boxes.index import Box
from templates.clause import Clause, Test
from templates.measured import thresholds
from xscl.path import Parameter
from xscl.query import Query

__all__ = ["Subscriber", "Use"]


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

    def strings(self, tests: Sequence[Test]) -> list[Any]:
        """Return what it asks for in tests of its box against strings: all of them, in order."""
        if self.box is not None:
            return list(self.box.equal[: len(tests)])
        given = self.subscriber.parameters
        data = [test.data for test in tests]
        found = [given[each.name] if isinstance(each, Parameter) else each for each in data]
        return [*map(str, found)]

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
