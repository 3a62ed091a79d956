"""What a query gives of its matches, in words: rows, or some of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from broker.explain.spelling import spell_disjunct, spell_length, spell_operand
from broker.explain.variants import asked_line
from xscl.comparison import Operand
from xscl.path import Parameter
from xscl.query import Query, SelectKind

__all__ = ["given_lines"]


def given_lines(query: Query) -> Iterator[str]:
    """Yield a line for each of CONFIDENCE, WINDOW, DISJOINT and LIMIT that a query has."""
    labels = {variable.name: variable.label for variable in query.variables}
    rows, limit = query.rows, query.limit

    def behind(keys: Sequence[Operand]) -> str:
        spelled = [spell_operand(key, labels) for key in keys]
        return f" for each {' and '.join(spelled)}" if spelled else ""

    if query.confidence is not None and not query.is_lossy:
        yield asked_line(query.confidence)
    if rows is not None:
        yield (
            f"rows over the matches of the last {spell_length(rows.length)}{behind(rows.keys)}:"
            " one for each time at which a match ends"
        )
        if rows.having is not None:
            asked = " OR ".join(spell_disjunct(each, labels) for each in rows.having)
            yield f"of these where {asked.replace(' distinct(', '(distinct ')}"
    if query.kind is SelectKind.DISJOINT:
        yield "matches whose intervals do not meet, the first that is decided"
    if limit is not None:
        count = f"${limit.count.name}" if isinstance(limit.count, Parameter) else int(limit.count)
        yield f"at most {count} within {spell_length(limit.length)}{behind(limit.keys)}"
    if limit is not None or query.kind is SelectKind.DISJOINT:
        yield "what was given is remembered with its matches, also by a restart"
