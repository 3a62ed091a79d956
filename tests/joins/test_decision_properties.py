"""What decisions promise: they stay, and order within the grace is of no consequence."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from generators.choosers import DrawnChooser
from generators.ordered_cases import ordered_case
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from support.examples import examples
from support.kit import Case, parse_case, time_us
from support.runners import run_engine, run_oracle

from broker.documents.document import DocumentLine, tick

_SECOND_US = 1_000_000

_SLOW = settings(max_examples=examples(3), deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def cases(draw: Any) -> Case:
    """Return a strategy of cases of ordered queries."""
    return parse_case(ordered_case(DrawnChooser(draw)))


@st.composite
def in_two_orders(draw: Any) -> tuple[Case, Case]:
    """Return a strategy of cases of the same documents, which come at most a grace too late."""
    text = ordered_case(DrawnChooser(draw))
    grace_s = draw(st.integers(0, 6))
    text = re.sub(r"^lateness .*$", "lateness 100 s", text, flags=re.MULTILINE)
    text = re.sub(r" GRACE \d+ s|(?<=[^G]) PUBLISH P", _without_grace, text)
    case = parse_case(text)
    lines = [line for line in case.lines if not line.is_tick]
    named = [replace(line, key=f"k{i}") for i, line in enumerate(lines)]
    # A document that comes when the newest is at most the grace ahead is not late.
    for each in case.queries:
        assume(each.grace is None)
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
    one, other = (
        {(m.id, m.start_us, m.end_us, m.output) for m in run_engine(case)} for case in orders
    )
    assert one == other


@_SLOW
@given(case=cases(), data=st.data())
def test_what_a_prefix_of_the_documents_decides_stays(case: Case, data: Any) -> None:
    count = data.draw(st.integers(1, len(case.lines)))
    prefix = replace(case, lines=case.lines[:count], numbers=case.numbers[:count])
    assert run_engine(prefix) == [m for m in run_engine(case) if m.position <= count]
    assert run_oracle(prefix) == [m for m in run_oracle(case) if m.position <= count]
