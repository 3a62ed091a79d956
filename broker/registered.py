"""The engine that a version of the registry asks for."""

from __future__ import annotations

import json

import xscl
from broker.engine import Engine, RegisteredQuery
from broker.registry import RegisteredText, Registry
from joins.engines import EngineName

__all__ = ["engine_of"]


def engine_of(
    registry: Registry, registry_version: int, *, lateness_us: int, engine: EngineName
) -> Engine:
    """Return an engine, without state, of the queries that were active at a registry version."""
    queries = [_registered(registry, text) for text in registry.queries(as_of=registry_version)]
    return Engine(queries, lateness_us=lateness_us, engine=engine)


def _registered(registry: Registry, text: RegisteredText) -> RegisteredQuery:
    (query,) = xscl.parse(text.text, id=text.id)
    assignments = tuple(json.loads(key) for key, _ in registry.assignments(text.id))
    return RegisteredQuery(query, text.point, assignments if query.parameters else ())
