"""What the registry's texts are as queries: checked among one another, and as an engine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import xscl
from broker.matching.costs.budget import DEFAULT_BUDGET, Budget, Pause
from broker.matching.engine import Engine
from broker.matching.lateness import Lateness
from broker.matching.limits import DEFAULT_MATCHING_LIMITS, MatchingLimits
from broker.matching.match import parameters_key
from broker.matching.queries.queryset import QuerySet
from broker.matching.queries.registration import Assignment, RegisteredQuery, SetChange
from broker.registry.among import among, by_stream, check_query, used_tables, users_of
from broker.registry.queries import QueryState, RegisteredText, Registry
from joins import ClassRegistry, Processor
from xpath_eval.catalog import EvaluationPlan, Numbering
from xscl.table import Table

__all__ = [
    "Engines",
    "Pauses",
    "assigned_back",
    "check_among",
    "fits",
    "is_registered",
    "loaded_tables",
    "looking_back",
    "parsed",
    "published_streams",
    "queries_of",
    "statement",
    "tables_of",
    "unreadable",
    "users_among",
]

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (float,),
    "value": (str, float),
    "duration": (int,),
}
"""What a parameter of a type has as its canonical value: a whole number is a duration's."""

_QUERIES_KEPT = 100_000
"""Texts that are kept as queries, so that a change of one query does not read all others again."""


Pauses = Callable[[], Iterable[Pause]]
"""Reads the statements that went over their budget, whether the registry knows of it or not yet."""


def queries_of(
    registry: Registry, registry_version: int, *, pauses: Iterable[Pause] = ()
) -> list[RegisteredQuery]:
    """Return the queries that were active at a registry version and are not paused."""
    paused = _statements(pauses)
    texts = registry.queries(as_of=registry_version)
    found = [
        _registered(registry, text, registry_version)
        for text in texts
        if (text.id, text.revision) not in paused
    ]
    created = [each.query.id for each in found if each.query.table is not None]
    if not created:
        return found
    loading, _ = _loading(registry, created, registry_version)
    return [*(each for each in found if each.query.table is None), *loading]


def _statements(pauses: Iterable[Pause]) -> set[tuple[str, int]]:
    return {(pause.query, pause.revision) for pause in pauses}


class Engines:
    """Makes the engines of one broker, and brings a running one from version to version.

    All share one numbering of variables, so that what was evaluated under the plan of one engine
    can be joined by another.  What a further version costs depends on what it changes.
    `processors` makes the join of an engine, where it is not the engine's own: for that, statements
    are compiled in another way.  `lateness` is that of the version that was compiled last.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        lateness_us: int,
        budget: Budget = DEFAULT_BUDGET,
        pauses: Pauses = tuple,
        spill_directory: Path | None = None,
        processors: Callable[[], Processor | None] | None = None,
        limits: MatchingLimits = DEFAULT_MATCHING_LIMITS,
    ) -> None:
        self._registry = registry
        self._lateness_us = lateness_us
        self._budget = budget
        self._pauses = pauses
        self._spill_directory = spill_directory
        self._processors = processors
        self._limits = limits
        self._numbering = Numbering()
        self._planned = QuerySet(ClassRegistry(), self._numbering, plans_only=True)
        self._planned_at = 0
        self.lateness = Lateness(lateness_us)
        self._engines_at: MutableMapping[Engine, int] = WeakKeyDictionary()

    def make(self, registry_version: int) -> Engine:
        """Return an engine, without state, of the queries that were active at a version."""
        processor = None if self._processors is None else self._processors()
        assert (processor is None) == (self._processors is None)
        engine = Engine(
            queries_of(self._registry, registry_version, pauses=self._pauses()),
            lateness_us=self._lateness_us,
            numbering=self._numbering,
            budget=self._budget,
            spill_directory=self._spill_directory,
            processor=processor,
            limits=self._limits,
        )
        self._engines_at[engine] = registry_version
        return engine

    def compile(self, registry_version: int) -> None:
        """Make sure that the queries of a version can be planned; cheaper than their plan."""
        change = self._change(self._planned_at, registry_version, self._planned)
        self._planned.follow(change)
        self.lateness.follow(change)
        self._planned_at = registry_version

    def plan(self, registry_version: int) -> EvaluationPlan:
        """Return what a version asks of evaluation."""
        self.compile(registry_version)
        return self._planned.plan

    def follow(self, engine: Engine, registry_version: int) -> bool:
        """Bring a running engine to a version; return False where it must be made anew."""
        before = self._engines_at[engine]
        change = self._change(before, registry_version, engine.queries)
        # An engine that was made beside the running one does not know whom that one has stopped.
        stopped = {
            pause.query
            for pause in self._pauses()
            if engine.queries.revision_of(pause.query) == pause.revision
        }
        is_followed = engine.follow(replace(change, gone={*change.gone, *stopped}))
        if is_followed:
            self._engines_at[engine] = registry_version
        return is_followed

    def _change(self, before: int, registry_version: int, present: QuerySet) -> SetChange:
        """Return what leads a set from one version to another."""
        texts, gone = self._registry.changed_queries(before, registry_version)
        paused = _statements(self._pauses())
        gone |= {text.id for text in texts if (text.id, text.revision) in paused}
        texts = [text for text in texts if text.id not in gone]
        changed = {text.id for text in texts}
        assigned = []
        for query_id, key, point in self._registry.subscriptions.changed_assignments(
            before, registry_version
        ):
            query, values = present.get(query_id), json.loads(key)
            is_same = query_id not in gone and query_id not in changed
            if query is not None and is_same and fits(query, values):
                assigned.append((query_id, values, point))
        queries = [_registered(self._registry, text, registry_version) for text in texts]
        replaced = (present.get(query_id) for query_id in {*gone, *changed})
        those = [*(each.query for each in queries), *filter(None, replaced)]
        tables = {name for query in those for name in query.table_names}
        loading, unused = _loading(self._registry, tables, registry_version)
        queries = [each for each in queries if each.query.table is None] + loading
        return SetChange(queries, gone | set(unused), assigned)


def looking_back(registry: Registry, query: xscl.Query, point: int) -> SetChange:
    """Return the change by which a query sees what comes behind a point, with its subscribers.

    It is empty where nobody can say now what the query would have made of earlier documents: it
    publishes them, or rows of tables.
    """
    if query.publish is not None or query.tables or query.table is not None:
        return SetChange()
    registered = RegisteredQuery(query, point)
    return SetChange([_assigned(registry, registered, registry.revision())])


def assigned_back(query: xscl.Query, values: Assignment, point: int) -> SetChange:
    """Return the same change for one assignment of a query that is registered."""
    if query.publish is not None or query.tables:
        return SetChange()
    return SetChange(assigned=[(query.id, values, point)])


def is_registered(registry: Registry, change: SetChange) -> bool:
    """Return whether all that a change adds is registered like that."""
    for each in change.queries:
        text = registry.query(each.query.id)
        stated = (text.state, text.version, text.point)
        if stated != (QueryState.ACTIVE, each.query.version, each.registration_point):
            return False
    first_point = registry.subscriptions.first_point
    return all(
        first_point(query_id, parameters_key(values)) == point
        for query_id, values, point in change.assigned
    )


def statement(registry: Registry, query_id: str, revision: int) -> RegisteredQuery:
    """Return a query as it was stated at a revision, without assignments."""
    return _stated(registry, registry.query(query_id, as_of=revision))


def parsed(text: RegisteredText) -> xscl.Query:
    """Return the query that a registered text is; texts that are asked for again are kept."""
    return _query(text.id, text.text)


def unreadable(registry: Registry, registry_version: int) -> Iterator[tuple[RegisteredText, str]]:
    """Yield the queries active at a version whose texts are no queries any more, and why."""
    for text in registry.queries(as_of=registry_version):
        try:
            parsed(text)
        except xscl.XsclError as error:
            yield text, error.diagnostics[0].message


def published_streams(registry: Registry) -> frozenset[str]:
    """Return the streams that active queries publish; they take no documents from outside."""
    return frozenset(by_stream(_among(registry).values()))


def loaded_tables(registry: Registry) -> frozenset[str]:
    """Return the tables that active queries use: they can be loaded, since their grace is known."""
    return used_tables(_among(registry).values())


def check_among(registry: Registry, query: xscl.Query) -> None:
    """Raise `XsclError` if a query does not go with the active ones."""
    check_query(query, _among(registry, without=query.id))


def tables_of(registry: Registry) -> list[tuple[Table, list[str]]]:
    """Return the tables that active queries create, by name, with the queries that use each."""
    found = _among(registry)
    created = [each for each in found.values() if each.table is not None]
    return [
        (each.table, [u for u in users_of(each, found.values()) if u != each.id])
        for each in sorted(created, key=lambda query: query.id)
        if each.table is not None
    ]


def users_among(registry: Registry, query: xscl.Query) -> list[str]:
    """Return the active queries, by id, that use the table which a query creates."""
    return users_of(query, _among(registry, without=query.id).values())


def _among(registry: Registry, *, without: str = "") -> dict[str, xscl.Query]:
    return among(registry, parsed).queries(registry, without=without)


def _loading(
    registry: Registry, tables: Iterable[str], registry_version: int
) -> tuple[list[RegisteredQuery], list[str]]:
    """Return the queries that load some tables, and the tables that no query uses.

    A table is loaded from the registration of the first of its queries on: then its grace is known.
    """
    wanted = set(tables)
    first: dict[str, int] = {}
    creating: list[RegisteredText] = []
    for text in registry.queries(as_of=registry_version) if wanted else ():
        query = parsed(text)
        if query.table is not None and query.table.name in wanted:
            creating.append(text)
        elif query.table is None:
            for name in query.table_names & wanted:
                first[name] = min(text.effective, first.get(name, text.effective))
    loading = [
        replace(_stated(registry, text), registration_point=max(text.point, first[text.id]))
        for text in creating
        if text.id in first
    ]
    return loading, sorted(wanted - {each.query.id for each in loading})


def _registered(registry: Registry, text: RegisteredText, registry_version: int) -> RegisteredQuery:
    return _assigned(registry, _stated(registry, text), registry_version)


def _assigned(
    registry: Registry, stated: RegisteredQuery, registry_version: int
) -> RegisteredQuery:
    """Return a statement with the assignments of a version that are for it."""
    query = stated.query
    if not query.parameters:
        return stated
    assignments = registry.subscriptions.assignments(query.id, as_of=registry_version)
    read = ((json.loads(key), point) for key, point in assignments)
    assigned = [(values, point) for values, point in read if fits(query, values)]
    return replace(
        stated,
        assignments=tuple(values for values, _ in assigned),
        assignment_points=tuple(point for _, point in assigned),
    )


def _stated(registry: Registry, text: RegisteredText) -> RegisteredQuery:
    query = parsed(text)
    return RegisteredQuery(
        query,
        text.point,
        revision=text.revision,
        stated_at=registry.stated_at(text) if query.is_judged_together else text.revision,
        paused_through=0 if query.publish is None else registry.paused_through(text),
    )


def fits(query: xscl.Query, values: Mapping[str, Any]) -> bool:
    """Return whether values are for this text of a query: another one may have other parameters."""
    types = dict(query.parameters)
    return values.keys() == types.keys() and all(
        isinstance(value, _TYPES[types[name]]) for name, value in values.items()
    )


@lru_cache(maxsize=_QUERIES_KEPT)
def _query(query_id: str, text: str) -> xscl.Query:
    (query,) = xscl.parse(text, id=query_id)
    return query
