from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.api_house import SAME, House
from support.verbs import xscl

from broker.api.access import RULES, AccessRule
from broker.api.audit import AUDIT, AUDITED_READS, UNAUDITED
from broker.api.description import description
from broker.registry.audit import ENTRIES_MAX, AuditOutcome, AuditTrail, local_change

FEED = "https://ann:hunter2@feeds.example/a.xml"


@pytest.fixture
def trail(tmp_path: Path) -> Iterator[AuditTrail]:
    with closing(AuditTrail(tmp_path / "audit.db", now_us=lambda: 7)) as trail:
        yield trail


async def ask(house: House, method: str, path: str, token: str = "admin", **body: Any) -> Any:
    headers = {"Authorization": f"Bearer {house.secrets.get(token, token)}"}
    async with house.client.request(method, path, headers=headers, **body) as answer:
        text = await answer.text()
        return answer.status, json.loads(text) if "json" in answer.content_type else text


async def noted(house: House) -> list[dict[str, Any]]:
    return list((await ask(house, "GET", "/v1/audit"))[1]["audit"])


async def test_a_change_is_in_the_trail_with_who_made_it(house: House) -> None:
    await ask(house, "PUT", "/v1/queries/mine", data=SAME.encode())
    (entry,) = await noted(house)
    assert (entry["by"], entry["action"], entry["subject"]) == ("admin", "put_query", "mine")
    assert (entry["outcome"], entry["address"]) == ("done", "127.0.0.1")
    assert entry["detail"]["outcome"] == "registered"


async def test_what_is_refused_says_so_and_what_is_not_let_in_is_no_change(house: House) -> None:
    assert (await ask(house, "PUT", "/v1/queries/mine", data=b"no query"))[0] == 422
    assert (await ask(house, "DELETE", "/v1/queries/nothing"))[0] == 404
    assert (await ask(house, "DELETE", "/v1/queries/same", "publish"))[0] == 403
    assert (await ask(house, "DELETE", "/v1/queries/same", "nonsense"))[0] == 401
    found = [(each["action"], each["subject"], each["outcome"]) for each in await noted(house)]
    assert found == [
        ("delete_query", "nothing", "refused"),
        ("put_query", "mine", "refused"),
    ]


async def test_what_a_request_makes_is_named(house: House) -> None:
    _, token = await ask(
        house, "POST", "/v1/tokens", json={"name": "crawler", "scopes": ["publish"]}
    )
    _, made = await ask(
        house, "POST", "/v1/subscriptions", json={"query": "same", "destination": "pull"}
    )
    await ask(house, "POST", "/v1/feeds", json={"url": FEED, "stream": "news", "check": False})
    feed, subscription, new = await noted(house)
    assert (new["subject"], new["detail"]["scopes"]) == ("crawler", "publish")
    assert (subscription["subject"], subscription["detail"]["query"]) == (made["id"], "same")
    assert (feed["subject"], feed["detail"]) == (
        "https://***@feeds.example/a.xml",
        {"stream": "news"},
    )
    kept = "".join(map(str, await noted(house)))
    assert token["token"] not in kept
    assert "hunter2" not in kept


async def test_the_links_of_mails_are_noted_once_they_do_something(house: House) -> None:
    link = house.pickup.unsubscribe_token(house.mine)
    assert (await ask(house, "POST", "/v1/unsubscribe/forged"))[0] == 404
    for _ in range(2):
        assert (await ask(house, "POST", f"/v1/unsubscribe/{link}"))[0] == 200
    (entry,) = await noted(house)
    assert (entry["by"], entry["subject"]) == ("link:unsubscribe", house.mine)
    assert link not in str(entry)


async def test_who_has_unsubscribed_is_not_told_that_matches_come(house: House) -> None:
    path = f"/v1/unsubscribe/{house.pickup.unsubscribe_token(house.mine)}"
    pages = []
    for method in ("GET", "POST", "GET"):
        async with house.client.request(method, path) as answer:
            pages.append(await answer.text())
    assert [page.count("gets the matches of") for page in pages] == [1, 0, 0]
    assert ["<form" in page for page in pages] == [True, False, False]
    assert "You had unsubscribed already" in pages[2]


async def test_a_page_of_the_trail_goes_on_with_the_next(house: House) -> None:
    for name in ("a", "b", "c"):
        await ask(house, "PUT", f"/v1/queries/{name}", data=SAME.encode())
    _, first = await ask(house, "GET", "/v1/audit?limit=2")
    _, rest = await ask(house, "GET", f"/v1/audit?limit=2&before={first['next']}")
    assert [each["subject"] for each in first["audit"] + rest["audit"]] == ["c", "b", "a"]
    assert rest["next"] is None
    _, found = await ask(house, "GET", "/v1/audit?subject=b&by=admin")
    assert [each["subject"] for each in found["audit"]] == ["b"]


async def test_every_resource_that_changes_something_is_noted(house: House) -> None:
    unnoted = []
    for method, pattern in house.routes():
        name = f"{method} {pattern}"
        is_change = method not in ("GET", "HEAD") or name in AUDITED_READS
        if not is_change or name in UNAUDITED or RULES.get(name) is AccessRule.PUBLIC:
            continue
        before = len(await noted(house))
        status, _ = await house.ask((method, pattern), "admin")
        if len(await noted(house)) != before + 1:
            unnoted.append((name, status))
    assert unnoted == []


def test_what_is_not_noted_is_there() -> None:
    served = {
        f"{method.upper()} {path}"
        for path, item in description()["paths"].items()
        for method in item
    }
    assert served >= UNAUDITED | AUDITED_READS


async def test_a_change_that_cannot_be_noted_is_not_made(house: House) -> None:
    before = house.state()
    house.client.app[AUDIT]._db.execute("PRAGMA query_only = 1")
    assert (await ask(house, "PUT", "/v1/queries/mine", data=SAME.encode()))[0] >= 500
    assert house.state() == before


def test_an_entry_stays_as_it_is(trail: AuditTrail, tmp_path: Path) -> None:
    number = trail.begin("ops", "put_query", "q")
    trail.complete(number, AuditOutcome.DONE, "q", {})
    with (
        closing(sqlite3.connect(tmp_path / "audit.db")) as db,
        pytest.raises(sqlite3.IntegrityError, match="stays as it is"),
    ):
        db.execute("UPDATE entry SET who = 'someone'")
    with (
        closing(sqlite3.connect(tmp_path / "audit.db")) as db,
        pytest.raises(sqlite3.IntegrityError, match="is kept"),
    ):
        db.execute("DELETE FROM entry")
    with pytest.raises(sqlite3.IntegrityError, match="stays as it is"):
        trail.complete(number, AuditOutcome.FAILED, "q", {})


def test_who_began_a_change_cannot_be_changed_with_its_outcome(
    trail: AuditTrail, tmp_path: Path
) -> None:
    trail.begin("ops", "put_query", "q")
    with (
        closing(sqlite3.connect(tmp_path / "audit.db")) as db,
        pytest.raises(sqlite3.IntegrityError, match="stays as it is"),
    ):
        db.execute("UPDATE entry SET who = 'someone', outcome = 'done'")


def test_the_oldest_entries_go_and_their_numbers_are_not_given_again(
    trail: AuditTrail, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "audit.db")) as db, db:
        db.executemany(
            "INSERT INTO entry VALUES (?, 0, 'ops', NULL, 'put_query', 'q', '{}', 'done')",
            [(number,) for number in range(1, ENTRIES_MAX + 1)],
        )
    assert trail.begin("ops", "put_query", "newest") == ENTRIES_MAX + 1
    kept = trail.entries()
    assert (kept[0].number, kept[-1].number, len(kept)) == (ENTRIES_MAX + 1, 2, ENTRIES_MAX)


def test_a_change_in_whose_middle_the_broker_ended_has_no_outcome(tmp_path: Path) -> None:
    with closing(AuditTrail(tmp_path / "audit.db")) as trail:
        trail.begin("ops", "delete_query", "q")
    with closing(AuditTrail(tmp_path / "audit.db")) as trail:
        (entry,) = trail.entries()
        assert (entry.subject, entry.outcome) == ("q", None)
        assert trail.begin("ops", "delete_query", "q") == entry.number + 1


def test_what_callers_send_is_kept_shortened(trail: AuditTrail) -> None:
    number = trail.begin("ops", "post_feed", "u" * 5_000)
    trail.complete(number, AuditOutcome.REFUSED, "u" * 5_000, {"stream": "s" * 5_000})
    (entry,) = trail.entries()
    assert (len(entry.subject), len(entry.detail["stream"])) == (1_000, 1_000)


def test_a_change_in_the_data_directory_is_by_its_user(tmp_path: Path) -> None:
    with local_change(tmp_path, "post_token", "ops", scopes=("admin",)):
        pass
    with pytest.raises(ValueError, match="no"), local_change(tmp_path, "delete_token", "ops"):
        raise ValueError("no")
    with closing(AuditTrail(tmp_path / "audit.db")) as trail:
        revoked, made = trail.entries()
    assert made.who.startswith("local:")
    assert (made.outcome, made.detail) == (AuditOutcome.DONE, {"scopes": "admin"})
    assert (revoked.action, revoked.outcome) == ("delete_token", AuditOutcome.REFUSED)


def test_the_verb_shows_what_verbs_did_where_no_broker_runs(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    path = tmp_path / "xscl.toml"
    path.write_text(f'data = "data"\n[http]\nport = {unused_tcp_port}\n')
    settings = ("--config", str(path))
    assert xscl(*settings, "audit").exit_code == 0
    assert not (tmp_path / "data").exists()
    for arguments in (
        ("tokens", "create", "ops", "--scope", "admin"),
        ("feeds", "add", FEED, "--no-check"),
        ("feeds", "pause", "https://elsewhere.example/"),
    ):
        xscl(*settings, *arguments)
    listed = xscl(*settings, "audit", "--format", "json")
    rows = json.loads(listed.stdout)
    assert [(row["action"], row["subject"], row["outcome"]) for row in rows] == [
        ("pause_feed", "https://elsewhere.example/", "refused"),
        ("post_feed", "https://***@feeds.example/a.xml", "done"),
        ("post_token", "ops", "done"),
    ]
    table = xscl(*settings, "audit", "--subject", "ops")
    assert "scopes=admin" in table.stdout
