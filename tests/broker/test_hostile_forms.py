"""Forms and texts that no page of ours has sent are refused, and fail nothing."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import FormData
from lxml import html
from support.api_house import House

from broker.api.admission.browsers import FORM_HEADER, FORM_TOKEN
from broker.api.feeds import FEED_ADMINISTRATION

URLENCODED = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data; boundary=x"
PART = 'Content-Disposition: form-data; name="token"'
NO_FORMS = [
    (URLENCODED, b"token=\xff"),
    (URLENCODED, b"token=%FF"),
    (URLENCODED, b"&".join(b"a=%d" % each for each in range(1_001))),
    ("multipart/form-data", b"token=x"),
    (MULTIPART, b"token=x"),
    (MULTIPART, f"--x\r\n{PART}\r\n\r\nx".encode()),
    (MULTIPART, b"--x\r\n\r\nx\r\n--x--\r\n"),
    (MULTIPART, f"--x\r\n{PART}\r\n\r\n".encode() + b"\xff\r\n--x--\r\n"),
    (MULTIPART, f"--x\r\n{PART}\r\n{MULTIPART}\r\n\r\nx\r\n--x--\r\n".encode() + b"\xff"),
]
SLOW_OR_NO_TEXT = ["punycode", "idna", "utf-7", "unicode_escape", "undefined", "zlib", "none"]


@pytest.mark.parametrize(("kind", "body"), NO_FORMS)
async def test_what_is_no_form_is_refused(house: House, kind: str, body: bytes) -> None:
    headers = {"Content-Type": kind}
    async with house.client.post("/login", data=body, headers=headers) as answer:
        assert answer.status in (400, 401)
    await house.log_in("admin")
    before = house.state()
    async with house.client.post("/queries/same/pause", data=body, headers=headers) as answer:
        assert answer.status in (400, 403)
    assert house.state() == before


async def test_the_encoding_that_a_form_names_is_not_asked(house: House) -> None:
    token = await house.log_in("admin")
    for charset in SLOW_OR_NO_TEXT:
        headers = {"Content-Type": f"{URLENCODED}; charset={charset}"}
        async with house.client.post("/login", data=b"token=a-b", headers=headers) as answer:
            assert answer.status == 401
        body = f"--x\r\n{PART.replace('token', FORM_TOKEN)}\r\nContent-Type: text/plain;"
        body += f" charset={charset}\r\n\r\n{token}\r\n--x--\r\n"
        headers = {"Content-Type": MULTIPART}
        async with house.client.post(
            "/queries/same/pause", data=body.encode(), headers=headers, allow_redirects=False
        ) as answer:
            assert answer.status == 303


async def test_who_logs_in_sends_no_more_than_a_token(house: House) -> None:
    body = b"token=" + b"%41" * 3_333
    async with house.client.post(
        "/login", data=body, headers={"Content-Type": URLENCODED}
    ) as answer:
        assert answer.status == 413


async def test_a_text_comes_in_an_encoding_that_is_one(house: House) -> None:
    admin = f"Bearer {house.secrets['admin']}"
    text = b"news//item[title = '\\ud800+2AA-']->a"
    for charset in SLOW_OR_NO_TEXT:
        headers = {"Authorization": admin, "Content-Type": f"text/plain; charset={charset}"}
        for method, path in (("PUT", "/v1/queries/odd"), ("POST", "/v1/language/check")):
            async with house.client.request(method, path, data=text, headers=headers) as answer:
                assert answer.status == 400, charset
    headers = {"Authorization": admin}
    for written, charset in (("latin-1", "ISO-8859-1"), ("utf-16", "utf-16"), ("utf-8", "UTF-8")):
        headers["Content-Type"] = f"text/plain; charset={charset}"
        body = "news//item[title = 'é']->a".encode(written)
        async with house.client.put("/v1/queries/odd", data=body, headers=headers) as answer:
            assert answer.status == 200
        registry = house.room.registry
        assert registry.source(registry.query("odd")) == body.decode(written)


async def test_a_header_that_is_no_text_is_no_token(house: House) -> None:
    await house.log_in("admin")
    cookie = "; ".join(f"{each.key}={each.value}" for each in house.client.session.cookie_jar)
    reader, writer = await asyncio.open_connection(house.client.host, house.client.port)
    for wrong in (b"a.\xff", b"\xff.a"):
        head = f"POST /v1/queries/same/pause HTTP/1.1\r\nHost: x\r\nCookie: {cookie}\r\n"
        head += f"Content-Length: 0\r\n{FORM_HEADER}: "
        writer.write(head.encode() + wrong + b"\r\n\r\n")
        answer = await reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 403 ")
        (length,) = (
            int(line.partition(b":")[2])
            for line in answer.lower().split(b"\r\n")
            if line.startswith(b"content-length:")
        )
        await reader.readexactly(length)
    writer.close()
    await writer.wait_closed()


async def test_which_queries_there_are_is_not_told_by_their_parameters(house: House) -> None:
    secret = house.tokens.create("ann", ["subscribe:same"])[1]
    token = await house.log_in(secret)
    said = []
    for query in ("other", "othex"):
        form = {FORM_TOKEN: token, "query": query, "destination": "pull", "parameter.x": "1"}
        async with house.client.post("/subscribe", data=form) as answer:
            said.append((answer.status, (await answer.text()).replace(query, "")))
    (status, one), (_, another) = said
    assert status == 403
    (one, another) = (
        " ".join(html.fromstring(each).xpath("//main//text()")) for each in (one, another)
    )
    assert one == another


@pytest.mark.parametrize("encoding", ["utf-8", "iso-8859-1", "utf-16"])
async def test_a_file_of_feeds_is_taken_as_it_is(house: House, encoding: str) -> None:
    token = await house.log_in("admin")
    feed = '<outline text="Café" type="rss" xmlUrl="https://example.org/a"/>'
    opml = f'<?xml version="1.0" encoding="{encoding}"?>'
    opml += f'<opml version="2.0"><body><outline text="news">{feed}</outline></body></opml>'
    form = FormData()
    form.add_field(FORM_TOKEN, token)
    form.add_field("opml", opml.encode(encoding), filename="feeds.opml", content_type="text/x-opml")
    async with house.client.post("/feeds.opml", data=form, allow_redirects=False) as answer:
        assert (answer.status, answer.headers.get("Location")) == (303, "/feeds")
    (kept,) = house.client.app[FEED_ADMINISTRATION].store.all()
    assert kept.feed.url == "https://example.org/a"


async def test_what_is_asked_for_again_has_no_field_to_fill_in(house: House) -> None:
    await house.log_in("admin")
    for path in ("/", "/queries/same", f"/subscriptions/{house.mine}"):
        async with house.client.get(path) as answer:
            tree = html.fromstring(await answer.text())
        fields = "//*[@data-live]//*[self::input[not(@type='hidden')] or self::select]"
        assert tree.xpath("//*[@data-live]")
        assert not tree.xpath(fields), path
