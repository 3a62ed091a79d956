"""Batches in flight: one is joined while the next one is evaluated, and never two at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from broker.pipeline.inflight import InFlight

pytestmark = pytest.mark.timeout(60)


class Joins:
    """A join that waits until it is let go, batch by batch."""

    def __init__(self, failing: int | None = None) -> None:
        self.begun: list[int] = []
        self.done: list[int] = []
        self.failures: list[BaseException] = []
        self.failing = failing
        self._may_go = {number: threading.Event() for number in range(10)}
        self._has_begun = {number: threading.Event() for number in range(10)}

    def __call__(self, number: int) -> None:
        assert self.begun == self.done
        self.begun.append(number)
        self._has_begun[number].set()
        self._may_go[number].wait()
        if number == self.failing:
            raise OSError("the disk is full")
        self.done.append(number)

    def let_go(self, *numbers: int) -> None:
        for number in numbers:
            self._may_go[number].set()

    def await_begun(self, number: int) -> None:
        self._has_begun[number].wait()


@pytest.fixture
def joins() -> Iterator[Joins]:
    joins = Joins()
    yield joins
    joins.let_go(*range(10))


def test_a_batch_is_handed_over_before_it_is_joined(joins: Joins) -> None:
    in_flight = InFlight(joins)
    in_flight.hand_over(0)  # Were it joined here, this would wait for ever.
    joins.await_begun(0)
    assert joins.done == []
    joins.let_go(0)
    in_flight.wait()
    assert joins.done == [0]
    in_flight.close()


def test_a_third_batch_waits_until_the_first_is_joined(joins: Joins) -> None:
    in_flight = InFlight(joins)
    in_flight.hand_over(0)
    handed_over = threading.Event()

    def evaluate() -> None:
        in_flight.hand_over(1)
        handed_over.set()

    evaluating = threading.Thread(target=evaluate)
    evaluating.start()
    joins.await_begun(0)
    assert not handed_over.is_set()
    joins.let_go(0)
    handed_over.wait()
    assert joins.done == [0]
    joins.let_go(1)
    in_flight.close()
    evaluating.join()
    assert joins.done == [0, 1]


def test_behind_a_batch_that_failed_none_is_joined(joins: Joins) -> None:
    joins.failing = 1
    in_flight = InFlight(joins, joins.failures.append)
    joins.let_go(*range(10))
    in_flight.hand_over(0)
    in_flight.hand_over(1)
    for _ in range(2):
        with pytest.raises(OSError, match="disk is full"):
            in_flight.hand_over(2)
    in_flight.close()
    assert (joins.begun, joins.done) == ([0, 1], [0])
    assert [str(failure) for failure in joins.failures] == ["the disk is full"]


def test_what_made_the_last_batch_fail_is_told_though_no_other_comes(joins: Joins) -> None:
    joins.failing = 0
    joins.let_go(0)
    in_flight = InFlight(joins, joins.failures.append)
    in_flight.hand_over(0)
    in_flight.close()
    assert len(joins.failures) == 1
