"""What is remembered is what some query can still use: never less, and not for long more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.budget_runs import stream as documents_of
from support.examples import examples, size
from support.kernels import needs_kernels
from support.kit import Case, document
from support.runners import ENGINES, EngineName, lines, run_engine, run_oracle
from support.tiny_limits import TINY_MEMORY, TINY_SHARDS, matching

import xscl
from broker.documents.document import Document
from broker.matching.engine import Engine, RegisteredQuery
from broker.matching.limits import MatchingLimits
from broker.pipeline.shards import Join
from broker.pipeline.store.runs import MemoryStore
from joins.engines import Processor
from joins.memory.durations import UNBOUNDED
from joins.memory.instance import INSTANCE_SCHEMA
from joins.memory.limits import MemoryLimits
from joins.memory.remembered import Remembered, hash_values
from joins.memory.shapes import Shapes
from joins.memory.slots import Ints, Layouts
from joins.shards.driver import ShardedProcessor
from joins.shards.limits import ShardLimits
from joins.shards.orders import Answer, Order
from joins.signature.limits import SignatureLimits

SECOND_US = 1_000_000
RARE = "R//i->a FOLLOWED BY {a/c = b/c, INF} R//i->b"
BUSY = "B//i->a FOLLOWED BY {a/c = b/c, 20 m} B//i->b"
SIMILAR = "B//i->a FOLLOWED BY {similar(a/c, b/c) >= 0.5, 20 m} B//i->b"
QUERIES = (
    "R//i->a FOLLOWED BY {a/c = b/c, %s} R//i->b",
    "B//i->a JOIN {a/c = b/c AND a/t = b/t, %s} B//i->b",
    "B//i->a FOLLOWED BY {a/c = b/c, %s} R//i->b",
    "R//i->a JOIN {, %s} R//i[t]->b",
    "(B//i->a FOLLOWED BY {a/c = b/c, 3 m} R//i->b) FOLLOWED BY {a/t = d/t, %s} B//i->d",
    "R//i->a JOIN {, 2 m} (B//i->b FOLLOWED BY {b/c = d/c, %s} B//i->d)",
    "FROM B//i->a FOLLOWED BY {a/c = b/c, %s} R//i->b SELECT <i>{a/c}{b/t}</i> PUBLISH P",
    "P//i->a FOLLOWED BY {a/c = b/c, %s} B//i->b",
    "*//i->a FOLLOWED BY {a/t = b/t, %s} *//i->b",
    "B//i->a JOIN {similar(a/t, b/t) >= 0.5, %s} *//i->b",
    "R//i->a FOLLOWED BY {containment(words(a/t), words(b/t)) >= 0.5, %s} *//i->b",
)
WINDOWS = ("1 m", "4 m", "11 m", "INF")


_EAGER_MEMORY = replace(TINY_MEMORY, sub_batch_bytes=1 << 20, file_bytes=300, run_entries=8)
EAGER, EAGER_COMPILED = (matching(_EAGER_MEMORY, compiled_sets=sets) for sets in (1_000, 0))
"""What is of no use goes at once; sets of words are searched by array operations, or compiled."""
EAGERLY = st.sampled_from([EAGER, EAGER_COMPILED])


@st.composite
def mixed(draw: st.DrawFn) -> Case:
    """Windows of all widths over two streams, documents late by anything, and little lateness."""
    chosen = draw(
        st.lists(st.sampled_from(range(len(QUERIES))), min_size=1, max_size=4, unique=True)
    )
    case = Case(lateness_us=draw(st.sampled_from([0, 60, 300])) * SECOND_US)
    for i in chosen:
        text = QUERIES[i] % draw(st.sampled_from(WINDOWS))
        case.queries += xscl.parse(text, id=f"q{i}")
    items = st.tuples(
        st.sampled_from("RBBB"),
        st.integers(0, 3),
        st.sampled_from(["", "x", "y", "x y z"]),
        st.integers(0, 9),
    )
    for minute, (stream, c, t, late) in enumerate(draw(st.lists(items, min_size=4, max_size=40))):
        xml = f"<i><c>{c}</c>{t and f'<t>{t}</t>'}</i>"
        case.lines.append(document(stream, max(0, minute - late), xml, arrival=minute))
    return case


@settings(max_examples=examples(5))
@given(mixed(), st.integers(1, 5), EAGERLY)
def test_no_match_is_missed_however_soon_documents_are_forgotten(
    case: Case, size: int, limits: MatchingLimits
) -> None:
    found = run_engine(case, batch_size=size, limits=limits)
    assert lines(found) == lines(run_oracle(case))


@pytest.mark.parametrize("window", ["4 m", "$T"])
@pytest.mark.parametrize("before", [1, 3, 4, 5])
def test_what_stands_before_an_operand_of_not_join_is_there_until_that_is_decided(
    before: int, window: str
) -> None:
    (query,) = xscl.parse(f"S//i->a NOT JOIN {{a/k = b/k, {window}}} S//j->b", id="q")
    case = Case(lateness_us=0, queries=[query])
    if query.parameters:
        case.assignments = {"q": [{"T": 240 * SECOND_US}]}
    case.lines = [document("S", 0, "<j><k>x</k></j>"), document("S", before, "<i><k>x</k></i>")]
    for half in range(2 * before + 1, 2 * before + 19):
        others = "".join(f"<j><k>{half}.{i}</k></j>" for i in range(2))
        case.lines.append(document("S", half / 2, f"<r>{others}</r>"))
    found = lines(run_engine(case, batch_size=1, limits=EAGER))
    assert found == lines(run_oracle(case))
    assert bool(found) == (before > 4)


@settings(max_examples=examples(1))
@given(mixed(), st.sampled_from(ENGINES), st.integers(1, 20))
def test_all_engines_agree_when_documents_are_forgotten_before_a_restart(
    case: Case, engine: EngineName, after: int
) -> None:
    expected = lines(run_engine(case, batch_size=3))
    assert lines(run_engine(case, engine, batch_size=2, limits=EAGER)) == expected
    after = min(after, len(case.lines) - 1)
    restarted = run_engine(case, engine, batch_size=3, restart_after=after, limits=EAGER)
    assert lines(restarted) == expected


@settings(max_examples=examples(4))
@given(mixed(), st.integers(1, 4), EAGERLY)
def test_shards_forget_as_soon_and_miss_nothing(
    case: Case, size: int, limits: MatchingLimits
) -> None:
    join = Join(case.lateness_us, shards=2, limits=replace(TINY_SHARDS, shard=limits.join))
    found = run_engine(case, batch_size=size, processors=lambda: join.processor(None))
    assert lines(found) == lines(run_oracle(case))


def items(count: int, *, rare_every: int = 500) -> list[Document]:
    """Return documents of a busy stream, one a second, and now and then one of another."""
    found = []
    for n in range(1, count + 1):
        time_us, stream = n * SECOND_US, "B" if n % rare_every else "R"
        value = 0 if stream == "R" else n // 2 if n % 100 < 2 else n
        xml = f"<i><c>{value}</c></i>".encode()
        found.append(
            Document(n, stream, str(n), time_us, time_us, time_us, time_us - SECOND_US, xml)
        )
    return found


SMALL_PIECES = MemoryLimits(evicted_rows=1_024)
SMALL_SHARDS = ShardLimits(shard=SignatureLimits(memory=SMALL_PIECES))


@dataclass
class Running:
    """An engine that documents go through, and the most that it has remembered."""

    engine: Engine
    most: int = 0
    matches: int = 0

    @classmethod
    def of(
        cls,
        *texts: str,
        processor: Processor | None = None,
        memory: MemoryLimits = SMALL_PIECES,
        **limits: int,
    ) -> Running:
        queries = [xscl.parse(text, id=f"q{i}")[0] for i, text in enumerate(texts)]
        registered = [RegisteredQuery(query) for query in queries]
        engine = Engine(
            registered, lateness_us=0, processor=processor, limits=matching(memory, **limits)
        )
        return cls(engine)

    def take(self, documents: Sequence[Document], *, is_known: bool = False) -> None:
        xml = {one.docid: one.xml for one in documents}
        old = b"<i><c>0</c></i>"  # of the rare stream
        for start in range(0, len(documents), 1_000):
            witnesses = self.engine.evaluate(documents[start : start + 1_000])
            look_up = lambda ids: {i: xml.get(i, old) for i in ids}  # noqa: E731
            if is_known:
                self.engine.absorb(witnesses, look_up)
            else:
                self.matches += len(self.engine.process(witnesses, look_up).matches)
            self.most = max(self.most, self.remembered)

    @property
    def remembered(self) -> int:
        return self.engine.processor.figures()["documents"]


SPAN = 1_200
BOUND = 4 * SPAN


@pytest.fixture(scope="module")
def busy() -> Sequence[Document]:
    return items(size(9_000, 50_000))


def test_a_window_without_end_over_a_rare_stream_keeps_nothing_of_a_busy_one(
    busy: Sequence[Document],
) -> None:
    memory = replace(SMALL_PIECES, rows_bytes=200_000, file_bytes=50_000)
    running = Running.of(RARE, BUSY, memory=memory)
    running.take(busy)
    figures = running.engine.processor.figures()
    assert running.most <= BOUND
    assert figures["documents"] + figures["evicted_total"] == len(busy)
    assert figures["values"] <= 2 * BOUND
    assert figures["memory_bytes"] < 200_000 + 50_000 + BOUND * 200
    assert figures["spilled_bytes"] < 2 * BOUND * 300
    # Each document of the rare stream follows all before it; some others one.
    rare = len(busy) // 500
    assert running.matches > rare * (rare - 1) // 2 + len(busy) // 125


@pytest.mark.parametrize("compiled_sets", [1_000_000, 0])
def test_sets_of_words_go_with_their_documents(
    busy: Sequence[Document], compiled_sets: int
) -> None:
    if not compiled_sets:
        needs_kernels()
    running = Running.of(RARE, SIMILAR, compiled_sets=compiled_sets)
    for start in range(0, len(busy), 3_000):
        running.take(busy[start : start + 3_000])
        bytes_each = running.engine.processor.similar_bytes / running.remembered
        # One word each; `c` is looked for on both sides of one query.
        assert 20 < bytes_each < 100
    rare = len(busy) // 500
    assert running.matches > rare * (rare - 1) // 2 + len(busy) // 125


def test_shards_keep_nothing_of_a_busy_stream_for_a_window_without_end_over_a_rare_one(
    busy: Sequence[Document],
) -> None:
    join, store = Join(0, shards=2, limits=SMALL_SHARDS), MemoryStore()
    members = [join.shard(number, store) for number in range(2)]
    most = 0

    def answer(orders: Sequence[Order]) -> list[Answer]:
        nonlocal most
        answers = [members[order.shard].answer(order) for order in orders]
        most = max(most, sum(each.figures["documents"] for each in answers))
        return answers

    running = Running.of(
        RARE, BUSY, processor=ShardedProcessor(2, store, answer, limits=SMALL_SHARDS)
    )
    running.take(busy)
    assert SPAN <= most <= BOUND
    figures = running.engine.processor.figures()
    assert figures["values"] <= 2 * BOUND
    assert figures["memory_bytes"] < BOUND * 500
    rare = len(busy) // 500
    assert running.matches > rare * (rare - 1) // 2 + len(busy) // 125


@pytest.mark.parametrize(("retention_us", "is_kept"), [(0, False), (3_600 * SECOND_US, True)])
def test_shards_hear_of_tuples_that_are_to_be_joined_for_longer(
    busy: Sequence[Document], retention_us: int, is_kept: bool
) -> None:
    processor = Join(0, shards=2, limits=SMALL_SHARDS).processor(None)
    assert processor is not None
    running = Running.of(BUSY.replace("20 m", "1 m"), processor=processor)
    running.take(busy[:1_000])
    processor.retain(1, retention_us)
    running.take(busy[1_000:4_000])
    assert (processor.figures()["values"] > 3_000) == is_kept


@pytest.mark.parametrize(
    ("engine", "shards", "at_us"),
    [*((each, 1, UNBOUNDED) for each in ENGINES), ("signatures", 1, 0), ("signatures", 2, 0)],
)
def test_what_nobody_asks_for_goes_at_any_time(engine: EngineName, shards: int, at_us: int) -> None:
    (query,) = xscl.parse(BUSY.replace("B//", "*//"), id="q")
    join = Join(0, shards, limits=replace(SMALL_SHARDS, counted_instances=1))
    running = Engine(
        [RegisteredQuery(query)],
        lateness_us=0,
        engine=engine,
        processor=join.processor(None),
        limits=EAGER,
    )
    running.process(
        running.evaluate(documents_of([f"<c>{n}</c>" for n in range(5)])), lambda docids: {}
    )
    assert running.figures()["documents"] == 5
    running.queries.remove("q")
    running.processor.begin_batch()
    running.processor.evict(at_us)
    assert running.figures()["documents"] == 0


def test_when_a_wide_query_goes_shards_let_go_at_once(busy: Sequence[Document]) -> None:
    limits = replace(SMALL_SHARDS, counted_instances=1)
    processor = Join(0, shards=2, limits=limits).processor(None)
    running = Running.of(
        RARE.replace("R//", "*//"), BUSY.replace("20 m", "1 m"), processor=processor
    )
    running.take(busy[:1_000])
    assert running.remembered == 1_000
    running.engine.queries.remove("q0")
    running.take(busy[1_000:1_100])
    assert running.remembered == 100


def test_when_a_wide_query_goes_what_it_kept_goes(busy: Sequence[Document]) -> None:
    running = Running.of(RARE.replace("R//", "*//"), BUSY)
    running.take(busy[:6_000])
    assert running.remembered == 6_000
    running.engine.queries.remove("q0")
    running.take(busy[6_000:8_000])
    assert running.remembered <= BOUND


def test_a_restart_remembers_no_more(busy: Sequence[Document]) -> None:
    running = Running.of(RARE, BUSY)
    known, all_ = len(busy) * 3 // 5, len(busy) * 4 // 5
    running.take(busy[:known], is_known=True)
    running.take(busy[known:all_])
    assert running.most <= BOUND
    assert running.matches >= (all_ - known) // 500 * (known // 500)


def test_a_wide_query_that_comes_needs_nothing_that_has_gone(busy: Sequence[Document]) -> None:
    running = Running.of(BUSY)
    running.take(busy[:6_000])
    wide = xscl.parse(BUSY.replace("20 m", "INF"), id="wide")[0]
    running.engine.queries.add(RegisteredQuery(wide, registration_point=6_000))
    running.take(busy[6_000:9_000])
    assert running.remembered <= BOUND + 3_000
    # One in 500 is of the rare stream.
    assert running.remembered >= (3_000 + SPAN) * 499 // 500


def test_documents_that_no_query_can_join_are_not_remembered(busy: Sequence[Document]) -> None:
    running = Running.of(RARE, "B//i[c > 1]->a")
    running.take(busy[:4_000])
    assert running.most <= 2 * 20 + 1_024 + 1_000


def test_shards_keep_no_pieces_and_no_shapes_that_are_of_no_use() -> None:
    store = MemoryStore()
    memory = replace(SMALL_PIECES, shapes_kept=4)
    limits = ShardLimits(shard=SignatureLimits(memory=memory), looked_every=20)
    join = Join(0, shards=2, limits=limits)
    members = [join.shard(number, store) for number in range(2)]
    processor = ShardedProcessor(
        2, store, lambda orders: [members[o.shard].answer(o) for o in orders], limits=limits
    )
    query = xscl.parse(BUSY.replace("20 m", "1 m"), id="busy")[0]
    wide = xscl.parse(RARE, id="wide")[0]
    engine = Engine(
        [RegisteredQuery(wide), RegisteredQuery(query)], lateness_us=0, processor=processor
    )
    batch: list[Document] = []
    for one in items(500, rare_every=50):
        # Every ten documents have a structure of their own.
        more = "".join(f"<c>{one.docid}.{i}</c>" for i in range(one.docid // 10))
        batch.append(replace(one, xml=one.xml.replace(b"</i>", f"{more}</i>".encode())))
        if len(batch) == 20:
            engine.process(engine.evaluate(batch), lambda ids: dict.fromkeys(ids, b"<i/>"))
            batch = []
    figures = processor.figures()
    assert figures["documents"] < 10 + 2 * 60 + 20
    assert figures["shapes"] < 2 * (10 + 60 // 10) + 10
    known = ("catalog", "shapes")
    tables = [store.get(name) for name in store.names() if not name.startswith(known)]
    assert sum(map(len, tables)) < 2 * (10 + 3 * 60)


class Retention:
    """Layout `i` is retained for `retention[i]`; another `shortened` asks for a sweep."""

    def __init__(self) -> None:
        self.retention = np.array([1 << 40, 3, 10])
        self.shortened = 0

    def needed_from(self, layouts: Ints, horizon_us: int) -> Ints:
        return horizon_us - self.retention[layouts]


def rows_of(numbers: Sequence[int], kinds: Sequence[int], ends: Sequence[int]) -> pa.Table:
    """Return instances of shapes 0, 1, 2, which have so many nodes with values and one more.

    They are a part of a whole, in which their numbers are three times as large.
    """
    columns = {name: [0] * len(numbers) for name in INSTANCE_SCHEMA.names}
    columns |= {
        "instance": [3 * number for number in numbers],
        "docid": list(numbers),
        "depth": [int(kind == 2) for kind in kinds],
        "match_id": [f"m{number}" for number in numbers],
        "end_us": list(ends),
        "shape": list(kinds),
        "leaves": [[number] for number in numbers],
        "nodes": [list(range(kind + 1)) for kind in kinds],
        "vals": [
            [f"{number}.{i}" for i in range(kind + 1)]
            for number, kind in zip(numbers, kinds, strict=True)
        ],
    }
    columns |= {name: [""] * len(numbers) for name in ("stream", "key")}
    return pa.table({name: columns[name] for name in INSTANCE_SCHEMA.names}, INSTANCE_SCHEMA)


@settings(max_examples=examples(20))
@given(
    st.lists(
        st.tuples(
            st.lists(st.tuples(st.integers(0, 2), st.integers(-5, 5)), max_size=12),
            st.integers(0, 3),
            st.booleans(),
        ),
        max_size=40,
    )
)
def test_rows_stay_what_they_are_while_others_go_from_between_them(
    steps: list[tuple[list[tuple[int, int]], int, bool]],
) -> None:
    known = Shapes()
    layouts, retention = Layouts(known), Retention()
    for shape in range(3):
        known.add({str(shape): [(v, v, v, v) for v in range(shape + 1)]})
    layouts.compare({0, 1, 2})
    layouts.current(np.arange(3))
    remembered = Remembered(
        layouts,
        retention,  # type: ignore[arg-type]
        hash_values,
        limits=EAGER.join.memory,
        is_part=True,
    )
    all_rows: list[tuple[int, int]] = []
    now = 0
    for appended, passed, is_shortened in steps:
        first = remembered.next_instance
        kinds, ends = [kind for kind, _ in appended], [now + off for _, off in appended]
        if appended:
            remembered.append(rows_of(range(first, first + len(appended)), kinds, ends))
        all_rows += zip(kinds, ends, strict=True)
        now += passed
        retention.shortened += is_shortened
        remembered.evict(now)
        _check(remembered, retention, all_rows, now)


def _check(
    remembered: Remembered, retention: Retention, rows: Sequence[tuple[int, int]], now: int
) -> None:
    numbers = np.arange(1, len(rows) + 1)
    there = remembered.are_there(numbers)
    of_use = np.array([end >= now - int(retention.retention[kind]) for kind, end in rows], np.bool_)
    assert (there | ~of_use).all(), "what is of use is there"
    assert numbers[there].tolist() == remembered.numbers().tolist()
    assert len(remembered) == np.count_nonzero(there)
    kept = numbers[there]
    assert remembered.take("end_us", kept).tolist() == [rows[n - 1][1] for n in kept]
    assert remembered.take("docid", kept).tolist() == kept.tolist()
    assert remembered.take("instance", kept).tolist() == (3 * kept).tolist()
    assert remembered.numbered(np.arange(3 * len(rows) + 9)).tolist() == kept.tolist()
    assert remembered.numbered(3 * numbers + 1).tolist() == []
    for number, slot in zip(kept.tolist(), remembered.slots(kept).tolist(), strict=True):
        values = pa.array([f"{number}.{i}" for i in range(rows[number - 1][0] + 1)])
        assert (remembered.hashes[0][slot : slot + len(values)] == hash_values(values)[0]).all()
    found = remembered.instances(kept.tolist())
    assert [found[n].values[0] for n in kept.tolist()] == [f"{n}.0" for n in kept]
    published = {n: f"m{n}" for n in kept.tolist() if rows[n - 1][0] == 2}
    assert remembered.published_ids == published
    for time_us, oldest in zip(
        [now - 3, now], remembered.first_from(np.array([now - 3, now])), strict=True
    ):
        assert all(rows[n - 1][1] < time_us for n in kept if n < oldest)
