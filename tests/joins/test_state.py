"""What the join remembers stays small, whatever comes; and what is done for that never shows."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.kit import Case
from support.runners import case_with_joins, lines, run_engine
from support.tiny_limits import TINY, TINY_MEMORY, matching

import xscl
from broker.documents.document import Document
from broker.matching.engine import Engine, RegisteredQuery
from joins.memory.column import SPARE_ROWS, Column
from joins.memory.limits import DEFAULT_MEMORY_LIMITS, MemoryLimits
from joins.memory.spill import InstanceRows, SpillError
from joins.memory.valueindex import ValueIndex

MINUTE_US = 60_000_000


@pytest.mark.parametrize("number", range(8))
def test_tiny_bounds_change_no_match(number: int) -> None:
    case = case_with_joins(number)
    expected = lines(run_engine(case))
    assert lines(run_engine(case, batch_size=2, limits=TINY)) == expected


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 50)), max_size=30))
def test_a_column_holds_what_was_appended_and_not_dropped(steps: list[tuple[int, int]]) -> None:
    rows: list[int] = []
    grown = Column(np.int64, 5, TINY_MEMORY)
    for appended, dropped in steps:
        grown.append(np.arange(len(rows), len(rows) + appended))
        rows += range(len(rows), len(rows) + appended)
        grown.drop(min(max(grown.start, 5 + dropped), grown.end))
        alive = grown.values[grown.start - grown.origin :].tolist()
        assert alive == rows[grown.start - 5 :]
        assert grown.end == 5 + len(rows)
        origin = grown.origin
        assert len(grown.padded(SPARE_ROWS)) == grown.end - origin + SPARE_ROWS
        assert grown.origin == origin, "what points into the column still does"


def test_who_reads_a_column_goes_on_while_it_grows() -> None:
    grown = Column(np.int64, 0, TINY_MEMORY)
    grown.append(np.arange(100))
    read = grown.values
    grown.append(np.arange(100, 100_000))
    assert read.tolist() == list(range(100))
    del read
    grown.append(np.arange(100_000, 1_000_000))
    assert np.array_equal(grown.values, np.arange(1_000_000))


def test_a_column_gives_back_the_pages_of_dropped_rows() -> None:
    grown = Column(np.int64)
    grown.append(np.ones(1 << 20, np.int64))
    for dropped in range(1 << 16, 1 << 20, 1 << 16):
        grown.drop(dropped)
        # Pages that are given back read as zero.
        assert int(grown.values[:dropped].sum()) == 0
    assert grown.memory_bytes == 8 << 16


def test_many_columns_have_room_in_few_addresses() -> None:
    """A process is copied, to start another, only if there is room for its addresses twice."""
    program = """
import resource
import numpy as np
from joins.memory.column import Column

resource.setrlimit(resource.RLIMIT_AS, (3 << 30, resource.RLIM_INFINITY))
columns = [Column(np.int64) for _ in range(2_000)]
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def rows_of(first: int, count: int) -> pa.Table:
    return pa.table({"n": range(first, first + count), "text": ["x" * 50] * count})


def numbers_in(rows: InstanceRows, numbers: Sequence[int]) -> list[int]:
    return [n for _, found in rows.take(numbers) for n in found.column("n").to_pylist()]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=30), st.integers(0, 100))
def test_rows_are_found_in_memory_and_in_files(sizes: list[int], evicted: int) -> None:
    rows, end = InstanceRows(limits=TINY_MEMORY), 1
    for size in sizes:
        rows.append(end, rows_of(end, size))
        end += size
    before = min(evicted, end - 1)
    rows.evict(before)
    kept = list(range(max(1, before), end))
    assert numbers_in(rows, kept) == kept
    rows.evict(end)
    assert (rows.memory_bytes, rows.spilled_bytes) == (0, 0)


def test_files_of_rows_leave_nothing_behind(tmp_path: Path) -> None:
    rows = InstanceRows(tmp_path / "spilled", TINY_MEMORY)
    for first in range(1, 100, 10):
        rows.append(first, rows_of(first, 10))
    assert rows.spilled_bytes > 5_000
    assert list((tmp_path / "spilled").iterdir()) == []


def test_rows_that_cannot_be_written_are_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    rows = InstanceRows(tmp_path / "file", TINY_MEMORY)
    with pytest.raises(SpillError, match=r"file: File exists; .* make room there"):
        rows.append(1, rows_of(1, 10))


def test_runs_are_bounded_and_dropped_with_their_instances() -> None:
    index = ValueIndex(TINY_MEMORY)
    for n in range(100):
        base = max(0, n - 10)
        keys, owners = np.array([n % 7, n % 5], np.uint64), np.array([n, n])
        index.add(keys, owners, base, lambda instances, base=base: instances >= base)
        assert len(index) <= 2 * 10 + 3 * 4


def documents(count: int, *, is_new_shape: bool) -> list[Document]:
    found = []
    for n in range(1, count + 1):
        more = "".join(f"<t>{n}.{i}</t>" for i in range(n if is_new_shape else 0))
        xml = f"<i><c>{n // 2}</c><t>x</t>{more}</i>"
        time_us = n * MINUTE_US
        found.append(
            Document(n, "S", str(n), time_us, time_us, time_us, time_us - MINUTE_US, xml.encode())
        )
    return found


QUERY = "S//i->a FOLLOWED BY {a/c = b/c AND a/t = b/t, 10 m} S//i->b"


def engine_over(
    stream: Sequence[Document], batch: int, memory: MemoryLimits = DEFAULT_MEMORY_LIMITS
) -> Engine:
    (query,) = xscl.parse(QUERY, id="q")
    running = Engine([RegisteredQuery(query)], lateness_us=0, limits=matching(memory))
    xml = {one.docid: one.xml for one in stream}
    for start in range(0, len(stream), batch):
        running.process(
            running.evaluate(stream[start : start + batch]), lambda ids: {i: xml[i] for i in ids}
        )
    return running


def test_shapes_that_nothing_has_any_more_are_forgotten() -> None:
    memory = MemoryLimits(shapes_kept=8)
    figures = engine_over(documents(120, is_new_shape=True), 1, memory).processor.figures()
    assert figures["documents"] < 40
    assert figures["shapes"] < 100
    assert figures["layouts"] < 100
    assert figures["signatures"] < 200
    assert figures["evicted_total"] == 120 - figures["documents"]


def test_figures_say_what_is_remembered() -> None:
    figures = engine_over(documents(20, is_new_shape=False), 5).processor.figures()
    assert figures["documents"] + figures["evicted_total"] == 20
    assert figures["values"] >= 2 * figures["documents"]
    assert figures["memory_bytes"] > 100 * figures["documents"]
    assert (figures["shapes"], figures["layouts"], figures["spilled_bytes"]) == (1, 1, 0)
    assert figures["signature_misses_total"] == figures["signatures"] == 1


def test_a_case_without_documents_is_remembered_in_no_memory() -> None:
    assert run_engine(Case()) == []
    assert engine_over([], 1).processor.figures()["memory_bytes"] == 0
