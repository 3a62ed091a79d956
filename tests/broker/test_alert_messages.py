"""Messages of keys under any order of events: each match in one row, and never more than agreed."""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples
from support.subscribers import Broker, broker_in, found

from broker.delivery import store
from broker.delivery.alerts import messages
from broker.delivery.alerts.answers import Answers, NotSentError
from broker.delivery.attempt import Outcome, OutcomeKind
from broker.delivery.deliveries import Deliveries, Delivery, DeliveryError
from broker.delivery.lanes import Lanes
from broker.delivery.leases import Leases
from broker.delivery.schedule import RetryPolicy, decide
from broker.delivery.store import Finished, Taken, open_deliveries
from broker.registry.subscription import SubscriptionState
from broker.settings.database import connect

SECOND_US = 1_000_000
LEASE_US = 15 * SECOND_US
POLICY = RetryPolicy(delays_us=(5 * SECOND_US,) * 200)


class Office:
    """One worker on a file, which can be killed and started again, and a clock."""

    def __init__(self, directory: Path, address: str, **options: Any) -> None:
        self.now_us = 1_000_000 * SECOND_US
        self._files = broker_in(directory, now_us=lambda: self.now_us)
        self.broker: Broker = self._files.__enter__()
        self._path = directory / "deliveries.db"
        self.subscription = self.broker.subscribe(address, **options)
        self.sent: list[tuple[int, str, tuple[int, ...]]] = []
        self.arrived: list[tuple[str, str]] = []
        self.count = 0
        self.start()
        self.lanes.sync(self.now_us)

    def start(self) -> None:
        self._db = open_deliveries(self._path)
        self.lanes = Lanes(self._db, self.broker.outbox, self.broker.registry)
        self.leases = Leases(self._db, self.broker.outbox, self.broker.registry, "worker")
        self.leases.release_dead(lambda owner: True, self.now_us)
        self.deliveries = Deliveries(self._db)
        self.answers = Answers(self._db)

    def kill(self) -> None:
        self._db.close()

    def close(self) -> None:
        self.kill()
        self._files.__exit__(None, None, None)

    def commit(self, *keys: str) -> None:
        first = self.count + 1
        self.count += len(keys)
        self.broker.commit(
            *(
                found(2 * number, output=f"<match><k>{key}</k></match>")
                for number, key in enumerate(keys, first)
            )
        )

    def take(self) -> list[Taken]:
        self.lanes.sync(self.now_us)
        self.lanes.scan(self.now_us)
        taken = self.leases.take(5, self.now_us, LEASE_US)
        for work in taken:
            seqs = tuple(match.seq for match in work.matches)
            self.sent.append((self.now_us, work.delivery_id, seqs))
            self.arrived.append((str(work.subscription.destination), work.delivery_id))
        return taken

    def visit(self, kind: OutcomeKind = OutcomeKind.DELIVERED) -> bool:
        """Send what is ready; return whether there was anything to do."""
        self.lanes.sync(self.now_us)
        self.lanes.scan(self.now_us)
        ready_us = self.lanes.next_ready_us()
        if ready_us is None or ready_us > self.now_us:
            return False
        self.leases.finish([self._finished(work, kind) for work in self.take()], self.now_us)
        return True

    def _finished(self, work: Taken, kind: OutcomeKind) -> Finished:
        outcome = Outcome(kind)
        decision = decide(
            POLICY,
            outcome,
            number=work.number,
            health=work.health,
            now_us=self.now_us,
            random=lambda: 0.0,
        )
        return Finished(work, self.now_us, outcome, decision)

    def rows(self) -> list[Delivery]:
        return self.deliveries.find(limit=10_000)

    def drain(self) -> None:
        """Let time go by until nothing is left to do."""
        while self.visit() or self.lanes.next_ready_us() is not None:
            self.now_us = max(self.now_us, self.lanes.next_ready_us() or 0)

    def drain_until(self, end_us: int) -> None:
        """Let time go by until then, and do what there is to do."""
        while self.visit() or (self.lanes.next_ready_us() or end_us + 1) <= end_us:
            self.now_us = max(self.now_us, min(end_us, self.lanes.next_ready_us() or 0))
        self.now_us = end_us


def members(row: Delivery) -> list[int]:
    return list(row.seqs or [row.first_seq])


STEPS = st.one_of(
    st.tuples(st.just("commit"), st.lists(st.sampled_from("abc"), min_size=1, max_size=4)),
    st.tuples(st.just("wait"), st.sampled_from([1, 60, 599, 600, 1_800, 3_600])),
    st.tuples(st.just("visit"), st.sampled_from([OutcomeKind.DELIVERED, OutcomeKind.FAILED])),
    st.tuples(st.just("kill"), st.booleans()),
)


@given(
    steps=st.lists(STEPS, min_size=1, max_size=40),
    address=st.sampled_from(["https://h.example/", "ann@h.example"]),
    batch_max=st.sampled_from([1, 3]),
    group=st.sampled_from(["", "10 min"]),
    throttle=st.sampled_from(["", "1 per 30 min", "2 per 1 h"]),
    quiet=st.sampled_from(["", "00:00-12:00"]),
    collect=st.booleans(),
    escalates=st.booleans(),
)
@settings(max_examples=examples(30), deadline=None)
def test_each_match_is_in_one_message_and_no_window_has_more_than_agreed(
    steps: list[tuple[str, Any]], escalates: bool, **options: Any
) -> None:
    if escalates and not options["collect"]:
        options |= {"escalate": "boss@h.example", "escalate_after": "10 min"}
    with (
        tempfile.TemporaryDirectory() as directory,
        closing(
            Office(Path(directory), options.pop("address"), key=("output/k",), **options)
        ) as office,
    ):
        for step, value in steps:
            match step:
                case "commit":
                    office.commit(*value)
                case "wait":
                    office.now_us += value * SECOND_US
                case "visit":
                    office.visit(value)
                case _:
                    if value:
                        office.take()
                    office.kill()
                    office.start()
        office.drain()
        rows = office.rows()
        own = [row for row in rows if row.origin is None]
        kept = Counter(seq for row in own for seq in members(row))
        assert kept == Counter(range(1, office.count + 1)), "each match is in one row"
        _check_sent(office, rows)
        _check_throttle(options["throttle"], own)
        begun = {row.id for row in own if row.begun_us is not None}
        origins = Counter(row.origin for row in rows if row.origin is not None)
        assert origins == Counter(begun if "escalate" in options else ()), "each is escalated once"


def _check_sent(office: Office, rows: list[Delivery]) -> None:
    sent = defaultdict(set)
    for _, name, seqs in office.sent:
        sent[name].add(seqs)
    assert all(len(each) == 1 for each in sent.values()), "a message never changes"
    states = {row.id: row.state for row in rows}
    assert all(states[name] == "delivered" for name in sent)
    assert set(sent) == {row.id for row in rows if row.begun_us is not None}
    assert all(row.reason for row in rows if row.state == "suppressed"), "who looks is told why"


def _check_throttle(throttle: str, rows: list[Delivery]) -> None:
    if not throttle:
        assert all(row.state in ("delivered", "collected") for row in rows)
        return
    count, within_us = {"1 per 30 min": (1, 1_800), "2 per 1 h": (2, 3_600)}[throttle]
    begun = defaultdict(list)
    for row in rows:
        if row.begun_us is not None:
            begun[row.key].append(row.begun_us)
    for times in begun.values():
        for start in times:
            window = [at for at in times if start <= at < start + within_us * SECOND_US]
            assert len(window) <= count


def test_each_attempt_at_a_message_has_its_number(tmp_path: Path) -> None:
    options = {"key": ("output/k",), "group": "10 min"}
    with closing(Office(tmp_path, "https://h.example/", **options)) as office:
        office.commit("a", "a")
        office.now_us += 600 * SECOND_US
        numbers = []
        for kind in (OutcomeKind.FAILED, OutcomeKind.FAILED, OutcomeKind.DELIVERED):
            taken = office.take()
            numbers.append([work.number for work in taken])
            office.leases.finish([office._finished(work, kind) for work in taken], office.now_us)
            office.now_us += 60 * SECOND_US
        assert numbers == [[1], [2], [3]]
        assert [row.state for row in office.rows()] == ["delivered"]


def test_what_was_found_before_a_retry_was_due_goes_before_it(tmp_path: Path) -> None:
    with closing(Office(tmp_path, "https://h.example/", key=("output/k",))) as office:
        office.commit("a")
        assert office.visit(OutcomeKind.FAILED)
        office.now_us += 2 * SECOND_US
        office.commit("b")
        office.now_us += 60 * SECOND_US
        office.drain()
        assert [seqs for _, _, seqs in office.sent] == [(1,), (2,), (1,)]


def test_a_group_has_what_its_key_had_until_it_was_due(tmp_path: Path) -> None:
    with closing(Office(tmp_path, "ann@h.example", key=("output/k",), group="10 min")) as office:
        office.commit("a", "b")
        office.now_us += 300 * SECOND_US
        office.commit("b")
        assert not office.visit()
        office.now_us += 300 * SECOND_US
        office.commit("a")
        assert office.visit()
        assert office.visit()
        office.commit("a")
        office.drain()
        assert [seqs for _, _, seqs in office.sent] == [(1, 4), (2, 3), (5,)]


def test_a_key_that_never_ends_has_a_message_in_each_time(tmp_path: Path) -> None:
    with closing(Office(tmp_path, "ann@h.example", key=("output/k",), group="10 min")) as office:
        for _ in range(60):
            office.commit("a")
            office.now_us += 60 * SECOND_US
            while office.visit():
                pass
        assert [len(seqs) for _, _, seqs in office.sent] == [10, 10, 10, 10, 10, 10]


def test_what_is_throttled_is_told_and_can_be_sent_after_all(tmp_path: Path) -> None:
    options = {"key": ("output/k",), "throttle": "1 per 1 h"}
    with closing(Office(tmp_path, "https://h.example/", **options)) as office:
        office.commit("a", "a", "b", "a")
        office.drain()
        assert [seqs for _, _, seqs in office.sent] == [(1,), (3,)]
        held = [row for row in office.rows() if row.state == "suppressed"]
        assert [members(row) for row in held] == [[4], [2]]
        assert held[0].reason == "throttled: 1 of its key had been sent within 1 hour"
        assert office.deliveries.retry([held[0].id], office.now_us) == 1
        office.drain()
        assert office.sent[-1][1:] == (held[0].id, (4,))
        office.now_us += 3_600 * SECOND_US
        office.commit("a")
        office.drain()
        assert office.sent[-1][2] == (5,)


def test_a_throttle_holds_across_a_restart_and_a_clock_that_went_back(tmp_path: Path) -> None:
    options = {"key": ("output/k",), "throttle": "1 per 1 h"}
    with closing(Office(tmp_path, "https://h.example/", **options)) as office:
        office.commit("a")
        office.drain()
        office.kill()
        office.start()
        office.commit("a")
        office.drain()
        assert len(office.sent) == 1
        office.now_us -= 7_200 * SECOND_US
        office.commit("a")
        office.drain()
        assert len(office.sent) == 2, "what was sent later than now is no reason to be silent"


def test_a_subscription_that_collects_sends_what_it_is_asked_to(tmp_path: Path) -> None:
    with closing(Office(tmp_path, "https://h.example/", collect=True, batch_max=2)) as office:
        office.commit("a", "b", "c")
        office.drain()
        assert office.sent == []
        rows = office.rows()
        assert [(row.state, members(row)) for row in rows] == [
            ("collected", [3]),
            ("collected", [1, 2]),
        ]
        state = rows[0].state
        assert office.deliveries.retry_all(office.subscription.id, state, office.now_us) == 2
        office.drain()
        assert [seqs for _, _, seqs in office.sent] == [(1, 2), (3,)]


def test_keys_that_wait_are_bounded_and_none_is_lost(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(messages, "WAITING_MAX", 5)
    monkeypatch.setattr(messages, "FOUND_MAX", 3)
    with closing(Office(tmp_path, "ann@h.example", key=("output/k",), group="10 min")) as office:
        office.commit(*map(str, range(20)))
        waiting = []
        while office.visit() or office.lanes.next_ready_us() is not None:
            waiting.append(sum(row.state == "due" for row in office.rows()))
            office.now_us = max(office.now_us, office.lanes.next_ready_us() or 0)
        assert max(waiting) <= 5 + 3
        assert sorted(seqs for _, _, seqs in office.sent) == [(n,) for n in range(1, 21)]


def test_what_is_overdue_in_a_quiet_hour_waits_and_so_do_retries(tmp_path: Path) -> None:
    quiet = "00:00-12:00"
    for key in ((), ("output/k",)):
        directory = tmp_path / str(len(key))
        with closing(Office(directory, "ann@h.example", key=key, quiet=quiet)) as office:
            # 12 January 1970, 13:46 in UTC; then it is down until two at night.
            office.commit("a")
            office.visit(OutcomeKind.FAILED)
            office.commit("b")
            office.now_us += 12 * 3_600 * SECOND_US
            while office.visit():
                pass
            assert len(office.sent) == 1
            office.drain()
            assert [at // SECOND_US for at, _, _ in office.sent] == [
                1_000_000,
                1_080_000,
                1_080_000,
            ]


def test_a_snoozed_message_comes_later_or_again(tmp_path: Path) -> None:
    with closing(Office(tmp_path, "ann@h.example", key=("output/k",), group="10 min")) as office:
        answers = office.answers
        office.commit("a", "b")
        office.now_us += 600 * SECOND_US
        office.visit()
        [waiting] = [row for row in office.rows() if row.state == "due"]
        until_us = office.now_us + 3_600 * SECOND_US
        assert answers.snooze_message(waiting.id, until_us, office.now_us) == waiting.id
        [(_, sent, seqs)] = office.sent
        again = {answers.snooze_message(sent, until_us, office.now_us) for _ in range(2)}
        office.kill()
        office.start()
        office.drain()
        assert again & {sent, waiting.id} == set()
        assert sorted(office.sent[1:]) == sorted(
            [(until_us, again.pop(), seqs), (until_us, waiting.id, (2,))]
        )


def test_a_snoozed_key_is_suppressed_and_others_are_sent(tmp_path: Path) -> None:
    options = {"key": ("output/k",)}
    with closing(Office(tmp_path, "https://h.example/", **options)) as office:
        answers = office.answers
        answers.snooze_key(office.subscription.id, "a", office.now_us + 3_600 * SECOND_US)
        office.commit("a", "b")
        office.drain()
        assert [seqs for _, _, seqs in office.sent] == [(2,)]
        [held] = [row for row in office.rows() if row.state == "suppressed"]
        assert held.reason == "snoozed: its key is, until 1970-01-12T14:46:40Z"
        answers.end_snooze(office.subscription.id, "a", office.now_us)
        office.commit("a")
        office.drain()
        assert office.sent[-1][2] == (3,)
        until_us = office.now_us + 60 * SECOND_US
        answers.snooze_message(held.id, until_us, office.now_us)
        office.drain()
        assert office.sent[-1] == (until_us, held.id, (1,)), "who asks for it gets it"


def test_a_snoozed_subscription_gets_what_it_missed(tmp_path: Path) -> None:
    with closing(Office(tmp_path, "https://h.example/")) as office:
        answers = office.answers
        until_us = office.now_us + 3_600 * SECOND_US
        answers.snooze_subscription(office.subscription.id, until_us)
        office.commit("a", "b")
        office.drain()
        assert [(at, seqs) for at, _, seqs in office.sent] == [(until_us, (1,)), (until_us, (2,))]
        answers.snooze_subscription(office.subscription.id, office.now_us + 3_600 * SECOND_US)
        office.commit("c")
        office.visit()
        answers.end_snooze(office.subscription.id, None, office.now_us)
        office.drain()
        assert office.sent[-1] == (until_us, office.sent[-1][1], (3,))


def test_a_replay_takes_what_it_sends_again_out_of_what_waits(tmp_path: Path) -> None:
    with closing(Office(tmp_path, "ann@h.example", key=("output/k",), group="10 min")) as office:
        office.commit("a", "b", "b")
        office.now_us += 600 * SECOND_US
        office.visit()
        office.commit("b")
        office.deliveries.replay(office.subscription.id, after=2, now_us=office.now_us)
        office.drain()
        kept = Counter(seq for row in office.rows() for seq in members(row))
        assert kept == Counter(range(1, 5))


ESCALATED = {"key": ("output/k",), "escalate": "boss@h.example", "escalate_after": "30 min"}
HALF_AN_HOUR_US = 1_800 * SECOND_US


def places(office: Office) -> list[str]:
    return [place for place, _ in office.arrived]


def test_what_nobody_acknowledges_goes_to_the_second_address(tmp_path: Path) -> None:
    with closing(Office(tmp_path, "ann@h.example", **ESCALATED)) as office:
        office.commit("a", "b")
        office.drain_until(office.now_us)
        first = {seqs: name for _, name, seqs in office.sent}
        began_us = office.now_us
        assert office.answers.acknowledge(first[(1,)], began_us + 1) == began_us + 1
        assert office.answers.acknowledge(first[(1,)], began_us + 2) == began_us + 1
        office.kill()
        office.start()
        office.drain()
        assert places(office) == ["ann@h.example", "ann@h.example", "boss@h.example"]
        at_us, name, seqs = office.sent[-1]
        assert (at_us, seqs) == (began_us + HALF_AN_HOUR_US, (2,))
        assert office.answers.acknowledge(name, at_us + 5) == at_us + 5
        rows = {row.id: row for row in office.rows()}
        assert rows[first[(2,)]].acknowledged_us == at_us + 5, "the answer is to the message"
        assert rows[name].origin == first[(2,)]


@pytest.mark.parametrize("key", [(), ("output/k",)])
def test_an_endpoint_that_is_down_keeps_nothing_from_being_escalated(
    tmp_path: Path, key: tuple[str, ...]
) -> None:
    options = {**ESCALATED, "key": key, "batch_max": 3}
    with closing(Office(tmp_path, "https://h.example/", **options)) as office:
        office.commit("a", "a")
        began_us = office.now_us
        while "boss@h.example" not in places(office):
            office.visit(OutcomeKind.THROTTLED)
            office.now_us = max(office.now_us, office.lanes.next_ready_us() or 0)
        [at_us] = [at for at, name, seqs in office.sent if name == office.sent[-1][1]]
        assert (at_us - began_us, office.sent[-1][2]) == (HALF_AN_HOUR_US, (1, 2))
        office.broker.registry.subscriptions.set_state(
            office.subscription.id, SubscriptionState.DISABLED, reason="gone"
        )
        office.drain()
        assert places(office).count("boss@h.example") > 1, "it is tried until it arrives"


def test_what_was_not_sent_is_not_acknowledged_and_not_escalated(tmp_path: Path) -> None:
    options = {**ESCALATED, "throttle": "1 per 1 h", "group": "10 min"}
    with closing(Office(tmp_path, "ann@h.example", **options)) as office:
        office.commit("a", "b")
        office.now_us += 600 * SECOND_US
        office.visit()
        [waiting] = [row for row in office.rows() if row.state == "due" and not row.origin]
        with pytest.raises(NotSentError):
            office.answers.acknowledge(waiting.id, office.now_us)
        with pytest.raises(DeliveryError):
            office.answers.acknowledge("msg_none", office.now_us)
        office.visit()
        office.commit("a")
        office.drain_until(office.now_us + 601 * SECOND_US)
        [held] = [row for row in office.rows() if row.state == "suppressed"]
        office.drain()
        origins = Counter(row.origin for row in office.rows())
        assert (origins[None], origins[held.id]) == (3, 0)
        assert places(office).count("boss@h.example") == 2


def test_a_snoozed_message_is_escalated_as_much_later(tmp_path: Path) -> None:
    with closing(Office(tmp_path, "ann@h.example", **ESCALATED)) as office:
        office.commit("a")
        office.drain_until(office.now_us)
        until_us = office.now_us + 3_600 * SECOND_US
        again = office.answers.snooze_message(office.sent[0][1], until_us, office.now_us)
        office.drain()
        assert [(at, to) for (at, _, _), (to, _) in zip(office.sent, office.arrived, strict=True)][
            1:
        ] == [(until_us, "ann@h.example"), (until_us + HALF_AN_HOUR_US, "boss@h.example")]
        assert office.sent[1][1] == again


def test_who_has_seen_a_snoozed_message_is_not_told_again(tmp_path: Path) -> None:
    with closing(Office(tmp_path, "ann@h.example", **ESCALATED)) as office:
        office.commit("a")
        office.drain_until(office.now_us)
        name = office.sent[0][1]
        office.answers.snooze_message(name, office.now_us + SECOND_US, office.now_us)
        office.answers.acknowledge(name, office.now_us)
        office.drain()
        assert places(office) == ["ann@h.example"]
        ended = [(row.state, row.reason) for row in office.rows() if row.origin]
        assert ended == [("cancelled", "acknowledged")] * 2


def test_a_removed_subscription_escalates_nothing(tmp_path: Path) -> None:
    with closing(Office(tmp_path, "ann@h.example", **ESCALATED)) as office:
        office.commit("a")
        office.drain_until(office.now_us)
        office.broker.registry.subscriptions.remove(office.subscription.id, until=0)
        office.drain()
        assert places(office) == ["ann@h.example"]


def test_a_file_of_before_goes_on_where_it_was(tmp_path: Path) -> None:
    with closing(connect(tmp_path / "deliveries.db", store._STEPS[:2], synchronous="NORMAL")) as db:
        db.execute("INSERT INTO topic VALUES (1, 'Q1', '{}', 0)")
        db.execute(
            "INSERT INTO delivery VALUES (1, 'msg_1', 'sub_1', 1, 3, 'dead', 10, NULL, 5, 6)"
        )
    with closing(Office(tmp_path, "ann@h.example", digest="daily")) as office:
        [row] = office.rows()
        assert (row.id, row.first_seq, row.seq, row.seqs, row.key) == ("msg_1", 1, 3, None, None)
        office.commit("a", "b")
        office.drain()
        assert [(at // SECOND_US, seqs) for at, _, seqs in office.sent] == [(1_036_800, (1, 2))]
