"""What rows and limits read of tuples, in a plain statement: of what its alternatives bind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from xscl.query import Call, From, Key, Operand, Query, SelectKind, VariableValue

__all__ = ["with_outcome"]


def with_outcome(
    query: Query, read: Callable[[Operand], Operand], key_of: Callable[[Key], str]
) -> Query:
    """Return a query whose rows and limits read what `read` makes of their operands.

    `key_of` returns the variable of a key of SAME.
    """
    rows, limit, root = query.rows, query.limit, query.root
    if rows is not None:
        aggregates = (
            Call(each.function, tuple(map(read, each.arguments))) for each in rows.aggregates
        )
        rows = replace(rows, keys=tuple(map(read, rows.keys)), aggregates=tuple(aggregates))
    elif limit is not None:
        limit = replace(limit, keys=tuple(map(read, limit.keys)))
    keys = root.keys if isinstance(root, From) and query.kind is not SelectKind.ALL else ()
    apart = tuple(VariableValue(key_of(key)) for key in keys)
    return replace(query, rows=rows, limit=limit, apart=apart)
