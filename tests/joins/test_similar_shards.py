"""Joins by similarity that are spread over shards find what others find, each pair once."""

from __future__ import annotations

import random
from collections.abc import Sequence

import oracle
import pytest
from generators.choosers import RandomChooser
from generators.similar_cases import similar_case
from support.budgets import UNLIMITED
from support.examples import examples
from support.kit import parse_case
from support.runners import lines, run_engine, run_oracle

import xscl
from broker.documents.document import parse_document_line
from broker.matching.engine import Engine, RegisteredQuery
from broker.matching.queries.registration import SetChange
from broker.pipeline.shards import Join
from joins.engines import Processor
from joins.shards.driver import ShardedProcessor

LATENESS_US = 3_600_000_000


@pytest.mark.parametrize("shards", [2, 5])
def test_shards_find_what_the_oracle_finds(shards: int) -> None:
    wrong: list[int] = []
    for seed in range(2_000 + shards, 2_000 + shards + examples(2)):
        case = parse_case(similar_case(RandomChooser(seed)))
        join = Join(case.lateness_us, shards)
        found = run_engine(case, batch_size=2, processors=lambda: join.processor(None))  # noqa: B023
        if lines(found) != lines(run_oracle(case)):
            wrong.append(seed)
    assert not wrong, "cases of similar_case(RandomChooser(seed)) with these seeds"


def test_a_threshold_may_change_between_any_two_documents() -> None:
    """Items are routed by few words, by many, and everywhere, and meet those before them."""
    for seed in range(examples(1)):
        expected = found_while_thresholds_change(seed, None)
        assert len(expected) > 10
        for shards in (2, 5):
            assert found_while_thresholds_change(seed, sharded(shards)) == expected


def found_while_thresholds_change(seed: int, processor: Processor | None) -> list[str]:
    chance = random.Random(seed)
    engine = Engine([], lateness_us=LATENESS_US, budget=UNLIMITED, processor=processor)
    documents = oracle.number_documents(map(parse_document_line, titles(chance, 40, seconds=True)))
    xml = {document.docid: document.xml for document in documents}
    found: list[str] = []
    there: list[str] = []
    for start in range(0, len(documents), 4):
        before = documents[start].docid - 1
        come = {"0.9": chance.random() < 0.7, "0.6": chance.random() < 0.5, "0": start == 12}
        text = "S//i->a JOIN {similar(a/t, b/t) >= %s, 9 h} S//i->b"
        new = [
            RegisteredQuery(xscl.parse(text % least, id=f"q{least}-{start}")[0], before)
            for least, does in come.items()
            if does
        ]
        gone = [each for each in there if chance.random() < 0.3]
        there = [each for each in there if each not in gone] + [each.query.id for each in new]
        engine.follow(SetChange(queries=new, gone=gone))
        step = engine.process(
            engine.evaluate(documents[start : start + 4]), lambda ids: {i: xml[i] for i in ids}
        )
        found += [match.line for match in step.matches]
    return found


def test_shards_share_the_work() -> None:
    """At 0.8, two words of nine are enough."""
    query = "S//i->a JOIN {similar(a/t, b/t) >= 0.8, 9 h} S//i->b"
    processor = sharded(8)
    engine = Engine(
        [RegisteredQuery(xscl.parse(query, id="q")[0])],
        lateness_us=LATENESS_US,
        budget=UNLIMITED,
        processor=processor,
    )
    documents = oracle.number_documents(
        map(parse_document_line, titles(random.Random(0), 200, seconds=False))
    )
    xml = {document.docid: document.xml for document in documents}
    engine.process(engine.evaluate(documents), lambda ids: {i: xml[i] for i in ids})
    assert len(documents) < processor.routed_rows <= 2 * len(documents)


def sharded(shards: int) -> ShardedProcessor:
    processor = Join(LATENESS_US, shards).processor(None)
    assert isinstance(processor, ShardedProcessor)
    return processor


def titles(chance: random.Random, count: int, *, seconds: bool) -> Sequence[str]:
    """Return document lines whose titles repeat others in part; some have second titles."""
    words: list[list[str]] = []
    for i in range(count):
        own = [f"w{i}x{k}" for k in range(9)]
        if words and chance.random() < 0.7:
            shared = chance.randint(5, 9)
            own[:shared] = chance.choice(words)[:shared]
        words.append(own)
    more = "<t>other words</t>"
    return [
        f'{{"stream": "S", "time": "2026-01-01T{i // 60:02}:{i % 60:02}:00Z", "xml": '
        f'"<i><t>{" ".join(own)}</t>{more if seconds and i % 7 == 0 else ""}</i>"}}'
        for i, own in enumerate(words)
    ]
