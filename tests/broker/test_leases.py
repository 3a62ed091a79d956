"""A lease keeps one lane with one worker; who has lost it changes nothing but what has arrived."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.subscribers import broker_in, found

from broker.delivery.attempt import Outcome, OutcomeKind
from broker.delivery.deliveries import Deliveries
from broker.delivery.lanes import Lanes
from broker.delivery.leases import BACKLOG_MAX, Leases
from broker.delivery.schedule import EndpointHealth, RetryPolicy, decide
from broker.delivery.store import DeliveryState, Finished, Taken, open_deliveries
from broker.delivery.taking import DIGEST_MAX
from broker.registry.subscription import Digest

SECOND_US = 1_000_000
LEASE_US = 10 * SECOND_US
EXPIRED_US = LEASE_US + 1
"""When what was taken at 0 may be taken again."""


class Workers:
    """Two workers on one file, and a subscription for which some matches wait."""

    def __init__(
        self, directory: Path, matches: int, address: str = "https://h.example/", **options: Any
    ) -> None:
        self._files = broker_in(directory)
        broker = self._files.__enter__()
        self._dbs = [open_deliveries(directory / "deliveries.db") for _ in range(2)]
        self.lanes = Lanes(self._dbs[0], broker.outbox, broker.registry)
        self.first, self.second = (
            Leases(db, broker.outbox, broker.registry, f"worker {n}")
            for n, db in enumerate(self._dbs)
        )
        self.deliveries = Deliveries(self._dbs[0])
        self.subscription = broker.subscribe(address, **options).id
        broker.commit(*(found(number) for number in range(1, matches + 1)))
        self.lanes.sync(0)
        self.lanes.scan(0)

    def close(self) -> None:
        for db in self._dbs:
            db.close()
        self._files.__exit__(None, None, None)

    def state(self) -> tuple[DeliveryState, int]:
        [delivery, *_] = self.deliveries.find()
        return delivery.state, delivery.attempts

    def health(self) -> EndpointHealth:
        """Return the record of the endpoint, as who takes the lane next is told it."""
        [work] = self.second.take(5, 1_000 * SECOND_US, LEASE_US)
        return work.health


class Rivals(Workers):
    """The first worker has lost the lane to the second."""

    def __init__(self, directory: Path, matches: int) -> None:
        super().__init__(directory, matches)
        [self.lost] = self.first.take(5, 0, LEASE_US)
        [self.held] = self.second.take(5, EXPIRED_US, LEASE_US)


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[Rivals]:
    with closing(Rivals(tmp_path, 2)) as rivals:
        yield rivals


def outcome(work: Taken, kind: OutcomeKind, at_us: int) -> Finished:
    decision = decide(
        RetryPolicy(),
        Outcome(kind),
        number=work.number,
        health=work.health,
        now_us=at_us,
        random=lambda: 0.0,
    )
    return Finished(work, at_us, Outcome(kind), decision)


def test_a_lease_holds_until_it_ends(workers: Rivals) -> None:
    assert workers.held.delivery_id == workers.lost.delivery_id
    assert workers.first.take(5, EXPIRED_US + LEASE_US - 1, LEASE_US) == []
    assert len(workers.first.take(5, EXPIRED_US + LEASE_US, LEASE_US)) == 1


def test_a_failure_of_who_has_lost_the_lease_decides_nothing(workers: Rivals) -> None:
    at_us = EXPIRED_US + SECOND_US
    workers.first.finish([outcome(workers.lost, OutcomeKind.FAILED, at_us)], at_us)
    assert workers.state() == (DeliveryState.DUE, 0)
    assert workers.first.take(5, EXPIRED_US + LEASE_US - 1, LEASE_US) == []
    assert workers.health() == EndpointHealth()
    _, attempts = workers.deliveries.show(workers.lost.delivery_id)
    assert [each.outcome for each in attempts] == [OutcomeKind.FAILED], "it is told all the same"


def test_a_success_of_who_has_lost_the_lease_is_true(workers: Rivals) -> None:
    at_us = EXPIRED_US + SECOND_US
    workers.first.finish([outcome(workers.lost, OutcomeKind.DELIVERED, at_us)], at_us)
    assert workers.state() == (DeliveryState.DELIVERED, 1)
    assert workers.first.take(5, EXPIRED_US + LEASE_US - 1, LEASE_US) == []


def test_only_who_holds_a_lease_can_extend_it(workers: Rivals) -> None:
    workers.first.renew([workers.subscription], EXPIRED_US + 9 * LEASE_US)
    assert len(workers.first.take(5, EXPIRED_US + LEASE_US, LEASE_US)) == 1
    workers.first.renew([workers.subscription], EXPIRED_US + 9 * LEASE_US)
    assert workers.second.take(5, EXPIRED_US + 9 * LEASE_US - 1, LEASE_US) == []


def test_who_holds_the_lease_decides_and_gives_it_back(workers: Rivals) -> None:
    at_us = EXPIRED_US + SECOND_US
    workers.second.finish([outcome(workers.held, OutcomeKind.FAILED, at_us)], at_us)
    assert workers.state() == (DeliveryState.DUE, 1)
    [after] = workers.first.take(5, at_us, LEASE_US)
    assert after.delivery_id != workers.held.delivery_id, "the retry is not due yet"
    assert after.health.failures == 1


def test_leases_of_the_dead_end_at_once_and_no_others(workers: Rivals) -> None:
    workers.first.release_dead(lambda owner: owner == "worker 0", EXPIRED_US)
    assert workers.first.take(5, EXPIRED_US, LEASE_US) == []
    workers.first.release_dead(lambda owner: owner == "worker 1", EXPIRED_US)
    assert len(workers.first.take(5, EXPIRED_US, LEASE_US)) == 1


def test_a_lane_with_nothing_left_rests_once_the_lease_has_ended(tmp_path: Path) -> None:
    with closing(Rivals(tmp_path, 1)) as workers:
        at_us = EXPIRED_US + SECOND_US
        workers.first.finish([outcome(workers.lost, OutcomeKind.DELIVERED, at_us)], at_us)
        assert workers.lanes.next_ready_us() == EXPIRED_US + LEASE_US
        assert workers.first.take(5, EXPIRED_US + LEASE_US, LEASE_US) == []
        assert workers.lanes.next_ready_us() is None


@pytest.mark.parametrize(
    ("address", "options", "counts"),
    [
        ("https://h.example/", {}, [1, 1, 1]),
        ("https://h.example/", {"batch_max": 2}, [2, 1]),
        ("apprise:json://h.example", {}, [1, 1, 1]),
        ("ann@h.example", {}, [1, 1, 1]),
        ("ann@h.example", {"digest": Digest.DAILY}, [3]),
    ],
)
def test_what_goes_in_one_delivery_depends_on_where_it_goes(
    tmp_path: Path, address: str, options: dict[str, Any], counts: list[int]
) -> None:
    with closing(Workers(tmp_path, 3, address, **options)) as workers:
        assert deliveries(workers) == counts


@pytest.mark.parametrize(
    ("options", "matches", "counts"),
    [
        ({}, BACKLOG_MAX, [1] * BACKLOG_MAX),
        ({}, BACKLOG_MAX + 1, [BACKLOG_MAX + 1]),
        ({}, BACKLOG_MAX + 3, [BACKLOG_MAX + 3]),
        ({"digest": Digest.HOURLY}, DIGEST_MAX, [DIGEST_MAX]),
        ({"digest": Digest.HOURLY}, DIGEST_MAX + 1, [DIGEST_MAX, 1]),
    ],
)
def test_a_backlog_goes_in_one_mail_and_a_digest_goes_on_in_the_next(
    tmp_path: Path, options: dict[str, Any], matches: int, counts: list[int]
) -> None:
    with closing(Workers(tmp_path, matches, "ann@h.example", **options)) as workers:
        assert deliveries(workers) == counts


def deliveries(workers: Workers) -> list[int]:
    """Return how many matches each delivery has, when all succeed; they go out at one time."""
    counts: list[int] = []
    due_us = workers.lanes.next_ready_us()
    assert due_us is not None
    while workers.lanes.next_ready_us() == due_us:
        for work in workers.first.take(5, due_us, LEASE_US):
            counts.append(len(work.matches))
            workers.first.finish([outcome(work, OutcomeKind.DELIVERED, due_us)], due_us)
    assert workers.lanes.next_ready_us() is None
    return counts
