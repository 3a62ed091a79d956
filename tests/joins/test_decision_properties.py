"""What decisions promise: they stay, and order within the grace is of no consequence.

So it is of pairs and absence, of runs and chains under all strategies, and of what is counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from generators.choosers import Chooser, DrawnChooser
from generators.column_cases import column_case
from generators.counted_cases import counted_any_case, counted_case
from generators.ordered_cases import ordered_case
from generators.run_cases import run_case
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from support.bounded import TooLargeError, bounded
from support.counted_runs import paths
from support.examples import examples
from support.kit import Case, parse_case, time_us
from support.runners import run_engine, run_oracle

from broker.documents.document import DocumentLine, tick
from broker.matching.match import Match

_SECOND_US = 1_000_000

_SLOW = settings(max_examples=examples(5), deadline=None, suppress_health_check=list(HealthCheck))

_KINDS: list[Callable[[Chooser], str]] = [
    ordered_case,
    run_case,
    column_case,
    counted_case,
    counted_any_case,
]


@st.composite
def cases(draw: Any) -> Case:
    """Return a strategy of cases in which something is decided."""
    return parse_case(draw(st.sampled_from(_KINDS))(DrawnChooser(draw)))


@st.composite
def in_two_orders(draw: Any) -> tuple[Case, Case]:
    """Return a strategy of cases of the same documents, which come at most a grace too late."""
    text = draw(st.sampled_from(_KINDS))(DrawnChooser(draw))
    grace_s = draw(st.integers(0, 6))
    text = re.sub(r"^lateness .*$", "lateness 100 s", text, flags=re.MULTILINE)
    text = re.sub(r" GRACE \d+ s|(?<=[^G]) PUBLISH P", _without_grace, text)
    case = parse_case(text)
    lines = [line for line in case.lines if not line.is_tick]
    named = [replace(line, key=f"k{i}") for i, line in enumerate(lines)]
    # A document that comes when the newest is at most the grace ahead is not late.
    for each in case.queries:
        assume(each.grace is None)
        assume(each.publish is None or not each.has_outcome)
    queries = [replace(each, grace=grace_s * _SECOND_US) for each in case.queries]
    orders = []
    for _ in range(2):
        delays = {line.key: draw(st.integers(0, grace_s)) * _SECOND_US for line in named}
        arrived = sorted(named, key=lambda line: (_time(line) + delays[line.key], line.key))
        ended = [*arrived, tick(time_us("02:00"))]
        # A registration point is a document number, which another order gives to another document.
        orders.append(replace(case, queries=queries, lines=ended, numbers=[], registered={}))
    return orders[0], orders[1]


def _without_grace(found: re.Match[str]) -> str:
    return " PUBLISH P" if "PUBLISH" in found[0] else ""


def _time(line: DocumentLine) -> int:
    assert line.time_us is not None
    return line.time_us


@_SLOW
@given(orders=in_two_orders())
def test_within_the_grace_the_order_of_arrival_changes_nothing(orders: tuple[Case, Case]) -> None:
    one, other = map(_found, orders)
    assert one == other


def _found(case: Case) -> set[tuple[Any, ...]]:
    """Return what matches say, but for the numbers of documents."""
    paused: dict[str, int] = {}
    matches = run_engine(case, paused=paused)
    assume(not paused)
    return {(m.id, m.start_us, m.end_us, _output(m)) for m in matches}


def _output(match: Match) -> object:
    """Return the output of a match; of a graph its paths, and of a row its values and documents.

    Rows and graphs have documents of one time in the order in which they came.
    """
    keys = {each.docid: each.key for each in match.documents}
    if match.output.startswith("<graph "):
        return tuple(sorted(tuple(keys[docid] for docid in path) for path in paths(match)))
    if not match.witnesses:
        return str(match.values), tuple(sorted(keys.values()))
    return match.output


@_SLOW
@given(case=cases(), data=st.data())
def test_what_a_prefix_of_the_documents_decides_stays(case: Case, data: Any) -> None:
    count = data.draw(st.integers(1, len(case.lines)))
    prefix = replace(case, lines=case.lines[:count], numbers=case.numbers[:count])
    assert run_engine(prefix) == [m for m in run_engine(case) if m.position <= count]
    try:
        with bounded():
            assert run_oracle(prefix) == [m for m in run_oracle(case) if m.position <= count]
    except TooLargeError:
        assume(False)
