"""The pages of the broker: who sees what, and that hostile text stays text."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp.test_utils import TestClient
from lxml import html
from support.api_house import House
from support.api_room import Room
from support.page_room import HOSTILE, hostile_match, open_pages

from broker.api.admission.sessions import SESSION_S, Sessions
from broker.api.audit import AUDIT
from broker.api.feeds import FEED_ADMINISTRATION
from broker.matching.match import MatchNode
from broker.matching.stepresult import StepResult
from broker.registry.audit import AuditOutcome
from broker.registry.queries import QueryState
from broker.registry.subscription import Destination
from broker.registry.tokens import TokenScope
from broker.tables.store import RowChange
from broker.web import coloured
from feeds import feed_at


@pytest.fixture
async def open_client(tmp_path: Path) -> AsyncIterator[tuple[TestClient, Room]]:
    async with open_pages(tmp_path) as found:
        yield found


async def text_of(client: TestClient, path: str, status: int = 200) -> str:
    async with client.get(path) as answer:
        assert (answer.status, answer.content_type) == (status, "text/html"), await answer.text()
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["Cache-Control"] == "no-store"
        return await answer.text()


async def log_in(house: House, token: str) -> int:
    form = {"token": house.secrets.get(token, token)}
    async with house.client.post("/login", data=form, allow_redirects=False) as answer:
        return answer.status


async def test_before_the_first_token_the_page_is_open_on_this_machine(
    open_client: tuple[TestClient, Room],
) -> None:
    client, room = open_client
    assert "xscl register" in await text_of(client, "/")
    await client.put("/v1/queries/same", data="news//item->a")
    room.registry.set_state("same", QueryState.PAUSED, effective=0, reason="it found too much")
    page = await text_of(client, "/")
    assert "it found too much" in page
    assert "Not ready" not in page
    room.unready = "the broker is starting"
    assert "the broker is starting" in await text_of(client, "/")


async def test_admins_see_who_changed_what(house: House) -> None:
    trail = house.client.app[AUDIT]
    for number in range(120):
        kept = trail.begin("ops", "put_query", f"q{number}", address="127.0.0.1")
        outcome = AuditOutcome.REFUSED if number == 119 else AuditOutcome.DONE
        trail.complete(kept, outcome, f"q{number}", {"since": HOSTILE})
    trail.begin("crawler", "delete_query", "gone")
    assert await log_in(house, "admin") == 303
    newest = html.fromstring(await text_of(house.client, "/audit"))
    rows = [
        [" ".join(cell.text_content().split()) for cell in row]
        for row in newest.xpath("//tbody/tr")
    ]
    assert len(rows) == 100
    assert rows[0][1:] == ["crawler", "delete_query", "gone", "not known"]
    assert rows[1][1:3] == ["ops 127.0.0.1", "put_query"]
    assert rows[1][3] == f"q119since: {HOSTILE}"
    assert rows[1][4] == "refused"
    [older] = newest.xpath("//a[text()='Older']/@href")
    assert len(html.fromstring(await text_of(house.client, older)).xpath("//tbody/tr")) == 21
    found = html.fromstring(await text_of(house.client, "/audit?by=ops&subject=q7"))
    assert len(found.xpath("//tbody/tr")) == 1
    assert "Nobody has changed that" in await text_of(house.client, "/audit?by=nobody")


async def test_tables_and_their_rows_are_shown_and_searched(
    open_client: tuple[TestClient, Room],
) -> None:
    client, room = open_client
    assert "CREATE TABLE" in await text_of(client, "/tables")
    text = "CREATE TABLE author (name KEY, posts DEFAULT 0, muted DEFAULT 'no')"
    assert (await client.put("/v1/queries/author", data=text)).status == 200
    assert "has the defaults" in await text_of(client, "/tables/author")
    rows = [RowChange("author", f"a{n:04}", {"posts": float(n)}, n) for n in range(1_250)]
    rows += [RowChange("author", HOSTILE, {"posts": 1.0, "muted": HOSTILE}, 7)]
    room.outbox.commit(after=0, through=1, step=StepResult(rows=rows))
    listed = html.fromstring(await text_of(client, "/tables"))
    [row] = listed.xpath("//tbody/tr")
    assert [" ".join(cell.text_content().split()) for cell in row] == [
        *("author", "name key, posts = 0.0, muted = no", "1,251", "nobody")
    ]
    page = html.fromstring(await text_of(client, "/tables/author"))
    assert page.xpath("//tbody/tr")[0].text_content().startswith(HOSTILE)
    assert len(page.xpath("//tbody/tr")) == 100
    [further] = page.xpath("//a[text()='Further rows']/@href")
    page = html.fromstring(await text_of(client, f"/tables/author{further}"))
    assert page.xpath("//tbody/tr/th/bdi/text()")[0] == "a0099"
    page = html.fromstring(await text_of(client, "/tables/author?find=A124"))
    assert page.xpath("//tbody/tr/th/bdi/text()") == [f"a{n}" for n in range(1_240, 1_250)]
    assert "No row has that" in await text_of(client, "/tables/author?find=nobody")
    assert "no table" in await text_of(client, "/tables/none", 404)


async def test_queries_are_listed_and_found_with_what_their_comments_say(
    open_client: tuple[TestClient, Room],
) -> None:
    client, _ = open_client
    text = f"-- Stories {HOSTILE}\n-- owner: ann@example.org\n-- tags: wire\nnews//item->a"
    assert (await client.put("/v1/queries/stories", data=text)).status == 200
    await client.put("/v1/queries/plain", data="news//item->a")
    found = html.fromstring(await text_of(client, "/?find=owner:+ann"))
    [row] = found.xpath("//section[@id='queries']//tbody/tr")
    said = [line.text_content() for line in row.xpath("./th/span")]
    assert said == [f"Stories {HOSTILE}", "owner: ann@example.org", "tags: wire"]


async def test_who_subscribes_sees_no_changes(house: House) -> None:
    assert await log_in(house, "subscribe") == 303
    assert "does not have the scope" in await text_of(house.client, "/audit", 403)


async def test_a_page_of_elsewhere_and_another_host_name_are_refused_with_a_page(
    open_client: tuple[TestClient, Room],
) -> None:
    client, _ = open_client
    for headers in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}):
        async with client.get("/", headers=headers) as answer:
            assert (answer.status, answer.content_type) == (403, "text/html")


async def test_without_a_session_the_page_asks_for_a_token(house: House) -> None:
    for path in ("/", "/queries/same", f"/subscriptions/{house.mine}"):
        page = await text_of(house.client, path, 401)
        assert 'name="token"' in page
        assert "same" not in page.partition("<main")[2]


async def test_an_admin_sees_everything(house: House) -> None:
    assert await log_in(house, "admin") == 303
    page = await text_of(house.client, "/")
    assert {"same", "other"} <= set(re.findall(r'href="/queries/(\w+)"', page))
    page = await text_of(house.client, "/queries/other")
    assert house.theirs in page
    await text_of(house.client, f"/subscriptions/{house.theirs}")
    assert "no query" in await text_of(house.client, "/queries/none", 404)


async def test_a_subscriber_sees_its_own_and_nothing_else(house: House) -> None:
    await house.room.commit(hostile_match(7, "other"))
    assert await log_in(house, "subscribe") == 303
    page = await text_of(house.client, "/")
    assert house.mine in page
    assert house.theirs not in page
    assert "other" not in page
    await text_of(house.client, f"/subscriptions/{house.mine}")
    await text_of(house.client, f"/subscriptions/{house.theirs}", 404)
    await text_of(house.client, "/queries/same", 403)


@pytest.mark.parametrize(("token", "status"), [("publish", 403), ("nonsense", 401), ("", 401)])
async def test_a_token_that_sees_nothing_is_not_let_in(
    house: House, token: str, status: int
) -> None:
    assert await log_in(house, token) == status
    await text_of(house.client, "/", 401)


async def test_the_cookie_is_no_token_and_opens_no_api(house: House) -> None:
    form = {"token": house.secrets["admin"]}
    async with house.client.post("/login", data=form, allow_redirects=False) as answer:
        (cookie,) = answer.headers.getall("Set-Cookie")
    assert {"HttpOnly", "SameSite=Strict"} <= {each.strip() for each in cookie.split(";")}
    session = cookie.partition("=")[2].partition(";")[0]
    assert session not in house.secrets["admin"]
    assert (await house.client.get("/v1/queries")).status == 401
    headers = {"Authorization": f"Bearer {session}"}
    assert (await house.client.get("/v1/queries", headers=headers)).status == 401


async def test_a_session_ends_with_its_token_and_by_logging_out(house: House) -> None:
    assert await log_in(house, "subscribe") == 303
    house.tokens.revoke("subscribe")
    await text_of(house.client, "/", 401)
    assert await log_in(house, "admin") == 303
    async with house.client.post("/logout", allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"]) == (303, "/login")
    await text_of(house.client, "/", 401)


async def test_a_form_of_another_site_begins_no_session(house: House) -> None:
    headers = {"Sec-Fetch-Site": "cross-site"}
    form = {"token": house.secrets["admin"]}
    async with house.client.post("/login", data=form, headers=headers) as answer:
        assert answer.status == 403
        assert "Set-Cookie" not in answer.headers


def test_sessions_end_by_themselves_and_the_oldest_go_first() -> None:
    now_s = 0.0
    sessions = Sessions(now_s=lambda: now_s)
    first = sessions.begin("secret")
    assert sessions.secret(first) == "secret"
    for _ in range(1_000):
        last = sessions.begin("other")
    assert sessions.secret(first) is None
    now_s = SESSION_S
    assert sessions.secret(last) is None


async def test_a_feed_that_was_never_checked_is_next_and_a_paused_one_is_not(house: House) -> None:
    await log_in(house, "admin")
    admin = {"Authorization": f"Bearer {house.secrets['admin']}"}
    body = {"url": "https://a.example/", "stream": "news", "check": False}
    await house.client.post("/v1/feeds", json=body, headers=admin)
    assert "<td>now</td>" in await text_of(house.client, "/")
    await house.client.post("/v1/feeds/https%3A%2F%2Fa.example%2F/pause", headers=admin)
    page = await text_of(house.client, "/")
    assert "https://a.example/" in page
    assert "<td>now</td>" not in page


async def test_what_feeds_and_publishers_write_stays_text(
    open_client: tuple[TestClient, Room],
) -> None:
    client, room = open_client
    await client.put("/v1/queries/same", data="news//item->a")
    await room.commit(hostile_match(1))
    letters = [(9, HOSTILE)]
    room.outbox.commit(
        after=room.outbox.through(), through=9, step=StepResult(dead_letters=letters)
    )
    room.registry.set_state("same", QueryState.PAUSED, effective=0, reason=HOSTILE)
    for path in ("/", "/queries/same"):
        tree = html.fromstring(await text_of(client, path))
        assert [each.get("src") for each in tree.iter("script")] == ["/assets/live.js"]
        assert {each.get("src") for each in tree.iter("img")} == {"/assets/icon.svg"}
        assert not [each for each in tree.iter("a") if "javascript" in each.get("href")]
        assert HOSTILE in tree.text_content()


TURNED = "\u202egnp.exe"


async def test_what_others_write_turns_nothing_around_it(house: House) -> None:
    made = hostile_match(1)
    item = f"<item><title>{TURNED}</title><author>{TURNED}</author><source>{TURNED}</source></item>"
    linked = item.replace("</item>", "<link>https://a.example/</link></item>")
    witness = {"a/title": MatchNode(0, 1, TURNED), "b/title": MatchNode(1, 1, TURNED)}
    await house.room.commit(
        replace(made, output=f"<match>{item}{linked}</match>", witnesses=(witness,))
    )
    assert await log_in(house, "admin") == 303
    for path in ("/", "/queries/same"):
        page = await text_of(house.client, path)
        outside = re.sub(r"<pre.*?</pre>|<bdi>[^<]*</bdi>", "", page, flags=re.DOTALL)
        assert page.count(TURNED) > 5
        assert TURNED not in outside


async def test_pages_show_parameters_and_count_what_they_leave_out(house: House) -> None:
    house.room.registry.register("who", "news//item[author = $who]", version="1", point=0)
    for number in range(103):
        made = house.room.registry.subscribe(
            "who", Destination.parse("pull"), point=0, parameters={"who": f"Ann {number}"}
        )
    assert await log_in(house, "admin") == 303
    page = await text_of(house.client, "/queries/who")
    assert len(re.findall("who = Ann", page)) == 100
    assert "And 3 more: <code>xscl subscriptions who</code>" in page
    assert "who = Ann 102" in await text_of(house.client, f"/subscriptions/{made.id}")


async def test_a_subscriber_sees_with_what_it_has_subscribed(house: House) -> None:
    house.room.registry.register("who", "news//item[author = $who]", version="1", point=0)
    made = house.room.registry.subscribe(
        "who", Destination.parse("pull"), point=0, parameters={"who": "Ann"}
    )
    _, secret = house.tokens.create("ann", [TokenScope.SUBSCRIBE], subscriptions=[made.id])
    assert await log_in(house, secret) == 303
    assert "who = Ann" in await text_of(house.client, "/")


async def test_the_overview_shows_what_has_the_wanted_text(house: House) -> None:
    store = house.client.app[FEED_ADMINISTRATION].store
    for name in ("alpha", "beta"):
        store.add(feed_at(f"https://{name}.example/feed.xml", "news"))
    assert await log_in(house, "admin") == 303

    async def rows(wanted: str) -> set[str]:
        answer = await house.client.get("/", params={"find": wanted})
        page = html.fromstring(await answer.text())
        assert page.xpath("string(//input[@id='find']/@value)") == wanted
        return {cell.text_content().strip() for cell in page.xpath("//tbody//th[@scope='row']")}

    everything = await rows("")
    assert {"same", "other", "https://alpha.example/feed.xml", "news"} <= everything
    assert await rows("ALPHA") == {"https://alpha.example/feed.xml"}
    assert {"other"} <= await rows("other") < everything
    assert await rows("nothing has this") == set()
    assert await rows(HOSTILE) == set()


async def test_nothing_stands_in_an_address_that_is_not_ours(house: House) -> None:
    for name in ("style.css", "live.js", "icon.svg"):
        assert (await house.client.get(f"/assets/{name}")).status == 200
    for name in ("pages.py", "..%2Fpages.py", "%2e%2e"):
        assert (await house.client.get(f"/assets/{name}")).status in (401, 404)


def test_large_outputs_are_cut_and_what_is_not_xml_is_shown_as_it_is() -> None:
    assert coloured._indented(b"<a><b/></a>") == "<a>\n  <b/>\n</a>\n"
    assert coloured._indented(b"<a>") == "<a>"
    assert coloured._indented(b"<a>" + b"x" * 50_000 + b"</a>").endswith("\n…")


async def test_many_feeds_are_folded_and_those_that_fail_come_first(house: House) -> None:
    for number in range(30):
        house.client.app[FEED_ADMINISTRATION].store.add(
            feed_at(f"https://example.org/{number}", "news")
        )
    assert await log_in(house, "admin") == 303
    tree = html.fromstring(await text_of(house.client, "/"))
    (rest,) = tree.xpath("//details[@id='feeds-rest']")
    assert len(rest.xpath(".//tbody/tr")) == 20
    assert rest.findtext("summary") == "20 more"


async def test_headings_labels_and_cells_are_named_for_who_cannot_see_them(
    open_client: tuple[TestClient, Room],
) -> None:
    client, _ = open_client
    await client.put("/v1/queries/same", data="news//item->a")
    for path in ("/", "/queries/same", "/login"):
        tree = html.fromstring(await text_of(client, path))
        assert tree.get("lang") == "en"
        assert len(tree.findall(".//h1")) == 1
        assert all(each.get("scope") for each in tree.iter("th"))
        assert all(each.get("alt") is not None for each in tree.iter("img"))
        labelled = {each.get("for") for each in tree.iter("label")}
        shown = (each for each in tree.iter("input") if each.get("type") != "hidden")
        assert all(each.get("id") in labelled for each in shown)
