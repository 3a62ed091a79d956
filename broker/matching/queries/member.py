"""A registered query as a member of a set: its compiled alternatives, and the uses of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from broker.matching.queries.handedon import HandedOn
from broker.matching.queries.registration import Assignment, RegisteredQuery
from broker.matching.uses import Topic, Use
from templates.box import GivenKind, MustBe
from templates.clause import Alternative, Clause
from xscl.passedbounds import without_bounds
from xscl.query import INFINITE_US, Query, SelectKind
from xscl.sequence import windows_within
from xscl.substitution import parameters_in

__all__ = [
    "Kinds",
    "Member",
    "Name",
    "Shared",
    "SourceTopics",
    "fit",
    "name_of",
    "of_kinds",
    "retention_of",
    "several",
    "typed",
]

Name = str | int | bytes
"""What assignments of one query are told apart by."""


Kinds = frozenset[tuple[str, GivenKind]]
"""The kinds of parameters, where they are not those that a query is compiled for at first."""

_NO_KINDS: Kinds = frozenset()
_NO_NAMES: frozenset[str] = frozenset()


@dataclass(slots=True)
class Shared:
    """The alternatives of all assignments of one point and kind, and the assignments' names."""

    alternatives: list[Alternative]
    names: set[Name] = field(default_factory=set)


@dataclass(slots=True, eq=False)
class SourceTopics:
    """Who asks for what is made of one source, by name; `changes` grows with each change."""

    topics: dict[Name, Topic] = field(default_factory=dict)
    changes: int = 0


@dataclass(slots=True)
class Member:
    """A registered query, compiled once if it is `prepared`, else once for each assignment.

    Where strings are held against parameters that may be numbers, it is compiled once more for the
    assignments in which some of these are (`of_kind`; None where that is of no use).

    Where documents compete, as under NEXT, it is compiled once for each registration point of
    assignments, and for what is a number there (`shared`), or once for each assignment: of the
    numbers that set some `apart`, or all.  `held` are the parameters that must be strings, or must
    not.  `uses`, those of roots (`several`), and
    `compiled` are by the name of an assignment (`name_of`); what the inner operators of all
    assignments use is `handed_on`.
    `sources` are those compiled for assignments by the name of what they find (`found_by`), which
    several may share.  A `number` is never given twice.  `askers` has who asks for the rows, or
    graphs, of each source; `has_moved` says that alternatives have come or gone.  Its `windows` are
    parameters that have to be lengths for that: without a bound WITHIN is the window.
    """

    query: Query
    registration_point: int
    revision: int
    stated_at: int
    paused_through: int
    handed_on: HandedOn
    number: int
    prepared: list[Alternative] | None = None
    may_share: bool = False
    shared: dict[tuple[int, Kinds], Shared] = field(default_factory=dict)
    apart: set[Kinds] = field(default_factory=set)
    held: frozenset[tuple[str, MustBe]] | None = None
    alternatives: list[Alternative] = field(default_factory=list)
    uses: dict[Name, Use | tuple[Use, ...]] = field(default_factory=dict)
    compiled: dict[Name, list[Alternative]] = field(default_factory=dict)
    sources: dict[str, list[Alternative]] = field(default_factory=dict)
    askers: dict[str, SourceTopics] = field(default_factory=dict)
    of_kind: dict[Kinds, list[Alternative] | None] = field(default_factory=dict)
    grace_us: int = 0
    has_moved: bool = False
    matching: frozenset[str] = field(init=False)
    windows: frozenset[str] = field(init=False)
    has_sources: bool = field(init=False)
    _asked_of: list[Alternative] | None = None
    _asked: frozenset[tuple[str, MustBe]] = frozenset()

    def __post_init__(self) -> None:
        self.matching = matching_parameters(self.query)
        query = self.query
        self.windows = frozenset(windows_within(query.root)) if query.parameters else _NO_NAMES
        self.has_sources = query.rows is not None or query.kind is SelectKind.COMPRESSED

    def found_by(self, values: Assignment, point: int) -> str:
        """Name the matches of an assignment, whatever rows and SELECT make of them."""
        own = {name: value for name, value in values.items() if name in self.matching}
        return f"{self.query.version} {point} {spelled(own)}"

    def source(self, values: Assignment, point: int) -> str:
        """Name what an assignment has rows or graphs of, `""` where it has none."""
        query = self.query
        if not self.has_sources:
            return ""
        if query.rows is not None and not query.tables:
            return self.found_by(values, point)
        return f"{query.version} {point} {spelled(values)}"

    def ask(self, topic: Topic) -> None:
        """Have a topic ask for what is made of its source."""
        asking = self.askers.setdefault(topic.source, SourceTopics())
        asking.topics[name_of(topic.parameters)] = topic
        asking.changes += 1

    def ask_no_more(self, topic: Topic) -> None:
        """Undo one `ask`, unless another topic with these values has asked since."""
        asking = self.askers.get(topic.source)
        if asking is None:
            return
        name = name_of(topic.parameters)
        if asking.topics.get(name) is topic:
            del asking.topics[name]
            asking.changes += 1
            if not asking.topics:
                del self.askers[topic.source]

    def all_uses(self) -> Iterator[Use]:
        """Yield the uses of roots and of inner operators."""
        yield from self.root_uses()
        yield from self.handed_on.uses()

    def root_uses(self) -> Iterator[Use]:
        """Yield the uses of roots."""
        for found in self.uses.values():
            yield from several(found)

    def all_alternatives(self) -> Iterator[list[Alternative]]:
        """Yield what has been compiled: for all assignments, by point, and for some of them."""
        if self.prepared is not None:
            yield self.prepared
        yield from filter(None, self.of_kind.values())
        yield from [shared.alternatives for shared in self.shared.values()]
        yield from {id(each): each for each in self.compiled.values()}.values()

    def hands_on(self) -> bool:
        """Return whether an operator of the query reads another one's tuples."""
        return any(len(alternative.clauses) > 1 for alternative in self.alternatives)

    def has_inner(self) -> bool:
        """Return whether an operator of the query reads tuples of others, and not blocks alone.

        A block that is handed on by data that an index finds is as many tuples as these are.
        """
        return any(
            len(clause.sources) > 1 or clause.deciding or clause.counts_by_data
            for alternative in self.alternatives
            for clause in alternative.clauses[:-1]
        )

    def asks_each(self) -> bool:
        """Return whether an operator of the query is handed on once for each of the data."""
        return any(
            clause.is_by_data for alternative in self.alternatives for clause in alternative.clauses
        )

    def asking(self) -> Iterator[tuple[int, list[Alternative]]]:
        """Yield the alternatives to be evaluated, each with the point from which on they are."""
        if self.prepared is not None and self.uses:
            points = (use.topic.registration_point for use in self.root_uses())
            point = min(points)
            yield point, self.prepared
            yield from ((point, each) for each in filter(None, self.of_kind.values()))
        for (point, _), shared in self.shared.items():
            yield point, shared.alternatives
        for name, alternatives in self.compiled.items():
            points = (use.topic.registration_point for use in several(self.uses[name]))
            yield min(points, default=self.registration_point), alternatives

    def prepared_for(self, values: Assignment) -> list[Alternative] | None:
        """Return the alternatives for all assignments, or None if they do not fit this one."""
        kinds = self.kinds_in(values)
        if kinds is None:
            return None
        return self.of_kind.get(kinds) if kinds else self.prepared

    def kinds_in(self, values: Assignment) -> Kinds | None:
        """Return the parameters that are something else here than what they are held against.

        It is None where the query has no alternatives for all assignments, or none of its kinds has
        some, as where there is a string for what is decided in steps.
        """
        if self.prepared is None or self.has_other_windows(values):
            return None
        if self._asked_of is not self.prepared:
            self._asked_of, self._asked = self.prepared, typed(self.prepared)
        kinds = _NO_KINDS
        for name, asked in self._asked:
            given = values[name]
            if asked is MustBe.STRING:
                if not isinstance(given, str):
                    kinds |= {(name, GivenKind.NUMBER)}
            elif not asked.fits(given):
                kind = asked.kind_of(given)
                if kind is None:
                    return None
                kinds |= {(name, kind)}
        return kinds

    def has_other_windows(self, values: Assignment) -> bool:
        """Return whether a window is that of WITHIN under an assignment, as it has no bound."""
        return any(values[name] == INFINITE_US for name in self.windows)

    def shared_by(self, values: Assignment, point: int) -> tuple[int, Kinds]:
        """Return what tells those with whom an assignment may share what is decided.

        It is the point from which on documents are seen, and what is of another kind than what it
        is held against.
        """
        held = self.held or frozenset()
        others = ((n, each.kind_of(values[n])) for n, each in held if not each.fits(values[n]))
        return point, frozenset((name, kind) for name, kind in others if kind is not None)

    def points(self, values: Assignment) -> set[int]:
        """Return the registration point of an assignment; the empty set if it is not there."""
        uses = several(self.uses.get(name_of(values), ()))
        return {use.topic.registration_point for use in uses}

    def sees(self, values: Assignment, point: int) -> bool:
        """Return whether the state has all documents above a point that an assignment asks for.

        It has them if the assignment is there, or if others use the same clauses, with windows as
        wide and from as low a point.  But tuples of inner operators are kept only as far as some
        assignment asks for them, and where assignments do not share clauses their streams are named
        after a point.
        """
        point = max(point, self.registration_point)
        alternatives = self.prepared_for(values)
        if points := self.points(values):
            is_shared = alternatives is not None or not self.hands_on()
            # What rows and limits have found is found anew from another point on.
            is_shared = is_shared and not self.query.is_settled
            return points == {point} or (is_shared and max(points) <= point)
        return (
            alternatives is not None
            and not self.hands_on()
            and all(
                self._keeps(each.root, each.root.window_under(values), point)
                for each in alternatives
            )
        )

    def _keeps(self, clause: Clause, kept_us: int, point: int) -> bool:
        return any(
            use.clause is clause
            and use.kept_us >= min(INFINITE_US, kept_us)
            and use.topic.registration_point <= point
            for use in self.root_uses()
        )

    def is_same(self, registered: RegisteredQuery) -> bool:
        """Return whether a query is registered as before, its assignments aside."""
        return (
            self.query.version == registered.query.version
            and self.registration_point == registered.registration_point
        )

    def registered(self) -> RegisteredQuery:
        """Return the member as it is registered."""
        topics = [several(found)[0].topic for found in self.uses.values() if found]
        return RegisteredQuery(
            self.query,
            self.registration_point,
            tuple(topic.parameters for topic in topics),
            tuple(topic.registration_point for topic in topics),
            self.revision,
            self.stated_at,
            self.paused_through,
        )

    def retention_us(self) -> int:
        """Return how far matches reach back, the windows of assignments included."""
        return max(map(retention_of, self.root_uses()), default=0)


def several(found: Use | tuple[Use, ...]) -> tuple[Use, ...]:
    """Return the uses of an assignment, of which one alone stands for itself."""
    return found if isinstance(found, tuple) else (found,)


def fit(alternatives: Sequence[Alternative], values: Assignment) -> bool:
    """Return whether alternatives for all assignments are for this one."""
    asked = typed(alternatives)
    return all(each.fits(values[name]) for name, each in asked)


def typed(alternatives: Sequence[Alternative]) -> frozenset[tuple[str, MustBe]]:
    """Return the parameters of whose values something is asked, each with what it is.

    Some are held against strings, others against what is decided in steps.
    """
    return frozenset(
        typed
        for alternative in alternatives
        for clause in alternative.clauses
        for test in clause.box
        for typed in test.typed()
    )


def of_kinds(query: Query, kinds: Kinds) -> Query:
    """Return a query for assignments whose parameters are of some kinds."""
    if not kinds:
        return query
    numbers, others = (
        {name for name, own in kinds if own is kind}
        for kind in (GivenKind.NUMBER, GivenKind.NO_NUMBER)
    )
    types = tuple([(n, "number" if n in numbers else each) for n, each in query.parameters])
    return without_bounds(replace(query, parameters=types), others)


def matching_parameters(query: Query) -> frozenset[str]:
    """Return the parameters on which it depends which matches a query has.

    What is asked of its rows has no part in that, nor has what they show.
    """
    if not query.parameters:
        return _NO_NAMES
    rows = query.rows
    asked = None if rows is None else (rows.keys, rows.aggregates)
    behind = (query.limit, query.kind) if rows is None else asked
    return frozenset(
        parameters_in((query.blocks, query.root, query.actions, query.confidence, behind))
    )


_spell = json.JSONEncoder(sort_keys=True).encode


def name_of(values: Assignment) -> Name:
    """Return the name of an assignment of a query; equal assignments have equal names.

    It is the value where one is all and tells itself from others, else bytes that spell them all.
    """
    if len(values) == 1:
        (value,) = values.values()
        # Not a float: two that are no number are one, and zeros of two signs are two.
        if type(value) is str or type(value) is int:
            return value
    return spelled(values).encode()


def spelled(values: Assignment) -> str:
    """Return an assignment as text."""
    return _spell(values) if values else ""


def retention_of(use: Use) -> int:
    """Return how far the oldest document may lie behind the end of a match or row."""
    given = use.topic
    own_us = use.clause.reach.under(given.parameters)
    later_us = given.outcome_us(own_us) if given.has_outcome else 0
    return min(INFINITE_US, own_us + later_us) if later_us else own_us
