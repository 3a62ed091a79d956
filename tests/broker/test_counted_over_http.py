"""Statements that count chains, over HTTP: with parameters, paused, removed, asked about."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from support.small_broker import small_broker

from xscl.client import AsyncClient, Match, RefusedError

LISTED = "S//a FOLLOWED BY S//b+ FOLLOWED BY S//c WITHIN 1 h SAME (//k = $feed) MATCH ANY"
COUNTED = f"SELECT <n>{{count()}}</n> FROM {LISTED} WINDOW 0 s HAVING count() >= $least GRACE 0 s"


async def _published(client: AsyncClient, hour: int, kinds: str) -> None:
    """Publish documents of two feeds, a minute apart, and one that settles their times."""
    for minute, kind in enumerate(kinds):
        for feed in "xy" if kind != "c" else "x":
            time = f"2026-03-02T{hour:02}:{minute:02}:00Z"
            await client.publish("S", f"<{kind}><k>{feed}</k></{kind}>", time=time)
    last = await client.publish("S", "<z/>", time=f"2026-03-02T{hour:02}:59:00Z")
    await client.wait_for(last.docid)


async def _matches(client: AsyncClient, subscription: str) -> list[Match]:
    return [match async for match in client.matches(subscription, follow=False)]


def _counts(matches: Sequence[Match]) -> list[object]:
    return [match.output for match in matches]


async def test_counted_statements_come_and_go_over_http(tmp_path: Path) -> None:
    async with small_broker(tmp_path) as url, AsyncClient(url) as client:
        await client.register("chain", COUNTED)
        of_x = await client.subscribe("chain", parameters={"feed": "x", "least": 1})
        many = await client.subscribe("chain", parameters={"feed": "x", "least": 4})
        of_y = await client.subscribe("chain", parameters={"feed": "y", "least": 1})
        await _published(client, 8, "abbc")
        found = [await _matches(client, each.id) for each in (of_x, many, of_y)]
        assert list(map(_counts, found)) == [["<n>3</n>"], [], []]
        await client.pause("chain")
        await _published(client, 10, "abc")
        await client.resume("chain")
        await _published(client, 12, "abbbc")
        assert _counts(await _matches(client, of_x.id)) == ["<n>3</n>", "<n>7</n>"]
        assert _counts(await _matches(client, many.id)) == ["<n>7</n>"]
        late = await client.subscribe("chain", parameters={"feed": "x", "least": 2}, since="all")
        await _published(client, 14, "abbc")
        assert _counts(await _matches(client, late.id))[-1] == "<n>3</n>"
        await client.remove("chain")
        await _published(client, 16, "abbc")
        assert len(await _matches(client, of_x.id)) == 3
        with pytest.raises(RefusedError):
            await client.query("chain")
        # The same text again begins with what comes from now on.
        await client.register("chain", COUNTED)
        again = await client.subscribe("chain", parameters={"feed": "x", "least": 1})
        await _published(client, 18, "abbc")
        assert _counts(await _matches(client, again.id)) == ["<n>3</n>"]


async def test_what_is_counted_is_estimated_and_asked_why_not_over_http(tmp_path: Path) -> None:
    async with small_broker(tmp_path) as url, AsyncClient(url) as client:
        await client.register("chain", COUNTED)
        await _published(client, 8, "abbc")
        given = {"feed": "x", "least": 1}
        # Documents 1, 3, 5 and 7 are those of x.
        whole = await client.why_not("chain", [1, 3, 5, 7], parameters=given)
        assert whole["holds"]
        other = await client.why_not("chain", [1, 4, 7], parameters=given)
        assert not other["holds"]
        assert "SAME" in str(other["rendered"])
        text = COUNTED.replace(" = $feed", "").replace("$least", "2")
        estimate = await client.estimate("new", text)
        assert "an answer waits for no late documents" in str(estimate["rendered"])
        rehearsed = await client.dry_run("new", text)
        assert "<n>3</n>" in str(dict(rehearsed))
