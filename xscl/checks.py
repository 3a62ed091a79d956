"""Warnings about queries that are right but hardly meant: their cost, or that nothing fits."""

from __future__ import annotations

from xscl.query import Query
from xscl.report import Report
from xscl.syntax import Statement

__all__ = ["check_query"]


def check_query(query: Query, statement: Statement, report: Report) -> None:
    """Report warnings about a query in normal form."""
    for operator in query.operators():
        if any(not disjunct.value_joins for disjunct in operator.disjuncts):
            span = operator.span or statement.span
            report.warning(
                "XS501",
                span,
                "nothing of one side must equal something of the other: every pair of documents"
                " within the window is a candidate",
                "add an equality, as in `{x2 = x5, 6 h}`, or keep the window short",
            )
