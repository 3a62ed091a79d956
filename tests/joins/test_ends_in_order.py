"""Elements that stay rows until they are numbers: the same as those that are taken one by one."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from support.counted_runs import SOURCES, asked, stream
from support.examples import examples, some
from support.runners import lines, run_engine

from broker.matching.fanout import FanOut
from broker.matching.limits import MatchingLimits
from joins import RunLimits
from joins.sequences.clock import WatermarkSteps
from joins.sequences.counting.counted import CountedRunEvaluation
from joins.sequences.counting.found import EndsInOrder

ROWS = ["WINDOW 0 s", "WINDOW 3 s HAVING count() > 3"]

_decide_ends = CountedRunEvaluation.decide_ends


@pytest.mark.parametrize("source", some(SOURCES, 2))
def test_elements_in_order_are_counted_as_one_by_one(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: Counter[bool] = Counter()

    def noted(self: CountedRunEvaluation, clock: WatermarkSteps) -> EndsInOrder | None:
        found = _decide_ends(self, clock)
        taken[found is not None] += 1
        return found

    for seed in range(examples(3)):
        chance = random.Random(seed)
        grace, batch = chance.choice([0, 0, 3]), chance.choice([1, 3, 20])
        rows = ROWS[seed % 2]
        case = asked(
            f"SELECT <n>{{count()}}</n> FROM {source} {rows} GRACE {grace} s", stream(seed, 24)
        )
        with monkeypatch.context() as counting:
            counting.setattr(CountedRunEvaluation, "decide_ends", noted)
            found = lines(run_engine(case, batch_size=batch))
        with monkeypatch.context() as alone:
            alone.setattr(CountedRunEvaluation, "takes_columns", False)
            assert found == lines(run_engine(case)), seed
    is_plain = source not in SOURCES[-2:] and "SAME" not in source
    assert (taken[True] > 0) == is_plain
    assert taken[False]


@pytest.mark.parametrize("source", some(SOURCES[:9], 2))
def test_ends_that_are_no_numbers_to_a_statement_are_tuples(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is asked of more than the number of runs has them as tuples, with what they are of."""
    for seed in range(examples(3)):
        case = asked(f"SELECT <n>{{count()}}</n> FROM {source} WINDOW 2 s GRACE 0 s", stream(seed))
        found = lines(run_engine(case, batch_size=5))
        with monkeypatch.context() as tuples:
            tuples.setattr(FanOut, "uses_of_ends", lambda *_: ())
            assert found == lines(run_engine(case)), seed


@pytest.mark.parametrize("wanted", ["WITHIN 1 h", "{, 1 h}", "{v > prev(v)} WITHIN 1 h"])
def test_too_many_runs_pause_at_one_document(wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the batch, and whether elements are taken together or one by one."""
    documents = [f"document {n} S 00:00:{n:02}  <a><v>{n}</v></a>" for n in range(1, 31)]
    text = "\n".join([*documents, "tick 31 10:00:00", "----", ""])
    statement = f"SELECT <n>{{count()}}</n> FROM S//a[v->v]+ {wanted} WINDOW 0 s GRACE 0 s"
    limits = MatchingLimits(runs=RunLimits(bits=20))
    found = []
    for takes_columns in (True, False):
        with monkeypatch.context() as taken:
            if not takes_columns:
                taken.setattr(CountedRunEvaluation, "takes_columns", False)
            for batch in (1, 7, 40) if takes_columns else (7, 40):
                rows = run_engine(asked(statement, text), batch_size=batch, limits=limits)
                found.append([(row.decided, row.output) for row in rows])
    assert found[0][-1] == (21, f"<n>{2**19}</n>")
    assert found == found[:1] * 5
