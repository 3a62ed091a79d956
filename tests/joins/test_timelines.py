"""Timelines answer as a list of entries does, however they are cut into runs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from joins.memory.limits import DEFAULT_MEMORY_LIMITS
from joins.memory.slots import Ints
from joins.memory.times import Flags
from joins.sequences.clock import WatermarkSteps
from joins.sequences.timeline import RunSpans, SortedRun, Timeline
from joins.sequences.waiting import Waiting

NEVER = 1 << 60

Entry = tuple[int, int]
"""A key, and an end; the row of an entry is its place among all."""

_ENTRIES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9)), max_size=24)
_QUESTIONS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(-1, 9), st.integers(-1, 10)), min_size=1, max_size=6
)
_SETTINGS = settings(max_examples=examples(50), deadline=None)


def timeline_of(entries: Sequence[Entry], cuts: Sequence[int], run_entries: int) -> Timeline:
    """Return a timeline to which entries came in pieces."""
    timeline = Timeline(replace(DEFAULT_MEMORY_LIMITS, run_entries=run_entries))
    bounds = [0, *sorted(min(cut, len(entries)) for cut in cuts), len(entries)]
    for start, stop in itertools.pairwise(bounds):
        keys, ends = np.array(entries[start:stop], np.int64).reshape(-1, 2).T
        timeline.add(keys.astype(np.uint64), ends, np.arange(start, stop), everything)
    return timeline


def everything(rows: Ints) -> Flags:
    return np.ones(len(rows), np.bool_)


def asked(timeline: Timeline, questions: Sequence[tuple[int, int, int]]) -> RunSpans:
    """Return where the answers to questions of (key, first, last) stand."""
    keys, first, last = np.array(questions, np.int64).T
    return timeline.between(keys.astype(np.uint64), first, last)


@st.composite
def timelines(draw: Any) -> tuple[list[Entry], Timeline]:
    """Return a strategy of entries, and a timeline that they came to in pieces."""
    entries = draw(_ENTRIES)
    cuts = draw(st.lists(st.integers(0, 24), max_size=4))
    return entries, timeline_of(entries, cuts, draw(st.sampled_from([1, 4, 1_000])))


def rows_between(entries: Sequence[Entry], question: tuple[int, int, int]) -> set[int]:
    """Return the rows of the entries that a question asks for."""
    key, first, last = question
    return {row for row, (own, end) in enumerate(entries) if own == key and first <= end <= last}


@_SETTINGS
@given(made=timelines(), questions=_QUESTIONS, most=st.integers(1, 5))
def test_all_between_two_times(
    made: tuple[list[Entry], Timeline], questions: list[tuple[int, int, int]], most: int
) -> None:
    entries, timeline = made
    spans = asked(timeline, questions)
    found: list[set[int]] = [set() for _ in questions]
    for which, run, places in spans.listed(most):
        for question, row in zip(which.tolist(), run.rows[places].tolist(), strict=True):
            assert row not in found[question]
            found[question].add(row)
    assert found == [rows_between(entries, question) for question in questions]
    assert spans.counts().tolist() == list(map(len, found))


@_SETTINGS
@given(made=timelines(), questions=_QUESTIONS, fitting=st.sets(st.integers(0, 23)))
def test_the_first_that_fits_and_whether_any_does(
    made: tuple[list[Entry], Timeline], questions: list[tuple[int, int, int]], fitting: set[int]
) -> None:
    entries, timeline = made

    def fits(which: Ints, run: SortedRun, places: Ints) -> Flags:
        return np.isin(run.rows[places], list(fitting))

    spans = asked(timeline, questions)
    found = [rows_between(entries, question) & fitting for question in questions]
    firsts = [min((entries[row][1] for row in rows), default=NEVER) for rows in found]
    assert spans.first(fits, NEVER).tolist() == firsts
    for is_last in (False, True):
        assert spans.has(fits, is_last=is_last).tolist() == list(map(bool, found))


@_SETTINGS
@given(made=timelines(), questions=_QUESTIONS, kept=st.sets(st.integers(0, 23)))
def test_what_is_left_out_is_gone_and_the_rest_has_its_new_numbers(
    made: tuple[list[Entry], Timeline], questions: list[tuple[int, int, int]], kept: set[int]
) -> None:
    entries, timeline = made
    is_kept = np.isin(np.arange(len(entries)), list(kept))
    timeline.renumber(lambda rows: is_kept[rows], np.cumsum(is_kept) - 1)
    left = [entry for row, entry in enumerate(entries) if row in kept]
    rows: list[set[int]] = [set() for _ in questions]
    for which, run, places in asked(timeline, questions).listed(100):
        for question, row in zip(which.tolist(), run.rows[places].tolist(), strict=True):
            rows[question].add(row)
    assert rows == [rows_between(left, question) for question in questions]


def test_runs_that_are_looked_through_in_vain_are_written_anew() -> None:
    timeline = timeline_of([(1, end) for end in range(8)], [], 1_000)
    [run] = timeline.runs
    run.wasted = len(run)
    assert not timeline.sweep(lambda rows: rows > 5)
    run.wasted += 1
    assert timeline.sweep(lambda rows: rows > 5)
    assert [each.rows.tolist() for each in timeline.runs] == [[6, 7]]


@_SETTINGS
@given(
    pieces=st.lists(st.lists(st.integers(0, 9), max_size=6), max_size=6), before=st.integers(0, 9)
)
def test_what_waits_is_taken_when_its_time_has_passed(pieces: list[list[int]], before: int) -> None:
    waiting = Waiting()
    times = [time for piece in pieces for time in piece]
    for number, piece in enumerate(pieces):
        start = sum(map(len, pieces[:number]))
        waiting.add(np.array(piece, np.int64), np.arange(start, start + len(piece)))
    taken_at, taken = waiting.take(before)
    assert sorted(taken.tolist()) == [row for row, time in enumerate(times) if time < before]
    assert taken_at.tolist() == [times[row] for row in taken.tolist()]
    assert sorted(waiting.rows().tolist()) == [row for row, t in enumerate(times) if t >= before]


@_SETTINGS
@given(
    ends=st.lists(st.integers(0, 30), min_size=1, max_size=20),
    cut=st.integers(0, 20),
    asked_us=st.integers(0, 30),
)
def test_a_time_is_settled_by_the_first_document_behind_which_w_is_larger(
    ends: list[int], cut: int, asked_us: int
) -> None:
    clock = WatermarkSteps()
    before = [-1, *np.maximum.accumulate(ends).tolist()]
    for some in (slice(0, cut), slice(cut, None)):
        clock = clock.next_batch()
        docids = np.arange(1, 1 + len(ends))[some]
        clock.advance(docids, np.array(before[:-1])[some], np.array(ends)[some])
    settled = [docid for docid, newest in enumerate(before[1:], 1) if newest > asked_us]
    assert (clock.newest_us > asked_us) == bool(settled)
    if settled:
        # Of what was settled before the batch it is the last document before the batch.
        expected = settled[0] if settled[0] > clock.before else clock.before
        assert clock.settling(np.array([asked_us])).tolist() == [expected]
