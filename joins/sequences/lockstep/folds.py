"""Values of FOLD of complete runs, as others read them: folded again, element by element.

The loops keep of each what conditions compare, a double.  A match shows several values, or none.
"""

from __future__ import annotations

from collections.abc import Mapping

from joins.sequences.chained.chainparts import ChainHead
from joins.sequences.chained.chainsteps import StepEvaluation
from joins.sequences.lockstep.found import ColumnChain
from joins.sequences.runparts import Part
from templates.chaindecision import ChainDecision
from templates.rundecision import RunAtHand

__all__ = ["FoldedRuns"]


class FoldedRuns:
    """The complete runs of one chain in a batch; those that begin alike are folded together."""

    def __init__(self, decision: ChainDecision) -> None:
        self._steps = [StepEvaluation(decision, number, 0) for number in range(len(decision.links))]
        self._heads: dict[int, ChainHead] = {}

    def begin_batch(self) -> None:
        """Forget the runs of another batch: heads have other numbers."""
        self._heads.clear()

    def runs_of(self, chain: ColumnChain) -> Mapping[str, RunAtHand]:
        """Return the runs of all steps of a complete one, by their terms."""
        head: ChainHead | None = None
        heads = iter(chain.heads)
        for number, parts in enumerate(chain.steps):
            step = self._steps[number]
            for part in parts:
                own = next(heads)
                known = self._heads.get(own)
                if known is None:
                    known = self._heads[own] = self._with_one(head, step, part)
                head = known
        assert head is not None
        return self._steps[head.step].complete(head)

    def _with_one(self, head: ChainHead | None, step: StepEvaluation, part: Part) -> ChainHead:
        if head is None:
            return step.begun_with(part, (), step.first_reading(part))
        before = self._steps[head.step]
        return step.longer_with(head, before, part, step.reading(head, before, part))
