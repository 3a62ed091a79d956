"""From the first visit to the first mail, and the second: a query that is wrong is mended first."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

import aiohttp
import pytest
from playwright.async_api import Browser, Page, expect
from support.browser import open_page
from support.small_broker import small_broker
from support.subscribers import mailbox

from broker.delivery.letter import Letters, Sender
from broker.delivery.mail import MailChannel
from broker.registry.subscription import DestinationKind
from broker.registry.tokens import Tokens

pytest_plugins = ("support.chromium",)
pytestmark = pytest.mark.asyncio(loop_scope="module")

SENDER = Sender("broker@xscl.example", "XSCL")
WRONG = "news//item->a FOLLOWED BY {a/title = b/title AND a/by = b/by, 10 minutes} news//item->b"
SOON = 60_000


async def publish(url: str, secret: str, time: str, title: str, by: str) -> None:
    headers = {"Authorization": f"Bearer {secret}"}
    item = f"<item><title>{title}</title><by>{by}</by></item>".encode()
    path = f"{url}/v1/streams/news/documents?time=2026-01-01T{time}:00Z"
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(path, data=item) as answer,
    ):
        assert answer.status == 200, await answer.text()


async def tried(page: Page) -> None:
    """Wait until the text is tried with all documents; a busy machine is asked once more."""
    said = page.locator("#trial-said")
    await expect(said).to_contain_text(re.compile("Matched|cannot be tried"), timeout=SOON)
    while "of 3 documents" not in await said.inner_text():
        await page.locator(".cm-content").press("End")
        await page.keyboard.type(" ")
        await expect(page.locator("#trial.old")).to_have_count(1)
        await expect(page.locator("#trial.old")).to_have_count(0, timeout=SOON)


async def mend(page: Page) -> None:
    """Follow two near-misses, the second of which the first has brought about."""
    said, near = page.locator("#trial-said"), page.locator("#trial-near")
    await tried(page)
    await expect(said).to_contain_text("Matched 0, nearly 2, of 3 documents")
    await near.get_by_role("button", name="Change to 30 minutes").click()
    await expect(said).to_contain_text("Matched 1, nearly 2", timeout=SOON)
    await near.get_by_role("button", name="Leave out a/by = b/by").first.click()
    await expect(said).to_contain_text("Matched 3, nearly 0", timeout=SOON)
    matches = page.locator("#trial-matches")
    await matches.get_by_text("What is sent").first.click()
    await expect(matches.locator("pre").first).to_contain_text("<title>Flood</title>")


@pytest.mark.timeout(300)  # a process that tries texts starts, in a browser, under load
async def test_a_wrong_query_is_mended_registered_subscribed_to_and_its_match_sent_twice(
    tmp_path: Path, browser: Browser
) -> None:
    tokens = Tokens(tmp_path / "tokens.db")
    secret = tokens.create("me", ["admin"])[1]
    async with mailbox() as box:
        mail = MailChannel(Letters(SENDER), host="127.0.0.1", port=box.port, sender=SENDER.address)
        channels = {DestinationKind.EMAIL: mail}
        async with small_broker(tmp_path / "data", tokens=tokens, channels=channels) as url:
            for time, by in (("10:00", "ann"), ("10:20", "bob"), ("10:30", "ann")):
                await publish(url, secret, time, "Flood", by)
            page, wrong = await open_page(browser)
            answer = await page.goto(url)
            assert answer is not None
            assert answer.status == 401
            wrong.clear()
            await page.get_by_label("Access token").fill(secret)
            await page.keyboard.press("Enter")
            await page.get_by_role("heading", name="Running").wait_for()
            await page.goto(f"{url}/register?text={quote(WRONG)}")
            await mend(page)
            await page.get_by_label("Id").fill("mine")
            await page.get_by_role("button", name="Register", exact=True).click()
            await page.wait_for_url("**/queries/mine")
            await page.get_by_label("Send its matches to").fill("ann@reader.example")
            await page.get_by_role("button", name="Subscribe").click()
            await page.wait_for_url("**/subscriptions/*")
            await publish(url, secret, "11:00", "Storm", "ann")
            await publish(url, secret, "11:10", "Storm", "bob")
            (first,) = await box.wait_for(1)
            await page.goto(f"{url}/queries/mine")
            await page.get_by_role("link", name="match 1", exact=True).click()
            await expect(page.locator("mark").first).to_be_visible()
            again = page.get_by_role("button", name="Send again")
            await expect(page.locator(".badge.delivered")).to_be_visible()
            await again.click()
            _, second = await box.wait_for(2)
            assert second["Subject"] == first["Subject"]
            assert second["Message-ID"] == first["Message-ID"]
            assert not wrong
    tokens.close()
