"""No document is lost between its acceptance and its evaluation, whatever it is made of."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from support.small_broker import small_broker

ATTRIBUTES = b"<i " + b" ".join(b'a%d=""' % n for n in range(1_001)) + b"/>"

Call = Callable[..., Awaitable[tuple[int, Any]]]


@pytest.fixture
async def call(tmp_path: Path) -> AsyncIterator[Call]:
    async with small_broker(tmp_path) as url, aiohttp.ClientSession(url) as session:

        async def call(method: str, path: str, body: bytes | None = None) -> tuple[int, Any]:
            headers = {"Content-Type": "application/xml"}
            async with session.request(method, path, data=body, headers=headers) as answer:
                return answer.status, await answer.json(content_type=None)

        yield call


async def dead_letters(call: Call, count: int) -> list[Any]:
    async with asyncio.timeout(20):
        while True:
            _, found = await call("GET", "/v1/dead-letters")
            if len(found["dead_letters"]) >= count:
                return list(found["dead_letters"])
            await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    ("xml", "reason"),
    [
        (b"<a>" * 300 + b"</a>" * 300, "Excessive depth"),
        (b"<a><b></a>", "mismatch"),
        (b"<a>\0</a>", "Invalid character"),
        (b"", "empty"),
        (
            b'<!DOCTYPE a [<!ENTITY x "yyyyyyyyyy"><!ENTITY z "' + b"&x;" * 1_000 + b'">'
            b'<!ENTITY w "' + b"&z;" * 1_000 + b'">]><a>' + b"&w;" * 1_000 + b"</a>",
            "amplification",
        ),
    ],
)
async def test_what_cannot_be_evaluated_is_refused_where_its_publisher_hears_it(
    call: Call, xml: bytes, reason: str
) -> None:
    status, answer = await call("POST", "/v1/streams/S/documents", xml)
    assert status == 422
    assert reason in answer["detail"]


async def test_a_document_beyond_a_limit_of_evaluation_is_a_dead_letter_with_the_reason(
    call: Call,
) -> None:
    status, answer = await call("POST", "/v1/streams/S/documents?key=wide", ATTRIBUTES)
    assert (status, answer["documents"][0]["outcome"]) == (200, "accepted")
    [letter] = await dead_letters(call, 1)
    assert letter["reason"] == "an element has 1001 attributes, the limit is 1000"
    assert (letter["key"], letter["xml"]) == ("wide", ATTRIBUTES.decode())


async def test_a_retry_is_a_document_of_its_own_and_only_one(call: Call) -> None:
    await call("POST", "/v1/streams/S/documents?key=wide&time=2026-01-01T00:00:00Z", ATTRIBUTES)
    await dead_letters(call, 1)
    answers = [await call("POST", "/v1/dead-letters/1/retry") for _ in range(2)]
    assert answers == [
        (200, {"outcome": "accepted", "docid": 2}),
        (200, {"outcome": "duplicate", "docid": 2}),
    ]
    again, first = await dead_letters(call, 2)
    assert (first["docid"], again["docid"], again["key"]) == (1, 2, "wide@1")
    _, document = await call("GET", "/v1/documents/2")
    assert document["time"] == "2026-01-01T00:00:00Z"


async def test_only_dead_letters_are_retried(call: Call) -> None:
    await call("POST", "/v1/streams/S/documents", b"<i/>")
    for docid in (1, 99):
        status, answer = await call("POST", f"/v1/dead-letters/{docid}/retry")
        assert (status, answer["detail"]) == (404, f"document {docid} is no dead letter")
