"""Which conditions are asked of texts that stay with their documents (`xscl.sharedtexts`)."""

from __future__ import annotations

from templates.clause import Clause
from templates.decision import Decided
from xscl.comparison import operands_below
from xscl.query import ValuesFrom, term

__all__ = ["reads_handed_on_text"]


def reads_handed_on_text(clause: Clause) -> bool:
    """Return whether a condition asks of what is above or beside a node that is handed on."""
    decided, places = clause.query_class.decided, clause.places
    sides = [side for each in clause.residuals for side in (each.left, each.right)]
    asked = [*sides, *clause.tests]
    if isinstance(decided, Decided):
        decision = decided.decision
        cases = [case.asked for absent in decision.absences for case in absent.cases]
        for each in (*(fit.asked for fit in decision.fits), *cases):
            asked += each.rest.operands()
    return any(
        isinstance(each, ValuesFrom) and each.values.leads_upwards and term(each) not in places
        for operand in asked
        for each in operands_below(operand)
    )
