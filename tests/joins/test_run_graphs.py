"""Match graphs: what is counted is listed, whatever arrives when, and need not be listed."""

from __future__ import annotations

import random
from functools import reduce
from typing import Any

import pytest
from support.kit import parse_case
from support.runners import run_engine

from broker.matching.limits import MatchingLimits
from joins.budget.limits import RunLimits
from joins.sequences.repeated.rungraph import Grown, RunGraph, RunNode
from joins.sequences.runparts import Head, Part
from xscl.runvalues import GrowingRun, RunElement, TermNode, Totals, UnboundError, aggregate


def part(docid: int, second: int) -> Part:
    return Part(docid, 0, "", docid, docid, second, second, 0, (0,), (docid,), ())


def is_higher(one: Part, other: Part) -> bool:
    return one.leaves < other.leaves


def test_of_forty_rising_values_all_runs_are_counted() -> None:
    parts = [part(number, number) for number in range(1, 41)]
    anchors: list[RunGraph] = []
    counts = []
    for serial, one in enumerate(parts):
        grown = [Grown(anchor.add(one, serial, begins=False)) for anchor in anchors]
        anchors.append(RunGraph(is_higher))
        grown.append(Grown(anchors[-1].add(one, serial, begins=True)))
        counts.append(sum(each.count() for each in grown))
    assert sum(map(len, anchors)) == 820
    assert (counts[-1], sum(counts)) == (549755813888, 1099511627775)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_counted_is_listed_once(seed: int) -> None:
    chance = random.Random(seed)
    edges = {(i, j) for i in range(9) for j in range(9) if chance.random() < 0.6}
    begins = {i for i in range(9) if chance.random() < 0.5}

    def is_next(one: Part, other: Part) -> bool:
        return (one.docid, other.docid) in edges

    parts = [part(docid, chance.randrange(6)) for docid in range(9)]
    anchor = RunGraph(is_next)
    found: list[tuple[int, ...]] = []
    for serial, one in enumerate(chance.sample(parts, 9)):
        grown = Grown(anchor.add(one, serial, begins=one.docid in begins))
        listed = [tuple(each.docid for each in run) for run in grown.runs()]
        assert grown.count() == len(listed)
        found += listed
    expected: list[tuple[int, ...]] = []
    waiting = [(one,) for one in parts if one.docid in begins]
    while waiting:
        run = waiting.pop()
        expected.append(tuple(each.docid for each in run))
        further = (p for p in parts if p.start_us > run[-1].end_us and is_next(run[-1], p))
        waiting += [(*run, each) for each in further]
    assert sorted(found) == sorted(expected)


def test_a_document_with_too_many_runs_lists_none(monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[RunNode] = []
    runs = Grown.runs

    def noted(grown: Grown) -> object:
        listed.append(grown.node)
        return runs(grown)

    monkeypatch.setattr(Grown, "runs", noted)
    lines = [f"document {n} S 00:00:{n:02}  <a><v>{n}</v></a>" for n in range(1, 41)]
    query = "query q\n    S//a[v->v]+ {v > prev(v)} WITHIN 1 h MATCH ANY"
    case = parse_case("\n".join([query, "", *lines]) + "\n----\n")
    found = run_engine(case, limits=MatchingLimits(runs=RunLimits(runs=500)))
    # The ninth document ends 256 runs, and the tenth 512.
    assert max(match.documents[-1].docid for match in found) == 9
    assert max(node.part.docid for node in listed) == 9


AGGREGATES = ("count", "sum", "avg", "min", "max")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], "[0.0] [0.0] unbound unbound unbound"),
        (["2"], "[1.0] [2.0] [2.0] [2.0] [2.0]"),
        (["3", "1", "2"], "[3.0] [6.0] [2.0] [1.0] [3.0]"),
        (["3", "x", "1"], "[3.0] [nan] [nan] [nan] [nan]"),
        (["0.1", "0.2", "0.3"], "[3.0] [0.6000000000000001] [0.20000000000000004] [0.1] [0.3]"),
        ([None, "1", None], "[1.0] [1.0] [1.0] [1.0] [1.0]"),
    ],
)
def test_totals_that_a_run_carries_are_those_of_its_elements(
    values: list[str | None], expected: str
) -> None:
    elements = [RunElement(0, n, n, {"p": TermNode(1, value)}) for n, value in enumerate(values)]

    def of(element: RunElement) -> list[str | float]:
        return [element.value("p")]

    class Carried(GrowingRun):
        def __len__(self) -> int:
            return len(elements)

        def __getitem__(self, index: Any) -> Any:
            return elements[index]

        def totals(self, of: Any) -> Totals:
            return reduce(lambda known, one: known.with_more(of, [one]), elements, Totals())

    for function, outcome in zip(AGGREGATES, expected.split(" "), strict=True):
        assert _outcome(function, of, Carried()) == _outcome(function, of, elements) == outcome


@pytest.mark.parametrize("asked_of", [1, 2, 3])
def test_totals_of_a_run_go_on_from_those_of_the_run_before(asked_of: int) -> None:
    values = ["3", None, "0.1", "7", "0.2", "-2"]
    elements = [RunElement(0, n, n, {"p": TermNode(1, value)}) for n, value in enumerate(values)]

    def of(element: RunElement) -> list[str | float]:
        return [element.value("p")]

    head = Head(0, None, (), {}, 0)
    for size, element in enumerate(elements, 1):
        one = part(size, size)
        one.element = element
        head = head.with_one(one, {})
        assert list(head.before) == elements[:size]
        # Of some runs nothing was asked, as of what begins behind others.
        if size % asked_of == 0:
            for function in AGGREGATES:
                expected = _outcome(function, of, elements[:size])
                assert _outcome(function, of, head.before) == expected


def _outcome(function: str, of: Any, elements: Any) -> str:
    try:
        return repr(list(aggregate(function, of, elements)))
    except UnboundError:
        return "unbound"
