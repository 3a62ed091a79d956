from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp.test_utils import TestClient, TestServer
from hypothesis import given
from hypothesis import strategies as st
from support.api_room import Room

from broker.api.access import Gate
from broker.api.admission.limits import BURST_S, RateLimit
from broker.api.http import make_application
from broker.registry.tokens import Tokens, TokenScope


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    return Tokens(tmp_path / "tokens.db")


@pytest.fixture
async def client(tmp_path: Path, tokens: Tokens, clock: Clock) -> AsyncIterator[TestClient]:
    room = Room(tmp_path)
    application = make_application(
        room.backend,
        body_bytes_max=10_000,
        gate=Gate(tokens),
        limit=RateLimit(2, now_s=clock),
    )
    room.ingest.start()
    async with TestClient(TestServer(application)) as client:
        yield client
    room.close()
    tokens.close()


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


async def statuses(client: TestClient, count: int, secret: str | None = None) -> list[int]:
    headers = bearer(secret) if secret else {}
    return [(await client.get("/v1/queries", headers=headers)).status for _ in range(count)]


async def test_an_address_that_asks_too_often_is_told_when_to_come_back(
    client: TestClient, clock: Clock
) -> None:
    assert await statuses(client, 4) == [401] * 4
    answer = await client.get("/v1/queries")
    assert (answer.status, answer.headers["Retry-After"]) == (429, "1")
    assert answer.content_type == "application/problem+json"
    assert "more than 2 requests a second" in await answer.text()
    clock.now_s += 1
    assert await statuses(client, 3) == [401, 401, 429]


async def test_tokens_have_an_allowance_each(client: TestClient, tokens: Tokens) -> None:
    secrets = [tokens.create(name, [TokenScope.ADMIN])[1] for name in ("ann", "ben")]
    for secret in secrets:
        assert await statuses(client, 5, secret) == [200, 200, 200, 200, 429]


async def test_who_guesses_tokens_is_stopped_and_others_are_not(
    client: TestClient, tokens: Tokens
) -> None:
    _, secret = tokens.create("ann", [TokenScope.ADMIN])
    guesses = [f"xscl_{n:012x}_{'A' * 43}" for n in range(5)]
    found = [(await statuses(client, 1, guess))[0] for guess in guesses]
    assert found == [401, 401, 401, 401, 429]
    # From the guesser's own address not even the right one is looked at any more.
    assert await statuses(client, 1, secret) == [429]


async def test_without_a_bound_everything_is_answered(tmp_path: Path) -> None:
    limit = RateLimit(0)
    assert not any(limit.wait_s("ann") for _ in range(100_000))


@given(
    per_second=st.integers(1, 1_000),
    pauses=st.lists(st.floats(0, 2), min_size=1, max_size=200),
)
def test_in_no_span_of_time_are_more_requests_let_in_than_the_rate_and_a_burst(
    per_second: int, pauses: list[float]
) -> None:
    clock = Clock()
    limit = RateLimit(per_second, now_s=clock)
    admitted = []
    for pause in pauses:
        clock.now_s += pause
        if not limit.wait_s("ann"):
            admitted.append(clock.now_s)
    span_s = admitted[-1] - admitted[0]
    assert len(admitted) <= per_second * (span_s + BURST_S) + 1


def test_who_waits_as_long_as_told_is_let_in() -> None:
    clock = Clock()
    limit = RateLimit(10, now_s=clock)
    while not (wait_s := limit.wait_s("ann")):
        pass
    clock.now_s += wait_s
    assert not limit.wait_s("ann")
    assert limit.wait_s("ann")
