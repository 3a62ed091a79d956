"""What a query must go with: the active queries that publish or use tables.

The statements of a table have one grace.  So none of them is decided by another grace while
documents wait, which would have a match act twice, or never (`docs/rules.md`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping
from dataclasses import replace
from weakref import WeakKeyDictionary

import xscl
from broker.registry.queries import RegisteredText, Registry
from xscl.diagnostics import Severity
from xscl.files import check_added, check_table_cycles
from xscl.support import refused
from xscl.tables import check_graces, check_tables

__all__ = ["Among", "among", "by_stream", "check_query", "used_tables", "users_of"]

Parse = Callable[[RegisteredText], xscl.Query]


class Among:
    """The active queries that publish or use tables; kept up to date at the cost of what changed.

    `parse` returns the query that a text is.
    """

    def __init__(self, parse: Parse) -> None:
        self._parse = parse
        self._lock = threading.Lock()
        self._version = 0
        self._queries: dict[str, xscl.Query] = {}

    def queries(self, registry: Registry, *, without: str = "") -> dict[str, xscl.Query]:
        """Return them by id as the registry has them now, except the query of one id."""
        with self._lock:
            version = registry.revision()
            if version != self._version:
                self._follow(*registry.changed_queries(self._version, version))
                self._version = version
            return {name: each for name, each in self._queries.items() if name != without}

    def _follow(self, texts: list[RegisteredText], gone: frozenset[str]) -> None:
        for query_id in gone:
            self._queries.pop(query_id, None)
        for text in texts:
            query = self._parse(text)
            self._queries.pop(query.id, None)
            if query.publish is not None or query.tables:
                self._queries[query.id] = query


_among: MutableMapping[Registry, Among] = WeakKeyDictionary()


def among(registry: Registry, parse: Parse) -> Among:
    """Return what a registry's queries must go with."""
    return _among.setdefault(registry, Among(parse))


def by_stream(queries: Iterable[xscl.Query]) -> dict[str, xscl.Query]:
    """Return the queries that publish, by stream."""
    return {query.publish: query for query in queries if query.publish is not None}


def used_tables(queries: Iterable[xscl.Query]) -> frozenset[str]:
    """Return the tables that queries use, the queries that create them left out."""
    return frozenset(name for query in queries if query.table is None for name in query.table_names)


def check_query(query: xscl.Query, others: Mapping[str, xscl.Query]) -> None:
    """Raise `XsclError` if a query does not go with the others, by id.

    A PUBLISH name belongs to one query, queries that publish form no cycle, tables are there and
    have the columns that are asked for, and their statements have one grace.
    """
    publishers = by_stream(others.values())
    found = check_added(query, dict(publishers))
    if query.tables:
        users = [each for each in others.values() if each.tables]
        asked = [query] if query.table is None else [query, *users]
        tables = [each.table for each in (*users, query) if each.table is not None]
        located = [(each, each.id, each.text) for each in asked]
        checked = check_tables(located, [(t, t.name, t.text) for t in tables], is_all=True)
        found += [refused(each) for each in checked]
    if query.tables or query.publish is not None:
        together = [*others.values(), query]
        found += check_table_cycles([(each, each.id, each.text) for each in together])
    if query.tables and not any(each.is_error for each in found):
        graced = check_graces([(each, each.id, each.text) for each in (*others.values(), query)])
        found += [replace(each, severity=Severity.ERROR) for each in graced]
    if any(each.is_error for each in found):
        raise xscl.XsclError(found)


def users_of(query: xscl.Query, others: Collection[xscl.Query]) -> list[str]:
    """Return the queries, by id, that use the table which a query creates."""
    if query.table is None:
        return []
    name = query.table.name
    return sorted(each.id for each in others if name in each.table_names)
