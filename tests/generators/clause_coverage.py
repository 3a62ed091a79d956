"""Counts in how many generated cases each clause of the language stands, and decides.

A clause **stands** in a case that uses it.  It **decides** where the oracle finds other matches
once it is taken out of the case, or errs about it; where there is nothing to take out, it decides
where a query that has it has a match.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

from mutants.wrong_rules import RULES, Rule
from oracle import described, operators
from oracle.lines import render
from oracle.operators import Tuple
from oracle.output import build_output
from support.bounded import TooLargeError, bounded
from support.kit import Case
from support.query_parts import Part, parts, rewritten
from support.runners import run_oracle

from broker.matching.match import Match
from generators.case_clauses import CASE_CLAUSES, CaseClause
from generators.clauses import QUERY_CLAUSES, QueryClause
from generators.sequence_clauses import SEQUENCE_CLAUSES
from xscl.query import Query

__all__ = ["ALL_CLAUSES", "CLAUSES", "Clause", "Coverage"]

Clause = QueryClause | CaseClause | Rule


def _section(clause: Clause) -> tuple[int, ...]:
    return tuple(map(int, clause.name.split()[0].split(".")))


CLAUSES: Sequence[Clause] = sorted((*QUERY_CLAUSES, *CASE_CLAUSES, *RULES), key=_section)
"""What the cases of joins try, by the sections of the semantics."""

ALL_CLAUSES: Sequence[Clause] = sorted((*CLAUSES, *SEQUENCE_CLAUSES), key=_section)
"""These, and what else the cases of ordered queries, runs and rows try."""

Found = Counter[tuple[Any, ...]]


def _found(matches: Iterable[Match]) -> Found:
    """Return how many matches there are of each query, documents and block roots.

    Of a match that is decided it counts where, of FOLD and of rows what the values are; a graph is
    its text.
    """
    return Counter(
        (
            match.query,
            tuple(document.docid for document in match.documents),
            match.roots,
            match.decided,
            json.dumps(match.values, sort_keys=True),
            "" if match.witnesses or match.values else match.output,
        )
        for match in matches
    )


@dataclass(slots=True)
class Coverage:
    """How many cases a clause stands in, and in how many it decides."""

    stands: Counter[str] = field(default_factory=Counter)
    decides: Counter[str] = field(default_factory=Counter)

    def add(
        self,
        case: Case,
        matches: Sequence[Match],
        clauses: Iterable[Clause] = CLAUSES,
        settled: Collection[str] = (),
    ) -> None:
        """Count some clauses of a case; `matches` are what the oracle finds in it.

        Of those that are `settled` it is not looked whether they decide.
        """
        for clause in clauses:
            is_settled = clause.name in settled
            match clause:
                case QueryClause():
                    having = [q for q in case.queries if any(map(clause.is_it, parts(q)))]
                    self.stands[clause.name] += bool(having)
                    is_tried = bool(having) and not is_settled
                    decides = is_tried and _asks(clause, case, having, matches)
                case CaseClause():
                    decides = not is_settled and _says(clause, case, matches)
                case Rule():
                    decides = not is_settled and _rules(clause, case, matches)
            self.decides[clause.name] += decides

    def update(self, other: Coverage) -> None:
        """Add what another one has counted."""
        self.stands.update(other.stands)
        self.decides.update(other.decides)

    def table(self, clauses: Iterable[Clause] = CLAUSES) -> str:
        """Return the clauses, one a line, with both numbers."""
        lines = [f"{'clause':<50} {'stands':>8} {'decides':>8}"]
        for clause in clauses:
            stands = self.stands[clause.name] if isinstance(clause, QueryClause) else ""
            lines.append(f"{clause.name:<50} {stands:>8} {self.decides[clause.name]:>8}")
        return "\n".join(lines)


def _asks(
    clause: QueryClause, case: Case, having: Sequence[Query], matches: Sequence[Match]
) -> bool:
    """Return whether the queries that have a clause would find something else without it."""
    names = {query.id for query in having}
    before = _found(match for match in matches if match.query in names)
    without = clause.without
    if without is None:
        return bool(before)

    def change(part: Part) -> Part:
        return without(part) if clause.is_it(part) else part

    changed = [rewritten(query, change) for query in _with_publishers(having, case.queries)]
    after = _run(replace(case, queries=changed))
    return after is not None and before != _found(m for m in after if m.query in names)


def _with_publishers(having: Sequence[Query], queries: Sequence[Query]) -> list[Query]:
    """Return queries and all those whose published documents reach them."""
    needed = list(having)
    for each in needed:
        streams = {block.stream for block in each.blocks}
        needed += [q for q in queries if q.publish in streams and q not in needed]
    return needed


def _says(clause: CaseClause, case: Case, matches: Sequence[Match]) -> bool:
    """Return whether a case would give other matches without a clause."""
    if clause.without is None:
        return clause.shows(case, matches)
    without = clause.without(case)
    after = None if without == case else _run(without)
    return after is not None and _found(after) != _found(matches)


def _rules(rule: Rule, case: Case, matches: Sequence[Match]) -> bool:
    """Return whether an oracle that errs about a rule finds something else."""
    if not any(map(rule.needs, case.queries)):
        return False
    with rule.broken():
        wrong = _run(case)
    return wrong is not None and _lines(wrong) != _lines(matches)


def _lines(matches: Iterable[Match]) -> list[str]:
    """Return matches as lines, without what only costs time."""
    return [render(replace(match, output="", output_error=None)) for match in matches]


TUPLES_MAX = 2_000
"""A case that has more without a clause is left alone: one of them would take a minute."""

LOOKS_MAX = 20_000
"""So is a case in which so many elements are tried behind runs: a second or so."""


def _run(case: Case) -> Sequence[Match] | None:
    """Return what the oracle finds, unless that takes too many tuples; without idle outputs."""
    combine, made = operators._combine, 0

    def counted(left: Tuple, right: Tuple) -> Tuple:
        nonlocal made
        made += 1
        if made > TUPLES_MAX:
            raise TooLargeError
        return combine(left, right)

    def output(query: Query, *arguments: Any) -> tuple[str, str | None]:
        return ("", None) if query.publish is None else build_output(query, *arguments)

    with (
        patch.object(operators, "_combine", counted),
        bounded(looks_max=LOOKS_MAX),
        patch.object(described, "build_output", output),
    ):
        try:
            return run_oracle(case)
        except (TooLargeError, AssertionError, LookupError, ValueError):
            # What is left without a clause may be no query that could be written.
            return None
