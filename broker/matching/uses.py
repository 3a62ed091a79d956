"""Who asked for the tuples of a class: topics, and their uses of it."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from dataclasses import dataclass
from typing import Any

from broker.matching.boxes.boxreader import box_of, said_in
from broker.matching.boxes.index import Box
from joins import UseKind
from templates.clause import Clause
from templates.measured import is_scored, thresholds
from xscl.path import Parameter
from xscl.query import Query, SelectKind, Window

__all__ = ["UNNUMBERED", "Strings", "Topic", "Use", "length_under"]

UNNUMBERED = -3
"""Stands for the number of a use that no fan-out has."""

Strings = tuple[str, ...]


def length_under(length: Window | Parameter, values: Mapping[str, Any]) -> int:
    """Return a length of time under an assignment, in microseconds."""
    given = values[length.name] if isinstance(length, Parameter) else length.length_us
    assert isinstance(given, int)
    return given


@dataclass(slots=True, eq=False)
class Topic:
    """A query under one assignment of its parameters.  A match belongs to one of these.

    No field changes: to say so to Python would cost more than all else that makes one.
    `source` names the matches of which it has rows or graphs, `""` where it has none: assignments
    that differ in what is asked of rows alone have one source.  Each of so many `alternatives` has
    a root, and its uses.
    """

    query: Query
    parameters: Mapping[str, Any]
    registration_point: int
    source: str = ""
    alternatives: int = 1

    @property
    def has_outcome(self) -> bool:
        """Whether matches are given with others, or held against others."""
        return self.query.rows is not None or self.query.kind is SelectKind.COMPRESSED

    def outcome_us(self, own_us: int) -> int:
        """Return how far behind a match others may end that it is given with, or is not.

        `own_us` is how far a match reaches back.
        """
        if self.query.kind is SelectKind.COMPRESSED:
            return own_us
        rows = self.query.rows
        return 0 if rows is None else length_under(rows.length, self.parameters)


@dataclass(slots=True, eq=False)
class Use:
    """One topic's use of a class: a clause of the query, and the values of its parameters.

    `query_class` is the number that the join gives to the class, -1 until it is asked, and `number`
    that by which the fan-out finds it; no other field changes.
    `kept_us` is for how long the instances that it joins are kept: for its window and the windows
    of the clauses above, added up.  `box` is that of several assignments (`handedon`), which have
    no values of parameters: its strings alone where it asks for nothing else.  `holder` is the
    number of the query.
    `beside` is all that its query asks of its stream, where others may find a tuple that it has.
    """

    query_class: int
    clause: Clause
    window_us: int
    topic: Topic
    kept_us: int
    box: Box | Strings | None = None
    holder: int = 0
    beside: Sized = ()
    number: int = UNNUMBERED

    @property
    def asked(self) -> Box:
        """What it asks of a tuple."""
        given, box = self.topic, self.box
        if box is None:
            return box_of(self.clause, given.parameters, self.window_us, given.registration_point)
        if isinstance(box, Box):
            return box
        return Box(box, (), (), self.window_us, given.registration_point)

    @property
    def equal(self) -> Strings:
        """The strings that it asks for."""
        box = self.box
        return self.asked.equal if box is None or isinstance(box, Box) else box

    @property
    def said(self) -> Strings:
        """The vector of data that what is decided of it has for constants."""
        return said_in(self.clause, self.equal) if self.clause.deciding else ()

    @property
    def finding(self) -> Strings:
        """The strings by which tuples are found that are handed on by data."""
        box = self.box
        return self.asked.finding if box is None or isinstance(box, Box) else box

    @property
    def told_apart_by(self) -> Strings:
        """The strings that it asks for, and behind them those that texts must not have."""
        box = self.box
        return (*box.equal, *box.taken) if isinstance(box, Box) and box.taken else self.equal

    @property
    def kind(self) -> UseKind:
        """What the join knows of it."""
        point = self.topic.registration_point
        return UseKind(self.window_us, point, self.holder if self.clause.has_holders else 0)

    @property
    def least(self) -> tuple[float, ...]:
        """The thresholds of the similarity joins by which the class can be paired."""
        query_class = self.clause.query_class
        if not query_class.similar and (query_class.decided is None or not is_scored(self.clause)):
            return ()
        return thresholds(self.clause, self.asked.bounds)

    @property
    def is_join(self) -> bool:
        """Whether documents are kept for it: for a block alone they are not."""
        return len(self.clause.sources) > 1 or bool(self.clause.deciding or self.clause.stream)
