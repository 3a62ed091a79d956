"""Shards make the lines of their tuples: the same ones, and as far as budgets allow."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import oracle
import pytest
from support.budgets import UNLIMITED
from support.kit import Case, parse_case
from support.runners import lines, run_engine, run_oracle

import xscl
from broker.documents.disk import Disk
from broker.documents.document import Document
from broker.documents.ingest import Ingest
from broker.documents.spool import Spool, SpoolWriter
from broker.matching.costs.budget import Budget
from broker.matching.engine import Engine, RegisteredQuery
from broker.matching.finishing.finisher import FinishedMatches
from broker.matching.limits import DEFAULT_MATCHING_LIMITS, MatchingLimits
from broker.matching.queries.registration import SetChange
from broker.matching.stepresult import StepResult
from broker.pipeline.shards import Join, ShardTask, Tasks, carry_out
from broker.pipeline.store.objects import StorePlace
from broker.pipeline.store.runs import MemoryStore
from joins.shards.driver import ShardedProcessor
from joins.shards.limits import DEFAULT_SHARD_LIMITS, ShardLimits
from joins.shards.orders import Answer, Order

PAIRS = "S//i->a FOLLOWED BY {a/u = b/u, 1 h} S//i->b"
OTHER = "S//i->a FOLLOWED BY {a/v = b/v, 1 h} S//i->b"


def stream(count: int, values: int = 5) -> list[Document]:
    """Return documents with two values, and a third that few have."""
    return oracle.number_documents(
        parse_case(
            "\n".join(
                [
                    f"query q\n  {PAIRS}",
                    *(
                        f"document {i} S 12:{i:02} <i><u>{i % values}</u><u>z{i % 4}</u>"
                        f"<v>{i * i % 7}</v></i>"
                        for i in range(1, count + 1)
                    ),
                    "----",
                    "",
                ]
            )
        ).lines
    )


class Listened:
    """An engine over shards in this process, and what these have answered."""

    def __init__(
        self,
        texts: Mapping[str, str],
        *,
        shards: int = 3,
        budget: Budget = UNLIMITED,
        limits: ShardLimits = DEFAULT_SHARD_LIMITS,
        matching: MatchingLimits = DEFAULT_MATCHING_LIMITS,
    ) -> None:
        store = self.store = MemoryStore()
        join = Join(0, shards, budget.pairs_max, limits)
        self._members = [join.shard(n, store, self._documents) for n in range(shards)]
        self._shards = ShardedProcessor(
            shards,
            store,
            self._answer,
            pairs_max=budget.pairs_max,
            limits=limits,
            can_finish=True,
        )
        self.orders: list[Order] = []
        self.answers: list[Answer] = []
        self.steps: list[StepResult] = []
        self.engine = engine_of(texts, budget, self._shards, matching)

    def _documents(self, docids: Iterable[int]) -> Mapping[int, bytes]:
        assert self._shards.asked is not None
        return self._shards.asked.documents(docids)

    def _answer(self, orders: Sequence[Order]) -> list[Answer]:
        answers = [self._members[order.shard].answer(order) for order in orders]
        self.orders += orders
        self.answers += answers
        return answers

    def feed(
        self, some: Sequence[Document], documents: Sequence[Document] | None = None
    ) -> list[str]:
        """Process some of all documents; return the lines of all matches until now."""
        self.steps += fed(self.engine, some, documents=documents)
        return lines_of(self.steps)

    @property
    def finished(self) -> list[str]:
        """The queries whose matches shards have made."""
        made = [each.finished for each in self.answers]
        parts = [part for part in made if isinstance(part, FinishedMatches)]
        return sorted({match.query for part in parts for match in part.matches()})

    @property
    def tuples(self) -> int:
        """How many tuples have come."""
        return sum(len(answer.tuples) for answer in self.answers)


def engine_of(
    texts: Mapping[str, str],
    budget: Budget = UNLIMITED,
    shards: ShardedProcessor | None = None,
    limits: MatchingLimits = DEFAULT_MATCHING_LIMITS,
) -> Engine:
    """Return an engine."""
    queries = [RegisteredQuery(xscl.parse(text, id=name)[0]) for name, text in texts.items()]
    return Engine(queries, lateness_us=0, budget=budget, processor=shards, limits=limits)


def fed(
    engine: Engine,
    some: Sequence[Document],
    batch: int = 10,
    documents: Sequence[Document] | None = None,
) -> list[StepResult]:
    """Return what an engine makes of some documents, of all that there are."""
    xml = {each.docid: each.xml for each in documents or some}
    return [
        engine.process(engine.evaluate(some[start : start + batch]), lambda ids: xml)
        for start in range(0, len(some), batch)
    ]


def lines_of(steps: Sequence[StepResult]) -> list[str]:
    return [match.line for step in steps for match in step.matches]


def test_the_driver_gets_lines_and_no_tuples() -> None:
    shards = Listened({"q": PAIRS})
    expected = lines_of(fed(engine_of({"q": PAIRS}), stream(40)))
    assert shards.feed(stream(40)) == expected != []
    assert shards.finished == ["q"]
    assert shards.tuples == 0
    assert not any(len(answer.instances) for answer in shards.answers)


@pytest.mark.parametrize(
    ("text", "finished"),
    [
        (f"SELECT * FROM {PAIRS} PUBLISH P", ["other"]),
        (f"{PAIRS} CONFIDENCE 0.5", ["other"]),
        (f"({PAIRS}) FOLLOWED BY {{b/v = c/v, 1 h}} S//i->c", ["other", "q"]),
    ],
)
def test_a_class_that_others_read_is_left_to_the_driver(text: str, finished: list[str]) -> None:
    texts = {"q": PAIRS, "other": OTHER, "reads": text}
    shards = Listened(texts)
    assert shards.feed(stream(30)) == lines_of(fed(engine_of(texts), stream(30)))
    assert shards.finished == finished
    assert shards.tuples > 0


def test_a_match_that_two_classes_find_has_the_witnesses_of_both() -> None:
    case = parse_case(
        "query q\n  S//i->a FOLLOWED BY {a/u = b/u OR a/v = b/v, 1 h} S//i->b\n"
        "document 1 S 12:00 <i><u>1</u><v>2</v></i>\n"
        "document 2 S 12:01 <i><u>1</u><v>2</v></i>\n----\n"
    )
    for shards in (2, 3, 5):
        found = run_engine(case, processors=lambda: Join(0, shards).processor(None))  # noqa: B023
        assert lines(found) == lines(run_oracle(case))
        assert len(found) == 1


def test_a_query_stops_where_all_shards_together_go_over_its_budget() -> None:
    budget = replace(UNLIMITED, matches_per_document=8)
    whole = fed(engine_of({"q": PAIRS, "other": OTHER}, budget), stream(59))
    shards = Listened({"q": PAIRS, "other": OTHER}, budget=budget)
    found = shards.feed(stream(59))
    pauses = [pause for step in shards.steps for pause in step.pauses]
    assert pauses == [pause for step in whole for pause in step.pauses]
    assert pauses
    assert found == lines_of(whole)
    assert shards.finished == ["other", "q"]
    assert shards.tuples > 0
    assert [[*step.spent] for step in shards.steps] == [[*step.spent] for step in whole]


def test_what_is_too_much_for_a_task_is_made_by_the_driver() -> None:
    shards = Listened({"q": PAIRS}, limits=replace(DEFAULT_SHARD_LIMITS, finished_bytes=2_000))
    assert shards.feed(stream(30)) == lines_of(fed(engine_of({"q": PAIRS}), stream(30)))
    assert shards.tuples > 0


def test_what_does_not_hold_is_asked_for_less_often() -> None:
    shards = Listened({"q": PAIRS}, limits=replace(DEFAULT_SHARD_LIMITS, finished_bytes=0))
    documents = stream(58)
    asked = []
    for start in range(8, 58, 5):
        before = len(shards.orders)
        shards.feed(documents[start : start + 5], documents=documents)
        asked.append(any(order.readers for order in shards.orders[before:]))
    assert asked == [True, False, True, False, False, False, True, False, False, False]


def test_queries_that_come_and_go_are_those_of_their_batch() -> None:
    documents = stream(40)
    shards, whole = Listened({"q": PAIRS}), engine_of({"q": PAIRS})
    [other] = xscl.parse(OTHER, id="other")
    changes = [
        SetChange(queries=[RegisteredQuery(other, 10)]),
        SetChange(gone=["q"]),
        SetChange(gone=["other"]),
    ]
    steps: list[StepResult] = []
    for start in range(0, 40, 10):
        for change in changes[start // 10 - 1 : start // 10] if start else []:
            assert whole.follow(change)
            assert shards.engine.follow(change)
        steps += fed(whole, documents[start : start + 10], documents=documents)
        shards.feed(documents[start : start + 10], documents=documents)
        assert lines_of(shards.steps) == lines_of(steps)
    assert shards.finished == ["other", "q"]


GIVEN = "S//i->a FOLLOWED BY {a/u = b/u AND a/v = $v, 1 h} S//i->b"
IN_CHUNKS = replace(DEFAULT_MATCHING_LIMITS, finished_uses_chunk=3, finished_clauses_chunk=1)


def assigned(*changes: tuple[int, int | None]) -> SetChange:
    """Return assignments of `q` with their registration points, None of one that goes."""
    return SetChange(assigned=[("q", {"v": str(v)}, point) for v, point in changes])


def both(
    texts: Mapping[str, str], changes: Sequence[SetChange], limits: MatchingLimits
) -> tuple[Listened, list[set[str]]]:
    """Make a change before each ten documents; return shards, and what was kept after each.

    They make what an engine without shards makes.
    """
    documents = stream(10 * len(changes))
    shards, whole = Listened(texts, matching=limits), engine_of(texts)
    steps: list[StepResult] = []
    kept = []
    for i, change in enumerate(changes):
        some = documents[10 * i : 10 * i + 10]
        assert whole.follow(change)
        assert shards.engine.follow(change)
        steps += fed(whole, some, documents=documents)
        shards.feed(some, documents=documents)
        kept.append({name for name in shards.store.names() if name.startswith("kept-")})
    assert lines_of(shards.steps) == lines_of(steps) != []
    return shards, kept


def test_a_change_writes_one_chunk_of_uses_anew() -> None:
    first = assigned(*((v, 0) for v in range(-10, 7)))
    changes = [first, assigned((7, 10), (3, None)), SetChange(), assigned((3, 30))]
    shards, (before, then, still, after) = both({"q": GIVEN}, changes, IN_CHUNKS)
    assert shards.tuples == 0
    assert shards.finished == ["q"]
    assert len(before) == 1 + 6
    # The one with room, where there is none but that of the one that has gone; and that.
    assert len(before - then) <= 2
    assert then == still
    assert len(still - after) <= 1


def test_uses_that_have_gone_are_found_no_more_where_their_chunk_is_gone() -> None:
    texts = {"q": GIVEN, "other": OTHER}
    first = assigned(*((v, 0) for v in range(7)))
    gone = assigned(*((v, None) for v in range(1, 7)))
    changes = [first, gone, SetChange(gone=["q"]), SetChange(gone=["other"]), SetChange()]
    shards, kept = both(texts, changes, IN_CHUNKS)
    assert shards.tuples == 0
    assert list(map(len, kept[:3])) == [2 + 3, 2 + 1, 1 + 1]


def test_classes_are_finished_again_when_who_shared_them_has_gone() -> None:
    either = "S//i->a FOLLOWED BY {a/u = b/u OR a/v = b/v, 1 h} S//i->b"
    new = [
        RegisteredQuery(xscl.parse(text, id=name)[0], 10)
        for name, text in {"p": f"SELECT * FROM {PAIRS} PUBLISH P", "either": either}.items()
    ]
    changes = [
        SetChange(),
        SetChange(queries=new),
        SetChange(gone=["p"]),
        SetChange(gone=["either"]),
    ]
    shards, kept = both({"q": PAIRS, "other": OTHER}, changes, IN_CHUNKS)
    made = [set() for _ in changes]
    for order, answer in zip(shards.orders, shards.answers, strict=True):
        if isinstance(answer.finished, FinishedMatches):
            made[order.first_new // 10] |= {match.query for match in answer.finished.matches()}
    assert made == [{"other", "q"}, set(), set(), {"other", "q"}]
    assert all(map(len, kept))


def test_more_uses_than_a_worker_can_have_are_the_drivers_until_they_are_fewer() -> None:
    limits = replace(IN_CHUNKS, finished_uses=8)
    changes = [
        assigned(*((v, 0) for v in range(7))),
        assigned((7, 10), (8, 10)),
        assigned((8, None)),
        assigned((7, None)),
    ]
    shards, kept = both({"q": GIVEN}, changes, limits)
    assert [bool(each) for each in kept] == [True, False, False, True]
    assert shards.tuples > 0
    assert [bool(order.readers) for order in shards.orders][-1]


def test_a_task_reads_texts_in_the_spool(tmp_path: Path) -> None:
    case = case_of_residuals()
    writer = SpoolWriter(tmp_path / "spool", Disk(is_durable=False))
    ingest = Ingest(writer, dedup_horizon_us=None)
    made: list[object] = []

    def run(tasks: Sequence[ShardTask]) -> list[Answer]:
        answers = [carry_out(pickle.loads(pickle.dumps(task))) for task in tasks]
        made.extend(answer.finished for answer in answers)
        return [pickle.loads(pickle.dumps(answer)) for answer in answers]

    join = Join(case.lateness_us, 2, spool=tmp_path / "spool")
    processor = join.processor(Tasks(run, StorePlace.of(tmp_path / "shards")))
    engine = Engine(
        [RegisteredQuery(query) for query in case.queries],
        lateness_us=case.lateness_us,
        budget=UNLIMITED,
        processor=processor,
    )
    steps = []
    documents = oracle.number_documents(case.lines)
    for start in range(0, len(documents), 4):
        ingest.append(case.lines[start : start + 4], registry_version=1)
        spool = Spool(tmp_path / "spool")
        some = documents[start : start + 4]
        steps.append(engine.process(engine.evaluate(some), spool.documents))
        while writer.compact(through=writer.newest.last if writer.newest else 0, documents_max=99):
            pass
    assert sorted(lines_of(steps)) == sorted(lines(run_oracle(case))) != []
    assert any(isinstance(part, FinishedMatches) and part.rows.num_rows for part in made)
    writer.close()


def case_of_residuals() -> Case:
    """Return a case whose clauses have conditions, constants and a constructor."""
    documents = "\n".join(
        f"document {i} S 12:{i:02} <i><u>{i % 3}</u><p>{i * 7 % 10}</p><t>w{i % 2} x</t></i>"
        for i in range(1, 25)
    )
    return parse_case(
        "query less\n  S//i->a FOLLOWED BY {a/u = b/u AND a/p + 1 < b/p, 1 h} S//i->b\n"
        "query words\n  SELECT <m>{a/t}{b/p/text()}</m> FROM S//i->a JOIN"
        " {a/u = b/u AND contains(a/t, 'w1'), 1 h} S//i->b\n"
        f"query alone\n  S//i[p = '7']->a\n\n{documents}\n----\n"
    )
