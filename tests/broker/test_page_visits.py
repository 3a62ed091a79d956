"""Shorter visits than those of `test_page_flows`: by keyboard alone, to what failed, to feeds.

What people come to the page for, each from its beginning to its end in a browser:

1. first visit, no token, a wrong one                  `test_page_flows`
2. wrong query, near-misses, mail, match, send again   `test_page_flows`
3. document found by path, asked why it did not match  `test_page_flows`
4. how late documents come                             `test_page_flows`
5. query revised, its page shared                      `test_page_flows`
6. query written with help, paused, removed            `test_query_page`
7. query written without scripts                       `test_query_page`
8. subscribed with a token for that alone, and ended   `test_query_page`
9. bound dragged, text follows                         `test_query_page`
10. parameters tried with values                       `test_query_page`
11. match read, the next one seen to come              `test_page_in_browser`
12. page read without scripts                          `test_page_in_browser`
13. moving page stopped                                `test_page_moves`
14. query registered and subscribed to by keyboard
15. run looked at on the axis of time
16. dead letter read and given again
17. feed found behind a page, and paused
18. feeds carried out and in as OPML
19. row of a table found
20. plan of a query, from its page
21. on a telephone in the dark, to a match
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, expect
from support.api_house import House, open_house
from support.api_room import match
from support.browser import entered, open_page
from support.feed_server import Page as FeedPage
from support.feed_server import entries, rss, start_feed_server

from broker.matching.match import MatchDocument
from broker.matching.stepresult import StepResult
from broker.tables.store import RowChange

pytest_plugins = ("support.chromium",)
pytestmark = pytest.mark.asyncio(loop_scope="module")

START_US = 1_767_261_600_000_000  # 2026-01-01T10:00:00Z
HOUR_US = 3_600_000_000


@pytest_asyncio.fixture(loop_scope="module")
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path) as house:
        for hour in range(5):
            item = f"<item><title>Level {hour}</title></item>"
            await house.publish(item, f"2026-01-01T1{hour}:00:00Z")
        yield house


async def tab_to(page: Page, wanted: Locator) -> None:
    """Press Tab until something has the focus, as who has no mouse does."""
    for _ in range(60):
        await page.keyboard.press("Tab")
        if await wanted.evaluate("it => it === it.getRootNode().activeElement"):
            return
    raise AssertionError(f"the keyboard does not get to {wanted}")


async def test_a_query_is_registered_and_subscribed_to_with_the_keyboard_alone(
    house: House, browser: Browser
) -> None:
    page, _ = await open_page(browser)
    await page.goto(house.url)
    await page.keyboard.type(house.secrets["admin"])
    await page.keyboard.press("Enter")
    await page.wait_for_url(f"{house.url}/")
    await tab_to(page, page.get_by_role("link", name="Skip to the content"))
    await tab_to(page, page.get_by_label("Sections").get_by_role("link", name="New query"))
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/register")
    await page.locator(".cm-content").wait_for()
    await tab_to(page, page.get_by_label("Id"))
    await page.keyboard.type("typed")
    await tab_to(page, page.get_by_role("textbox", name="Query, in XSCL"))
    await page.keyboard.type("news//item->a FOLLOWED BY {a/titel = b/title, 1 day} news//item->b")
    await page.keyboard.press("Escape")
    await tab_to(page, page.get_by_role("button", name="Register", exact=True))
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/queries/typed")
    await tab_to(page, page.get_by_label("Send its matches to"))
    await page.keyboard.type("pull")
    await tab_to(page, page.get_by_role("button", name="Subscribe"))
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/subscriptions/*")
    (made,) = house.room.registry.subscriptions.find(query="typed")
    assert page.url.endswith(made.id)


async def test_a_run_has_each_element_on_the_axis_with_its_window_and_grace(
    house: House, browser: Browser
) -> None:
    text = "FROM news//item->a NEXT {} news//item->b+ WITHIN 4 hours GRACE 1 hour"
    house.room.registry.register("rising", text, version="1", point=0)
    documents = tuple(
        MatchDocument(1 + at, "news", str(1 + at), START_US + at * HOUR_US, block=min(at, 1))
        for at in range(4)
    )
    run = replace(
        match(1, "rising"),
        id="run",
        start_us=START_US,
        end_us=START_US + 3 * HOUR_US,
        documents=documents,
        roots=(0, 0, 0, 0),
        decided=5,
    )
    await house.room.commit(run)
    page, wrong = await entered(house, browser)
    await page.goto(f"{house.url}/queries/rising")
    await page.get_by_role("link", name="match ").first.click()
    axis = page.locator("figure.axis")
    await expect(axis).to_contain_text("3 hours apart; the bands are, from above, WITHIN 4 hours")
    await expect(axis).to_contain_text("a grace of 1 hour")
    marks = await axis.locator("line.at").evaluate_all(
        "all => all.map((it) => it.x1.baseVal.value)"
    )
    apart = [later - earlier for earlier, later in itertools.pairwise(marks)]
    assert len(marks) == 4
    assert max(apart) - min(apart) <= 1
    titles = await page.locator(".beside h3, ol.parts li a").all_inner_texts()
    assert titles == [f"Level {hour}" for hour in range(4)]
    assert not wrong


async def test_a_dead_letter_is_read_and_given_again(house: House, browser: Browser) -> None:
    room = house.room
    step = StepResult(dead_letters=[(2, "too deep")])
    through = room.outbox.through()
    room.outbox.commit(after=through, through=through + 1, step=step)
    page, wrong = await entered(house, browser)
    await page.get_by_role("link", name="Dead letters", exact=True).click()
    letter = page.locator("article").filter(has_text="Document 2")
    await expect(letter).to_contain_text("too deep")
    await letter.get_by_text("Its text").click()
    await expect(letter.locator("pre")).to_contain_text("Level 1")
    last = room.spool.last_docid
    await letter.get_by_role("button", name="Give it again").click()
    await page.wait_for_url("**/dead-letters")
    assert room.spool.last_docid == last + 1
    assert not wrong


async def test_a_feed_is_found_behind_a_page_and_paused(house: House, browser: Browser) -> None:
    server = await start_feed_server()
    server.pages["/feed"] = FeedPage(rss(entries(range(3)), title="Tide tables"))
    link = '<link rel="alternate" type="application/rss+xml" href="/feed">'
    server.pages["/"] = FeedPage(f"<html><head>{link}</head></html>")
    page, wrong = await entered(house, browser)
    await page.get_by_label("Sections").get_by_role("link", name="Feeds").click()
    await page.get_by_label("Address of a feed").fill(server.url("/"))
    await page.get_by_role("button", name="Add", exact=True).click()
    row = page.get_by_role("row").filter(has_text=server.url("/feed"))
    await expect(row).to_be_visible()
    await row.get_by_role("button", name="Pause").click()
    await expect(row.locator(".badge.paused")).to_be_visible()
    await row.get_by_text("Remove", exact=True).click()
    await row.get_by_role("button", name="Remove it").click()
    await expect(row).to_have_count(0)
    await server.close()
    assert not wrong


async def test_feeds_are_carried_in_and_out_as_opml(house: House, browser: Browser) -> None:
    outline = '<outline text="Tides" type="rss" xmlUrl="https://tides.example/feed"/>'
    opml = f'<opml version="2.0"><body><outline text="news">{outline}</outline></body></opml>'
    page, wrong = await entered(house, browser)
    await page.get_by_label("Sections").get_by_role("link", name="Feeds").click()
    await page.locator("summary").get_by_text("OPML").click()
    given = {"name": "reader.opml", "mimeType": "text/x-opml", "buffer": opml.encode()}
    await page.get_by_label("A file of another reader").set_input_files([given])  # type: ignore[list-item]
    await page.get_by_role("button", name="Add its feeds").click()
    await expect(page.get_by_role("row").filter(has_text="tides.example")).to_be_visible()
    await page.locator("summary").get_by_text("OPML").click()
    async with page.expect_download() as taken:
        await page.get_by_role("link", name="All feeds as OPML").click()
    kept = Path(await (await taken.value).path()).read_text()
    assert "https://tides.example/feed" in kept
    assert not wrong


async def test_a_row_of_a_table_is_found(house: House, browser: Browser) -> None:
    room = house.room
    table = "CREATE TABLE author (name KEY, posts DEFAULT 0, muted DEFAULT 'no')"
    headers = {"Authorization": f"Bearer {house.secrets['admin']}"}
    async with house.client.put("/v1/queries/author", data=table, headers=headers) as answer:
        assert answer.status == 200
    through = room.outbox.through()
    rows = [RowChange("author", name, {"posts": 3.0}, 2) for name in ("Ann", "Bob")]
    room.outbox.commit(after=through, through=through + 1, step=StepResult(rows=rows))
    page, wrong = await entered(house, browser)
    await page.get_by_role("link", name="Tables", exact=True).click()
    await page.get_by_role("link", name="author").click()
    await expect(page.locator("tbody tr")).to_have_count(2)
    await page.get_by_label("Rows with").fill("bo")
    await page.get_by_role("button", name="Find").click()
    await expect(page.locator("tbody tr")).to_have_count(1)
    cells = await page.locator("tbody tr").locator("th, td").all_inner_texts()
    assert cells == ["Bob", "3.0", "no", "2"]
    assert not wrong


async def test_from_a_query_to_what_it_shares_with_others(house: House, browser: Browser) -> None:
    page, wrong = await entered(house, browser)
    await page.goto(f"{house.url}/queries/same")
    await page.get_by_role("link", name="Plan").last.click()
    await expect(page.locator("svg").first).to_be_visible()
    await expect(page.locator("main")).to_contain_text("same")
    assert not wrong


async def test_on_a_telephone_in_the_dark_a_match_is_found_and_read(
    house: House, browser: Browser
) -> None:
    options = {"width": 360, "height": 740}
    page, wrong = await entered(
        house, browser, viewport=options, color_scheme="dark", has_touch=True, is_mobile=True
    )
    await page.locator("#queries").get_by_role("link", name="same", exact=True).tap()
    await page.get_by_role("link", name="match ").first.tap()
    await expect(page.get_by_role("heading", name="Documents")).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth") <= 360
    background = await page.evaluate("getComputedStyle(document.body).backgroundColor")
    red, green, blue = (int(each) for each in background[4:-1].split(","))
    assert red + green + blue < 200
    assert not wrong
