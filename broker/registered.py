"""What the registry's texts are as queries: checked among one another, and as an engine."""

from __future__ import annotations

import json
from functools import lru_cache

import xscl
from broker.engine import Engine, RegisteredQuery
from broker.registry import RegisteredText, Registry
from joins.engines import EngineName
from xscl.files import check_set

__all__ = ["check_among", "engine_of", "published_streams"]

_QUERIES_KEPT = 100_000
"""Texts that are kept as queries, so that a change of one query does not read all others again."""


def engine_of(
    registry: Registry, registry_version: int, *, lateness_us: int, engine: EngineName
) -> Engine:
    """Return an engine, without state, of the queries that were active at a registry version."""
    queries = [_registered(registry, text) for text in registry.queries(as_of=registry_version)]
    return Engine(queries, lateness_us=lateness_us, engine=engine)


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
    assignments = tuple(json.loads(key) for key, _ in registry.assignments(text.id))
    return RegisteredQuery(query, text.point, assignments)


@lru_cache(maxsize=_QUERIES_KEPT)
def _query(query_id: str, text: str) -> xscl.Query:
    (query,) = xscl.parse(text, id=query_id)
    return query
