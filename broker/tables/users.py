"""The queries of a set that use tables or publish: in which order they run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from broker.tables.groups import Group, groups_of, table_graces
from xscl.query import Query

__all__ = ["TableUsers"]


class TableUsers:
    """Queries that use tables or publish, by id; and, as last ordered, groups and graces.

    Without a query that uses a table nothing is ordered.
    """

    def __init__(self) -> None:
        self.groups: Sequence[Group] = ()
        self._using: dict[str, Query] = {}
        self._publishing: dict[str, Query] = {}
        self._stratum: dict[str, int] = {}
        self._graces: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._using or self.groups)

    def queries(self) -> Iterator[Query]:
        """Yield the queries that use tables."""
        yield from self._using.values()

    def add(self, query: Query) -> None:
        """Add a query, if it uses tables or publishes."""
        if query.tables:
            self._using[query.id] = query
        elif query.publish is not None:
            self._publishing[query.id] = query

    def remove(self, query: Query) -> None:
        """Undo one `add`."""
        self._using.pop(query.id, None)
        self._publishing.pop(query.id, None)

    def order(self, stratum_of: Callable[[str], int], own_grace_us: Callable[[Query], int]) -> None:
        """Order what there is by the strata of roots; graces are those without the tables'."""
        queries = [*self._using.values(), *self._publishing.values()]
        self.groups = groups_of(queries, stratum_of) if self._using else []
        self._stratum = {
            name: group.stratum for group in self.groups for name in sorted(group.guards)
        }
        self._graces = table_graces(self._using.values(), own_grace_us)

    def stratum_of(self, query: Query) -> int:
        """Return the stratum behind which the matches of a guarded query are known; 0 of others."""
        return self._stratum.get(query.id, 0)

    def grace_us(self, query: Query) -> int:
        """Return the largest grace of a query's tables, 0 where it uses none."""
        return max((self._graces.get(name, 0) for name in query.table_names), default=0)
