"""What people come for, from the first page to the last, in a browser, as they do it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect
from support.api_house import SAME, House, open_house
from support.api_room import match
from support.browser import entered, open_page
from support.subscribers import Broker, mailbox

from broker.delivery.letter import Letters, Sender
from broker.delivery.mail import MailChannel
from broker.registry.subscription import DestinationKind

pytest_plugins = ("support.chromium",)
pytestmark = pytest.mark.asyncio(loop_scope="module")

WRONG = "news//item->a FOLLOWED BY {a/title = b/title AND a/by = b/by, 30 minutes} news//item->b"


@pytest_asyncio.fixture(loop_scope="module")
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path) as house:
        for time, by in (("10:00", "ann"), ("10:20", "bob"), ("11:30", "cid")):
            await publish(house, time, by)
        yield house


async def publish(house: House, time: str, by: str) -> None:
    item = f"<item id='{by}'><title>Flood</title><by>{by}</by></item>"
    await house.publish(item, f"2026-01-01T{time}:00Z")


async def test_who_comes_first_is_asked_for_a_token_and_told_of_a_wrong_one(
    house: House, browser: Browser
) -> None:
    page, _ = await open_page(browser)
    await page.goto(house.url)
    field = page.get_by_label("Access token")
    assert await field.evaluate("it => it === document.activeElement")
    await page.keyboard.type("no-token")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_be_visible()
    await page.get_by_label("Access token").fill(house.secrets["admin"])
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Queries")).to_be_visible()
    await page.get_by_role("button", name="Log out").click()
    await page.goto(f"{house.url}/documents")
    await expect(page.get_by_label("Access token")).to_be_visible()


async def test_a_wrong_query_is_mended_by_near_misses_registered_and_told_by_mail(
    house: House, browser: Browser
) -> None:
    room = house.room
    page, wrong = await entered(house, browser)
    await page.goto(f"{house.url}/register?text={quote(WRONG)}")
    said, near = page.locator("#trial-said"), page.locator("#trial-near")
    await expect(said).to_contain_text("Matched 0, nearly 1, of 3")
    await near.get_by_role("button", name="Leave out a/by = b/by").click()
    await expect(said).to_contain_text("Matched 1, nearly 2, of 3")
    await near.get_by_role("button", name="Change to 90 minutes").click()
    await expect(said).to_contain_text("Matched 3, nearly 0, of 3")
    await page.get_by_label("Id").fill("flood")
    await page.get_by_role("button", name="Register", exact=True).click()
    await page.wait_for_url("**/queries/flood")
    assert room.registry.query("flood").text == (
        "news//item->a FOLLOWED BY {a/title = b/title, 90 minutes} news//item->b"
    )
    broker = Broker(room.spool.directory, room.outbox, room.registry)
    async with mailbox() as box:
        channel = MailChannel(
            Letters(Sender("broker@reader.example")),
            host="127.0.0.1",
            port=box.port,
            sender="broker@reader.example",
            unsubscribe_url=lambda name: f"{house.url}/v1/unsubscribe/{name}",
        )
        async with broker.delivering(channels={DestinationKind.EMAIL: channel}):
            await page.get_by_label("Send its matches to").fill("mailto:ann@reader.example")
            await page.get_by_role("button", name="Subscribe").click()
            await page.wait_for_url("**/subscriptions/*")
            await publish(house, "14:00", "eve")
            await publish(house, "14:10", "fay")
            await room.commit(replace(match(4, "flood"), id="first"))
            await box.wait_for(1)
            await page.goto(f"{house.url}/queries/flood")
            await page.get_by_role("link", name="match ").first.click()
            await expect(page.get_by_role("heading", name="Documents")).to_be_visible()
            assert await page.locator(".beside dd").all_inner_texts() == [
                *("Flood", "eve"),
                *("Flood", "fay"),
            ]
            await expect(page.locator(".badge.delivered")).to_be_visible()
            await page.get_by_role("button", name="Send again").click()
            mails = await box.wait_for(2)
            assert mails[0]["Subject"] == mails[1]["Subject"]
    assert not wrong


async def test_a_document_is_found_by_path_and_asked_why_it_did_not_match(
    house: House, browser: Browser
) -> None:
    page, wrong = await entered(house, browser)
    await page.get_by_role("link", name="Documents", exact=True).click()
    await page.get_by_label("With the text").fill("BOB")
    await page.get_by_label("in the element or attribute").fill("item/@id")
    await page.get_by_role("button", name="Find").click()
    assert "find=BOB&in=item%2F%40id" in page.url
    await expect(page.locator("tbody tr")).to_have_count(1)
    await page.get_by_role("link", name="Flood").click()
    await page.wait_for_url("**/documents/2")
    await page.get_by_text("Why did documents not match?").click()
    await page.get_by_label("Query", exact=True).select_option("same")
    await page.get_by_label("Numbers of documents").fill("1, 2")
    await page.get_by_role("button", name="Say why").click()
    await page.wait_for_url("**/why-not?*")
    await expect(page.locator("main")).to_contain_text("same")
    assert not wrong


async def test_who_wonders_where_documents_stay_sees_how_late_they_come(
    house: House, browser: Browser
) -> None:
    page, wrong = await entered(house, browser)
    await page.get_by_role("link", name="How late documents come").click()
    await page.wait_for_url("**/lateness")
    row = page.get_by_role("row").filter(has_text="no feed")
    await expect(row).to_contain_text("news")
    await row.get_by_role("link", name="news").click()
    await page.wait_for_url("**/documents?stream=news")
    await expect(page.locator("tbody tr")).to_have_count(3)
    assert not wrong


async def test_a_query_is_revised_and_its_page_shared_by_its_address(
    house: House, browser: Browser
) -> None:
    page, wrong = await entered(house, browser)
    await page.goto(f"{house.url}/queries/same/edit")
    await expect(page.locator("#trial-said")).to_contain_text("Matched")
    editor = page.get_by_role("textbox", name="Query, in XSCL")
    await editor.click()
    await page.keyboard.press("Control+a")
    await page.keyboard.insert_text(SAME.replace("2 days", "1 day"))
    await expect(page.locator("#trial-said")).not_to_contain_text("text before")
    await page.get_by_role("button", name="Replace the text").click()
    await page.wait_for_url("**/queries/same")
    other, _ = await entered(house, browser)
    await other.goto(page.url)
    await expect(other.locator("main")).to_contain_text("1 day")
    # The browser itself would style what is typed over a selection, and is not let.
    assert [each for each in wrong if not each.startswith("Applying inline style")] == []
