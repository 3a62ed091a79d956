"""A join that is spread over shards finds what one that is not finds: every tuple, and once."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import oracle
import pyarrow as pa
import pytest
from generators.strategies import case_texts
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.examples import examples, some
from support.kit import Case, cases, check, parse_case
from support.runners import case_with_joins, engine_of, lines, run_engine, run_oracle

import joins.signature.sample
import xscl
from broker.matching.boxes.points import Points
from broker.matching.finishing.finisher import FinishedMatches
from broker.matching.limits import MatchingLimits
from broker.matching.queries.registration import SetChange
from broker.pipeline.shards import Join
from broker.pipeline.store.objects import StorePlace
from broker.pipeline.store.runs import MemoryStore, RunStore
from joins.engines import Processor
from joins.memory.limits import MemoryLimits
from joins.memory.retention import Retention
from joins.memory.shapes import Shapes
from joins.shards.driver import ShardedProcessor
from joins.shards.limits import DEFAULT_SHARD_LIMITS, ShardLimits
from joins.shards.orders import Answer, Order, Piece, Store
from joins.shards.pieces import Pieces
from joins.shards.shard import Shard
from joins.signature.limits import SignatureLimits

ALL = dict(cases())
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


def spread(case: Case, shards: int) -> Callable[[], Processor | None]:
    """Return what makes a join of some shards in this process."""
    return lambda: Join(case.lateness_us, shards).processor(None)


@pytest.mark.parametrize("name", some(ALL, 10))
def test_shards_find_what_a_case_expects(name: str) -> None:
    check(ALL[name], lambda case: run_engine(case, processors=spread(case, 2)))


@settings(max_examples=examples(5), deadline=None, suppress_health_check=SLOW)
@given(text=case_texts(), shards=st.sampled_from([2, 5]), batch_size=st.sampled_from([None, 2]))
def test_shards_find_what_the_oracle_finds(text: str, shards: int, batch_size: int | None) -> None:
    case = parse_case(text)
    found = run_engine(case, batch_size=batch_size, processors=spread(case, shards))
    assert lines(found) == lines(run_oracle(case))


@pytest.mark.parametrize("shards", [2, 3, 5])
def test_empty_values_beside_common_ones_hide_no_match(shards: int) -> None:
    documents = "\n".join(
        f"document {2 * n + i} S 12:{10 * n + i:02}  <i><c/><c>{n}</c></i>"
        for n in range(1, 6)
        for i in (-1, 0)
    )
    case = parse_case(
        "# Empty.\nquery q\n    S//i->a FOLLOWED BY {a/c = b/c, 1 h} S//i->b\n"
        f"\n{documents}\n----\n"
    )
    found = run_engine(case, processors=spread(case, shards))
    assert [[each.docid for each in match.documents] for match in found] == [
        [n, n + 1] for n in range(1, 11, 2)
    ]


@pytest.mark.parametrize("number", range(examples(1)))
def test_every_tuple_of_every_class_is_found_once(number: int) -> None:
    case = case_with_joins(number)
    expected = tuples_of(case, None)
    assert max(expected.values()) == 1
    for shards in (2, 5):
        processor = ShardsHere(shards, case.lateness_us, can_finish=False).processor
        assert tuples_of(case, processor) == expected


def tuples_of(case: Case, processor: Processor | None) -> Counter[tuple[Any, ...]]:
    """Return what the join hands to the fan-out, whatever it calls its instances."""
    engine = engine_of(case, "signatures", processor)
    found: Counter[tuple[Any, ...]] = Counter()
    expand = engine.queries.fan_out.expand

    def listen(points: Points, *others: Any) -> Any:
        for one in points.tuples.rows():
            numbers = [i for i in (one.left, one.right) if i is not None]
            sides = engine.processor.instances(numbers)
            them = ((sides[i].leaves, sides[i].nodes, sides[i].match_id) for i in numbers)
            found[one.query_class, one.span_us, one.nodes, *them] += 1
        return expand(points, *others)

    engine.queries.fan_out.expand = listen  # type: ignore[method-assign]
    documents = oracle.number_documents(case.lines)
    xml = {each.docid: each.xml for each in documents}
    for start in range(0, len(documents), 3):
        engine.process(engine.evaluate(documents[start : start + 3]), lambda docids: xml)
    return found


@pytest.mark.parametrize("number", range(1, 1 + examples(1)))
def test_another_number_of_shards_after_a_restart_changes_nothing(number: int) -> None:
    case = case_with_joins(number)
    expected = lines(run_oracle(case))
    for restart_after in range(1, len(case.lines), 3):
        numbers = iter([3, 2])
        found = run_engine(
            case,
            batch_size=2,
            restart_after=restart_after,
            processors=lambda: spread(case, next(numbers))(),  # noqa: B023 - called at once
        )
        assert lines(found) == expected


class ShardsHere:
    """Shards in workers that come and go; whoever is there answers, sometimes more than once."""

    def __init__(
        self,
        shards: int,
        lateness_us: int,
        *,
        seed: int | None = None,
        store: Store | None = None,
        limits: ShardLimits = DEFAULT_SHARD_LIMITS,
        can_finish: bool = True,
    ) -> None:
        self.store = store or MemoryStore()
        self.join = Join(lateness_us, shards, limits=limits)
        self.chance = random.Random(seed)
        self.workers: list[dict[int, Shard]] = [{}] if seed is None else [{}, {}, {}]
        self.processor = ShardedProcessor(
            shards, self.store, self.answer, limits=limits, can_finish=can_finish
        )
        self.done: dict[int, list[tuple[Order, Answer]]] = defaultdict(list)

    def answer(self, orders: Sequence[Order]) -> list[Answer]:
        return [self.answer_one(order) for order in orders]

    def answer_one(self, order: Order) -> Answer:
        worker = self.chance.choice(self.workers)
        if len(self.workers) > 1 and self.chance.random() < 0.2:
            worker.clear()
        if order.shard not in worker:
            worker[order.shard] = self.join.shard(order.shard, self.store, self.documents)
        done = self.done[order.shard]
        if len(self.workers) > 1 and done and self.chance.random() < 0.3:
            self.repeat(worker[order.shard], *self.chance.choice(done))
        answer = worker[order.shard].answer(order)
        done.append((order, answer))
        return answer

    def repeat(self, shard: Shard, order: Order, answer: Answer) -> None:
        """Have an order carried out again, if all that it names is still there."""
        pieces = {piece.name for piece in order.pieces}
        readers = {order.readers} if order.readers else set()
        if {*pieces, order.shapes, order.catalog, *readers} <= self.names:
            assert found(shard.answer(order)) == found(answer)

    def documents(self, docids: Iterable[int]) -> Mapping[int, bytes]:
        assert self.processor.asked is not None
        return self.processor.asked.documents(docids)

    @property
    def names(self) -> set[str]:
        assert isinstance(self.store, MemoryStore)
        return self.store.names()


def found(answer: Answer) -> tuple[list[tuple[Any, ...]], list[int], object]:
    """Return what is in an answer, in an order that says nothing."""
    tuples, finished = answer.tuples, answer.finished
    made = sorted(finished.matches()) if isinstance(finished, FinishedMatches) else finished
    rows = sorted((one.query_class, one.left, one.right or 0, one.nodes) for one in tuples.rows())
    return rows, answer.instances.column("instance").to_pylist(), made


@pytest.mark.parametrize("number", range(1, 1 + examples(1)))
def test_workers_may_be_lost_and_tasks_repeated(number: int) -> None:
    for case in (case_with_joins(number), hundred_documents(number)):
        shards = ShardsHere(3, case.lateness_us, seed=number)
        found = run_engine(case, batch_size=5, processors=lambda: shards.processor)  # noqa: B023
        assert lines(found) == lines(run_engine(case))


def hundred_documents(seed: int) -> Case:
    """Return a case of a query with three value joins, each of which many documents meet by."""
    chance = random.Random(seed)
    values = [[chance.randrange(4) for _ in range(3)] for _ in range(100)]
    documents = [
        f"document {i} S 2026-01-01T{i // 60:02}:{i % 60:02} <a><u>{u}</u><v>{v}</v><w>{w}</w></a>"
        for i, (u, v, w) in enumerate(values, 1)
    ]
    equal = "x1/u = x2/u AND x1/v = x2/v AND x1/w = x2/w"
    query = f"query q\n  S//a->x1 FOLLOWED BY {{{equal}, 50 m}} S//a->x2"
    return parse_case("\n".join(["lateness 0 s", query, *documents, "----", ""]))


class TwoWorkers(ShardsHere):
    """Shards in two workers, either of which may get any order."""

    def __init__(self, case: Case, seed: int, limits: ShardLimits) -> None:
        super().__init__(2, case.lateness_us, seed=seed, limits=limits, can_finish=False)
        self.taken_on: list[int] = []
        self.newest: dict[int, Order] = {}

    def answer_one(self, order: Order) -> Answer:
        worker = self.chance.choice(self.workers[:2])
        if order.shard not in worker:
            worker[order.shard] = self.join.shard(order.shard, self.store)
        shard = worker[order.shard]
        before = shard._processor.next_instance
        answer = shard.answer(order)
        self.taken_on.append(shard._processor.next_instance - before)
        self.newest[order.shard] = order
        return answer

    def lacking(self) -> list[int]:
        """Return for how many instances each worker would have to read each shard."""
        return [
            self.newest[number].last - shard._last
            for worker in self.workers[:2]
            for number, shard in worker.items()
        ]


@pytest.mark.parametrize("seed", range(examples(3)))
def test_workers_take_on_in_parts_what_is_absorbed(seed: int) -> None:
    case = hundred_documents(seed)
    documents = oracle.number_documents(case.lines)
    xml = {document.docid: document.xml for document in documents}
    shards = TwoWorkers(case, seed, ShardLimits(taken_on_rows=7, warm_rounds=20, unasked_rows=30))
    found = []
    for processor in (None, shards.processor):
        running = engine_of(case, "signatures", processor)
        evaluated = running.evaluate(documents)
        for start in range(0, 90, 9):
            running.absorb(evaluated.slice(start, 9), lambda ids: {i: xml[i] for i in ids})
        running.warm_up()
        step = running.process(evaluated.slice(90), lambda ids: {i: xml[i] for i in ids})
        found.append([match.line for match in step.matches])
    assert found[0] == found[1] != []
    assert max(shards.taken_on) <= 7 + 10  # and the batch that is new


@pytest.mark.parametrize("seed", range(examples(3)))
def test_every_worker_has_all_when_warmed_up(seed: int) -> None:
    case = hundred_documents(seed)
    documents = oracle.number_documents(case.lines)
    xml = {document.docid: document.xml for document in documents}
    shards = TwoWorkers(case, seed, ShardLimits(taken_on_rows=7, warm_rounds=20))
    running = engine_of(case, "signatures", shards.processor)
    running.absorb(running.evaluate(documents), lambda ids: {i: xml[i] for i in ids})
    assert not shards.newest
    running.warm_up()
    assert shards.lacking() == [0, 0, 0, 0]


@pytest.mark.parametrize("seed", range(examples(1)))
def test_anchors_may_change_at_any_batch(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(joins.signature.sample.PairCounts, "of", lambda *_: chance.randrange(100))
    monkeypatch.setattr(joins.signature.sample.InstanceSample, "is_due", lambda _: True)
    case = hundred_documents(seed)
    expected = lines(run_engine(case))
    assert len(expected) > 20
    assert lines(run_engine(case, batch_size=4, processors=spread(case, 5))) == expected


@pytest.mark.parametrize("predicate", ["", "a/u = b/u AND a/v = b/v"])
@pytest.mark.parametrize("shards", some([3, 2, 5], 1))
def test_a_stream_that_is_published_no_more_is_joined_as_before(
    predicate: str, shards: int
) -> None:
    case = hundred_documents(1)
    published = (
        "FROM S//a->x FOLLOWED BY {x/u = y/u, 2 m} S//a->y SELECT <a>{x/u}{x/v}</a> PUBLISH P"
    )
    texts = {"pairs": published, "q": f"P//a->a FOLLOWED BY {{{predicate}, 9 m}} S//a->b"}
    queries = [xscl.parse(text, id=name)[0] for name, text in texts.items()]
    case = replace(case, queries=queries)
    expected, found = (
        _without_publisher_from(40, case, processor) for processor in (None, spread(case, shards)())
    )
    assert found == expected != []


def _without_publisher_from(docid: int, case: Case, processor: Processor | None) -> list[str]:
    """Return what `q` finds from a document on, before which `pairs` is removed."""
    documents = oracle.number_documents(case.lines)
    xml = {document.docid: document.xml for document in documents}
    running = engine_of(case, "signatures", processor)
    first, second = documents[: docid - 1], documents[docid - 1 :]
    running.process(running.evaluate(first), lambda ids: {i: xml[i] for i in ids})
    assert running.follow(SetChange(gone=["pairs"]))
    step = running.process(running.evaluate(second), lambda ids: {i: xml[i] for i in ids})
    return [match.line for match in step.matches]


@pytest.mark.parametrize("predicate", ["", "x1/u = x2/u"])
def test_a_document_is_paired_before_it_is_forgotten_for_being_late(predicate: str) -> None:
    minutes = [30, 20, 5]
    documents = [f"document {m} S 2026-01-01T00:{m:02} <a><u>1</u></a>" for m in minutes]
    query = f"query q\n  S//a->x1 JOIN {{{predicate}, 15 m}} S//a->x2"
    case = parse_case("\n".join(["lateness 0 s", query, *documents, "----", ""]))
    expected = lines(run_oracle(case))
    assert len(expected) == 4
    assert lines(run_engine(case, batch_size=1, processors=spread(case, 2))) == expected


@pytest.mark.parametrize("number", range(1, 1 + examples(1)))
def test_pieces_may_be_merged_at_any_time(number: int) -> None:
    case = case_with_joins(number)
    shards = ShardsHere(2, case.lateness_us, seed=number, limits=ShardLimits(pieces=2))
    found = run_engine(case, batch_size=1, processors=lambda: shards.processor)
    assert lines(found) == lines(run_oracle(case))


def test_what_no_window_reaches_any_more_is_deleted(tmp_path: Path) -> None:
    limits = ShardLimits(looked_every=1, counted_instances=1)
    documents = [
        f"document {i} S 2026-01-{1 + i // 24:02}T{i % 24:02}:00 <a><v>{i % 3}</v></a>"
        for i in range(1, 201)
    ]
    query = "query q\n  S//a[v->x1] FOLLOWED BY {x1 = x2, 6 h} S//a[v->x2]"
    case = parse_case("\n".join(["lateness 1 h", query, *documents, "----", ""]))
    store = RunStore(StorePlace.of(tmp_path).below("run"))
    shards = ShardsHere(2, case.lateness_us, store=store, limits=limits)
    found = run_engine(case, batch_size=4, processors=lambda: shards.processor)
    assert lines(found) == lines(run_engine(case))
    files = len(list((tmp_path / "run").iterdir()))
    # Shapes, classes; of each shard the pieces of eight hours, two batches, and of the last one.
    assert files <= 2 + 2 * 4
    assert shards.processor.remembered(0) <= 12


def test_what_only_a_block_alone_reads_is_forgotten_by_all() -> None:
    forgetful = SignatureLimits(memory=MemoryLimits(shapes_kept=0, evicted_rows=1))
    limits = ShardLimits(shard=forgetful, pieces=2, looked_every=1)
    documents = [
        f"document {i} S 01:00 <{'ab'[i % 2]}>{'<v>x</v>' * (i % 3)}</{'ab'[i % 2]}>"
        for i in range(1, 60)
    ]
    queries = "query q\n  S//a->x", "query r\n  S//b[v->y] JOIN {y = z, 1 h} S//b[v->z]"
    case = parse_case("\n".join(["lateness 0 s", *queries, *documents, "----", ""]))
    shards = ShardsHere(2, case.lateness_us, limits=limits)
    found = run_engine(case, batch_size=1, processors=lambda: shards.processor)
    assert lines(found) == lines(run_engine(case))


def test_a_task_that_is_late_puts_no_end_to_the_run_that_followed(tmp_path: Path) -> None:
    rows = pa.table({"n": [1]})
    first, second = (RunStore(StorePlace.of(tmp_path).below(run)) for run in ("first", "second"))
    first.put("piece", rows)
    second.put("piece", rows)
    late = RunStore(StorePlace.of(tmp_path).below("first"), is_begun=True)
    with pytest.raises(OSError):
        late.put("merged", rows)
    assert second.get("piece") == rows
    assert [each.name for each in tmp_path.iterdir()] == ["second"]


def test_a_class_that_is_closed_has_no_further_tuples() -> None:
    limits = ShardLimits(shard=SignatureLimits(tuples=1))
    case = hundred_documents(1)
    processor = ShardsHere(3, case.lateness_us, limits=limits, can_finish=False).processor
    engine = engine_of(case, "signatures", processor, MatchingLimits(tuples=1))
    expand, seen = engine.queries.fan_out.expand, list[int]()

    def listen(points: Points, *others: Any) -> Any:
        for number, docid in zip(points.classes.tolist(), points.docids.tolist(), strict=True):
            seen.append(docid)
            if docid >= 60:
                processor.limit(number, 60)
        return expand(points, *others)

    engine.queries.fan_out.expand = listen  # type: ignore[method-assign]
    documents = oracle.number_documents(case.lines)
    xml = {each.docid: each.xml for each in documents}
    engine.process(engine.evaluate(documents), lambda docids: xml)
    assert len(seen) > 10
    assert [docid for docid in seen if docid >= 60] == seen[-1:]


def test_small_pieces_are_few_and_a_row_is_written_a_few_times() -> None:
    limits = ShardLimits(piece_rows=64, pieces=4)
    shapes = Shapes()
    shapes.add({"one node": [(1, 1, 0, 0)]})
    retention = Retention(shapes)
    retention.add({(1,)}, 1 << 40)
    pieces, chance, rows, merged_rows = (
        Pieces(MemoryStore(), retention, limits),
        random.Random(1),
        0,
        0,
    )
    while rows < 2_000:
        numbers = list(range(rows + 1, rows + 1 + chance.choice([1, 1, 2, 9])))
        rows = numbers[-1]
        columns = {"instance": numbers, "shape": [0] * len(numbers), "end_us": numbers}
        pieces.append(pa.table(columns), [len(numbers)])
        pieces.write()
        if merged := pieces.to_merge(0):
            size = sum(piece.rows for piece in merged)
            assert len(merged) > 1
            assert size <= 64
            merged_rows += size
            name, first, last = f"merged {rows}", merged[0].first, merged[-1].last
            pieces.replace(0, merged, Piece(name, first, last, size), 0)
    there = pieces.of(0)
    assert [piece.first for piece in there[1:]] == [piece.last + 1 for piece in there[:-1]]
    assert len(there) <= 2_000 // 32 + 5
    assert merged_rows < 5 * rows
