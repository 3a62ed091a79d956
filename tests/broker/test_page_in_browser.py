"""The broker in a browser: what a person does there, and that it can be read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from aiohttp.test_utils import TestClient
from playwright.async_api import Browser
from support.api_house import House, open_house
from support.api_room import Room
from support.browser import open_page
from support.page_room import hostile_match, open_pages

from broker.api.admission.sessions import COOKIE
from broker.registry.queries import QueryState

pytest_plugins = ("support.chromium",)
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module")
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path) as house:
        yield house


@pytest_asyncio.fixture(loop_scope="module")
async def open_client(tmp_path: Path) -> AsyncIterator[tuple[TestClient, Room]]:
    async with open_pages(tmp_path) as found:
        yield found


async def test_a_person_logs_in_reads_a_match_and_sees_the_next_one_come(
    house: House, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    await house.room.commit(hostile_match(3))
    page, wrong = await open_page(browser)
    url = str(house.client.make_url("/"))
    answer = await page.goto(url)
    assert answer is not None
    assert answer.status == 401
    wrong.clear()
    await page.get_by_label("Access token").fill(house.secrets["admin"])
    await page.keyboard.press("Enter")
    await page.get_by_role("heading", name="Running").wait_for()
    assert await page.title() == "XSCL broker"
    await page.get_by_role("row", name="same").get_by_role("link").click()
    await page.get_by_role("heading", name="Latest matches").wait_for()
    await page.locator("#match-3 summary").click()
    assert "javascript:alert(1)" in await page.locator("#match-3 pre").inner_text()
    await house.room.commit(hostile_match(11))
    await page.locator("#match-4").wait_for(timeout=20_000)
    assert await page.locator("#output-3").get_attribute("open") is not None
    focused = "document.activeElement.closest('details').id"
    assert await page.evaluate(focused) == "output-3", "the focus stays where it was"
    assert await page.title() == "same – XSCL broker"
    (cookie,) = await page.context.cookies()
    assert (cookie["name"], cookie["httpOnly"], cookie["sameSite"]) == (COOKIE, True, "Strict")
    assert not wrong


async def test_the_page_is_the_same_without_scripts(
    open_client: tuple[TestClient, Room], browser: Browser
) -> None:
    client, room = open_client
    await client.put("/v1/queries/same", data="news//item->a")
    await room.commit(hostile_match(1))
    page, wrong = await open_page(browser, java_script_enabled=False)
    await page.goto(str(client.make_url("/")))
    await page.get_by_role("link", name="same").first.click()
    await page.locator("#output-1 summary").click()
    assert "<item>" in await page.locator("#output-1 pre").inner_text()
    assert not wrong


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_text_can_be_told_from_its_background(
    open_client: tuple[TestClient, Room], browser: Browser, scheme: str
) -> None:
    client, room = open_client
    await client.put("/v1/queries/same", data="news//item->a[title->t]")
    await room.commit(hostile_match(1))
    page, _ = await open_page(browser, color_scheme=scheme)
    for path in ("/", "/queries/same", "/login"):
        await page.goto(str(client.make_url(path)))
        found = await page.evaluate(CONTRAST)
        low = [each for each in found if each["ratio"] < 4.5]
        assert not low, (path, low[:3])
        assert len(found) > 5


async def test_on_a_telephone_nothing_but_tables_is_wider_than_the_screen(
    open_client: tuple[TestClient, Room], browser: Browser
) -> None:
    client, room = open_client
    await client.put("/v1/queries/same", data="news//item->a")
    await room.commit(hostile_match(1))
    page, _ = await open_page(browser, viewport={"width": 360, "height": 740})
    for path in ("/", "/queries/same", "/login"):
        await page.goto(str(client.make_url(path)))
        assert await page.evaluate("document.documentElement.scrollWidth") <= 360


async def test_on_a_telephone_reasons_are_on_the_screen_and_take_a_little_of_it(
    open_client: tuple[TestClient, Room], browser: Browser
) -> None:
    client, room = open_client
    await client.put("/v1/queries/same", data="news//item->a")
    room.registry.set_state("same", QueryState.PAUSED, effective=0, reason="too much. " * 300)
    page, _ = await open_page(browser, viewport={"width": 360, "height": 740})
    await page.goto(str(client.make_url("/")))
    box = await page.locator(".why .reason").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 360
    assert box["height"] < 150


@pytest.mark.parametrize("width", [360, 700, 1200])
async def test_figures_in_a_row_stand_at_one_height(
    open_client: tuple[TestClient, Room], browser: Browser, width: int
) -> None:
    client, _ = open_client
    page, _ = await open_page(browser, viewport={"width": width, "height": 740})
    await page.goto(str(client.make_url("/")))
    tops = await page.evaluate(
        "[...document.querySelectorAll('.figures div')].map((card) =>"
        " [card.getBoundingClientRect().top,"
        "  card.querySelector('dd').getBoundingClientRect().top])"
    )
    assert len(tops) == 7
    assert len({round(number - card) for card, number in tops}) == 1


CONTRAST = """() => {
  const parse = (c) => (c.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const back = (e) => {
    for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] > 0) return c;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || !e.checkVisibility()) continue;
    const [a, b] = [light(parse(getComputedStyle(e).color)), light(back(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    found.push({ text: e.textContent.trim().slice(0, 40), ratio });
  }
  return found;
}"""
