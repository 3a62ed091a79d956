"""Why documents of a match are not given: rows, and limits, are of many matches."""

from __future__ import annotations

from dataclasses import replace

from broker.whynot.reason import Reason
from xscl.query import Query, SelectAll, SelectKind

__all__ = ["no_row", "of_outcome", "without_outcome"]


def without_outcome(query: Query) -> Query:
    """Return the query that finds the matches of which another gives rows, or some."""
    select = query.select if query.rows is None else SelectAll()
    return replace(query, rows=None, limit=None, kind=SelectKind.ALL, select=select)


def no_row(query: Query, count: int) -> Reason:
    """Return what is said of several documents that match, of which no row is given."""
    why = ["HAVING does not hold of it"] if query.rows and query.rows.having else []
    why += ["LIMIT has given another"] if query.limit else []
    text = (
        f"{query.id} finds all {count}; a row of exactly these is not given:"
        f" {', '.join(why)}{', or ' if why else ''}others are in it too"
    )
    return Reason("given", False, text, "`xscl replay` shows what is given")


def of_outcome(query: Query, found: Reason) -> Reason:
    """Return what is said of documents that match, of which something further is asked."""
    what = []
    if query.rows is not None:
        having = ", of which those are given that HAVING holds of" if query.rows.having else ""
        what.append(f"it is in the rows of WINDOW{having}")
    if query.kind is SelectKind.DISJOINT:
        what.append("DISJOINT gives it unless its interval meets that of one given before")
    if query.limit is not None:
        what.append("LIMIT gives it unless as many were given within its length of time")
    text = f"{query.id} finds this match; {'; '.join(what)}"
    return Reason("given", True, text, "`xscl replay` shows what is given", found.facts, (found,))
