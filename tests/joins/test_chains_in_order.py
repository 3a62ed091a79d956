"""Elements of counted chains that stay rows until they are numbers: as those taken one by one."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from support.counted_runs import asked, stream, stream_of_kinds
from support.examples import examples, some
from support.runners import lines, run_engine

from broker.matching.fanout import FanOut
from broker.matching.limits import MatchingLimits
from joins import RunLimits
from joins.sequences.clock import WatermarkSteps
from joins.sequences.counting.chains import CountedChainEvaluation
from joins.sequences.counting.found import EndsInOrder

SOURCES = [
    "S//a[k->x] FOLLOWED BY {x = y, 9 s} S/*[k->y] FOLLOWED BY {y = z, 9 s} S//a[k->z]",
    "S//a->a FOLLOWED BY {a/k = b/k, 9 s} S/*->b FOLLOWED BY {b/v <= c/v, 9 s} S//a->c",
    "S//a FOLLOWED BY {, 7 s} S/* FOLLOWED BY {, 9 s} S/*",
    "S/*[v->v] FOLLOWED BY {v < w, 9 s} S/*[v->w] FOLLOWED BY {w >= u, 9 s} S/*[v->u]",
    "S/*[v->v] FOLLOWED BY {v > w AND w > 0, 9 s} S/*[v->w] FOLLOWED BY {, INF} S/*",
    "S/*[v->v]+ {v >= prev(v), 3 s} FOLLOWED BY {last(v) < w, 5 s} S/*[v->w]",
    "S//a[v->v]+ {v > 0, 3 s} FOLLOWED BY {, 5 s} S/* SAME (//k)",
    "S//a FOLLOWED BY S/* FOLLOWED BY S//b WITHIN 15 s",
    "S//a FOLLOWED BY S/*+ FOLLOWED BY S//b WITHIN 12 s SAME (//k)",
    "S//a+ FOLLOWED BY S/*+ WITHIN 9 s",
    "S/*[k->x] FOLLOWED BY {x = y} S/*[k->y] FOLLOWED BY {y = z} S//a[k->z] WITHIN 12 s",
    "S//a[v->v] FOLLOWED BY {w > 1} S/*[v->w]+ {w > 1} FOLLOWED BY S/*[v->u] WITHIN 9 s",
]
ROWS = ["WINDOW 0 s", "WINDOW 3 s HAVING count() > 3"]

_decide_ends = CountedChainEvaluation.decide_ends


def _in_order(seed: int, count: int) -> str:
    """Return documents of a few kinds in order, but for the last ones; some have two elements."""
    chance = random.Random(seed)
    own, second = [], 10
    for number in range(1, count + 1):
        second += chance.choice([0, 1, 1, 2]) if number < count - 2 else -1
        kind = chance.choice("aaabbc")
        xml = f"<{kind}><k>{chance.choice(['x', 'x', 'y', ''])}</k><v>{chance.randrange(4)}</v>"
        xml += f"</{kind}>"
        if number > count // 2 and chance.randrange(6) == 0:
            xml = f"<d>{xml}<b><k>x</k><v>{chance.randrange(4)}</v></b>{xml}</d>"
        own.append(f"document {number} S 00:00:{second} arrival=01:00  {xml}")
    return "\n".join([*own, f"tick {count + 1} 10:00:00", "----", ""])


@pytest.mark.parametrize("source", some(SOURCES, 2))
def test_elements_in_order_are_counted_as_one_by_one(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: Counter[bool] = Counter()

    def noted(self: CountedChainEvaluation, clock: WatermarkSteps) -> EndsInOrder[object] | None:
        found = _decide_ends(self, clock)
        taken[found is not None and len(found) > 0] += 1
        return found

    for seed in range(examples(3)):
        chance = random.Random(seed)
        grace, batch = chance.choice([0, 0, 3]), chance.choice([2, 3, 5, 20])
        documents = [_in_order, _in_order, stream_of_kinds, stream][seed % 4](seed, 24)
        case = asked(
            f"SELECT <n>{{count()}}</n> FROM {source} MATCH ANY {ROWS[seed % 2]} GRACE {grace} s",
            documents,
        )
        with monkeypatch.context() as counting:
            counting.setattr(CountedChainEvaluation, "decide_ends", noted)
            found = lines(run_engine(case, batch_size=batch))
        with monkeypatch.context() as alone:
            alone.setattr(CountedChainEvaluation, "takes_columns", False)
            assert found == lines(run_engine(case)), seed
    assert taken[True]
    assert taken[False]


@pytest.mark.parametrize("source", [SOURCES[0], SOURCES[3], SOURCES[7], SOURCES[8]])
def test_an_element_that_is_late_is_counted_with_what_is_behind_it(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes last by document in its batch, and counts from there on."""
    seconds = [10, 11, 13, 14, 12, 15, 16]
    kinds = zip(seconds, "aabbabb", "0013023", strict=True)
    documents = "\n".join(
        f"document {n} S 00:00:{second}  <{kind}><k>x</k><v>{value}</v></{kind}>"
        for n, (second, kind, value) in enumerate(kinds, 1)
    )
    source = source.replace("S//a[k->z]", "S/*[k->z]").replace("S//b", "S/*")
    text = f"SELECT <n>{{count()}}</n> FROM {source} MATCH ANY WINDOW 0 s GRACE 0 s"
    case = asked(text, f"{documents}\ntick 8 10:00:00\n----\n")
    found = [lines(run_engine(case, batch_size=batch)) for batch in (1, 5, 8)]
    monkeypatch.setattr(CountedChainEvaluation, "takes_columns", False)
    assert found == [lines(run_engine(case, batch_size=8))] * 3
    assert found[0]


@pytest.mark.parametrize("source", SOURCES[::3])
def test_ends_that_are_no_numbers_to_a_statement_are_tuples(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is asked of more than the number of matches has them with what they are of."""
    text = f"SELECT <n>{{count()}}</n> FROM {source} MATCH ANY WINDOW 2 s GRACE 0 s"
    case = asked(text, _in_order(1, 20))
    found = lines(run_engine(case, batch_size=5))
    assert found
    monkeypatch.setattr(FanOut, "uses_of_ends", lambda *_: ())
    assert found == lines(run_engine(case))


@pytest.mark.parametrize(
    "source",
    [
        "S//a+ FOLLOWED BY S//b WITHIN 1 h",
        "S//a[v->v]+ {v > prev(v), 1 h} FOLLOWED BY {, 1 h} S//b SAME (//k)",
    ],
)
def test_too_many_matches_pause_at_one_document(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the batch, and whether elements are taken together or one by one."""
    own = [f"{kind}><k>x</k><v>{n}</v></{kind}>" for n in range(1, 16) for kind in "ab"]
    documents = [f"document {n} S 00:00:{n:02}  <{xml}" for n, xml in enumerate(own, 1)]
    text = "\n".join([*documents, "tick 31 10:00:00", "----", ""])
    statement = f"SELECT <n>{{count()}}</n> FROM {source} MATCH ANY WINDOW 0 s GRACE 0 s"
    limits = MatchingLimits(runs=RunLimits(bits=9))
    found = []
    for takes_columns in (True, False):
        with monkeypatch.context() as taken:
            if not takes_columns:
                taken.setattr(CountedChainEvaluation, "takes_columns", False)
            for batch in (1, 7, 40) if takes_columns else (7, 40):
                rows = run_engine(asked(statement, text), batch_size=batch, limits=limits)
                found.append([(row.decided, row.output) for row in rows])
    assert found[0][-1] == (19, f"<n>{2**9 - 1}</n>")
    assert found == found[:1] * 5
