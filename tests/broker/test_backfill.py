"""Registration that looks back: as if the query had been registered there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from oracle.lines import render
from support.examples import examples
from support.kit import Case
from support.matching_broker import DAY_US, PULL, MatchingBroker, items, query_of
from support.runners import case_with_joins, run_oracle

from broker.matching.costs.budget import Budget
from broker.pipeline.lookback.backfill import (
    LookBackError,
    backfill,
    check_unread,
    first_waiting,
    look_back,
    retained_documents,
)
from broker.registry.queries import QueryState

SAME = "S//i->a FOLLOWED BY {a/t = b/t, 1 h} S//i->b"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[MatchingBroker]:
    broker = MatchingBroker(tmp_path)
    yield broker
    broker.close()


def rendered(case: Case) -> list[str]:
    return sorted(render(match) for match in run_oracle(case))


@pytest.mark.parametrize("number", range(examples(3)))
def test_looking_back_is_right(number: int, tmp_path: Path) -> None:
    case = case_with_joins(number)
    published = {each.publish for each in case.queries} - {None}
    read = {block.stream for each in case.queries for block in each.blocks}
    late = [each for each in case.queries if each.publish is None or each.publish not in read]
    assert late
    case.registered = {each.id: 1 for each in late}
    broker = MatchingBroker(tmp_path, lateness_us=case.lateness_us)
    for each in case.queries:
        if each not in late:
            broker.register(each)
            for values in case.assignments.get(each.id, ()):
                broker.subscribe(each, values)
    broker.ingest.closed_streams = published
    half = len(case.lines) // 2
    broker.take(case.lines[:half])
    for each in late:
        broker.register(each, since=1)
        for values in case.assignments.get(each.id, ()):
            broker.subscribe(each, values, since=0)
    broker.take(case.lines[half:])
    broker.look_back()
    assert broker.found() == rendered(case)
    assert broker.registry.backfills() == []


def test_what_is_found_once_more_is_kept_once(broker: MatchingBroker) -> None:
    broker.take(items("x", "x", "y"))
    broker.register(query_of(SAME), since=0)
    [waiting] = broker.registry.backfills()
    assert (waiting.point, waiting.through) == (0, 3)
    assert broker.look_back() == 1
    before = broker.found()
    broker.register(query_of("S", "other"), since=0)  # a crash left the finished one behind, say
    with broker.registry._file.write():
        broker.registry._add_backfill(waiting)
    assert broker.look_back() == 1 + 3
    assert [line for line in broker.found() if '"query":"q"' in line.replace(" ", "")] == before


def test_a_stop_leaves_the_rest_for_later(broker: MatchingBroker) -> None:
    broker.take(items("x", "x"))
    broker.register(query_of(SAME), since=0)
    found = backfill(
        broker.registry,
        broker.outbox,
        broker.spool,
        lateness_us=DAY_US,
        is_stopping=lambda: True,
    )
    assert (found, broker.found()) == (0, [])
    assert broker.look_back() == 1


@pytest.mark.parametrize(
    "end",
    [
        lambda broker: broker.set_state(query_of(SAME), QueryState.REMOVED),
        lambda broker: broker.set_state(query_of(SAME), QueryState.PAUSED),
        lambda broker: broker.register(query_of(SAME.replace("1 h", "2 h"))),
    ],
    ids=["removed", "paused", "stated anew"],
)
def test_a_kill_before_a_query_has_looked_back_changes_nothing(
    tmp_path: Path, end: Callable[[MatchingBroker], None]
) -> None:
    found = []
    for is_killed in (False, True):
        directory = tmp_path / str(is_killed)
        directory.mkdir()
        broker = MatchingBroker(directory)
        broker.take(items("x", "x", "x"))
        broker.register(query_of(SAME), since=0)
        if is_killed:
            broker.close()
            broker = MatchingBroker(directory)
        else:
            broker.look_back()
        broker.take(items(*"xyzuvwst", minute=5))
        end(broker)
        assert (first_waiting(broker.registry.backfills()) == 1) == is_killed
        broker.look_back()
        found.append(broker.found())
        assert broker.registry.backfills() == []
        broker.close()
    assert found[0] == found[1]
    assert len(found[0]) == 3 + 3, "three looking back, and the later x with each of the three"


def test_a_reader_looks_back_behind_its_publisher_whatever_their_names_are(
    broker: MatchingBroker,
) -> None:
    broker.take(items("x", "x", "x"))
    broker.register(query_of(f"FROM {SAME} PUBLISH P", "publisher"), since=0)
    broker.register(query_of("P", "a reader"), since=0)
    broker.set_state(query_of("P", "a reader"), QueryState.REMOVED)
    broker.set_state(query_of(SAME, "publisher"), QueryState.REMOVED)
    broker.look_back()
    queries = [match.query for match in broker.outbox.matches.find(limit=99)]
    assert (queries.count("publisher"), queries.count("a reader")) == (3, 3)


def test_two_stretches_of_an_assignment_that_both_look_back_are_not_one(
    broker: MatchingBroker,
) -> None:
    who = query_of("S//i[t = $who]->a FOLLOWED BY {a/t = b/t, 1 h} S//i->b")
    broker.register(who)
    broker.take(items("Ann", "Ann"))
    broker.subscribe(who, {"who": "Ann"}, since=0)
    for each in broker.registry.subscriptions.find():
        broker.registry.subscriptions.remove(each.id, until=broker.newest)
    broker.take(items("Ann", "Ann", minute=5))
    broker.subscribe(who, {"who": "Ann"}, since=2)
    broker.look_back()
    lines = [json.loads(match.line) for match in broker.outbox.matches.find(limit=9)]
    pairs = [[document["docid"] for document in line["documents"]] for line in lines]
    assert pairs == [[1, 2], [3, 4]]


def test_the_stretch_of_one_assignment_is_not_that_of_another(broker: MatchingBroker) -> None:
    who = query_of("S//i[t = $who]->a")
    broker.register(who)
    broker.take(items("Ann", "Bob"))
    broker.subscribe(who, {"who": "Ann"}, since=0)
    for each in broker.registry.subscriptions.find():
        broker.registry.subscriptions.remove(each.id, until=broker.newest)
    broker.take(items("Ann", "Bob", minute=5))
    broker.subscribe(who, {"who": "Bob"}, since=1)
    broker.look_back()
    found = [json.loads(match.line) for match in broker.outbox.matches.find(limit=9)]
    told = [(line["parameters"]["who"], line["documents"][0]["docid"]) for line in found]
    assert sorted(told) == [("Ann", 1), ("Bob", 2), ("Bob", 4)]


def test_a_text_that_this_release_cannot_read_gives_its_look_back_up(
    broker: MatchingBroker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.take(items("x", "x"))
    broker.registry.register("q", "S//", version="v", point=2, since=0)
    assert broker.look_back() == 0
    assert broker.registry.backfills() == []
    assert "q does not look back" in caplog.text


def test_the_very_same_query_may_look_further_back(broker: MatchingBroker) -> None:
    broker.take(items("x", "x", "x"))
    broker.register(query_of(SAME), since=1)
    assert broker.look_back() == 1
    broker.register(query_of(SAME), since=0)
    broker.look_back()
    assert len(broker.found()) == 3
    broker.register(query_of(SAME))
    assert broker.registry.query("q").point == 0


def test_a_subscription_looks_back_with_its_own_parameters_only(broker: MatchingBroker) -> None:
    who = query_of("S//i[t = $who]->a")
    broker.register(who)
    broker.take(items("Ann", "Bob", "Ann"))
    broker.subscribe(who, {"who": "Ann"}, since=1)
    broker.subscribe(who, {"who": "Bob"})
    broker.take(items("Ann", "Bob", minute=9))
    broker.look_back()
    positions = [m.position for m in broker.outbox.matches.find(limit=9)]
    assert sorted(positions) == [3, 4, 5]


def test_each_assignment_looks_back_as_far_as_it_has_asked_for_itself(
    broker: MatchingBroker,
) -> None:
    who = query_of("S//i[t = $who]->a")
    broker.register(who)
    broker.take(items("Ann", "Bob"))
    broker.subscribe(who, {"who": "Ann"}, since=0)
    broker.set_state(who, QueryState.PAUSED)
    broker.take(items("Ann", "Bob", minute=5))
    broker.set_state(who, QueryState.ACTIVE)
    broker.subscribe(who, {"who": "Bob"}, since=0)
    broker.look_back()
    positions = [m.position for m in broker.outbox.matches.find(limit=9)]
    assert sorted(positions) == [1, 2, 4], "what came during the pause is for Bob only"


def test_a_query_that_has_lost_its_parameters_looks_back_for_itself(broker: MatchingBroker) -> None:
    who = query_of("S//i[t = $who]->a")
    broker.register(who)
    broker.subscribe(who, {"who": "Bob"})
    broker.take(items("Ann", "Bob", "Ann"))
    plain = query_of("S//i[t = 'Ann']->a")
    broker.register(plain, since=0)
    broker.registry.subscribe("q", PULL, point=broker.newest)
    broker.register(plain, since=0)
    broker.look_back()
    positions = [m.position for m in broker.outbox.matches.find(limit=9)]
    assert sorted(positions) == [1, 2, 3]


def test_documents_that_a_registration_looks_back_to_are_kept(broker: MatchingBroker) -> None:
    broker.take(items("x", "x", "x"))
    broker.register(query_of(SAME), since=1)
    assert first_waiting(broker.registry.backfills()) == 2
    assert first_waiting([]) is None


def test_who_publishes_may_look_back_while_nobody_reads_it(broker: MatchingBroker) -> None:
    publisher = query_of(f"FROM {SAME} PUBLISH P", "P")
    check_unread(broker.registry, publisher)
    broker.register(query_of("P", "reader"))
    with pytest.raises(LookBackError, match="'reader' reads 'P' already"):
        check_unread(broker.registry, publisher)


def test_readers_that_look_back_read_what_was_published(broker: MatchingBroker) -> None:
    broker.register(query_of(f"FROM {SAME} PUBLISH P", "P"))
    broker.take(items("x", "x", "x"))
    broker.register(query_of("P", "reader"), since=0)
    broker.look_back()
    queries = [match.query for match in broker.outbox.matches.find(limit=99)]
    assert (queries.count("P"), queries.count("reader")) == (3, 3)


def test_documents_that_are_deleted_behind_a_look_back_are_passed_over(
    broker: MatchingBroker,
) -> None:
    for minute in range(3):
        broker.take(items("x", minute=minute))
    broker.spool.refresh()
    broker.writer.prune(2)
    [left] = retained_documents(broker.spool, 1, 3)
    assert left.column("docid").to_pylist() == [3]


@pytest.mark.parametrize(
    ("since", "point"),
    [
        ("all", 0),
        ("2", 2),
        ("99", 3),
        ("1970-01-01T00:00:01Z", 0),
        ("1970-01-01T00:00:02Z", 1),
        ("1970-01-01T00:00:09Z", 3),
    ],
)
def test_a_point_is_given_by_document_by_arrival_or_as_far_back_as_there_is(
    broker: MatchingBroker, since: str, point: int
) -> None:
    for second, line in enumerate(items("a", "b", "c"), 1):
        broker.take([line], arrival_us=second * 1_000_000)
    assert look_back(broker.spool, since) == point


def test_a_point_before_the_oldest_retained_document_is_that_one(broker: MatchingBroker) -> None:
    for second, line in enumerate(items("a", "b", "c"), 1):
        broker.take([line], arrival_us=second * 1_000_000)
    broker.writer.prune(1)
    assert [look_back(broker.spool, since) for since in ("all", "0", "2")] == [1, 1, 2]


def test_what_is_no_point_is_refused(broker: MatchingBroker) -> None:
    with pytest.raises(LookBackError, match="'yesterday' is no document number"):
        look_back(broker.spool, "yesterday")


def test_a_query_that_goes_over_its_budget_looking_back_is_paused(broker: MatchingBroker) -> None:
    broker.take(items(*["same"] * 12))
    broker.register(query_of(SAME), since=0)
    budget = Budget(0, 30, 0, 0)
    backfill(broker.registry, broker.outbox, broker.spool, lateness_us=DAY_US, budget=budget)
    [pause] = broker.outbox.pauses()
    assert pause.docid == 13
    assert pause.reason.startswith("looking back, documents 1 to 9 have more than 30 matches")
    assert len(broker.found()) == sum(range(8))
    [paused] = broker.registry.pause([pause])
    assert (paused.state, paused.effective) == ("paused", 12)
    assert broker.registry.backfills() == []
