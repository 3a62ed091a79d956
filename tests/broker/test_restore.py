"""A copy in the place of its original: what it sends, what it does not, and what it refuses."""

from __future__ import annotations

import asyncio
import contextlib
import re
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from oracle.lines import as_found
from support import doomed
from support.small_broker import small_broker
from support.sparkless_broker import running, session_of, when
from support.subscribers import Receiver, broker_in, found, item, receiving, until
from support.verbs import xscl

from broker.delivery.store import delivery_id
from broker.delivery.worker import DeliveryEvent, DeliveryEventKind
from broker.documents.spool import SpoolWriter
from broker.matching.stepresult import StepResult
from broker.operations.backup import DATABASES, back_up
from broker.operations.copies import CopyError, Manifest
from broker.operations.restore import restore, take_over
from broker.settings.config import parse_settings
from broker.settings.directory import Claim, InUseError

EACH = "news//item->a"
PAIRS = "news//item->a FOLLOWED BY {a/author = b/author, 1 day} news//item->b"
DOCUMENTS = 120


def rows(path: Path, sql: str) -> list[Any]:
    with contextlib.closing(sqlite3.connect(path)) as db:
        return db.execute(sql).fetchall()


@dataclass(frozen=True)
class Taken:
    """A copy that was taken under load, and what was over when it was begun."""

    directory: Path
    manifest: Manifest
    accepted: int
    delivered: frozenset[str]


class Load:
    """Publishes documents one by one, and notes what was acknowledged and what was delivered."""

    def __init__(self) -> None:
        self.accepted = 0
        self.delivered: set[str] = set()

    async def publish(self, session: aiohttp.ClientSession) -> None:
        for number in range(DOCUMENTS):
            xml = item(number, author=f"author {number % 40}").encode()
            async with session.post("/v1/streams/news/documents", data=xml) as answer:
                self.accepted = (await answer.json())["documents"][0]["docid"]

    def note(self, event: DeliveryEvent) -> None:
        if event.kind is DeliveryEventKind.DELIVERED:
            self.delivered.add(event.delivery_id)


async def registered(session: aiohttp.ClientSession, hook: str) -> list[str]:
    """Register both queries with a webhook each; return the subscriptions."""
    made = []
    for name, text in (("each", EACH), ("pairs", PAIRS)):
        assert (await session.put(f"/v1/queries/{name}", data=text)).status == 200
        asked = {"query": name, "destination": hook}
        made.append((await (await session.post("/v1/subscriptions", json=asked)).json())["id"])
    return made


async def copies_under_load(directory: Path, receiver: Receiver) -> tuple[list[Taken], list[str]]:
    """Run a broker under load to its end, and take copies meanwhile."""
    load, copies = Load(), []
    async with (
        small_broker(directory / "data", on_event=load.note) as url,
        aiohttp.ClientSession(url) as session,
    ):
        subscriptions = await registered(session, receiver.url)
        publishing = asyncio.create_task(load.publish(session))
        for number in range(6):
            await receiver.wait_for(1 + 25 * number)
            copy = directory / f"copy-{number}"
            accepted, delivered = load.accepted, frozenset(load.delivered)
            manifest = await asyncio.to_thread(back_up, directory / "data", copy)
            copies.append(Taken(copy, manifest, accepted, delivered))
        await publishing
    return copies, subscriptions


def owed(data: Path, subscriptions: list[str]) -> set[str]:
    """The deliveries of all matches that are in the outbox."""
    by_query = dict(zip(("each", "pairs"), subscriptions, strict=True))
    matches = rows(data / "outbox.db", "SELECT query, id FROM match")
    return {delivery_id(by_query[query], match) for query, match in matches}


def has_pair(data: Path, docid: int) -> bool:
    """Return whether a document was joined with one that was there before."""
    sql = f"SELECT 1 FROM match WHERE query = 'pairs' AND position = {docid}"
    return bool(rows(data / "outbox.db", sql))


def said_delivered(copy: Path) -> set[str]:
    sql = "SELECT id FROM delivery WHERE state = 'delivered'"
    return {id_ for (id_,) in rows(copy / "deliveries.db", sql)}


@pytest.mark.slow
async def test_a_copy_taken_at_any_moment_loses_nothing_and_sends_again_what_was_under_way(
    tmp_path: Path,
) -> None:
    async with receiving() as receiver:
        copies, subscriptions = await copies_under_load(tmp_path, receiver)
        for number, taken in enumerate(copies):
            # What was acknowledged, and delivered, before the copy was begun, it knows of.
            assert taken.accepted <= taken.manifest.docid
            delivered = said_delivered(taken.directory)
            assert taken.delivered <= delivered
            receiver.received.clear()
            restore(taken.directory, tmp_path / f"restored-{number}", takes_over=True)
            load = Load()
            await go_on(tmp_path / f"restored-{number}", load, taken, delivered, subscriptions)
            assert load.delivered.isdisjoint(delivered)
            assert {each.id for each in receiver.received} == load.delivered


async def go_on(
    data: Path, load: Load, taken: Taken, delivered: set[str], subscriptions: list[str]
) -> None:
    """Run a broker on a restored copy until it owes nothing, also of a new document."""
    async with (
        small_broker(data, on_event=load.note) as url,
        aiohttp.ClientSession(url) as session,
    ):
        body = item(999, author="author 0").encode()
        answer = await session.post("/v1/streams/news/documents", data=body)
        docid = (await answer.json())["documents"][0]["docid"]
        assert docid == taken.manifest.docid + 1
        # It is joined with what the copy remembers.
        await until(lambda: has_pair(data, docid))
        await until(lambda: load.delivered | delivered == owed(data, subscriptions))


async def test_a_consumer_goes_on_behind_what_it_had_acknowledged(tmp_path: Path) -> None:
    path = "consumers/reader"
    async with (
        small_broker(tmp_path / "data") as url,
        aiohttp.ClientSession(url) as session,
    ):
        await session.put("/v1/queries/each", data=EACH)
        asked = {"query": "each", "destination": "pull"}
        name = (await (await session.post("/v1/subscriptions", json=asked)).json())["id"]
        await session.put(f"/v1/subscriptions/{name}/{path}", json={"start": "all"})
        for number in range(4):
            await session.post("/v1/streams/news/documents", data=item(number).encode())
        fetched = await fetch(session, f"/v1/subscriptions/{name}/{path}", 3)
        await session.post(f"/v1/subscriptions/{name}/{path}/answer", json={"ack": fetched[:2]})
        await asyncio.to_thread(back_up, tmp_path / "data", tmp_path / "copy")
    restore(tmp_path / "copy", tmp_path / "restored", takes_over=True)
    async with (
        small_broker(tmp_path / "restored") as url,
        aiohttp.ClientSession(url) as session,
    ):
        assert await fetch(session, f"/v1/subscriptions/{name}/{path}", 1) == [4]
        answer = await session.get(f"/v1/subscriptions/{name}/{path}")
        assert (await answer.json())["pending"] == 2


async def fetch(session: aiohttp.ClientSession, consumer: str, count: int) -> list[int]:
    numbers: list[int] = []
    async with asyncio.timeout(30):
        while len(numbers) < count:
            asked = {"limit": count - len(numbers), "wait_s": 5}
            answer = await (await session.post(f"{consumer}/fetch", json=asked)).json()
            numbers += [each["seq"] for each in answer["matches"]]
    return numbers


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy with one match that nobody has been sent yet."""
    return copy_with_a_match(tmp_path, "http://127.0.0.1:9/hook")


def copy_with_a_match(directory: Path, hook: str) -> Path:
    data = directory / "original"
    SpoolWriter(data / "spool").close()
    with broker_in(data) as broker:
        broker.subscribe(hook)
        broker.outbox.add(StepResult([as_found(found(1))]))
    back_up(data, directory / "copy")
    return directory / "copy"


async def test_a_copy_beside_its_original_delivers_when_it_is_told_to(tmp_path: Path) -> None:
    async with receiving() as receiver:
        copy = copy_with_a_match(tmp_path, receiver.url)
        path = tmp_path / "xscl.toml"
        path.write_text(
            'data = "data"\nallow_networks = ["127.0.0.0/8"]\n[http]\nport = 0\n'
            "[webhooks]\nallow_http = true\n"
        )
        restored = xscl("--config", str(path), "restore", str(copy))
        assert restored.exit_code == 0, restored.output
        assert "delivers nothing until `xscl restore --take-over`" in restored.stderr
        async with (
            running(parse_settings(path.read_text(), path)) as url,
            session_of(tmp_path) as session,
        ):
            await when(session, f"{url}/readyz", lambda answer: answer["status"] == "ready")
            await when(session, f"{url}/metrics", lambda text: "deliveries_held 1\n" in text)
            assert receiver.received == []
            told = await asyncio.to_thread(xscl, "--config", str(path), "restore", "--take-over")
            assert told.exit_code == 0, told.output
            await receiver.wait_for(1)
            await when(session, f"{url}/metrics", lambda text: "deliveries_held 0\n" in text)


def test_nothing_of_a_copy_can_be_read_by_others(copy: Path, tmp_path: Path) -> None:
    restore(copy, tmp_path / "data")
    for directory in (copy, tmp_path / "data"):
        paths = [directory, *directory.rglob("*")]
        assert len(paths) > 4
        assert [path for path in paths if path.stat().st_mode & 0o077] == []


@pytest.mark.parametrize("name", ["outbox.db", "registry.db"])
def test_a_copy_that_was_changed_is_refused_and_nothing_is_written(
    copy: Path, tmp_path: Path, name: str
) -> None:
    whole = (copy / name).read_bytes()
    (copy / name).write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(CopyError, match=f"{name} is not what was written"):
        restore(copy, tmp_path / "data")
    assert not (tmp_path / "data").exists()
    (copy / name).unlink()
    with pytest.raises(CopyError, match=f"{name} is missing"):
        restore(copy, tmp_path / "data")


def test_a_segment_that_is_damaged_is_found_when_the_copy_is_made(tmp_path: Path) -> None:
    doomed.live(str(tmp_path / "data"))
    path = min((tmp_path / "data" / "spool").glob("*.segment"))
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(CopyError, match="does not have the checksum"):
        back_up(tmp_path / "data", tmp_path / "copy")
    with pytest.raises(CopyError, match="is not complete"):
        restore(tmp_path / "copy", tmp_path / "restored")
    with pytest.raises(InUseError, match="not complete"):
        Claim(tmp_path / "copy")


def test_what_is_there_is_not_overwritten(copy: Path, tmp_path: Path) -> None:
    with pytest.raises(CopyError, match="holds a broker's data"):
        restore(copy, tmp_path / "original")
    with pytest.raises(CopyError, match="is not a copy that `xscl backup` has made"):
        restore(tmp_path / "original", tmp_path / "data")


def test_what_init_has_made_gives_way_to_the_copy(copy: Path, tmp_path: Path) -> None:
    here = tmp_path / "here"
    assert xscl("init", str(here)).exit_code == 0
    done = xscl("--config", str(here / "xscl.toml"), "restore", str(copy), "--take-over")
    assert done.exit_code == 0, done.output
    assert {path.name for path in (here / "xscl-data").iterdir()} >= {"outbox.db", "spool"}


def test_a_directory_that_a_broker_is_about_to_use_is_left_alone(
    copy: Path, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    claim = Claim(tmp_path / "data")
    with pytest.raises(InUseError, match="a broker runs on"):
        restore(copy, tmp_path / "data")
    claim.release()


def test_only_a_copy_takes_over(copy: Path, tmp_path: Path) -> None:
    restore(copy, tmp_path / "data")
    take_over(tmp_path / "data")
    for directory in (tmp_path / "data", tmp_path / "original"):
        with pytest.raises(CopyError, match="is not a copy"):
            take_over(directory)
    assert xscl("restore").exit_code == 2


def test_every_database_of_a_broker_is_copied(tmp_path: Path) -> None:
    """A database that is added and not copied would be lost in silence."""
    source = (Path(__file__).parents[2] / "broker").rglob("*.py")
    texts = "".join(path.read_text() for path in source)
    named = set(re.findall(r'"(\w+\.db)"', texts))
    assert named == set(DATABASES)
