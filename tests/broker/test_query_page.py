"""Queries are written, changed and subscribed to on the page, in a browser, as a person does."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import grammars
import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect
from pygments.token import STANDARD_TYPES
from support.api_house import SAME, House, open_house
from support.browser import entered, open_page

from broker.registry.queries import QueryState
from xscl.highlight import XsclLexer

ROOT = Path(__file__).parents[2]

pytest_plugins = ("support.chromium",)
pytestmark = pytest.mark.asyncio(loop_scope="module")

NEWS = b"""<item id="7"><title>Hello</title><author>Ann</author><link>https://a.example</link></item>"""


@pytest_asyncio.fixture(loop_scope="module")
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path) as house:
        yield house


async def test_a_query_is_written_with_help_mended_registered_paused_and_removed(
    house: House, browser: Browser
) -> None:
    headers = {"Authorization": f"Bearer {house.secrets['admin']}"}
    await house.client.post("/v1/streams/news/documents", data=NEWS, headers=headers)
    page, wrong = await entered(house, browser)
    await page.locator("#queries").get_by_role("link", name="New query").click()
    await page.get_by_label("Id").fill("mine")
    await page.locator(".cm-content").wait_for()
    editor = page.get_by_role("textbox", name="Query, in XSCL")
    await editor.click()
    await page.keyboard.type("news//item->a WHERE b/")
    await expect(page.locator("#diagnostics li.error").first).to_contain_text("Line 1")
    await page.keyboard.press("Control+a")
    await page.keyboard.type("news//item->abc[")
    await page.keyboard.press("Control+Space")
    await expect(page.get_by_role("option").first).to_be_visible()
    offered = await page.get_by_role("option").all_inner_texts()
    assert {"author", "link", "title", "@id"} <= {
        each.split("element")[0].split("attribute")[0].strip() for each in offered
    }
    await page.keyboard.press("Escape")
    await page.keyboard.press("Control+a")
    await page.keyboard.type("news//item->who WHERE whom = 'x'")
    await page.locator("#diagnostics").get_by_role("button", name="Change to who").click()
    await expect(editor).to_contain_text("WHERE who =")
    await page.keyboard.press("Control+z")
    await expect(editor).to_contain_text("WHERE whom =")
    await page.keyboard.press("Control+a")
    await page.keyboard.type("news//item->a FOLLOWED BY {a/title=b/title, 2 days} news//item->b")
    await page.get_by_role("button", name="Format").click()
    await expect(editor).to_contain_text("a/title = b/title")
    await page.get_by_role("button", name="Register", exact=True).click()
    await page.wait_for_url("**/queries/mine")
    assert house.room.registry.query("mine").state is QueryState.ACTIVE
    await page.get_by_role("button", name="Pause").click()
    await expect(page.locator(".badge.paused")).to_be_visible()
    await page.get_by_role("button", name="Resume").click()
    await expect(page.locator(".badge.active")).to_be_visible()
    await page.get_by_text("Remove", exact=True).click()
    await page.get_by_role("button", name="Remove it").click()
    await page.wait_for_url("**/")
    assert house.room.registry.query("mine").state is QueryState.REMOVED
    # The browser itself would style what is typed over a selection, and is not let.
    assert [each for each in wrong if not each.startswith("Applying inline style")] == []


async def test_who_does_not_know_the_language_begins_with_an_example(
    house: House, browser: Browser
) -> None:
    page, wrong = await entered(house, browser)
    await page.goto(f"{house.url}/register")
    await page.get_by_role("link", name="Begin with it").click()
    said = page.locator("#trial-said")
    await expect(said).to_contain_text("Matched")
    await expect(page.locator("#diagnostics li")).to_have_count(0)
    await expect(page.get_by_role("link", name="Begin with it")).to_have_count(0)
    await page.get_by_label("Id").fill("example")
    await page.get_by_role("button", name="Register", exact=True).click()
    await page.wait_for_url("**/queries/example")
    await page.get_by_label("Send its matches to").fill("ftp://no.example")
    await page.get_by_role("button", name="Subscribe").click()
    await expect(page.get_by_role("heading", name="That was not done")).to_be_visible()
    await page.get_by_role("link", name="Back to the form").click()
    await expect(page.get_by_role("heading", name="Subscribe", exact=True)).to_be_visible()
    assert not [each for each in wrong if "422" not in each]


async def test_without_scripts_a_wrong_text_is_shown_again_with_what_is_wrong(
    house: House, browser: Browser
) -> None:
    page, _ = await entered(house, browser, java_script_enabled=False)
    await page.goto(f"{house.url}/register?text=news%2F%2Fitem-%3E")
    await page.get_by_label("Id").fill("plain")
    await page.get_by_role("button", name="Register", exact=True).click()
    assert "^" in await page.locator("#diagnostics").inner_text()
    text = page.get_by_label("Query, in XSCL")
    assert await text.input_value() == "news//item->"
    assert await page.get_by_label("Id").input_value() == "plain"
    await text.fill(SAME)
    await page.get_by_role("button", name="Register", exact=True).click()
    await page.wait_for_url("**/queries/plain")
    await page.get_by_role("link", name="Edit").click()
    assert await page.get_by_label("Query, in XSCL").input_value() == SAME
    await page.get_by_label("Query, in XSCL").fill("news//item->a")
    await page.get_by_role("button", name="Replace the text").click()
    assert house.room.registry.query("plain").text == "news//item->a"


async def test_who_may_subscribe_to_a_query_does_so_and_ends_it(
    house: House, browser: Browser
) -> None:
    text = "news//item->a[author = $who] FOLLOWED BY {a/price > $low, $within} news//item->b"
    house.room.registry.register("asked", text, version="1", point=0)
    secret = house.tokens.create("ann", ["subscribe:asked"])[1]
    page, wrong = await entered(house, browser, secret)
    await page.get_by_text("asked").click()
    await page.get_by_label("Send its matches to").fill("pull")
    await page.get_by_label("$who").fill("Ann")
    await page.get_by_label("$low").fill("3")
    await page.get_by_label("$within").fill("6 hours")
    await page.get_by_role("button", name="Subscribe").click()
    await page.wait_for_url("**/subscriptions/*")
    assert "low = 3, who = Ann" in await page.locator("main").inner_text()
    await page.get_by_role("button", name="Pause").click()
    await expect(page.locator(".badge.paused")).to_be_visible()
    await page.get_by_text("End", exact=True).click()
    await page.get_by_role("button", name="End it").click()
    await page.wait_for_url("**/")
    assert not house.room.registry.subscriptions.find(query="asked")
    answer = await page.goto(f"{house.url}/register")
    assert answer is not None
    assert answer.status == 403
    wrong.clear()


ANSWER_NEVER_ENDS = """
const usual = window.fetch;
window.fetch = (path, asked) => {
  const page = document.documentElement.dataset;
  if (!path.startsWith("/v1/language/check") || page.begun) return usual(path, asked);
  page.begun = "yes";
  const { signal } = asked;
  const end = (body) => signal.addEventListener("abort", () => body.error(signal.reason));
  return Promise.resolve(new Response(new ReadableStream({ start: end })));
};
"""
"""Has the first answer about a text begin, and go on until nobody waits for it."""


async def test_an_answer_may_be_given_up_while_it_is_read(house: House, browser: Browser) -> None:
    page, wrong = await entered(house, browser)
    await page.add_init_script(ANSWER_NEVER_ENDS)
    await page.goto(f"{house.url}/register")
    await page.get_by_role("textbox", name="Query, in XSCL").click()
    await page.keyboard.type("news//item->a WHERE b/")
    await expect(page.locator("html")).to_have_attribute("data-begun", "yes")
    await page.keyboard.type("x = 1")
    await expect(page.locator("#diagnostics li.error").first).to_contain_text("Line 1")
    assert not [each for each in wrong if not each.startswith("Applying inline style")]


async def test_near_misses_mend_a_query_while_it_is_written(house: House, browser: Browser) -> None:
    headers = {"Authorization": f"Bearer {house.secrets['admin']}"}
    for time, title, by in (
        ("10:00", "Flood", "ann"),
        ("10:30", "Flood", "bob"),
        ("13:00", "Flood", "cid"),
    ):
        url = f"/v1/streams/news/documents?time=2026-01-01T{time}:00Z"
        item = f"<item><title>{title}</title><by>{by}</by></item>"
        await house.client.post(url, data=item.encode(), headers=headers)
    page, wrong = await entered(house, browser)
    text = "news//item->a FOLLOWED BY {a/title = b/title AND a/by != b/by, 1 hour} news//item->b"
    await page.goto(f"{house.url}/register?text={quote(text)}")
    said = page.locator("#trial-said")
    await expect(said).to_contain_text("Matched 1, nearly 2, of 3 documents since 2026-01-01 10:00")
    await expect(page.get_by_role("img", name="1 within the window, 2 beyond it")).to_be_visible()
    await page.locator("#trial-near").get_by_role("button", name="Change to 3 hours").first.click()
    await expect(said).to_contain_text("Matched 3, nearly 0")
    slider = page.get_by_role("slider")
    box = await slider.bounding_box()
    assert box is not None
    half = (await slider.evaluate("it => it.offsetWidth - it.parentElement.offsetWidth")) / 2
    height = box["y"] + box["height"] / 2
    wide = box["width"] - 2 * half

    async def drag(start: float, end: float) -> None:
        await page.mouse.move(box["x"] + half + start * wide, height)
        await page.mouse.down()
        await page.mouse.move(box["x"] + half + end * wide, height, steps=4)
        await page.mouse.up()

    await drag(1 / 3, 2 / 3)  # the axis is three windows long
    await expect(page.locator(".cm-content")).to_contain_text(re.compile(r" (6 hours|3\d\d min)"))
    await expect(said).to_contain_text("Matched 3, nearly 0")
    await drag(2 / 3, 1 / 3)
    await slider.focus()
    for _ in range(3):
        await page.keyboard.press("ArrowLeft")
    await expect(page.locator(".cm-content")).to_contain_text(re.compile(r"17\d minutes} news"))
    assert await slider.evaluate("slider => slider === document.activeElement")
    assert not wrong


async def test_a_query_with_parameters_is_tried_with_values_that_are_typed_below_it(
    house: House, browser: Browser
) -> None:
    headers = {"Authorization": f"Bearer {house.secrets['admin']}"}
    for at, by in enumerate(("ann", "bob")):
        url = f"/v1/streams/news/documents?time=2026-01-01T1{at}:00Z"
        item = f"<item><title>Flood</title><by>{by}</by></item>"
        await house.client.post(url, data=item.encode(), headers=headers)
    page, wrong = await entered(house, browser)
    text = "news//item->a FOLLOWED BY {a/title = b/title AND b/by = $who, $within} news//item->b"
    await page.goto(f"{house.url}/register?text={quote(text)}")
    said = page.locator("#trial-said")
    await expect(said).to_have_text("Give $who, $within to see what it would have matched.")
    await page.get_by_label("$who").fill("bob")
    await expect(said).to_have_text("Give $within to see what it would have matched.")
    await page.get_by_label("$within").fill("1 hour")
    await expect(said).to_contain_text("Matched 1, nearly 0, of 2 documents")
    await page.get_by_label("$within").fill("59 minutes")
    await expect(said).to_contain_text("Matched 0, nearly 1, of 2 documents")
    near = page.locator("#trial-near")
    await expect(near).to_contain_text("60.0 seconds too long: $within = 59 minutes")
    await near.get_by_role("button", name="Change $within to 1 hour").click()
    await expect(said).to_contain_text("Matched 1, nearly 0, of 2 documents")
    assert await page.get_by_label("$within").input_value() == "1 hour"
    assert not wrong
    await page.get_by_label("$within").fill("soon")
    await expect(said).to_contain_text("It cannot be tried")
    assert await page.get_by_label("$within").evaluate("it => it === document.activeElement")


HIGHLIGHTED = """async (texts) => {
  const { parts } = await import("/assets/highlight.js");
  return texts.map((text) => parts(text).map(([from, to, kind]) => [text.slice(from, to), kind]));
}"""


async def test_the_editor_highlights_all_examples_as_pygments_does(
    house: House, browser: Browser
) -> None:
    assert grammars.RULES.read_text() == grammars.script(), "run editors/grammars.py"
    texts = [path.read_text() for path in sorted(ROOT.glob("examples/**/*.xscl"))]
    texts += [path.read_text() for path in sorted(ROOT.glob("tests/cases/**/*.xscl"))]
    assert len(texts) >= 15
    page, _ = await open_page(browser)
    await page.goto(f"{house.url}/login")
    found = await page.evaluate(HIGHLIGHTED, texts)
    for text, parts in zip(texts, found, strict=True):
        wanted = [
            [value, STANDARD_TYPES[kind]]
            for _, kind, value in XsclLexer().get_tokens_unprocessed(text)
            if STANDARD_TYPES[kind]
        ]
        assert parts == wanted
