"""However many bytes documents and their values have, they are joined in parts that fit."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pytest
from oracle.lines import render
from support.examples import examples
from support.matching_broker import MatchingBroker
from support.runners import case_with_joins, run_engine

import broker.documents.spool
import broker.pipeline.lookback.filling
import xpath_eval.parsing
import xpath_eval.walk
import xscl
from broker.documents.document import DocumentLine
from broker.matching.limits import DEFAULT_MATCHING_LIMITS, MatchingLimits
from broker.pipeline.evaluation import (
    PlanStore,
    are_evaluated,
    evaluate_documents,
    evaluated_slices,
    read_witnesses,
)
from broker.pipeline.limits import DEFAULT_PIPELINE_LIMITS, PipelineLimits
from broker.pipeline.lookback.replay import replay
from broker.pipeline.shards import Join
from broker.pipeline.slices import Slice, next_batch
from broker.pipeline.snapshot import Snapshot
from joins.memory.limits import MemoryLimits
from joins.shards.limits import ShardLimits
from joins.signature.limits import SignatureLimits
from xpath_eval.limits import EvaluatorLimits
from xscl.excerpttexts import NAMED
from xscl.sharedtexts import name_of

NESTED = "S//*->a FOLLOWED BY {a = b, 1 h} S//*->b"

# Every bound on bytes is so small that a few short documents reach it.
EVALUATOR = EvaluatorLimits(characters=3)
JOIN = SignatureLimits(memory=MemoryLimits(sub_batch_bytes=100))
LIMITS = MatchingLimits(
    join=JOIN,
    evaluator=EVALUATOR,
    characters=3,
    large_bytes=2,
    read_bytes=50,
    large_instances=3,
    trees=60,
    shared_characters=1,
)
SHARDS = ShardLimits(shard=JOIN, pending_bytes=100)
PIPELINE = PipelineLimits(
    evaluator=EVALUATOR, batch_bytes=400, witness_bytes=300, sub_batch_bytes=200, file_bytes=400
)


def nested(number: int) -> DocumentLine:
    xml = f"<i><b><c>{'x' * 20}{number % 3}</c></b></i>"
    return DocumentLine("S", xml.encode(), time_us=number * 1_000_000)


def query(text: str = NESTED, name: str = "q") -> xscl.Query:
    (parsed,) = xscl.parse(text, id=name)
    return parsed


def fed(
    directory: Path,
    sizes: Sequence[int],
    limits: MatchingLimits = DEFAULT_MATCHING_LIMITS,
    pipeline_limits: PipelineLimits = DEFAULT_PIPELINE_LIMITS,
) -> list[str]:
    """Return what a broker finds that takes so many documents at a time, and restarts half-way."""

    def start() -> MatchingBroker:
        return MatchingBroker(
            directory,
            snapshot=Snapshot(directory / "state", limits=pipeline_limits),
            limits=limits,
            pipeline_limits=pipeline_limits,
        )

    directory.mkdir()
    number = 0
    stand = start()
    stand.register(query())
    for i, size in enumerate(sizes):
        if i == len(sizes) // 2:
            stand.close()
            stand = start()
        stand.take([nested(n) for n in range(number, number + size)])
        number += size
    found = stand.found()
    stand.close()
    return found


def test_a_batch_is_joined_in_parts_where_its_values_do_not_fit(tmp_path: Path) -> None:
    expected = fed(tmp_path / "whole", [1, 12, 2, 9])
    assert fed(tmp_path / "parts", [1, 12, 2, 9], LIMITS, PIPELINE) == expected
    assert len(expected) > 50


@pytest.mark.parametrize("number", range(examples(1)))
@pytest.mark.parametrize("shards", [1, 3])
def test_an_engine_finds_the_same_in_parts(number: int, shards: int) -> None:
    case = case_with_joins(number)
    expected = [render(match) for match in run_engine(case)]
    found = run_engine(
        case,
        batch_size=5,
        processors=lambda: Join(case.lateness_us, shards, limits=SHARDS).processor(None),
        limits=LIMITS,
    )
    assert [render(match) for match in found] == expected


def test_a_task_leaves_out_what_does_not_fit_and_sends_the_numbers_of_the_documents(
    tmp_path: Path,
) -> None:
    stand = MatchingBroker(tmp_path)
    stand.register(query())
    stand.take([nested(n) for n in range(8)])
    [segment] = stand.writer.all_segments()
    path = str(stand.writer.directory / segment.name)
    slices = [Slice(path, 0, 4), Slice(path, 4, 8)]
    sent = (evaluated_slices([piece], tmp_path / "plans", 2, PIPELINE) for piece in slices)
    found = pa.Table.from_batches(chain.from_iterable(sent))
    stand.close()
    witnesses = read_witnesses(found)
    assert witnesses.column("docid").to_pylist() == list(range(1, 9))
    assert are_evaluated(witnesses).tolist() == [True, False, False, False] * 2


def test_small_segments_are_evaluated_together_up_to_a_number_of_documents(tmp_path: Path) -> None:
    stand = MatchingBroker(tmp_path)
    stand.register(query())
    for first in range(0, 24, 3):
        stand.take([nested(n) for n in range(first, first + 3)])
    plan = PlanStore(tmp_path / "plans").get(stand.registry.revision())
    limits = PipelineLimits(evaluated_documents=7)

    def found(first: int, last: int, limits: PipelineLimits) -> list[list[dict[str, object]]]:
        tables = evaluate_documents(stand.writer, lambda version: plan, first, last, limits)
        return [table.drop_columns(["edges"]).to_pylist() for table in tables]

    one_by_one = [row for docid in range(1, 25) for [row] in found(docid, docid, limits)]
    assert [*chain.from_iterable(found(2, 23, limits))] == one_by_one[1:23]
    assert list(map(len, found(1, 24, limits))) == [9, 9, 6]
    assert list(map(len, found(2, 23, limits))) == [8, 9, 5]
    assert list(map(len, found(1, 24, DEFAULT_PIPELINE_LIMITS))) == [24]
    stand.close()


def test_a_batch_has_one_segment_at_least_and_then_as_many_bytes_as_fit(tmp_path: Path) -> None:
    stand = MatchingBroker(tmp_path)
    for number in range(4):
        stand.take([nested(number)])
    segments = stand.writer.all_segments()
    nbytes = segments[0].nbytes
    assert 40 < nbytes < 400
    for bytes_max, last in ((1, 1), (nbytes, 1), (3 * nbytes, 3), (5 * nbytes, 4)):
        assert next_batch(segments, 1_000, bytes_max) == segments[last - 1]
    stand.close()


def test_segments_are_merged_up_to_a_number_of_bytes(tmp_path: Path) -> None:
    stand = MatchingBroker(tmp_path)
    for number in range(6):
        stand.take([nested(number)])
    most = 3 * stand.writer.all_segments()[0].nbytes + 10
    with mock.patch.object(broker.documents.spool, "SEGMENT_BYTES_MAX", most):
        while stand.writer.compact(through=6, documents_max=1_000):
            pass
    assert [(s.first, s.last) for s in stand.writer.all_segments()] == [(1, 3), (4, 6)]
    stand.close()


def test_a_replay_cuts_its_segments_by_bytes(tmp_path: Path) -> None:
    path = tmp_path / "documents.jsonl"
    rows = [
        {"stream": "S", "time": f"2026-01-01T00:00:{n:02}Z", "xml": nested(n).xml.decode()}
        for n in range(12)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def found() -> tuple[str, list[int]]:
        out, seen = io.StringIO(), list[int]()
        replay([query()], [path], out, spark=False, progress=lambda read, _: seen.append(read))
        return out.getvalue(), seen

    expected, steps = found()
    assert steps == [12]
    with mock.patch.object(broker.pipeline.lookback.filling, "SEGMENT_BYTES_MAX", 100):
        assert found() == (expected, [3, 6, 9, 12])


def test_text_that_is_nested_too_deeply_is_a_dead_letter_and_the_stream_goes_on(
    tmp_path: Path,
) -> None:
    deep = DocumentLine("S", b"<i>" * 50 + b"x" * 100 + b"</i>" * 50, time_us=500_000)
    stand = MatchingBroker(tmp_path)
    stand.register(query())
    with mock.patch.object(xpath_eval.parsing, "NESTED_TEXT_BYTES_MAX", 4_999):
        stand.take([nested(0), deep, nested(3)])
    [letter] = stand.outbox.dead_letters()
    assert (letter.docid, letter.reason) == (
        2,
        "the document has 5000 bytes of text where it is counted once for each element around it, "
        "the limit is 4999: nest long texts less deeply",
    )
    assert len(stand.found()) == 9  # three elements with three
    stand.close()


def test_values_that_functions_give_are_bounded_for_each_document(tmp_path: Path) -> None:
    stand = MatchingBroker(tmp_path)
    stand.register(query("S//c->a FOLLOWED BY {lower-case(a) = lower-case(b), 1 h} S//c->b"))
    twice = DocumentLine("S", nested(1).xml.replace(b"</b>", b"<c>more</c></b>"), time_us=500_000)
    with mock.patch.object(xpath_eval.walk, "DERIVED_CHARACTERS_MAX", 22):
        stand.take([nested(0), twice, nested(3)])
    [letter] = stand.outbox.dead_letters()
    assert (letter.docid, letter.reason) == (
        2,
        "the values that functions in queries give of the document have more than 22 characters "
        "together",
    )
    assert len(stand.found()) == 1
    stand.close()


def found_within(
    most: int, statement: str, documents: list[str], tmp_path: Path
) -> tuple[list[tuple[int, str]], int]:
    """Return the dead letters, with their reasons, and how many matches there are for 'w'."""
    stand = MatchingBroker(tmp_path)
    asked = query(statement)
    stand.register(asked)
    stand.subscribe(asked, {"x": "w"})
    lines = [
        DocumentLine("S", f"<b>{inner}</b>".encode(), time_us=number)
        for number, inner in enumerate(documents)
    ]
    with mock.patch.object(xpath_eval.walk, "DERIVED_CHARACTERS_MAX", most):
        stand.take(lines)
    letters = [(letter.docid, letter.reason) for letter in stand.outbox.dead_letters()]
    matches = len(stand.found())
    stand.close()
    return letters, matches


def test_excerpts_are_bounded_as_other_values_are(tmp_path: Path) -> None:
    items = ["<d>w</d><d>w</d>", "<d>w</d><e>left out</e><d>w</d>", "<d>w</d>" * 4]
    most = len("<c><d>w</d><d>w</d></c>") + 10
    documents = [f"<c>{inner}</c>" for inner in items]
    letters, _ = found_within(most, "S//c[count(d[. = $x]) > 1]", documents, tmp_path)
    assert [docid for docid, _ in letters] == [3]


def test_what_siblings_read_of_each_other_counts_once(tmp_path: Path) -> None:
    items = ["<c><d>w</d></c>" * 40, "<c><d>w</d><e>left out</e></c>" * 40, "<c><d>w</d></c>" * 99]
    # Who is asked is found by the texts of `d`, which stand behind a place in what is read.
    place = rf'["\u0001/0.39{NAMED}{name_of("")}", "\u0002w"]'
    most = len("<b></b>") + 40 * (len("<c><d>w</d></c>") + len(place))
    letters, matches = found_within(most, "S//c[d = $x][2]", items, tmp_path)
    reason = (
        "what queries read of the document, as excerpt(../c/d), has more"
        f" than {most} characters together"
    )
    assert letters == [(3, reason)]
    assert matches == 2
