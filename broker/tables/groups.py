"""Which statements' guards and actions run together, behind which stratum.

Groups are the strong components of what depends on what (`xscl.dependencies`).  A group runs when
the roots of its statements have been probed, and the groups that it depends on have run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from xscl.dependencies import Node, NodeKind, dependencies, groups
from xscl.query import Query

__all__ = ["Group", "groups_of", "table_graces"]


@dataclass(frozen=True, slots=True)
class Group:
    """Statements, by id, whose guards are asked together, and whose actions are done together.

    It runs behind the probe of `stratum`.
    """

    stratum: int
    guards: frozenset[str]
    actors: frozenset[str]
    tables: frozenset[str]


def groups_of(queries: Iterable[Query], stratum_of: Callable[[str], int]) -> list[Group]:
    """Return the groups of queries in the order in which they run.

    `stratum_of` returns the stratum of a query's root.  Queries that use no table are given where
    they publish.
    """
    by_id = {query.id: query for query in queries}
    edges = dependencies(by_id.values())
    behind: dict[Node, int] = {}
    found: list[Group] = []
    for nodes in groups(edges):
        named = {part: frozenset(n.name for n in nodes if n.part is part) for part in NodeKind}
        guards = frozenset(name for name in named[NodeKind.GUARD] if by_id[name].has_candidates)
        actors = named[NodeKind.ACTIONS]
        # A stream is compiled into the strata of its readers.
        own = [stratum_of(name) for name in (*named[NodeKind.GUARD], *actors)]
        stratum = max((*own, *(behind.get(node, 0) for node in nodes)), default=0)
        if guards or actors:
            found.append(Group(stratum, guards, actors, named[NodeKind.TABLE]))
        for node in nodes:
            for each in edges[node]:
                behind[each] = max(stratum, behind.get(each, 0))
    return found


def table_graces(queries: Iterable[Query], own_us: Callable[[Query], int]) -> dict[str, int]:
    """Return by table the largest grace of the queries that use it, microseconds.

    `own_us` returns a query's grace but for its tables'.
    """
    asked = [(query.table_names, own_us(query)) for query in queries]
    graces: dict[str, int] = {}
    is_changed = True
    while is_changed:
        is_changed = False
        for names, grace_us in asked:
            largest = max(grace_us, *(graces.get(name, 0) for name in names))
            for name in names:
                if graces.get(name, -1) < largest:
                    graces[name] = largest
                    is_changed = True
    return graces
