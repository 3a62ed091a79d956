"""What a text would match while it is typed: right, with near-misses that its edits take."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp.test_utils import TestClient, TestServer
from support.api_room import Room
from support.subscribers import until

from broker.api import lines
from broker.api.http import make_application
from broker.api.writing import language, trials
from broker.api.writing.trials import TRIALS
from broker.pipeline.hindsight import keptdocuments
from broker.pipeline.hindsight.keptdocuments import KeptDocuments
from broker.pipeline.hindsight.trial import try_query
from broker.pipeline.lookback.dryrun import DryRun, dry_run
from xpath_eval import columns

TEXT = "news//item->a FOLLOWED BY {a/title = b/title AND a/by != b/by, 1 hour} news//item->b"
WHERE = f"FROM {TEXT.replace(' AND a/by != b/by', '')} WHERE a/by != b/by"
ITEMS = [
    ("10:00", "Flood", "ann"),
    ("10:30", "Flood", "bob"),
    ("12:30", "Flood", "cid"),
    ("12:40", "Flood", "cid"),
    ("15:00", "Storm", "ann"),
]


pytestmark = pytest.mark.asyncio(loop_scope="module")

Process = asyncio.subprocess.Process


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def idle() -> AsyncIterator[list[Process]]:
    """The process that tries texts between two tests: it takes a second to start."""
    idle: list[Process] = []
    yield idle
    for process in idle:
        process.kill()
        await process.wait()


@contextlib.asynccontextmanager
async def served(room: Room, idle: list[Process], **options: Any) -> AsyncIterator[TestClient]:
    application = make_application(room.backend, body_bytes_max=100_000)
    async with TestClient(TestServer(application, **options)) as client:
        own = application[TRIALS]
        own._process = idle.pop() if idle else None
        yield client
        if own._process is not None and own._process.returncode is None:
            idle.append(own._process)
            own._process = None


@pytest_asyncio.fixture(loop_scope="module")
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    room = Room(tmp_path)
    room.ingest.start()
    yield room
    room.close()


@pytest_asyncio.fixture(loop_scope="module")
async def client(room: Room, idle: list[Process]) -> AsyncIterator[TestClient]:
    async with served(room, idle) as client:
        yield client


@pytest_asyncio.fixture(loop_scope="module")
async def tried(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    # What a busy machine is slow at is looked at whole all the same.
    monkeypatch.setattr(trials, "SECONDS_MAX", 120.0)
    for time, title, by in ITEMS:
        xml = f"<item><title>{title}</title><by>{by}</by></item>"
        url = f"/v1/streams/news/documents?time=2026-01-01T{time}:00Z"
        async with client.post(url, data=xml.encode()) as answer:
            assert answer.status == 200
    return client


async def asked(client: TestClient, text: str, **query: str) -> list[dict[str, Any]]:
    url = "/v1/language/trial"
    async with client.post(url, data=text.encode(), params=query) as answer:
        assert answer.status == 200, await answer.text()
        return [json.loads(line) for line in (await answer.text()).splitlines()]


async def test_a_condition_that_very_many_fail_alone_is_not_counted_on(tried: TestClient) -> None:
    for number in range(100):
        xml = f"<item><title>Title {number}</title><by>ann</by></item>"
        url = f"/v1/streams/news/documents?time=2026-01-02T10:{number % 60:02}:00Z"
        async with tried.post(url, data=xml.encode()) as answer:
            assert answer.status == 200
    text = TEXT.replace("a/by != b/by", "a/by = b/by").replace("1 hour", "1 day")
    last = (await asked(tried, text))[-1]
    assert (last["documents"], last["is_done"]) == (105, True)
    assert last["uncounted"] == ["a/title = b/title"]
    # 4,950 pairs of one author.
    assert 200 < last["near"] < 4_000


async def test_matches_and_near_misses_are_told_with_what_they_fail(tried: TestClient) -> None:
    last = (await asked(tried, TEXT))[-1]
    assert last["is_done"]
    assert (last["documents"], last["matched"], last["near"]) == (5, 1, 5)
    assert last["since"] == "2026-01-01T10:00:00Z"
    (match,) = last["matches"]
    assert [each["docid"] for each in match["documents"]] == [1, 2]
    said = {
        tuple(each["docid"] for each in miss["match"]["documents"]): miss["said"]
        for miss in last["misses"]
    }
    assert said == {
        (2, 3): "60.0 minutes too long",
        (2, 4): "70.0 minutes too long",
        (1, 3): "90.0 minutes too long",
        (1, 4): "100.0 minutes too long",
        (3, 4): "fails a/by != b/by",
    }
    (histogram,) = last["histograms"]
    assert sum(histogram["counts"]) == 5
    assert histogram["most"] == 3 * histogram["bound"], "as far as is looked"


@pytest.mark.parametrize("written", [TEXT, WHERE])
async def test_each_near_miss_is_a_match_of_the_text_that_its_edit_makes(
    tried: TestClient, written: str
) -> None:
    misses = (await asked(tried, written))[-1]["misses"]
    assert {each["kind"] for each in misses} == {"window", "condition"}
    for miss in misses:
        edit = miss["edit"]
        text = written[: edit["start"]] + edit["text"] + written[edit["end"] :]
        matches = (await asked(tried, text))[-1]["matches"]
        found = [[each["docid"] for each in match["documents"]] for match in matches]
        assert [each["docid"] for each in miss["match"]["documents"]] in found


async def test_a_near_miss_of_a_parameter_is_a_match_with_the_value_that_it_proposes(
    tried: TestClient,
) -> None:
    for title, hour in (("Tanker aground off harbour", 20), ("Tanker aground near harbour", 21)):
        url = f"/v1/streams/wire/documents?time=2026-01-01T{hour}:00:00Z"
        async with tried.post(url, data=f"<item><title>{title}</title></item>".encode()) as answer:
            assert answer.status == 200
    window = TEXT.replace("1 hour", "$within")
    score = "wire//item->a JOIN {similar(a/title, b/title) >= $like, $within} wire//item->b"
    for text, name, values in (
        (window, "within", {"within": "1 hour"}),
        (score, "like", {"within": "1 day", "like": 0.65}),
    ):
        told = (await asked(tried, text, parameters=json.dumps(values)))[-1]
        misses = [each for each in told["misses"] if each["kind"] != "condition"]
        assert misses
        for miss in misses:
            edit = miss["edit"]
            assert edit["parameter"] == name
            other = edit["text"] if name == "within" else float(edit["text"])
            given = json.dumps({**values, name: other})
            matches = (await asked(tried, text, parameters=given))[-1]["matches"]
            found = [[each["docid"] for each in match["documents"]] for match in matches]
            assert [each["docid"] for each in miss["match"]["documents"]] in found
        assert {each["parameter"] for each in told["histograms"]} == {name}


async def test_a_window_of_all_is_measured_from_the_first_document_to_the_last(
    tried: TestClient,
) -> None:
    text = "FROM news//item->a FOLLOWED BY {a/title = b/title} news//item->b WITHIN 1 hour"
    told = (await asked(tried, text))[-1]
    assert told["matched"] == 2
    assert {each["said"] for each in told["misses"]} == {
        f"{minutes}.0 minutes too long" for minutes in (60, 70, 90, 100)
    }


async def test_it_agrees_with_a_rehearsal(tried: TestClient, room: Room) -> None:
    directory = str(room.spool.directory)
    run = DryRun(spool=directory, query=("q", TEXT), lateness_us=86_400_000_000)
    told: list[dict[str, Any]] = []
    try_query(run, TEXT, told.append)
    wanted = dry_run(run, lambda documents, of: None)
    assert told[-1]["matched"] == wanted["matches"]
    ids = [
        [match["id"] for match in found]
        for found in (told[-1]["matches"], wanted["newest_matches"])
    ]
    assert ids[0] == ids[1]


async def test_what_is_kept_of_documents_is_bounded_and_changes_nothing(
    tried: TestClient, room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keptdocuments, "_WITNESSED_MAX", 6)
    monkeypatch.setattr(keptdocuments, "_TEXT_BYTES_MAX", 200)
    monkeypatch.setattr(keptdocuments, "DOCUMENTS_AT_ONCE", 2)
    monkeypatch.setattr(columns, "_ALIKE_MIN", 1)
    kept = KeptDocuments()
    for text in (TEXT, TEXT.replace("1 hour", "3 hours"), TEXT.replace("by", "id")):
        for documents in (5, 4, 3, 2, 5):
            last = told_of(room, text, documents, kept)
            assert last == told_of(room, text, documents, KeptDocuments())
            rows = sum(documents for _, _, documents in kept._witnesses)
            assert rows == kept.witnessed <= 6
            texts = sum(each.nbytes for each in kept._columns.values())
            assert texts == kept.text_bytes <= 200


def told_of(room: Room, text: str, documents: int, kept: KeptDocuments) -> list[dict[str, Any]]:
    run = DryRun(str(room.spool.directory), ("q", text), 0, documents_max=documents)
    told: list[dict[str, Any]] = []
    try_query(run, text, told.append, kept=kept)
    return told


async def test_documents_that_come_in_leave_what_is_kept_of_others_as_it_is(
    tried: TestClient, room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keptdocuments, "DOCUMENTS_AT_ONCE", 4)
    kept = KeptDocuments()
    for number in range(10):
        told_of(room, TEXT, 8, kept)
        before = dict(kept._columns)
        xml = f"<item><title>Flood</title><by>{number}</by></item>"
        url = "/v1/streams/news/documents?time=2026-01-01T15:30:00Z"
        async with tried.post(url, data=xml.encode()) as answer:
            assert answer.status == 200
        assert told_of(room, TEXT, 8, kept) == told_of(room, TEXT, 8, KeptDocuments())
        new = [place for place in kept._columns if place not in before]
        assert len(new) <= 2  # the part that grows, and the one that is left behind


async def test_an_empty_text_has_the_documents_read_for_the_one_that_is_typed(
    tried: TestClient,
) -> None:
    last = (await asked(tried, " "))[-1]
    assert last == {"documents": 5, "of": 5, "is_done": True}
    assert (await asked(tried, TEXT))[-1]["matched"] == 1


async def test_a_question_that_is_given_up_ends_and_the_next_is_answered(
    tried: TestClient, room: Room
) -> None:
    trials = tried.app[TRIALS]
    question = {
        "spool": str(room.spool.directory),
        "query": ["q", TEXT],
        "lateness_us": 0,
        "upstream": [],
        "parameters": None,
        "budget": {},
        "source": TEXT,
    }
    lines = trials.tried(question)
    assert json.loads(await anext(lines))["is_done"]
    await lines.aclose()
    process = trials._process
    assert (await asked(tried, TEXT))[-1]["matched"] == 1
    assert trials._process is process is not None
    process.kill()
    await process.wait()
    assert (await asked(tried, TEXT))[-1]["matched"] == 1


async def test_a_question_that_takes_long_says_so_and_the_next_is_answered(
    tried: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        for name in ("SECONDS_MAX", "_GRACE_S"):
            patch.setattr(trials, name, 0.0)
        assert await asked(tried, TEXT) == [{"error": "it took too long", "is_done": True}]
    assert (await asked(tried, TEXT))[-1]["matched"] == 1


async def test_a_process_that_ends_is_told_and_the_next_question_is_answered(
    tried: TestClient,
) -> None:
    assert (await asked(tried, TEXT))[-1]["matched"] == 1
    process = tried.app[TRIALS]._process
    assert process is not None
    assert process.stdin is not None
    process.stdin.write(b"no question\n")
    (last,) = await asked(tried, TEXT)
    assert last == {"error": "it failed; the broker's log says why", "is_done": True}
    assert (await asked(tried, TEXT))[-1]["matched"] == 1


async def test_near_misses_of_a_text_with_parameters_lack_what_they_leave_out(
    tried: TestClient,
) -> None:
    text = TEXT.replace("a/by != b/by", "b/by = $who")
    last = (await asked(tried, text, parameters='{"who": "bob"}'))[-1]
    assert (last["matched"], last["near"]) == (1, 1)
    (miss,) = last["misses"]
    assert (miss["kind"], miss["said"]) == ("condition", "fails b/by = $who")
    within = TEXT.replace("1 hour", "$within")
    for value, matched in (("30 minutes", 1), ("1 day", 5)):
        last = (await asked(tried, within, parameters=json.dumps({"within": value})))[-1]
        assert last["matched"] == matched


@pytest_asyncio.fixture(loop_scope="module")
async def slow(room: Room, idle: list[Process]) -> AsyncIterator[TestClient]:
    """A client of a server that has sent little before a client has read it."""

    def bound(host: str, port: int, family: socket.AddressFamily) -> socket.socket:
        found = socket.socket(family)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
        found.bind((host, port))
        return found

    async with served(room, idle, socket_factory=bound) as client:
        yield client


async def test_a_client_that_does_not_read_keeps_nobody_waiting(
    slow: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "so long" * 10_000
    for by in ("ann", "bob", "cid"):
        item = f"<item><title>{long}</title><by>{by}</by></item>"
        async with slow.post("/v1/streams/news/documents", data=item.encode()) as answer:
            assert answer.status == 200
    monkeypatch.setattr(trials, "SECONDS_MAX", 120.0)
    with monkeypatch.context() as patch:
        patch.setattr(lines, "READ_S", 0.0)
        patch.setattr(lines, "BYTES_PER_S", 1e9)
        with socket.socket() as held:
            held.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            held.setblocking(False)
            await asyncio.get_running_loop().sock_connect(held, (slow.host, slow.port))
            head = f"POST /v1/language/trial HTTP/1.1\r\nHost: {slow.host}:{slow.port}\r\n"
            head += f"Content-Length: {len(TEXT)}\r\n\r\n"
            await asyncio.get_running_loop().sock_sendall(held, (head + TEXT).encode())
            await until(slow.app[TRIALS]._turn.locked)
            async with asyncio.timeout(60), slow.app[TRIALS]._turn:
                pass
    assert (await asked(slow, TEXT))[-1]["matched"] == 3


async def test_what_is_no_query_or_lacks_values_is_refused(tried: TestClient) -> None:
    for text in (
        "news//",
        "news//item->a[b = $x]; news//item",
        "news//item->a ON MATCH SET t[a/x].n = 1",
    ):
        async with tried.post("/v1/language/trial", data=text.encode()) as answer:
            assert answer.status == 422
    with_values = "news//item->a[title = $t]"
    (last,) = await asked(tried, with_values, parameters='{"t": "Storm"}')
    assert last["matched"] == 1


async def test_a_text_that_would_take_long_to_read_is_not_helped_with(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(language, "_CHARACTERS_MAX", len(TEXT))
    for path in ("check", "completions", "hover", "format", "trial"):
        url = f"/v1/language/{path}"
        async with client.post(url, data=f"{TEXT} ".encode()) as answer:
            assert answer.status == 422
            assert "is not helped with" in (await answer.json())["detail"]
    async with client.post("/v1/language/check", data=TEXT.encode()) as answer:
        assert answer.status == 200
