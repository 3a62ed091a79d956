"""What the registry's texts are as queries: checked among one another, and as an engine."""

from __future__ import annotations

import json
from functools import lru_cache

import xscl
from broker.engine import Engine
from broker.queryset import QuerySet, RegisteredQuery
from broker.registry import RegisteredText, Registry
from joins.classes import ClassRegistry
from joins.engines import EngineName
from xpath_eval.catalog import EvaluationPlan, Numbering
from xscl.files import check_set

__all__ = ["Engines", "check_among", "parsed", "published_streams", "queries_of"]

_QUERIES_KEPT = 100_000
"""Texts that are kept as queries, so that a change of one query does not read all others again."""


def queries_of(registry: Registry, registry_version: int) -> list[RegisteredQuery]:
    """Return the queries that were active at a registry version."""
    return [_registered(registry, text) for text in registry.queries(as_of=registry_version)]


class Engines:
    """Makes the engines of one broker, and brings a running one from version to version.

    All share one numbering of variables, so that what was evaluated under the plan of one engine
    can be joined by another.
    """

    def __init__(self, registry: Registry, *, lateness_us: int, engine: EngineName) -> None:
        self._registry = registry
        self._lateness_us = lateness_us
        self._engine = engine
        self._numbering = Numbering()
        self._planned = QuerySet(ClassRegistry(), self._numbering)

    def make(self, registry_version: int) -> Engine:
        """Return an engine, without state, of the queries that were active at a version."""
        return Engine(
            queries_of(self._registry, registry_version),
            lateness_us=self._lateness_us,
            engine=self._engine,
            numbering=self._numbering,
        )

    def plan(self, registry_version: int) -> EvaluationPlan:
        """Return what a version asks of evaluation, at the cost of what changed since the last."""
        self._planned.follow(queries_of(self._registry, registry_version))
        return self._planned.plan

    def follow(self, engine: Engine, registry_version: int) -> bool:
        """Bring a running engine to a version; return False where it must be made anew."""
        return engine.follow(queries_of(self._registry, registry_version))


def parsed(text: RegisteredText) -> xscl.Query:
    """Return the query that a registered text is; texts that are asked for again are kept."""
    return _query(text.id, text.text)


def published_streams(registry: Registry) -> frozenset[str]:
    """Return the streams that active queries publish; they take no documents from outside."""
    queries = (_query(text.id, text.text) for text in registry.queries())
    return frozenset(query.publish for query in queries if query.publish is not None)


def check_among(registry: Registry, query: xscl.Query) -> None:
    """Raise `XsclError` if a query does not go with the active ones.

    A PUBLISH name belongs to one query, and queries that publish form no cycle.
    """
    others = [text for text in registry.queries() if text.id != query.id]
    located = [(_query(text.id, text.text), text.id, text.text) for text in others]
    diagnostics = check_set([*located, (query, query.id, query.text)])
    if any(diagnostic.is_error for diagnostic in diagnostics):
        raise xscl.XsclError(diagnostics)


def _registered(registry: Registry, text: RegisteredText) -> RegisteredQuery:
    query = _query(text.id, text.text)
    if not query.parameters:
        return RegisteredQuery(query, text.point)
    assigned = list(registry.assignments(text.id))
    return RegisteredQuery(
        query,
        text.point,
        tuple(json.loads(key) for key, _ in assigned),
        tuple(point for _, point in assigned),
    )


@lru_cache(maxsize=_QUERIES_KEPT)
def _query(query_id: str, text: str) -> xscl.Query:
    (query,) = xscl.parse(text, id=query_id)
    return query
