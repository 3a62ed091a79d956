"""The queries of an engine, which come and go while documents flow.

Adding a query compiles it, adds its patterns to the catalog and its classes to the join; removing
it undoes exactly that.  Nothing is rebuilt.  An assignment of a parameterised query whose
parameters are all data costs no compiling: it is one more use of the query's classes.

A query that publishes a stream decides in which stratum the stream is read.  When that changes,
the queries that read the stream are compiled again, in place.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from broker.matching.limits import DEFAULT_MATCHING_LIMITS, MatchingLimits
from broker.matching.mrules import MRule
from broker.matching.queries.classuses import Classes
from broker.matching.queries.collecting import without_collecting
from broker.matching.queries.handedon import HandedOn
from broker.matching.queries.member import (
    Kinds,
    Member,
    Name,
    Shared,
    fit,
    name_of,
    of_kinds,
    retention_of,
    several,
    typed,
)
from broker.matching.queries.members import Members
from broker.matching.queries.registration import (
    Assignment,
    RegisteredQuery,
    SetChange,
    publishers_first,
)
from broker.matching.uses import Topic, Use
from templates.clause import Alternative, Published
from templates.compiler import compile_query
from templates.prepared import is_decided_alone, is_prepared, may_be_prepared
from xpath_eval.catalog import Definition, EvaluationPlan, Numbering, PatternCatalog
from xscl.query import Query
from xscl.substitution import substitute

__all__ = ["InForce", "QuerySet"]


@dataclass(frozen=True, slots=True)
class InForce:
    """What is evaluated at one moment: patterns by their variables, and the uses of classes."""

    definitions: Sequence[tuple[int, Definition]]
    uses: Sequence[Use]


class QuerySet(Members):
    """The queries in force, with their patterns in a catalog and their classes in the join.

    With `plans_only` it leaves out the assignments that evaluation does not depend on.
    `lateness_us` is the grace of queries that say none.  The m-rules of `without` are left out.
    """

    def __init__(
        self,
        classes: Classes,
        numbering: Numbering | None = None,
        *,
        plans_only: bool = False,
        lateness_us: int = 0,
        limits: MatchingLimits = DEFAULT_MATCHING_LIMITS,
        without: Collection[MRule] = (),
    ) -> None:
        super().__init__(classes, limits, without)
        self._lateness_us = lateness_us
        self._shares = MRule.C_SEQ not in without
        self._last_number = 0
        self.catalog = PatternCatalog(numbering or Numbering())
        self._leaving: list[Use] = []
        self._plans_only = plans_only
        self._plan: EvaluationPlan | None = None
        self._is_settling = False

    @property
    def plan(self) -> EvaluationPlan:
        """The patterns, edges and values that evaluation has to find now."""
        if self._plan is None:
            self._plan = self.catalog.plan()
        return self._plan

    @property
    def retention_us(self) -> int:
        """The longest time between the newest document of a match and its oldest one."""
        return self.uses.retention_us

    def in_force(self) -> InForce:
        """Return what is evaluated now, which no later change touches."""
        return InForce(self.plan.definitions, tuple(self.fan_out.uses()))

    def add(self, registered: RegisteredQuery) -> None:
        """Add a query that is not there yet, with its assignments."""
        query = registered.query
        assert query.id not in self._members, query.id
        self._last_number += 1
        member = Member(
            query,
            registered.registration_point,
            registered.revision,
            registered.stated_at,
            registered.paused_through,
            HandedOn(query, self._last_number, self.uses),
            self._last_number,
        )
        self._enter(member)
        self._compile(member)
        for values, point in registered.pointed():
            self._assign(member, values, point)
        self._settle_assigned(member)
        member.has_moved = False
        self._settle(query.publish)
        self._settle_tables(query)

    def remove(self, query_id: str) -> None:
        """Remove a query with all its assignments."""
        member = self._members[query_id]
        # What assignments ask for goes at once, and not one after the other.
        self._leaving += member.root_uses()
        self._leaving += member.handed_on.clear()
        self._leave()
        for alternatives in member.all_alternatives():
            self._release(member, alternatives)
        for each in (member.uses, member.askers, member.compiled, member.sources, member.shared):
            each.clear()
        self._drop(member)
        self._settle(member.query.publish)
        self._settle_tables(member.query)

    def follow(self, change: SetChange) -> None:
        """Make a change: remove and add the queries and assignments that differ, and no others."""
        with without_collecting():
            self._follow(change)

    def _follow(self, change: SetChange) -> None:
        for query_id in change.gone:
            if query_id in self._members:
                self.remove(query_id)
        for registered in change.queries:
            member = self._members.get(registered.query.id)
            if member is None:
                continue
            if member.is_same(registered):
                member.revision, member.stated_at = registered.revision, registered.stated_at
                member.paused_through = registered.paused_through
            else:
                self.remove(registered.query.id)
        for registered in publishers_first(change.queries):
            query_id = registered.query.id
            if query_id not in self._members:
                self.add(registered)
            elif registered.query.parameters:
                self._follow_assignments(self._members[query_id], registered)
        for query_id, values, point in change.assigned:
            self._follow_assignment(self._members[query_id], values, point)
        for query_id in dict.fromkeys(query_id for query_id, _, _ in change.assigned):
            self._settle_assigned(self._members[query_id])

    def _follow_assignments(self, member: Member, registered: RegisteredQuery) -> None:
        wanted = {name_of(values): (values, point) for values, point in registered.pointed()}
        for name in member.uses.keys() - wanted.keys():
            self._unassign(member, name)
        for values, point in wanted.values():
            self._follow_assignment(member, values, point)
        self._settle_assigned(member)

    def _follow_assignment(self, member: Member, values: Assignment, point: int | None) -> None:
        if point is None:
            if name_of(values) in member.uses:
                self._unassign(member, name_of(values))
        elif member.points(values) != {max(point, member.registration_point)}:
            name = name_of(values)
            uses, compiled = member.uses.pop(name, ()), member.compiled.pop(name, [])
            self._assign(member, values, point)
            # Last: what another point asks for again has been asked for all the while.
            self._undo(member, several(uses), compiled)

    def first_new_point(self, change: SetChange) -> int | None:
        """Return the lowest registration point that `follow` would add; None if it adds nothing."""
        points = []
        for registered in change.queries:
            member = self._members.get(registered.query.id)
            is_new = member is None or not member.is_same(registered)
            for values, point in registered.pointed():
                if is_new or member is None or not member.sees(values, point):
                    points.append(point)
        for query_id, values, first in change.assigned:
            member = self._members[query_id]
            if first is not None and not member.sees(values, first):
                points.append(max(first, member.registration_point))
        return min(points, default=None)

    def assign(self, query_id: str, values: Assignment, point: int = 0) -> None:
        """Add an assignment of a query's parameters; one that is there already changes nothing."""
        member = self._members[query_id]
        self._assign(member, values, point)
        member.handed_on.settle()
        self.uses.settle()

    def _assign(self, member: Member, values: Assignment, point: int) -> None:
        """Add an assignment; what inner operators hand on for it waits for their `settle`."""
        if point < member.registration_point:
            point = member.registration_point
        name = name_of(values)
        if name in member.uses:
            return
        source = member.source(values, point) if member.has_sources else ""
        alternatives = self._prepared(member, values) or self._shared(member, values, point)
        if alternatives is None:
            alternatives = member.compiled[name] = self._apart(member, values, point)
        elif self._plans_only and member.prepared is not None:
            return
        uses: list[Use] = []
        topic = Topic(member.query, values, point, source, len(alternatives))
        if source:
            member.ask(topic)
        enter, number = self.uses.enter, member.number
        for alternative in alternatives:
            for clause, above in alternative.above:
                if clause.stream:
                    member.handed_on.add(clause, values, point, above.under(values))
                else:
                    window_us = clause.window_under(values)
                    uses.append(enter(number, clause, window_us, topic, window_us))
        member.uses[name] = uses[0] if len(uses) == 1 else tuple(uses)
        read = self._streams.get(member.query.publish or "")
        if read is not None and max(map(retention_of, uses), default=0) > read.retention_us:
            self._settle(member.query.publish)

    def _apart(self, member: Member, values: Assignment, point: int) -> list[Alternative]:
        """Return the alternatives of an assignment, and of others that find the same."""
        if not member.query.parameters:
            return self._compiled(member, member.query, point)
        found_by = member.found_by(values, point)
        alternatives = member.sources.get(found_by)
        if alternatives is None:
            plain = substitute(member.query, values)
            alternatives = member.sources[found_by] = self._compiled(member, plain, point)
        return alternatives

    def unassign(self, query_id: str, values: Assignment) -> None:
        """Remove an assignment; one that is not there changes nothing."""
        member = self._members[query_id]
        if name_of(values) in member.uses:
            self._unassign(member, name_of(values))
        self._settle_assigned(member)

    def _settle_assigned(self, member: Member) -> None:
        """Bring everything up to date with assignments that have come and gone.

        Where these are compiled by themselves, the last one that goes takes the query's stratum
        with it, and the next one brings another.
        """
        member.handed_on.settle()
        self.uses.settle()
        self._leave()
        if member.has_moved:
            member.has_moved = False
            self._settle(member.query.publish)
            self._settle_tables(member.query)

    def _compile(self, member: Member) -> None:
        """Compile a parameterised query once for all assignments, where that is possible."""
        query = member.query
        if not query.parameters or not may_be_prepared(query):
            return
        if not query.is_plain and not is_decided_alone(query):
            member.may_share = True
            return
        alternatives = self._compiled(member, query, member.registration_point)
        if is_prepared(alternatives):
            member.prepared = alternatives
        else:
            self._release(member, alternatives)

    def _prepared(self, member: Member, values: Assignment) -> list[Alternative] | None:
        """Return the alternatives for all assignments, None if there are none that fit.

        Of other kinds, as where what may be a string is a number, they are compiled with the first
        such assignment.
        """
        kinds = member.kinds_in(values)
        if not kinds:
            return member.prepared if kinds is not None else None
        if kinds not in member.of_kind:
            given = of_kinds(member.query, kinds)
            alternatives = self._compiled(member, given, member.registration_point)
            if not (is_prepared(alternatives) and fit(alternatives, values)):
                self._release(member, alternatives)
                alternatives = []
            member.of_kind[kinds] = alternatives or None
        return member.of_kind[kinds]

    def _compiled(self, member: Member, query: Query, point: int) -> list[Alternative]:
        """Compile a member's query, with values in the place of parameters or as it is."""
        if query.tables:
            member.grace_us = self._grace_us(query)
            query = replace(query, grace=member.grace_us)
        alternatives = compile_query(
            query, point, self.catalog, self._streams, self._lateness_us, shares=self._shares
        )
        member.alternatives += alternatives
        member.has_moved = True
        self._plan = None
        return alternatives

    def _shared(self, member: Member, values: Assignment, point: int) -> list[Alternative] | None:
        """Return the alternatives for all assignments from a point on, None if they do not fit.

        What is decided depends on the documents that are seen, so each point has its own.
        """
        if not member.may_share or member.has_other_windows(values):
            return None
        if member.held is None:
            self._share(member, values, (point, frozenset()))
        key = member.shared_by(values, point)
        shared = member.shared.get(key) or self._share(member, values, key)
        if shared is None or not fit(shared.alternatives, values):
            return None
        shared.names.add(name_of(values))
        return shared.alternatives

    def _share(self, member: Member, values: Assignment, key: tuple[int, Kinds]) -> Shared | None:
        """Compile a query for all assignments of one kind and point; None if they do not fit."""
        point, kinds = key
        if not member.may_share or kinds in member.apart:
            return None
        alternatives = self._compiled(member, of_kinds(member.query, kinds), point)
        if not kinds:
            member.held = typed(alternatives)
            member.may_share = is_prepared(alternatives)
        if is_prepared(alternatives) and fit(alternatives, values):
            shared = member.shared[key] = Shared(alternatives)
            return shared
        if kinds:
            member.apart.add(kinds)
        self._release(member, alternatives)
        return None

    def _unassign(self, member: Member, name: Name) -> None:
        self._undo(member, several(member.uses.pop(name)), member.compiled.pop(name, []))

    def _undo(self, member: Member, uses: Sequence[Use], compiled: list[Alternative]) -> None:
        """Undo what `assign` did for an assignment with these uses and alternatives of its own."""
        if not uses:
            return
        given = uses[0].topic
        member.ask_no_more(given)
        key = member.shared_by(given.parameters, given.registration_point)
        shared = None if compiled else member.shared.get(key)
        prepared = member.prepared_for(given.parameters) or []
        alternatives = compiled or (shared.alternatives if shared else prepared)
        for alternative in alternatives:
            for clause, above in alternative.above:
                if clause.stream:
                    point, values = given.registration_point, given.parameters
                    member.handed_on.remove(clause, values, point, above.under(values))
        self._leaving += uses
        if compiled and not any(each is compiled for each in member.compiled.values()):
            member.sources = {n: each for n, each in member.sources.items() if each is not compiled}
            self._release(member, compiled)
        elif shared is not None:
            shared.names.remove(name_of(given.parameters))
            if not shared.names:
                del member.shared[key]
                self._release(member, shared.alternatives)

    def _leave(self) -> None:
        """Take away the uses of what has gone, together."""
        leaving, self._leaving = self._leaving, []
        if leaving:
            self.uses.leave(leaving)

    def _release(self, member: Member, alternatives: list[Alternative]) -> None:
        for alternative in alternatives:
            member.alternatives.remove(alternative)
            self.catalog.unwant(alternative.edges, alternative.valued)
            for pattern in alternative.patterns:
                self.catalog.remove(pattern)
        member.has_moved = True
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
        for member in list(self._readers.get(stream, {}).values()):
            registered = member.registered()
            self.remove(member.query.id)
            self.add(registered)

    def _published(self, stream: str) -> Published | None:
        publishers = list(self._publishers.get(stream, {}).values())
        if not publishers:
            return None
        roots = [a.root for m in publishers for a in m.alternatives]
        decided = (self._using.stratum_of(member.query) for member in publishers)
        return Published(
            max((*(1 + root.query_class.stratum for root in roots), *(1 + s for s in decided), 1)),
            max(member.retention_us() for member in publishers),
            max(self._grace_us(member.query) for member in publishers),
        )

    # -- tables

    def _settle_tables(self, changed: Query) -> None:
        """Bring queries up to date with the graces of tables, and readers with when guards run."""
        if not self._using or not (changed.tables or changed.publish) or self._is_settling:
            return
        self._is_settling = True
        is_settled = False
        while not is_settled:
            self._using.order(self.stratum_of, self._own_grace_us)
            is_settled = True
            for query in list(self._using.queries()):
                member = self._members.get(query.id)
                if member is None or not member.alternatives:
                    continue
                if member.grace_us != self._grace_us(query):
                    registered = member.registered()
                    self.remove(query.id)
                    self.add(registered)
                    is_settled = False
            for query in list(self._using.queries()):
                if query.publish is not None:
                    before = self._streams.get(query.publish)
                    self._settle(query.publish)
                    is_settled = is_settled and before == self._streams.get(query.publish)
        self._is_settling = False

    def _own_grace_us(self, query: Query) -> int:
        """Return the grace of a query but for its tables': at least that of what it reads.

        A load has that of its table.
        """
        own_us = self._lateness_us if query.grace is None else query.grace
        read = {block.stream for block in query.blocks}
        graces = (each.grace_us for name, each in self._streams.items() if name in read)
        own_us = 0 if query.table is not None else min(own_us, self._lateness_us)
        return max(own_us, *graces, 0)

    def _grace_us(self, query: Query) -> int:
        """Return the grace of a query: what it says, and at least that of what it reads."""
        return max(self._own_grace_us(query), self._using.grace_us(query))
