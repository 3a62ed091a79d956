"""What finds the runs of a decision, and what makes rows of them: which of several does it."""

from __future__ import annotations

from typing import Any, TypeGuard

from joins.budget.limits import RunLimits
from joins.sequences.chained.anychains import AnyChainEvaluation
from joins.sequences.chained.chains import ChainEvaluation
from joins.sequences.counting.chains import CountedChainEvaluation
from joins.sequences.counting.counted import CountedRunEvaluation
from joins.sequences.lockstep.columnchains import ColumnChainEvaluation
from joins.sequences.repeated.graphruns import GraphRunEvaluation
from joins.sequences.repeated.runs import RunEvaluation
from joins.sequences.repeated.shared import SharedSides
from joins.sequences.runrows import ChainRows, Documents, FoundRows, GraphRows, RunRows
from templates.chaindecision import ChainDecision, DecidedChains
from templates.rundecision import DecidedRuns, RunDecision

__all__ = [
    "AnyDecision",
    "AnyEvaluation",
    "AnyRuns",
    "CountedEvaluation",
    "RowEvaluation",
    "evaluation_of",
    "is_of_table",
    "rows_of",
]

AnyRuns = DecidedRuns | DecidedChains
AnyDecision = RunDecision | ChainDecision
RowEvaluation = RunEvaluation | ChainEvaluation | AnyChainEvaluation | CountedChainEvaluation
AnyEvaluation = RowEvaluation | ColumnChainEvaluation
CountedEvaluation = CountedRunEvaluation | CountedChainEvaluation


def rows_of(number: int, runs: AnyRuns, documents: dict[int, Documents]) -> FoundRows[Any]:
    """Return what makes rows of the runs of a class."""
    if runs.decision.counting is not None:
        return GraphRows(number, runs, documents)
    if isinstance(runs, DecidedChains):
        return ChainRows(number, runs)
    return RunRows(number, runs)


def evaluation_of(
    decision: AnyDecision, lateness_us: int, limits: RunLimits, shared: SharedSides
) -> RowEvaluation:
    """Return what finds the runs of a decision one by one, or counts them."""
    if isinstance(decision, ChainDecision):
        if decision.counting is not None:
            return CountedChainEvaluation(decision, lateness_us, limits)
        if decision.is_open:
            return AnyChainEvaluation(decision, lateness_us, limits)
        return ChainEvaluation(decision, lateness_us, limits)
    if decision.counting is not None:
        return CountedRunEvaluation(decision, lateness_us, limits)
    sides = shared.of(decision)
    if not decision.is_next and decision.speaks_of_neighbours and not decision.said:
        return GraphRunEvaluation(decision, lateness_us, limits, *sides)
    return RunEvaluation(decision, lateness_us, limits, *sides)


def is_of_table(evaluation: AnyEvaluation) -> TypeGuard[ColumnChainEvaluation]:
    """Return whether runs are found in a table, with those of other decisions."""
    return isinstance(evaluation, ColumnChainEvaluation)
