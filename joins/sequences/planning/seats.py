"""Seats: a stream in one operand of one decision, and what the rows of each are asked.

A row of a stream is a contender in each of the stream's seats.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joins.memory.slots import Ints, ranges
from joins.sequences.columns import Columns
from joins.sequences.planning.names import StreamNames
from joins.sequences.planning.terms import Terms
from templates.decision import TupleStream
from templates.exceptions import HeldFor

__all__ = ["Role", "Seats"]


class Role(enum.IntEnum):
    """What the rows of a seat are: the left or only operand, the right one, or an absent one."""

    LEFT = 0
    RIGHT = 1
    ABSENT = 2


class _BlockNumbers:
    """Numbers of things, in the order in which they come."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def of(self, thing: Hashable) -> int:
        """Return the number of a thing."""
        return self._numbers.setdefault(thing, len(self._numbers))


class Seats:
    """All seats by number; a column of theirs is had by its name.  No number is given twice.

    Where rows hold for sets of data, `held` says of seats for which.
    """

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._columns = Columns(
            {"decision": np.int32, "role": np.int8, "operand": np.int32, "blocks": np.int32}
            | {"rules": np.int32, "rule_count": np.int32, "is_deciding": np.bool_}
            | dict.fromkeys(("layout", "keys", "key_count", "threshold"), np.int32)
            | dict.fromkeys(("chosen", "chosen_count", "stream"), np.int32)
        )
        self._keys = Columns({"place": np.int64})
        self._chosen = Columns({"place": np.int64})
        self._rules = Columns({"rule": np.int64})
        self._blocks = _BlockNumbers()
        self._streams = StreamNames()
        self.held: dict[int, HeldFor] = {}

    def __len__(self) -> int:
        return len(self._columns)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self._columns[name]

    def add(
        self,
        decision: int,
        operand: int,
        role: Role,
        stream: TupleStream,
        rules: Sequence[int],
        *,
        is_deciding: bool,
    ) -> int:
        """Add a seat; return its number."""
        place_of = stream.terms.index
        seat = self._columns.append(
            1,
            decision=decision,
            role=role,
            operand=operand,
            blocks=self.blocks_of(stream.blocks),
            rules=len(self._rules),
            rule_count=len(rules),
            is_deciding=is_deciding,
            layout=self._terms.layout(stream.terms),
            keys=len(self._keys),
            key_count=len(stream.keys),
            threshold=-1 if stream.threshold is None else place_of(stream.threshold.term),
            stream=self._streams.add(stream.name),
            chosen=len(self._chosen),
            chosen_count=len(stream.chosen),
        )
        for places, terms in ((self._chosen, stream.chosen), (self._keys, stream.keys)):
            places.append(len(terms), place=np.array([place_of(term) for term in terms], np.int64))
        self._rules.append(len(rules), rule=np.array(rules, np.int64))
        if stream.threshold is not None and stream.threshold.held is not None:
            self.held[seat] = stream.threshold.held
        return seat

    def blocks_of(self, blocks: tuple[int, ...]) -> int:
        """Return a number for the blocks of tuples."""
        return self._blocks.of(blocks)

    def stream_of(self, name: str) -> int | None:
        """Return the number of a stream; None of one that has no seat."""
        return self._streams.get(name)

    def streams_of(self, names: pa.StringArray) -> Ints:
        """Return the numbers of streams by their names, -1 of a stream that is not read."""
        return self._streams.find(names)

    def rules_of(self, seats: Ints) -> tuple[Ints, Ints]:
        """Return, for each of some seats, its rules: which seat it is, and the rule."""
        counts = self["rule_count"][seats]
        rules = self._rules["rule"][ranges(self["rules"][seats], counts)]
        return np.arange(len(seats)).repeat(counts), rules

    def keys_of(self, seats: Ints) -> Iterator[tuple[Ints, Ints]]:
        """Yield the keys of some seats, one of each at a time: which seats, and their places."""
        if len(self._keys):
            yield from _each(self._keys, self["keys"][seats], self["key_count"][seats])

    def chosen_of(self, seats: Ints) -> Iterator[tuple[Ints, Ints]]:
        """Yield the chosen terms of some seats, as `keys_of` their keys."""
        if len(self._chosen):
            yield from _each(self._chosen, self["chosen"][seats], self["chosen_count"][seats])


def _each(places: Columns, first: Ints, count: Ints) -> Iterator[tuple[Ints, Ints]]:
    for k in range(int(count.max(initial=0))):
        own = np.flatnonzero(count > k)
        yield own, places["place"][first[own] + k]
