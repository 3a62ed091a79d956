"""One chain of a table: see `chained.chains.ChainEvaluation`."""

from __future__ import annotations

from joins.sequences.clock import WatermarkSteps
from joins.sequences.lockstep.ends import HeadEnds
from joins.sequences.lockstep.folds import FoldedRuns
from joins.sequences.lockstep.found import ColumnChain
from joins.sequences.lockstep.layout import NO_LIMIT
from joins.sequences.lockstep.runtable import RunTable
from templates.chaincode import ChainProgram
from templates.chaindecision import ChainDecision
from templates.decision import TupleStream

__all__ = ["ColumnChainEvaluation"]


class ColumnChainEvaluation:
    """One chain of a table: see `chained.chains.ChainEvaluation`."""

    def __init__(self, decision: ChainDecision, program: ChainProgram, table: RunTable) -> None:
        self.decision, self.table = decision, table
        self.number = table.join(decision, program)
        has_folds = any(link.folds for link in decision.links)
        self._folded = FoldedRuns(decision) if has_folds else None

    @property
    def limit(self) -> int | None:
        """The document with too many runs."""
        limit = int(self.table.limits[self.number])
        return None if limit == NO_LIMIT else limit

    def read(self, step: int, stream: TupleStream) -> None:
        """Have rows of a stream be rows of the elements of a step."""
        self.table.read(self.number, step, stream)

    def leave(self) -> None:
        """Have no more runs."""
        self.table.leave(self.number)

    def decide(self, clock: WatermarkSteps) -> list[ColumnChain]:
        """Return the runs that are decided in the batch, in no order."""
        self.table.advance(clock)
        found = self.table.decided(self.number)
        if self._folded is not None:
            self._folded.begin_batch()
            for each in found:
                each.folding = self._folded.runs_of
        return found

    def decide_ends(self, clock: WatermarkSteps) -> tuple[HeadEnds, list[ColumnChain]]:
        """Return the runs that are decided in the batch: told by their last heads, and others."""
        self.table.advance(clock)
        return self.table.ends(self.number)
