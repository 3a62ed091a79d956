"""Pages are told when there is something new, while who looks may, and until they are stopped."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from aiohttp import ClientResponse
from playwright.async_api import Browser, expect
from support.api_house import House, open_house
from support.api_room import match
from support.browser import log_in, open_page

from broker.web import livepage

pytest_plugins = ("support.chromium",)
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module")
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path) as house:
        yield house


async def told(answer: ClientResponse) -> bool:
    """Return whether something new is told before the stream ends."""
    async with asyncio.timeout(30):
        async for line in answer.content:
            if line == b"event: change\n":
                return True
    return False


async def test_who_looks_is_told_until_the_token_is_revoked(house: House) -> None:
    async with house.client.get("/live") as answer:
        assert answer.status == 401
    await house.log_in("subscribe")
    async with house.client.get("/live") as answer:
        assert answer.headers["Content-Type"] == "text/event-stream"
        assert await told(answer)
        house.tokens.revoke("subscribe")
        while await told(answer):
            await house.room.commit(match(7))


async def test_a_commit_right_after_a_page_was_told_is_not_missed(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(livepage, "_MOST_S", 3_600.0)
    await house.log_in("admin")
    async with house.client.get("/live") as answer:
        assert (await answer.content.readline()).startswith(b"retry")
        await house.room.commit(match(21))
        assert await told(answer)


async def test_so_many_pages_are_told_and_no_more(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(livepage, "LOOKING_MAX", 2)
    await house.log_in("admin")
    async with contextlib.AsyncExitStack() as stack:
        answers = [await stack.enter_async_context(house.client.get("/live")) for _ in range(3)]
        assert [each.status for each in answers] == [200, 200, 503]


async def test_a_page_moves_until_it_is_stopped_and_goes_on_where_it_is(
    house: House, browser: Browser
) -> None:
    page, wrong = await open_page(browser)
    url = house.url
    await log_in(page, url, house.secrets["admin"])
    await page.goto(f"{url}/queries/same")
    await house.room.commit(match(21))
    await expect(page.locator("#match-3")).to_be_visible(timeout=20_000)
    await page.get_by_role("button", name="Stop moving").click()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await page.reload()
    await house.room.commit(match(22))
    go_on = page.get_by_role("button", name="Go on moving")
    await expect(go_on).to_be_visible()
    assert f"{url}/live" not in asked
    await go_on.click()
    await expect(page.locator("#match-4")).to_be_visible(timeout=20_000)
    assert f"{url}/live" in asked
    assert not wrong
