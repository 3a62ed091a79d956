"""A lease keeps one lane with one worker; who has lost it changes nothing but what has arrived."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from subscribers import broker_in, found

from broker.delivery.attempt import Outcome, OutcomeKind
from broker.delivery.deliveries import Deliveries
from broker.delivery.lanes import Lanes
from broker.delivery.leases import Leases
from broker.delivery.schedule import Health, Policy, decide
from broker.delivery.store import DeliveryState, Finished, Taken, open_deliveries

SECOND_US = 1_000_000
LEASE_US = 10 * SECOND_US
EXPIRED_US = LEASE_US + 1
"""When what was taken at 0 may be taken again."""


class Workers:
    """Two workers on one file; the first has lost the lane of one subscription to the second."""

    def __init__(self, directory: Path) -> None:
        self._files = broker_in(directory)
        broker = self._files.__enter__()
        self._dbs = [open_deliveries(directory / "deliveries.db") for _ in range(2)]
        lanes = Lanes(self._dbs[0], broker.outbox, broker.registry)
        self.first, self.second = (
            Leases(db, broker.outbox, broker.registry, f"worker {n}")
            for n, db in enumerate(self._dbs)
        )
        self.deliveries = Deliveries(self._dbs[0])
        self.subscription = broker.subscribe("https://h.example/").id
        broker.commit(found(1), found(2))
        lanes.sync(0)
        lanes.scan(0)
        [self.lost] = self.first.take(5, 0, LEASE_US)
        [self.held] = self.second.take(5, EXPIRED_US, LEASE_US)

    def close(self) -> None:
        for db in self._dbs:
            db.close()
        self._files.__exit__(None, None, None)

    def state(self) -> tuple[DeliveryState, int]:
        [delivery, *_] = self.deliveries.find()
        return delivery.state, delivery.attempts

    def health(self) -> Health:
        """Return the record of the endpoint, as who takes the lane next is told it."""
        [work] = self.second.take(5, 1_000 * SECOND_US, LEASE_US)
        return work.health


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[Workers]:
    workers = Workers(tmp_path)
    yield workers
    workers.close()


def outcome(work: Taken, kind: OutcomeKind, at_us: int) -> Finished:
    decision = decide(
        Policy(),
        Outcome(kind),
        number=work.number,
        health=work.health,
        now_us=at_us,
        random=lambda: 0.0,
    )
    return Finished(work, at_us, Outcome(kind), decision)


def test_a_lease_holds_until_it_ends(workers: Workers) -> None:
    assert workers.held.delivery_id == workers.lost.delivery_id
    assert workers.first.take(5, EXPIRED_US + LEASE_US - 1, LEASE_US) == []
    assert len(workers.first.take(5, EXPIRED_US + LEASE_US, LEASE_US)) == 1


def test_a_failure_of_who_has_lost_the_lease_decides_nothing(workers: Workers) -> None:
    at_us = EXPIRED_US + SECOND_US
    workers.first.finish([outcome(workers.lost, OutcomeKind.FAILED, at_us)], at_us)
    assert workers.state() == (DeliveryState.DUE, 0)
    assert workers.first.take(5, EXPIRED_US + LEASE_US - 1, LEASE_US) == []
    assert workers.health() == Health()
    _, attempts = workers.deliveries.show(workers.lost.delivery_id)
    assert [each.outcome for each in attempts] == [OutcomeKind.FAILED], "it is told all the same"


def test_a_success_of_who_has_lost_the_lease_is_true(workers: Workers) -> None:
    at_us = EXPIRED_US + SECOND_US
    workers.first.finish([outcome(workers.lost, OutcomeKind.DELIVERED, at_us)], at_us)
    assert workers.state() == (DeliveryState.DELIVERED, 1)
    assert workers.first.take(5, EXPIRED_US + LEASE_US - 1, LEASE_US) == []


def test_only_who_holds_a_lease_can_extend_it(workers: Workers) -> None:
    workers.first.renew([workers.subscription], EXPIRED_US + 9 * LEASE_US)
    assert len(workers.first.take(5, EXPIRED_US + LEASE_US, LEASE_US)) == 1
    workers.first.renew([workers.subscription], EXPIRED_US + 9 * LEASE_US)
    assert workers.second.take(5, EXPIRED_US + 9 * LEASE_US - 1, LEASE_US) == []


def test_who_holds_the_lease_decides_and_gives_it_back(workers: Workers) -> None:
    at_us = EXPIRED_US + SECOND_US
    workers.second.finish([outcome(workers.held, OutcomeKind.FAILED, at_us)], at_us)
    assert workers.state() == (DeliveryState.DUE, 1)
    [after] = workers.first.take(5, at_us, LEASE_US)
    assert after.delivery_id != workers.held.delivery_id, "the retry is not due yet"
    assert after.health.failures == 1


def test_leases_of_the_dead_end_at_once_and_no_others(workers: Workers) -> None:
    workers.first.release_dead(lambda owner: owner == "worker 0", EXPIRED_US)
    assert workers.first.take(5, EXPIRED_US, LEASE_US) == []
    workers.first.release_dead(lambda owner: owner == "worker 1", EXPIRED_US)
    assert len(workers.first.take(5, EXPIRED_US, LEASE_US)) == 1
