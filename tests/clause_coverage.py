"""Counts in how many generated cases each clause of the language stands, and decides.

A clause **stands** in a case that uses it.  It **decides** where the oracle finds other matches
once it is taken out of the case; where there is nothing to take out, it decides where a query
that has it has a match.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from clauses import CASE_CLAUSES, QUERY_CLAUSES, Part, QueryClause, parts, rewritten
from kit import Case
from runners import run_oracle

from broker.match import Match
from xscl.query import Query

__all__ = ["Coverage"]

Found = frozenset[tuple[str, tuple[int, ...], tuple[int, ...]]]


def _found(matches: Sequence[Match]) -> Found:
    """Return which matches there are: the query, the documents and the block roots of each."""
    return frozenset((m.query, tuple(d.docid for d in m.documents), m.roots) for m in matches)


@dataclass(slots=True)
class Coverage:
    """How many cases a clause stands in, and in how many it decides."""

    stands: Counter[str] = field(default_factory=Counter)
    decides: Counter[str] = field(default_factory=Counter)

    def add(self, case: Case, matches: Sequence[Match]) -> None:
        """Count a case; `matches` are what the oracle finds in it."""
        found = _found(matches)
        for clause in QUERY_CLAUSES:
            having = [q for q in case.queries if any(map(clause.is_it, parts(q)))]
            if having:
                self.stands[clause.name] += 1
                self.decides[clause.name] += _decides(clause, case, having, found)
        for each in CASE_CLAUSES:
            if each.without is None:
                decides = each.shows(case, matches)
            else:
                without = each.without(case)
                decides = without != case and _found(run_oracle(without)) != found
            self.decides[each.name] += decides

    def update(self, other: Coverage) -> None:
        """Add what another one has counted."""
        self.stands.update(other.stands)
        self.decides.update(other.decides)

    def table(self) -> str:
        """Return the clauses, one a line, with both numbers."""
        lines = [f"{'clause':<48} {'stands':>8} {'decides':>8}"]
        for clause in (*QUERY_CLAUSES, *CASE_CLAUSES):
            stands = self.stands[clause.name] if isinstance(clause, QueryClause) else ""
            lines.append(f"{clause.name:<48} {stands:>8} {self.decides[clause.name]:>8}")
        return "\n".join(lines)


def _decides(clause: QueryClause, case: Case, having: Sequence[Query], found: Found) -> bool:
    names = {query.id for query in having}
    before = {one for one in found if one[0] in names}
    if clause.without is None:
        return bool(before)

    def change(part: Part) -> Part:
        assert clause.without is not None
        return clause.without(part) if clause.is_it(part) else part

    changed = [rewritten(query, change) for query in _with_publishers(having, case.queries)]
    after = _found(run_oracle(replace(case, queries=changed)))
    return {one for one in after if one[0] in names} != before


def _with_publishers(having: Sequence[Query], queries: Sequence[Query]) -> list[Query]:
    """Return queries and all those whose published documents reach them."""
    needed = list(having)
    for each in needed:
        streams = {block.stream for block in each.blocks}
        needed += [q for q in queries if q.publish in streams and q not in needed]
    return needed
