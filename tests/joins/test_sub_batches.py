"""A batch that is joined in sub-batches, however small, gives what it gives as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from oracle.lines import render
from support.runners import case_with_joins, run_engine, run_oracle

from broker.pipeline.shards import Join
from joins.budget.sub_batches import SubBatches
from joins.shards.limits import ShardLimits

BUDGET = 1_000_000
"""Without one nothing is counted, and so nothing cut; nothing goes over this one."""

LIMITS = ShardLimits(pair_tuples=0, listed_tuples=2)


@pytest.mark.parametrize("shards", [2, 3])
def test_sub_batches_change_no_match(shards: int, monkeypatch: pytest.MonkeyPatch) -> None:
    cut: list[int] = []
    of = SubBatches.of

    def listen(self: SubBatches, stratum: int, new: range, *noted: Any) -> Iterator[range]:
        found = list(of(self, stratum, new, *noted))
        assert [number for sub_batch in found for number in sub_batch] == list(new)
        cut.append(len(found))
        return iter(found)

    monkeypatch.setattr(SubBatches, "of", listen)
    for number in range(6):
        case = case_with_joins(number)
        join = Join(case.lateness_us, shards, BUDGET, LIMITS)
        found = run_engine(case, processors=partial(join.processor, None))
        assert [render(m) for m in found] == [render(m) for m in run_oracle(case)]
    assert max(cut) > 1
