"""The queries of an engine, which come and go while documents flow.

Adding a query compiles it, adds its patterns to the catalog and its classes to the join; removing
it undoes exactly that.  Nothing is rebuilt.  An assignment of a parameterised query whose
parameters are all data costs no compiling: it is one more use of the query's classes.

A query that publishes a stream decides in which stratum the stream is read.  When that changes,
the queries that read the stream are compiled again, in place.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from broker.fanout import FanOut, Subscriber, Use
from broker.queryclasses import Alternative, Clause, Published, compile_query, is_prepared
from joins.processor import Processor
from xpath_eval.catalog import EvaluationPlan, PatternCatalog
from xscl.path import Parameter
from xscl.query import INFINITE_US, Query
from xscl.substitution import substitute

__all__ = ["QuerySet", "RegisteredQuery", "publishers_first"]

Assignment = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RegisteredQuery:
    """A query and what its registration says.

    It sees documents with a docid above `registration_point`.  A parameterised query has matches
    for each of its `assignments`, which are canonical (`xscl.assignment`); equal ones are one.
    """

    query: Query
    registration_point: int = 0
    assignments: tuple[Assignment, ...] = ()


@dataclass(slots=True)
class _Member:
    """A registered query, compiled: once if `prepared`, else once for each assignment."""

    query: Query
    registration_point: int
    prepared: list[Alternative] | None = None
    alternatives: list[Alternative] = field(default_factory=list)
    uses: dict[str, list[Use]] = field(default_factory=dict)
    compiled: dict[str, list[Alternative]] = field(default_factory=dict)


class QuerySet:
    """The queries in force, and what they ask of evaluation and join."""

    def __init__(self, processor: Processor) -> None:
        self.catalog = PatternCatalog()
        self.fan_out = FanOut()
        self._processor = processor
        self._members: dict[str, _Member] = {}
        self._streams: dict[str, Published] = {}
        self._plan: EvaluationPlan | None = None
        self._reaches: dict[int, int] = {}

    def __contains__(self, query_id: object) -> bool:
        return query_id in self._members

    @property
    def plan(self) -> EvaluationPlan:
        """What evaluation has to look for now."""
        if self._plan is None:
            self._plan = self.catalog.plan()
        return self._plan

    @property
    def must_probe(self) -> bool:
        """Whether the state holds more than documents from outside: what queries have found."""
        return bool(self._streams) or any(
            len(alternative.clauses) > 1
            for member in self._members.values()
            for alternative in member.alternatives
        )

    @property
    def reach_us(self) -> int:
        """How far behind the newest document the oldest one of a match may lie, at most."""
        return max((_reach(m) for m in self._members.values()), default=0)

    def add(self, registered: RegisteredQuery) -> None:
        """Add a query that is not there yet, with its assignments."""
        query = registered.query
        assert query.id not in self._members, query.id
        member = self._members[query.id] = _Member(query, registered.registration_point)
        self._compile(member)
        for values in registered.assignments if query.parameters else ({},):
            self.assign(query.id, values)
        self._settle(query.publish)

    def remove(self, query_id: str) -> None:
        """Remove a query with all its assignments."""
        member = self._members[query_id]
        for name in list(member.uses):
            self._unassign(member, name)
        if member.prepared is not None:
            self._release(member, member.prepared)
        del self._members[query_id]
        self._settle(member.query.publish)

    def assign(self, query_id: str, values: Assignment) -> None:
        """Add an assignment of a query's parameters; one that is there already changes nothing."""
        member = self._members[query_id]
        name = _name(values)
        if name in member.uses:
            return
        subscriber = Subscriber(member.query, values, member.registration_point)
        alternatives = member.prepared
        if alternatives is None or not _are_texts(alternatives, values):
            plain = substitute(member.query, values)
            unique = f"{query_id}/{name}"
            alternatives = compile_query(plain, unique, self.catalog, self._streams)
            member.alternatives += alternatives
            member.compiled[name] = alternatives
            self._plan = None
        clauses = [clause for alternative in alternatives for clause in alternative.clauses]
        member.uses[name] = [self._use(clause, subscriber) for clause in clauses]

    def unassign(self, query_id: str, values: Assignment) -> None:
        """Remove an assignment; one that is not there changes nothing."""
        member = self._members[query_id]
        if _name(values) in member.uses:
            self._unassign(member, _name(values))

    def _compile(self, member: _Member) -> None:
        """Compile a parameterised query once for all assignments, where that is possible."""
        if not member.query.parameters:
            return
        alternatives = compile_query(member.query, member.query.id, self.catalog, self._streams)
        member.alternatives += alternatives
        if is_prepared(alternatives):
            member.prepared = alternatives
            self._plan = None
        else:
            self._release(member, alternatives)

    def _use(self, clause: Clause, subscriber: Subscriber) -> Use:
        window_us = clause.window_us
        if isinstance(window_us, Parameter):
            window_us = int(subscriber.parameters[window_us.name])
        number = self._processor.add(clause.query_class, window_us)
        use = Use(number, clause, window_us, subscriber)
        self.fan_out.add(use)
        return use

    def _unassign(self, member: _Member, name: str) -> None:
        for use in member.uses.pop(name):
            self.fan_out.remove(use)
            self._processor.remove(use.query_class, use.window_us)
        if name in member.compiled:
            self._release(member, member.compiled.pop(name))

    def _release(self, member: _Member, alternatives: list[Alternative]) -> None:
        for alternative in alternatives:
            member.alternatives.remove(alternative)
            self.catalog.unwant(alternative.edges, alternative.valued)
            for pattern in alternative.patterns:
                self.catalog.remove(pattern)
        self._plan = None

    # -- published streams

    def _settle(self, stream: str | None) -> None:
        """Bring the readers of a stream up to date with where it is published now."""
        if stream is None:
            return
        published = self._published(stream)
        if published == self._streams.get(stream):
            return
        if published is None:
            del self._streams[stream]
        else:
            self._streams[stream] = published
        readers = [
            member
            for member in self._members.values()
            if any(block.stream == stream for block in member.query.blocks)
        ]
        for member in readers:
            assignments = [uses[0].subscriber.parameters for uses in member.uses.values() if uses]
            self.remove(member.query.id)
            self.add(RegisteredQuery(member.query, member.registration_point, tuple(assignments)))

    def _published(self, stream: str) -> Published | None:
        publishers = [m for m in self._members.values() if m.query.publish == stream]
        if not publishers:
            return None
        roots = [a.root for m in publishers for a in m.alternatives]
        return Published(
            max((root.query_class.stratum + 1 for root in roots), default=1),
            max(map(_reach, publishers)),
        )


def _are_texts(alternatives: list[Alternative], values: Assignment) -> bool:
    """Return whether all that is compiled as equality with a string is given a string."""
    return all(
        isinstance(constant, str) or isinstance(values[constant.name], str)
        for alternative in alternatives
        for clause in alternative.clauses
        for _, constant in clause.constants
    )


def _reach(member: _Member) -> int:
    """Return how far a query's matches reach back, the windows of its assignments included."""
    fixed = max((a.root.reach_us for a in member.alternatives), default=0)
    if member.prepared is None:
        return fixed
    given = (
        use.window_us
        for uses in member.uses.values()
        for use in uses
        if isinstance(use.clause.window_us, Parameter)
    )
    return min(INFINITE_US, fixed + max(given, default=0))


def _name(values: Assignment) -> str:
    """Return an assignment as text: equal assignments, equal names."""
    return json.dumps(values, sort_keys=True) if values else ""


def publishers_first(queries: Iterable[RegisteredQuery]) -> Iterator[RegisteredQuery]:
    """Yield every query after those whose published streams it reads."""
    waiting = list(queries)
    while waiting:
        unfinished = {r.query.publish for r in waiting if r.query.publish is not None}
        ready = [r for r in waiting if unfinished.isdisjoint(b.stream for b in r.query.blocks)]
        if not ready:
            raise ValueError("published streams form a cycle")
        yield from ready
        waiting = [r for r in waiting if r not in ready]
