"""An engine that is made beside the running one: as if the stream had stood still."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import pickle
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from weakref import ref

import pytest
from support.examples import examples
from support.kit import Case
from support.matching_broker import MatchingBroker, items, query_of
from support.runners import case_with_joins
from support.small_broker import small_broker

import xscl
from broker.matching.costs.budget import DEFAULT_BUDGET, Budget
from broker.matching.queries.registration import SetChange
from broker.pipeline.beside import Due
from broker.pipeline.joinstate import EngineState
from broker.pipeline.limits import PipelineLimits
from broker.pipeline.outbox import Outbox
from broker.pipeline.shards import Join, ShardTask, Tasks, carry_out
from broker.pipeline.snapshot import Snapshot
from broker.pipeline.store.objects import StorePlace
from broker.registry.queries import QueryState
from broker.registry.registered import assigned_back, is_registered, looking_back
from joins.shards.limits import ShardLimits
from joins.shards.orders import Answer
from xscl.client import AsyncClient

LATE = (
    "S//i->a FOLLOWED BY {a//t = b//t, INF} S//i->b",
    "S//i->a NEXT {a = b, 1 h} S//i->b GRACE 0 s",
    "S//i->a NOT FOLLOWED BY {a = b, 1 h} S//i->b GRACE 0 s",
    "(S//i->a JOIN {a = b, 1 h} S//i->b) FOLLOWED BY {b = c, 1 h} S//i->c",
    "S//i->a FOLLOWED BY {a = b, $w} S//i->b",
)
SAME = "S//i->a FOLLOWED BY {a/t = b/t, 1 h} S//i->b"
LIMITS = PipelineLimits(file_documents=4, evaluated_documents=2, beside_bytes=1, small_documents=1)


class Broker(MatchingBroker):
    """A broker whose changes can be prepared."""

    @property
    def state(self) -> EngineState:
        return self.pipeline.state

    def begin(self, change: SetChange) -> bool | None:
        return self.state.begin_beside(change, 0)

    def registered(self, change: SetChange) -> None:
        version = self.registry.revision()
        is_due = is_registered(self.registry, change)
        self.state.registered_beside(Due(version, self.newest) if is_due else None)


def broker_of(
    directory: Path, case: Case, budget: Budget = DEFAULT_BUDGET, shards: int = 1
) -> Broker:
    directory.mkdir(exist_ok=True)
    join = Join(
        case.lateness_us,
        shards,
        limits=ShardLimits(unasked_rows=0, pieces=2),
        spool=directory / "spool",
    )
    tasks = Tasks(carried_out, StorePlace.of(directory / "shards"))
    return Broker(
        directory,
        lateness_us=case.lateness_us,
        snapshot=Snapshot(directory / "state", limits=LIMITS),
        pipeline_limits=LIMITS,
        budget=budget,
        processors=(lambda: join.processor(tasks)) if shards > 1 else None,
    )


def carried_out(tasks: Sequence[ShardTask]) -> list[Answer]:
    """Carry out tasks as another process would."""
    return [carry_out(pickle.loads(pickle.dumps(task))) for task in tasks]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    broker = broker_of(tmp_path, Case())
    yield broker
    broker.close()


def told(broker: Broker) -> list[tuple[int, str]]:
    """Return everything that was found, in the order in which it was."""
    return [(match.position, match.line) for match in broker.outbox.matches.find(limit=100_000)]


@pytest.mark.parametrize("number", range(examples(2)))
def test_the_stream_finds_as_much_as_if_it_had_stood_still(number: int, tmp_path: Path) -> None:
    """Two brokers hear the same; one of them makes its state before it registers."""
    case = late_case(number)
    prepared, stood = (
        heard(
            broker_of(tmp_path / name, case, shards=1 + 2 * (number % 2)),
            case,
            number,
            prepares=name == "prepared",
        )
        for name in ("prepared", "stood")
    )
    assert prepared == stood


def test_shards_of_two_engines_are_there_side_by_side(tmp_path: Path) -> None:
    broker = broker_of(tmp_path, Case(), shards=2)
    broker.register(query_of(SAME.replace("1 h", "2 h"), "other"))
    broker.take(items("x", "y", "x"))
    [first] = (tmp_path / "shards").iterdir()
    change = looking_back(broker.registry, query_of(SAME), 0)
    assert broker.begin(change)
    while broker.state.go_on_beside():
        pass
    assert len([*(tmp_path / "shards").iterdir()]) == 2
    broker.take(items("x", minute=4))
    assert first in (tmp_path / "shards").iterdir()
    broker.register(query_of(SAME), since=0)
    broker.registered(change)
    made = broker.engines_made
    broker.take(items("x", minute=5))
    broker.take(items("y", minute=6))
    assert broker.engines_made == made
    [second] = (tmp_path / "shards").iterdir()
    assert second != first
    broker.look_back()
    assert len([line for line in broker.found() if '"query": "q"' in line]) == 7
    broker.close()


def late_case(number: int) -> Case:
    """Return a generated case, with a last query that can look back."""
    case = case_with_joins(number)
    case.queries = [each for each in case.queries if not each.tables and each.table is None]
    late = query_of(LATE[number % len(LATE)].replace("S//i", f"{case.lines[0].stream}//*"), "late")
    case.queries.append(late)
    case.lines += items("x", "y", "x", "z", "y", minute=10)
    if late.parameters:
        case.assignments["late"] = [{"w": 3_600_000_000}]
    return case


def heard(broker: Broker, case: Case, number: int, *, prepares: bool) -> list[object]:
    """Return what a broker finds that hears of the last query late."""
    chosen = random.Random(number)
    broker.ingest.closed_streams = {each.publish for each in case.queries} - {None}
    *early, late = case.queries
    for each in early:
        broker.register(each)
        for values in case.assignments.get(each.id, ()):
            broker.subscribe(each, values)
    third = max(2, len(case.lines) // 3)
    broker.take(case.lines[:third])
    change = looking_back(broker.registry, late, chosen.randrange(2))
    if late.parameters:
        broker.register(late, since=0)
        change = assigned_back(late, case.assignments["late"][0], chosen.randrange(2))
        broker.take(case.lines[third : (third := third + 1)])
    assert not prepares or broker.begin(change)
    for line in case.lines[third : 2 * third]:
        if chosen.random() < 0.5:
            broker.state.go_on_beside()
        change_another(broker, [each for each in early if not each.publish], chosen)
        broker.take([line])
    if late.parameters:
        broker.subscribe(late, change.assigned[0][1], since=change.assigned[0][2])
    else:
        broker.register(late, since=change.queries[0].registration_point)
    broker.registered(change)
    made = broker.engines_made
    for line in case.lines[2 * third :]:
        broker.take([line])
    assert broker.engines_made == made + (not prepares and 2 * third < len(case.lines))
    broker.look_back()
    found = [told(broker), broker.outbox.notes(), broker.outbox.pauses()]
    broker.close()
    return found


def change_another(broker: Broker, others: list[xscl.Query], chosen: random.Random) -> None:
    """Pause or remove another query, or state one of these anew."""
    if not others or chosen.random() < 0.5:
        return
    other = chosen.choice(others)
    if broker.registry.query(other.id).state is QueryState.ACTIVE:
        broker.set_state(other, chosen.choice([QueryState.PAUSED, QueryState.REMOVED]))
    else:
        broker.register(query_of(other.text, f"{other.id}again"))


def prepared(broker: Broker, *, asked: xscl.Query) -> SetChange:
    """Take some documents, and make the state for a query that looks back over them."""
    broker.register(query_of(SAME.replace("t", "u"), "other"))
    broker.take(items("x", "y", "x"))
    change = looking_back(broker.registry, asked, 0)
    assert broker.begin(change)
    return change


def test_a_query_that_is_registered_from_now_on_needs_nothing(broker: Broker) -> None:
    broker.take(items("x", "y", "x"))
    change = looking_back(broker.registry, query_of(SAME), broker.newest)
    assert broker.begin(change) is False
    assert not broker.state.is_beside


def test_an_engine_whose_change_is_not_registered_is_never_taken(broker: Broker) -> None:
    change = prepared(broker, asked=query_of(SAME))
    broker.register(query_of(SAME.replace("1 h", "2 h")), since=0)
    broker.registered(change)
    assert not broker.state.is_beside
    broker.take(items("x", minute=5))
    assert broker.look_back() == 1
    assert len(broker.found()) == 3


def test_a_change_that_is_called_off_leaves_nothing(broker: Broker) -> None:
    prepared(broker, asked=query_of(SAME))
    broker.state.go_on_beside()
    broker.state.registered_beside(None)
    assert broker.state.go_on_beside() is None
    broker.take(items("x", minute=5))
    assert broker.found() == []


def test_in_an_idle_stream_the_engine_takes_its_place_without_a_step(broker: Broker) -> None:
    change = prepared(broker, asked=query_of(SAME))
    broker.register(query_of(SAME), since=0)
    broker.registered(change)
    while broker.state.go_on_beside() is not None:
        pass
    assert not broker.state.is_beside
    made = broker.engines_made
    broker.take(items("x", minute=5))
    assert broker.engines_made == made
    assert len(broker.found()) == 2


def test_a_second_change_that_looks_back_waits_and_is_found(broker: Broker) -> None:
    change = prepared(broker, asked=query_of(SAME))
    broker.register(query_of(SAME, "second"), since=0)  # nobody has prepared it
    broker.take(items("z", minute=5))
    broker.register(query_of(SAME), since=0)
    broker.registered(change)
    broker.take(items("x", minute=6))
    broker.look_back()
    assert len(broker.found()) == 6


def test_a_file_that_is_another_one_by_now_is_not_trusted(tmp_path: Path) -> None:
    """Steps write files anew while an engine is made beside: by what their queries need."""
    for name, text in (("less", SAME.replace("t", "u")), ("enough", SAME)):
        broker = broker_of(tmp_path / name, Case())
        broker.register(query_of(text))
        broker.take(items("x", "y", "x", "z", "x"))
        if name == "less":
            broker.close()
    (written,) = (tmp_path / "less" / "state").glob("*.witnesses")
    (tmp_path / "enough" / "state" / written.name).write_bytes(written.read_bytes())
    change = looking_back(broker.registry, query_of(SAME.replace("1 h", "2 h"), "late"), 0)
    assert broker.begin(change)
    while broker.state.go_on_beside():
        pass
    broker.register(change.queries[0].query, since=0)
    broker.registered(change)
    broker.take(items("x", minute=8))
    late = [line for line in broker.found() if '"query": "late"' in line]
    assert len(late) == 3
    broker.close()


def test_who_was_paused_meanwhile_stays_so(tmp_path: Path) -> None:
    """The registry hears of a pause only later; the engine in use has made it."""
    broker = broker_of(tmp_path, Case(), Budget(matches_per_document=2))
    broker.register(query_of(SAME, "costly"))
    broker.take(items("x", "y"))
    change = looking_back(broker.registry, query_of(SAME.replace("1 h", "2 h")), 1)
    assert broker.begin(change)
    while broker.state.go_on_beside():
        pass
    broker.take(items("x", "x", "x", "x", minute=5))
    assert [pause.query for pause in broker.outbox.pauses()] == ["costly"]
    before = broker.found()
    broker.register(change.queries[0].query, since=1)
    broker.registered(change)
    made = broker.engines_made
    broker.take(items("w", "w", minute=10))
    assert broker.engines_made == made
    costly = [line for line in broker.found() if '"query": "costly"' in line]
    assert costly == [line for line in before if '"query": "costly"' in line]
    broker.close()


def test_a_paused_query_is_resumed_from_a_state_that_is_there(broker: Broker) -> None:
    broker.register(query_of(SAME))
    broker.take(items("x", "y"))
    broker.set_state(query_of(SAME), QueryState.PAUSED)
    broker.take(items("y", minute=3))
    change = looking_back(broker.registry, query_of(SAME), 0)
    assert broker.begin(change)
    while broker.state.go_on_beside():
        pass
    broker.set_state(query_of(SAME), QueryState.ACTIVE)
    broker.registered(change)
    made = broker.engines_made
    broker.take(items("x", "y", minute=5))
    assert broker.engines_made == made
    assert len(broker.found()) == 1 + 2


def test_documents_that_are_merged_meanwhile_are_found(broker: Broker) -> None:
    change = prepared(broker, asked=query_of(SAME))
    broker.take(items("x", minute=4))
    broker.state.go_on_beside()
    broker.take(items("y", minute=5))
    broker.writer.compact(through=broker.pipeline.through, documents_max=100)
    broker.register(query_of(SAME), since=0)
    broker.registered(change)
    broker.take(items("y", "x", minute=6))
    broker.look_back()
    assert len(broker.found()) == 3 + 1 + 2 + 3


def test_what_was_remembered_goes_with_its_engine(broker: Broker) -> None:
    prepared(broker, asked=query_of(SAME))
    broker.state.registered_beside(None)
    engine = broker.state.take(broker.registry.revision())
    join = ref(engine.processor)
    gc.collect()
    gc.disable()
    try:
        del engine
        assert join() is None
    finally:
        gc.enable()


async def published(client: AsyncClient, *titles: str) -> None:
    for title in titles:
        receipt = await client.publish("S", f"<i><t>{title}</t></i>")
    await client.wait_for(receipt.docid)


async def test_over_http_the_stream_goes_on_and_the_answer_comes_when_the_state_is_there(
    tmp_path: Path,
) -> None:
    async with small_broker(tmp_path) as url, AsyncClient(url) as client:
        await client.register("other", SAME.replace("t", "u"))
        await published(client, "x", "y")
        back, again = await asyncio.gather(
            client.register("q", SAME, since="all"),
            client.register("again", SAME.replace("1 h", "2 h"), since="all"),
        )
        await client.pause("other")
        await client.resume("other")
        assert {back.state, again.state} == {"active"}
        await published(client, "z", "x")
    with contextlib.closing(Outbox(tmp_path / "outbox.db")) as outbox:
        assert sorted(each.query for each in outbox.matches.find()) == ["again", "q"]
