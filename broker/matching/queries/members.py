"""What is asked of the queries in force: who reads what, from where on, and how far back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence, Set

from broker.matching.fanout import FanOut
from broker.matching.limits import MatchingLimits
from broker.matching.mrules import MRule
from broker.matching.queries.classuses import Classes, ClassUses
from broker.matching.queries.member import Member, SourceTopics
from broker.tables.groups import Group
from broker.tables.users import TableUsers
from templates.clause import Published
from xpath_eval.prefilters import Missing
from xscl.query import INFINITE_US, Query

__all__ = ["Members"]


class Members:
    """The queries in force, by their ids and by the streams that they read and publish.

    `uses` counts their uses of classes, `fan_out` has them.
    """

    def __init__(
        self, classes: Classes, limits: MatchingLimits, without: Collection[MRule]
    ) -> None:
        self.fan_out = FanOut(limits)
        self.uses = ClassUses(classes, self.fan_out, without)
        self._members: dict[str, Member] = {}
        self._streams: dict[str, Published] = {}
        self._readers: dict[str, dict[str, Member]] = {}
        self._publishers: dict[str, dict[str, Member]] = {}
        self._with_outcome: dict[str, Member] = {}
        self._using = TableUsers()

    def __contains__(self, query_id: object) -> bool:
        return query_id in self._members

    def get(self, query_id: str) -> Query | None:
        """Return the query of an id, None where there is none."""
        member = self._members.get(query_id)
        return None if member is None else member.query

    def revision(self, query_id: str) -> int:
        """Return the registry's number of a query's statement."""
        return self._members[query_id].revision

    def revision_of(self, query_id: str) -> int | None:
        """Return the registry's number of a query's statement, None where the query is gone."""
        member = self._members.get(query_id)
        return None if member is None else member.revision

    def stated_at(self, query_id: str) -> int:
        """Return the revision at which a query was stated; pauses do not state it anew."""
        return self._members[query_id].stated_at

    def is_stated(self, query_id: str, stated_at: int) -> bool:
        """Return whether a query is in force as it was stated at a revision."""
        member = self._members.get(query_id)
        return member is not None and member.stated_at == stated_at

    def paused_through(self, query_id: str) -> int:
        """Return the last document at which a query was paused; 0 if it never was."""
        return self._members[query_id].paused_through

    def is_read(self, stream: str) -> bool:
        """Return whether some query reads a stream."""
        return stream in self._readers

    @property
    def groups(self) -> Sequence[Group]:
        """What asks and writes tables, in the order in which it runs."""
        return self._using.groups

    def outcomes(self, stratum: int) -> list[str]:
        """Return the queries whose matches are judged together and known behind a stratum."""
        return sorted(
            name
            for name, member in self._with_outcome.items()
            if member.uses and self.stratum_of(name) == stratum
        )

    def askers(self, query_id: str, source: str) -> SourceTopics | None:
        """Return who asks for what a query makes of a source, None where nobody does."""
        member = self._members.get(query_id)
        return None if member is None else member.askers.get(source)

    def creating(self) -> Iterator[Query]:
        """Yield the queries of CREATE TABLE."""
        return (query for query in self._using.queries() if query.table is not None)

    def hands_on(self, query_id: str) -> bool:
        """Return whether a query's tuples or matches are read by other operators."""
        member = self._members[query_id]
        return member.query.publish is not None or member.hands_on()

    def has_inner(self, query_id: str) -> bool:
        """Return whether a query has operators whose tuples are handed on to others of it."""
        return self._members[query_id].has_inner()

    def asks_each(self, query_id: str) -> bool:
        """Return whether a query has operators that are handed on once for each of the data."""
        return self._members[query_id].asks_each()

    def classes_of(self, query_id: str) -> set[int]:
        """Return the numbers of a query's classes."""
        return {use.query_class for use in self._members[query_id].all_uses()}

    def unread_classes(self) -> Set[int]:
        """Return the numbers of the classes whose tuples and matches no other operator reads."""
        read = {
            use.query_class
            for member in self._members.values()
            if member.query.publish is not None or member.hands_on()
            for use in member.all_uses()
            if member.query.publish is not None or use.clause.stream or use.topic.source
        }
        return self.fan_out.classes() - read

    def retaining(self, classes: Collection[int], kept_us: int) -> list[str]:
        """Return the queries that keep instances for some classes, and for exactly `kept_us`."""
        return sorted(
            name
            for name, member in self._members.items()
            if member.query.table is None  # others use the table
            and any(
                use.kept_us == kept_us and use.query_class in classes for use in member.all_uses()
            )
        )

    @property
    def must_probe(self) -> bool:
        """Whether the state holds tuples or published documents, besides documents from outside."""
        return bool(self._streams) or any(member.hands_on() for member in self._members.values())

    def kept_us(self, streams: Iterable[str]) -> dict[str, int]:
        """Return for how long documents of published streams are kept, by stream.

        The readers of a stream decide it, also when no query publishes the stream any more: they
        join documents, and make rows and graphs of them.
        """
        readers = {stream: self._readers.get(stream, {}).values() for stream in streams}
        return {
            stream: max((self.uses.kept_us(each.number) for each in some), default=0)
            for stream, some in readers.items()
        }

    def retentions_us(self, docid: int) -> dict[str, int]:
        """Return by stream for how long documents up to a docid are needed to make the state again.

        Streams without joins are left out.  The documents behind a published one are needed for as
        long as the published one, and longer by the windows of its publisher.
        """
        needed: dict[str, int] = {}
        retentions = {
            stream: max(self._needed_us(each, docid, needed) for each in readers.values())
            for stream, readers in self._readers.items()
        }
        return {stream: retention_us for stream, retention_us in retentions.items() if retention_us}

    def _needed_us(self, member: Member, docid: int, needed: dict[str, int]) -> int:
        """Return for how long a member needs documents; `needed` has what is known already."""
        name = member.query.id
        if name not in needed:
            readers = self._readers.get(member.query.publish or "", {}).values()
            own = self.uses.kept_us(member.number)
            later = max((self._needed_us(each, docid, needed) for each in readers), default=0)
            is_asked = member.registration_point < docid
            needed[name] = min(INFINITE_US, own + later) if is_asked else 0
        return needed[name]

    def first_point(self, missing: Missing) -> int | None:
        """Return the lowest point of the queries that need any of this; None if none does."""
        points = (
            point
            for member in self._members.values()
            for point, alternatives in member.asking()
            for asked in alternatives
            if missing.is_needed(asked.edges, asked.valued, asked.admitted)
        )
        return min(points, default=None)

    def stratum_of(self, query_id: str) -> int:
        """Return the stratum of a query's matches."""
        member = self._members.get(query_id)
        roots = [a.root.query_class.stratum for a in member.alternatives] if member else []
        return max(roots, default=0)

    # -- for who changes the set -----------------------------------------------------------------

    def _enter(self, member: Member) -> None:
        """Have a query that is not there yet."""
        query = member.query
        self._members[query.id] = member
        for streams, stream in self._streams_of(query):
            streams.setdefault(stream, {})[query.id] = member
        if query.is_judged_together:
            self._with_outcome[query.id] = member
        self._using.add(query)

    def _drop(self, member: Member) -> None:
        """Undo one `_enter`."""
        query = member.query
        del self._members[query.id]
        self._with_outcome.pop(query.id, None)
        for streams, stream in self._streams_of(query):
            del streams[stream][query.id]
            if not streams[stream]:
                del streams[stream]
        self._using.remove(query)

    def _streams_of(self, query: Query) -> Iterator[tuple[dict[str, dict[str, Member]], str]]:
        """Yield each stream of a query, after the index that has the query under the stream."""
        for stream in {block.stream for block in query.blocks}:
            yield self._readers, stream
        if query.publish is not None:
            yield self._publishers, query.publish
