"""The pages of what was: a search in documents, what became of one, matches, what failed, feeds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from lxml import html
from support.api_house import House, open_house
from support.api_room import match
from support.page_room import HOSTILE
from support.subscribers import Broker, receiving, until

from broker.api.admission.browsers import FORM_TOKEN
from broker.api.feeds import FEED_ADMINISTRATION
from broker.documents.delays import delays
from broker.documents.document import DocumentLine
from broker.documents.ingest import Ingest
from broker.documents.search import search
from broker.documents.spool import Spool
from broker.matching.match import MatchNode
from broker.matching.stepresult import StepResult
from joins import UNBOUNDED

ITEMS = (
    '<item id="x1"><title>Flood &amp; fire</title><by>Ann</by></item>',
    "<item><title>Storm</title><by>Flood</by></item>",
    f"<item><title><![CDATA[{HOSTILE}]]></title></item>",
)
NEWS = "/v1/streams/news/documents"
ZOE = "<item><by>Zoë</by></item>"


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path) as house:
        headers = {"Authorization": f"Bearer {house.secrets['admin']}"}
        for at, item in enumerate(ITEMS):
            url = f"/v1/streams/{'wire' if at == 1 else 'news'}/documents?key=k{at}"
            await house.client.post(url, data=item.encode(), headers=headers)
        async with house.client.post(
            "/login", data={"token": house.secrets["admin"]}, allow_redirects=False
        ) as answer:
            assert answer.status == 303
        yield house


async def page(house: House, path: str, status: int = 200) -> html.HtmlElement:
    async with house.client.get(path) as answer:
        text = await answer.text()
        assert answer.status == status, text
        assert HOSTILE not in text
        return html.fromstring(text)


def said(tree: html.HtmlElement) -> str:
    return " ".join(tree.xpath("//main")[0].text_content().split())


async def send(house: House, path: str, **fields: str) -> str:
    tree = await page(house, "/")
    (token,) = tree.xpath("//meta[@name='xscl-form']/@content")
    data = {FORM_TOKEN: token, **fields}
    async with house.client.post(path, data=data, allow_redirects=False) as answer:
        assert answer.status == 303, await answer.text()
        return answer.headers["Location"]


async def test_documents_are_found_by_text_element_and_stream(house: House) -> None:
    async def found(query: str) -> list[str]:
        tree = await page(house, f"/documents?{query}")
        return tree.xpath("//tbody//th/a/@href")

    assert await found("") == ["/documents/3", "/documents/2", "/documents/1"]
    assert await found("find=fLOOD") == ["/documents/2", "/documents/1"]
    assert await found("find=flood&in=title") == ["/documents/1"]
    assert await found("find=x1&in=id") == ["/documents/1"]
    assert await found("find=x1&in=item/@id") == await found("in=/item/@id&find=X1")
    assert await found("find=x1&in=item/@id") == ["/documents/1"]
    assert await found("find=flood&in=item/title") == ["/documents/1"]
    assert await found("find=flood&in=/title") == []
    assert await found("find=flood+%26+fire") == ["/documents/1"]
    assert await found("stream=wire") == ["/documents/2"]
    assert await found("before=2") == ["/documents/1"]
    assert await found("find=nothing") == []
    headers = {"Authorization": f"Bearer {house.secrets['admin']}"}
    async with house.client.post(NEWS, data=ZOE.encode(), headers=headers) as answer:
        assert answer.status == 200
    assert await found("find=ZOË") == await found("find=zoë&in=by") == ["/documents/4"]


async def test_lateness_is_told_by_feed_the_latest_first(house: House) -> None:
    minute_us = 60_000_000
    start_us = house.room.spool.watermark_us

    def line(key: str, time_us: int, arrival_us: int) -> DocumentLine:
        return DocumentLine("late", b"<item/>", start_us + time_us, start_us + arrival_us, key)

    slow = [line(f"https://slow.example/f {n}", n, n * minute_us) for n in range(1, 101)]
    quick = [line(f"https://quick.example/f {n}", n * minute_us, n * minute_us) for n in (1, 2, 3)]
    plain = [line("a b", 3 * minute_us, 5 * minute_us), line("http://no", minute_us, 2 * minute_us)]
    Ingest(house.room.spool, dedup_horizon_us=None).append(
        [*quick, *slow, *plain], registry_version=1
    )
    tree = await page(house, "/lateness")
    rows = [
        [" ".join(cell.text_content().split()) for cell in row.xpath("th|td")]
        for row in tree.xpath("//tbody/tr")
        if row.xpath("string(td[last()])") == "late"
    ]
    assert [row[0] for row in rows] == [
        "https://slow.example/f",
        "no feed",
        "https://quick.example/f",
    ]
    slow_row, plain_row, quick_row = rows
    hours = ["49 minutes 59 seconds", "1 hour 34 minutes", "1 hour 39 minutes"]
    assert slow_row[1:] == [*hours, "2 minutes 59 seconds", "0", "100", "late"]
    assert plain_row[1:5] == ["1 minute", "2 minutes", "2 minutes", "2 minutes"]
    assert quick_row[1:] == ["less than a second"] * 3 + ["nothing", "0", "3", "late"]
    found, documents = delays(house.room.backend.spool, 90 * 1_000_000)
    assert documents == sum(each.documents for each in found) == 108
    assert {each.feed or each.stream: each.beyond for each in found} == {
        "news": 0,
        "wire": 0,
        "late": 1,
        "https://slow.example/f": 100,
        "https://quick.example/f": 0,
    }


async def test_a_search_goes_on_where_its_time_ended(house: House) -> None:
    spool = Spool(house.room.backend.spool.directory)
    seen, before = [], UNBOUNDED
    ticks = iter(range(1_000))
    while before is not None:
        found = search(spool, before=before, seconds=0.5, now_s=lambda: float(next(ticks)))
        seen += [each.docid for each in found.documents]
        before = found.before
    assert seen == [3, 2, 1]
    assert [each.docid for each in search(spool, limit=2).documents] == [3, 2]
    assert search(spool, limit=2).before == 2


async def test_a_documents_page_says_what_became_of_it(house: House) -> None:
    made = replace(match(1), id="made")
    await house.room.commit(made)
    shown = said(await page(house, "/documents/1"))
    assert "Flood & fire" in shown
    assert "matched same" in shown
    assert "evaluated and joined now" in shown
    assert "waits" not in shown
    assert "waits to be evaluated" in said(await page(house, "/documents/3"))
    assert "no document 99 is kept" in said(await page(house, "/documents/99", 404))


async def test_a_document_in_another_encoding_is_shown_as_it_reads(house: House) -> None:
    headers = {"Authorization": f"Bearer {house.secrets['admin']}"}
    item = f"<?xml version='1.0' encoding='iso-8859-1'?>{ZOE}".encode("iso-8859-1")
    async with house.client.post(NEWS, data=item, headers=headers) as answer:
        assert answer.status == 200
    tree = await page(house, f"/documents/{house.room.spool.last_docid}")
    (text,) = tree.xpath("//main//pre")
    assert "<by>Zoë</by>" in text.text_content()


async def test_a_run_is_a_list_on_the_page_of_a_match(house: House) -> None:
    one = match(1)
    first, *_ = one.documents
    run = [replace(first, docid=1 + n % 3, key=f"r{n}", block=1) for n in range(30)]
    documents = (replace(first, block=0), *run)
    roots = (0,) * len(documents)
    await house.room.commit(replace(one, id="run", documents=documents, roots=roots, witnesses=()))
    seq = house.room.outbox.matches.last_seq()
    tree = await page(house, f"/matches/{seq}")
    assert len(tree.xpath("//main//h3")) == 1
    assert len(tree.xpath("//main//ol[@class='parts']/li")) == 30


async def test_a_match_has_its_documents_side_by_side_with_what_is_bound(house: House) -> None:
    nodes = ({"a/title": MatchNode(0, 1, "Flood & fire"), "b/by": MatchNode(1, 2, "Flood")},)
    await house.room.commit(replace(match(1), id="marked", witnesses=nodes))
    seq = house.room.outbox.matches.last_seq()
    tree = await page(house, f"/matches/{seq}")
    marked = tree.xpath("//div[@class='bound']")
    assert [" ".join(each.text_content().split()) for each in marked] == [
        *("titlea/title Flood & fire", "byb/by Flood"),
    ]
    assert "1 second apart; the band is FOLLOWED BY 2 days" in said(tree)
    assert "None is kept of it" in said(tree)
    assert "no match 999" in said(await page(house, "/matches/999", 404))


async def test_a_delivery_is_sent_again_from_its_match(house: House) -> None:
    room = house.room
    broker = Broker(room.spool.directory, room.outbox, room.registry)
    async with receiving() as receiver, broker.delivering():
        broker.subscribe(receiver.url, query="same", point=room.outbox.through())
        last = room.outbox.through()
        await room.commit(replace(match(last + 1), id="sent"))
        (first,) = await receiver.wait_for(1)
        await until(lambda: any(each.kind == "delivered" for each in broker.events))
        seq = room.outbox.matches.last_seq()
        fate = said(await page(house, f"/documents/{last + 1}"))
        assert f"match {seq} delivered to sub_" in fate
        tree = await page(house, f"/matches/{seq}")
        (form,) = tree.xpath("//form[contains(@action, '/deliveries/')]")
        fields = {each.name: each.value for each in form.xpath(".//input")}
        assert await send(house, form.action, **fields) == f"/matches/{seq}"
        _, again = await receiver.wait_for(2)
        assert (again.id, again.body) == (first.id, first.body)


async def test_why_not_is_told_of_two_documents_of_a_search(house: House) -> None:
    shown = said(await page(house, "/why-not?query=same&documents=1,+3,"))
    assert "fails same does not match" in shown
    assert "a/title = b/title" in shown
    await page(house, "/why-not?query=same&documents=x", 400)
    await page(house, "/why-not?query=none&documents=1,2", 404)


async def test_a_dead_letter_is_read_and_given_again(house: House) -> None:
    step = StepResult(dead_letters=[(1, HOSTILE)])
    through = house.room.outbox.through()
    house.room.outbox.commit(after=through, through=through + 1, step=step)
    assert HOSTILE in said(await page(house, "/dead-letters"))
    last = house.room.spool.last_docid
    assert await send(house, "/dead-letters/1/retry") == "/dead-letters"
    assert house.room.spool.last_docid == last + 1
    assert "could not be evaluated" in said(await page(house, "/documents/1"))


async def test_feeds_are_added_paused_removed_and_carried_as_opml(house: House) -> None:
    outline = '<outline text="F" type="rss" xmlUrl="https://example.org/a?b=c/d"/>'
    opml = f'<opml version="2.0"><body><outline text="news">{outline}</outline></body></opml>'
    assert await send(house, "/feeds.opml", opml=opml) == "/feeds"
    tree = await page(house, "/feeds")
    (pause,) = tree.xpath("//form[contains(@action, '/pause')]/@action")
    assert await send(house, pause) == "/feeds"
    store = house.client.app[FEED_ADMINISTRATION].store
    assert "paused" in said(await page(house, "/feeds"))
    async with house.client.get("/feeds.opml") as answer:
        assert "https://example.org/a?b=c/d" in await answer.text()
        assert "attachment" in answer.headers["Content-Disposition"]
    assert await send(house, pause.replace("/pause", "/resume")) == "/feeds"
    assert await send(house, pause.replace("/pause", "/remove")) == "/feeds"
    assert not store.all()


async def test_a_match_shows_what_its_query_has_built(house: House) -> None:
    titled = '<burst link="https://a.example/1" feeds="5">Harbour shut</burst>'
    for number, output in ((5, "<run><n>17</n><n>18</n></run>"), (7, titled)):
        await house.room.commit(replace(match(number), output=output))
    text = said(await page(house, "/queries/same"))
    assert "n 17, n 18" in text
    assert "Harbour shut link https://a.example/1, feeds 5" in text
    assert "(no title) n 17" not in text
