"""A batch that is joined in sub-batches, however small, gives what it gives as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
from generators.strategies import random_case
from support.kit import parse_case
from support.runners import ENGINES, EngineName, run_engine, run_oracle, seeds_with_joins

from broker.pipeline.shards import Join
from joins.budget import sub_batches
from joins.budget.sub_batches import SubBatches
from joins.engines import make_processor
from joins.sql.engine import Processor

BUDGET = 1_000_000
"""Without one nothing is counted, and so nothing cut; nothing goes over this one."""


WAYS = [(engine, shards) for engine in ENGINES for shards in (1, 3)]


# The default engine, where it is not spread, expands its tuples a few at a time by itself.
@pytest.mark.parametrize(("engine", "shards"), sorted(set(WAYS) - {("signatures", 1)}))
def test_portions_change_no_match(
    engine: EngineName, shards: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sub_batches, "REPEATED", 0)
    monkeypatch.setattr(sub_batches, "LISTED_MAX", 2)
    cut: list[int] = []
    of = SubBatches.of

    def listen(self: SubBatches, stratum: int, new: range) -> Iterator[range]:
        found = list(of(self, stratum, new))
        assert [number for sub_batch in found for number in sub_batch] == list(new)
        cut.append(len(found))
        return iter(found)

    monkeypatch.setattr(SubBatches, "of", listen)
    for seed in seeds_with_joins(6):
        case = parse_case(random_case(seed))
        found = run_engine(case, processors=partial(processor, engine, case.lateness_us, shards))
        assert [m.render() for m in found] == [m.render() for m in run_oracle(case)]
    assert max(cut) > 1


def processor(engine: EngineName, lateness_us: int, shards: int) -> Processor | None:
    if shards == 1:
        return make_processor(engine, lateness_us=lateness_us, pairs_max=BUDGET)
    return Join(engine, lateness_us, shards, pairs_max=BUDGET).processor(None)
