"""One chain of a table: see `chained.chains.ChainEvaluation`."""

from __future__ import annotations

from joins.sequences.clock import WatermarkSteps
from joins.sequences.lockstep.ends import HeadEnds
from joins.sequences.lockstep.found import ColumnChain
from joins.sequences.lockstep.layout import NO_LIMIT
from joins.sequences.lockstep.runtable import RunTable
from templates.chaindecision import ChainDecision
from templates.chainprograms import ChainProgram
from templates.decision import TupleStream

__all__ = ["ColumnChainEvaluation"]


class ColumnChainEvaluation:
    """One chain of a table: see `chained.chains.ChainEvaluation`."""

    def __init__(self, decision: ChainDecision, program: ChainProgram, table: RunTable) -> None:
        self.decision, self.table = decision, table
        self.number = table.join(decision, program)

    @property
    def limit(self) -> int | None:
        """The document with too many runs."""
        limit = int(self.table.limits[self.number])
        return None if limit == NO_LIMIT else limit

    def read(self, step: int, stream: TupleStream) -> None:
        """Have rows of a stream be rows of the elements of a step."""
        self.table.read(step, stream)

    def leave(self) -> None:
        """Have no more runs."""
        self.table.leave(self.number)

    def decide(self, clock: WatermarkSteps) -> list[ColumnChain]:
        """Return the runs that are decided in the batch, in no order."""
        self.table.advance(clock)
        return self.table.decided(self.number)

    def decide_ends(self, clock: WatermarkSteps) -> tuple[HeadEnds, list[ColumnChain]]:
        """Return the runs that are decided in the batch: told by their last heads, and others."""
        self.table.advance(clock)
        return self.table.ends(self.number)
