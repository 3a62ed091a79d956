"""Every page is gone over by axe-core, light and dark: it finds nothing."""

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
from support.browser import log_in, open_page
from support.examples import some

from broker.matching.match import MatchNode

pytest_plugins = ("support.chromium",)
pytestmark = pytest.mark.asyncio(loop_scope="module")

AXE = Path(__file__).parents[1] / "support" / "axe" / "axe.min.js"
NEWS = "<item><title>Flood</title><author>Ann</author></item>"


@pytest_asyncio.fixture(loop_scope="module")
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path) as house:
        headers = {"Authorization": f"Bearer {house.secrets['admin']}"}
        for at in range(3):
            await house.publish(NEWS, f"2026-01-01T10:0{at}:00Z")
        feed = {"url": "https://example.org/f", "stream": "news", "check": False}
        await house.client.post("/v1/feeds", json=feed, headers=headers)
        table = "CREATE TABLE author (name KEY, posts DEFAULT 0)"
        await house.client.put("/v1/queries/author", data=table, headers=headers)
        nodes = ({"a/title": MatchNode(0, 1, "Flood")},)
        await house.room.commit(replace(match(1), id="marked", witnesses=nodes))
        yield house


@pytest.mark.timeout(900)  # eighteen pages, each gone over for seconds
@pytest.mark.parametrize("scheme", some(["light", "dark"], 1))
async def test_nothing_is_found_on_any_page(house: House, browser: Browser, scheme: str) -> None:
    url = house.url
    page, _ = await open_page(browser, color_scheme=scheme, bypass_csp=True)
    await log_in(page, url, house.secrets["admin"])
    seq = house.room.outbox.matches.last_seq()
    paths = ["/", "/queries/same", "/queries/same/edit", f"/subscriptions/{house.mine}"]
    paths += ["/documents?find=flood", "/documents/1", f"/matches/{seq}", "/dead-letters"]
    paths += ["/why-not?query=same&documents=1,2", "/feeds", "/tables", "/tables/author"]
    paths += [
        "/lateness",
        "/plan",
        "/plan?query=same",
        "/audit",
        "/documents/999",
        f"/register?text={quote(SAME)}",
        "/login",
    ]
    script = AXE.read_text()
    for path in paths:
        await page.goto(url + path)
        if path.startswith("/register"):
            said = page.locator("#trial-said")
            await expect(said).to_contain_text("Matched")
        await page.evaluate(
            "document.querySelectorAll('details').forEach((each) => each.open = true)"
        )
        await page.evaluate(script)
        found = await page.evaluate("axe.run({resultTypes: ['violations']})")
        shown = [
            (each["id"], node["html"][:200])
            for each in found["violations"]
            for node in each["nodes"]
        ]
        assert not shown, path
        assert len(found["passes"]) > 10
