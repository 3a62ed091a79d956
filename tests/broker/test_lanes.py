"""Lanes and leases under any order of events: nothing lost, nothing renamed, first things first."""

from __future__ import annotations

import shutil
import tempfile
from collections import defaultdict
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from support.examples import examples
from support.subscribers import broker_in, found

from broker.delivery.attempt import Outcome, OutcomeKind
from broker.delivery.deliveries import Deliveries
from broker.delivery.lanes import Lanes
from broker.delivery.leases import Leases
from broker.delivery.schedule import RetryPolicy, decide
from broker.delivery.store import Finished, Taken, open_deliveries
from broker.registry.subscription import SubscriptionState

LEASE_US = 15_000_000
POLICY = RetryPolicy(delays_us=(5_000_000,) * 200)
"""No dead letters: at the end everything must have arrived."""


class DeliveringMachine(RuleBasedStateMachine):
    """Two workers, a pipeline and subscribers; workers crash, endpoints fail, time goes by."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self._files = broker_in(self.directory)
        self.broker = self._files.__enter__()
        self.now_us = 1_000_000_000
        self.committed: list[tuple[str, int]] = []
        self.points: dict[str, tuple[str, int]] = {}
        self.batched: set[str] = set()
        self.dbs = [self._open() for _ in range(2)]
        self.lanes = [Lanes(db, self.broker.outbox, self.broker.registry) for db in self.dbs]
        self.leases = [
            Leases(db, self.broker.outbox, self.broker.registry, f"worker {n}")
            for n, db in enumerate(self.dbs)
        ]
        self.held: list[list[Taken]] = [[], []]
        self.first_seen: defaultdict[str, list[int]] = defaultdict(list)
        self.arrived: defaultdict[tuple[str, int], set[str]] = defaultdict(set)

    def _open(self):  # type: ignore[no-untyped-def]
        return open_deliveries(self.directory / "deliveries.db")

    @rule(query=st.sampled_from(["Q1", "Q2"]), count=st.integers(1, 4))
    def commit(self, query: str, count: int) -> None:
        start = len(self.committed) + 1
        matches = [found(number, query=query) for number in range(start, start + count)]
        self.committed += [(query, number) for number in range(start, start + count)]
        self.broker.commit(*matches)

    @rule(query=st.sampled_from(["Q1", "Q2"]), back=st.integers(0, 3), batch=st.integers(1, 3))
    def subscribe(self, query: str, back: int, batch: int) -> None:
        point = max(0, len(self.committed) - back)
        made = self.broker.subscribe(
            "https://h.example/", query=query, point=point, batch_max=batch
        )
        self.points[made.id] = (query, point)
        if batch > 1:
            self.batched.add(made.id)

    @rule(data=st.data(), state=st.sampled_from(["active", "paused", "disabled"]))
    def change(self, data: st.DataObject, state: str) -> None:
        if self.points:
            name = data.draw(st.sampled_from(sorted(self.points)))
            self.broker.registry.subscriptions.set_state(name, SubscriptionState(state))

    @rule(worker=st.integers(0, 1), room=st.integers(1, 5))
    def look_and_take(self, worker: int, room: int) -> None:
        self.lanes[worker].sync(self.now_us, limit=2)
        self.lanes[worker].scan(self.now_us, limit=2)
        for work in self.leases[worker].take(room, self.now_us, LEASE_US):
            self.held[worker].append(work)
            if work.number == 1 and not self._was_begun(work):
                seen = self.first_seen[work.subscription.id]
                seen.extend(match.seq for match in work.matches)
                assert seen == sorted(set(seen)), "first attempts left the order of matches"

    def _was_begun(self, work: Taken) -> bool:
        # A crashed first attempt is repeated as the first.
        return work.matches[0].seq in self.first_seen[work.subscription.id]

    @rule(worker=st.integers(0, 1), kinds=st.lists(st.sampled_from(OutcomeKind), min_size=1))
    def finish(self, worker: int, kinds: list[OutcomeKind]) -> None:
        held, self.held[worker] = self.held[worker], []
        finished = []
        for n, work in enumerate(held):
            kind = kinds[n % len(kinds)]
            if kind in (OutcomeKind.REFUSED, OutcomeKind.GONE):
                kind = OutcomeKind.FAILED
            finished.append(self._finished(work, kind))
        self.leases[worker].finish(finished, self.now_us)

    def _finished(self, work: Taken, kind: OutcomeKind) -> Finished:
        outcome = Outcome(kind)
        if kind is OutcomeKind.DELIVERED:
            for match in work.matches:
                self.arrived[work.subscription.id, match.seq].add(work.delivery_id)
        decision = decide(
            POLICY,
            outcome,
            number=work.number,
            health=work.health,
            now_us=self.now_us,
            random=lambda: 0.5,
        )
        return Finished(work, self.now_us, outcome, decision)

    @rule(worker=st.integers(0, 1), has_answer=st.booleans())
    def crash(self, worker: int, has_answer: bool) -> None:
        """The worker dies; what it held may have arrived all the same."""
        for work in self.held[worker] if has_answer else ():
            self._finished(work, OutcomeKind.DELIVERED)
        self.held[worker] = []

    @rule(seconds=st.integers(1, 40), renewing=st.sets(st.integers(0, 1)))
    def wait(self, seconds: int, renewing: set[int]) -> None:
        self.now_us += seconds * 1_000_000
        for worker in renewing:
            held = [work.subscription.id for work in self.held[worker]]
            self.leases[worker].renew(held, self.now_us + LEASE_US)

    @rule(data=st.data())
    def replay(self, data: st.DataObject) -> None:
        if self.points:
            name = data.draw(st.sampled_from(sorted(self.points)))
            after = data.draw(st.integers(0, len(self.committed)))
            Deliveries(self.dbs[0]).replay(name, after=after, now_us=self.now_us)
            self.first_seen[name] = [seq for seq in self.first_seen[name] if seq <= after]

    @invariant()
    def one_match_goes_to_one_subscriber_under_one_id(self) -> None:
        # A replay may put a match in another batch; its own id is in the payload then.
        single = [ids for (name, _), ids in self.arrived.items() if name not in self.batched]
        assert all(len(ids) == 1 for ids in single)

    def teardown(self) -> None:
        try:
            self._everything_arrives()
        finally:
            for db in self.dbs:
                db.close()
            self._files.__exit__(None, None, None)
            shutil.rmtree(self.directory)

    def _everything_arrives(self) -> None:
        for name in self.points:
            self.broker.registry.subscriptions.set_state(name, SubscriptionState.ACTIVE)
        self.held = [[], []]
        self.now_us += 1_000_000_000
        while self.lanes[0].sync(self.now_us) or self.lanes[0].scan(self.now_us):
            pass
        while (ready_us := self.lanes[0].next_ready_us()) is not None:
            self.now_us = max(self.now_us, ready_us)
            taken = self.leases[0].take(10, self.now_us, LEASE_US)
            finished = [self._finished(work, OutcomeKind.DELIVERED) for work in taken]
            self.leases[0].finish(finished, self.now_us)
        seqs = {match.id: match.seq for match in self.broker.outbox.matches.find(0)}
        due = {
            (name, seqs[found(number, query=query).id])
            for name, (query, point) in self.points.items()
            for of, number in self.committed
            if of == query and number > point
        }
        assert due <= set(self.arrived), "a match was lost"
        assert set(self.arrived) <= due, "a subscriber got what is not its own"


TestDelivering = DeliveringMachine.TestCase
TestDelivering.settings = settings(max_examples=examples(7), stateful_step_count=30, deadline=None)
