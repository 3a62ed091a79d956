"""The Chromium of the machine, and pages in it that say what goes wrong."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import Browser, Page, async_playwright, expect

if TYPE_CHECKING:
    from support.api_house import House

__all__ = ["entered", "launched", "log_in", "open_page"]

expect.set_options(timeout=30_000)  # a busy machine takes its time

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


@contextlib.asynccontextmanager
async def launched() -> AsyncIterator[Browser]:
    if not CHROMIUM:
        pytest.skip("no browser for the page: apt install chromium, or put it on the PATH")
    async with async_playwright() as playwright:
        # It would emulate a graphics processor, at a tenth of the processor time of these tests.
        without = ("--no-sandbox", "--disable-gpu", "--disable-software-rasterizer")
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=without)
        yield browser
        await browser.close()


async def open_page(browser: Browser, **options: object) -> tuple[Page, list[str]]:
    """Return a page and what goes wrong in it."""
    context = await browser.new_context(**options)
    page = await context.new_page()
    wrong: list[str] = []
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    return page, wrong


async def log_in(page: Page, url: str, secret: str) -> None:
    """Log in as a person does; the page is the first one then."""
    await page.goto(f"{url}/login")
    await page.get_by_label("Access token").fill(secret)
    await page.keyboard.press("Enter")
    await page.wait_for_url(f"{url}/")


async def entered(
    house: House, browser: Browser, token: str = "admin", **options: object
) -> tuple[Page, list[str]]:
    """Return the first page, with a token or that of a scope, and what goes wrong from there on."""
    page, wrong = await open_page(browser, **options)
    await log_in(page, house.url, house.secrets.get(token, token))
    wrong.clear()
    return page, wrong
