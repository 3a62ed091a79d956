"""Matches in tables of real databases: each once, in order, and errors that say whose fault."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
from support.sink_servers import postgres
from support.sinking import attempt, delivered
from support.subscribers import LOOPBACK, Broker, broker_in, found

from broker.delivery.attempt import Attempt, Outcome, OutcomeKind
from broker.delivery.channels import open_channels
from broker.delivery.sample import sample_attempt
from broker.delivery.sinks.channel import SinkChannel
from broker.delivery.store import delivery_id
from broker.registry.subscription import (
    Destination,
    DestinationKind,
    SubscriptionError,
)
from broker.settings.config import Settings

PASSWORD = "hush-7-hush"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with broker_in(tmp_path) as broker:
        yield broker


@pytest.fixture
async def channel(tmp_path: Path) -> AsyncIterator[SinkChannel]:
    channel = SinkChannel(tmp_path / "tables", allowed=LOOPBACK, timeout_s=10)
    yield channel
    await channel.close()


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[int, Path]]:
    with postgres(PASSWORD) as started:
        yield started


@pytest.fixture
def database(server: tuple[int, Path]) -> str:
    return f"postgresql://postgres:{PASSWORD}@127.0.0.1:{server[0]}/postgres"


def in_duckdb(path: Path, statement: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(path) as db:
        return db.execute(statement).fetchall()


def in_postgres(url: str, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True) as db:
        cursor = db.execute(statement)
        return cursor.fetchall() if cursor.description else []


async def test_matches_become_rows_of_a_file_that_others_can_read(
    broker: Broker, channel: SinkChannel, tmp_path: Path
) -> None:
    name = await delivered(broker, channel, "duckdb:found.duckdb?table=news", range(1, 30))
    rows = in_duckdb(
        tmp_path / "tables" / "found.duckdb",
        "SELECT delivery, subscription, query, seq, match, start_time < end_time,"
        " line->>'$.id' FROM news ORDER BY seq",
    )
    assert rows == [
        (delivery_id(name, id_), name, "Q1", number, id_, True, id_)
        for number, id_ in ((n, found(n).id) for n in range(1, 30))
    ]


async def test_matches_become_rows_of_a_server(
    broker: Broker, channel: SinkChannel, database: str
) -> None:
    name = await delivered(broker, channel, f"{database}?table=news", range(1, 30))
    rows = in_postgres(
        database,
        "SELECT delivery, subscription, query, seq, match, start_time < end_time,"
        " line->>'id' FROM news ORDER BY seq",
    )
    assert rows == [
        (delivery_id(name, id_), name, "Q1", number, id_, True, id_)
        for number, id_ in ((n, found(n).id) for n in range(1, 30))
    ]


@pytest.mark.parametrize("kind", ["duckdb", "postgresql"])
async def test_what_is_written_again_is_there_once(
    channel: SinkChannel, tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    def count() -> list[tuple[Any, ...]]:
        statement = "SELECT match, count(*) FROM again GROUP BY match ORDER BY match"
        if kind == "duckdb":
            return in_duckdb(tmp_path / "tables" / "found.duckdb", statement)
        return in_postgres(request.getfixturevalue("database"), statement)

    url = "duckdb:found.duckdb" if kind == "duckdb" else request.getfixturevalue("database")
    address = f"{url}?table=again"
    for numbers in ((1,), (1, 2, 3), (3,)):
        outcome = await channel.send(attempt(address, *numbers))
        assert outcome.kind is OutcomeKind.DELIVERED, outcome
    await channel.send(attempt(address, 1, name="sub_2"))
    assert count() == [(found(1).id, 2), (found(2).id, 1), (found(3).id, 1)]


async def test_a_sample_of_a_table_tries_everything_and_leaves_nothing(
    broker: Broker, channel: SinkChannel, database: str, tmp_path: Path
) -> None:
    for address in ("duckdb:found.duckdb?table=tried", f"{database}?table=tried"):
        made = sample_attempt(broker.subscribe(address), broker.outbox, 0)
        assert (await channel.send(made)).kind is OutcomeKind.DELIVERED
    found = "SELECT count(*) FROM information_schema.tables WHERE table_name = 'tried'"
    assert in_duckdb(tmp_path / "tables" / "found.duckdb", found) == [(0,)]
    assert in_postgres(database, found) == [(0,)]


async def test_a_table_of_ones_own_is_written_by_who_may_only_insert(
    channel: SinkChannel, database: str
) -> None:
    in_postgres(
        database,
        "CREATE ROLE writer LOGIN PASSWORD 'hush-8-hush';"
        "CREATE SCHEMA kept; GRANT USAGE ON SCHEMA kept TO writer;"
        "CREATE TABLE kept.rows (delivery text PRIMARY KEY, subscription text, query text, seq int,"
        " match text, start_time timestamptz, end_time timestamptz, line json,"
        " arrived timestamptz DEFAULT now());"
        "CREATE TABLE kept.narrow (delivery text PRIMARY KEY);"
        "CREATE TABLE kept.twice (LIKE kept.rows);"
        "GRANT SELECT, INSERT ON kept.rows, kept.narrow, kept.twice TO writer",
    )
    writer = database.replace(f"postgres:{PASSWORD}", "writer:hush-8-hush")
    outcome = await channel.send(attempt(f"{writer}?table=kept.rows", 1))
    assert outcome.kind is OutcomeKind.DELIVERED, outcome
    assert in_postgres(database, "SELECT count(*) FROM kept.rows") == [(1,)]
    for table, reason in (
        ("kept.narrow", 'column "subscription" of relation "narrow" does not exist'),
        ("kept.twice", "primary key `delivery`"),
        ("kept.none", "grant its user INSERT on the table, and CREATE where there is none"),
        ("elsewhere.rows", "make the schema"),
    ):
        refused = await channel.send(attempt(f"{writer}?table={table}", 1))
        assert refused.kind is OutcomeKind.FAILED
        assert reason in refused.detail


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ((f":{PASSWORD}@", ":wrong-7-wrong@"), "password authentication failed"),
        (("/postgres?", "/nowhere?"), 'database "nowhere" does not exist'),
        (("postgresql:", "postgres:"), None),
    ],
)
async def test_a_server_that_refuses_is_quoted_without_the_password(
    channel: SinkChannel, database: str, change: tuple[str, str], reason: str | None
) -> None:
    address = f"{database}?table=quoted".replace(*change)
    outcome = await channel.send(attempt(address, 1))
    if reason is None:
        assert outcome.kind is OutcomeKind.DELIVERED
    else:
        assert outcome.kind is OutcomeKind.THROTTLED
        assert reason in outcome.detail
    assert "hush" not in outcome.detail
    assert "wrong-7" not in outcome.detail


async def test_a_connection_that_was_ended_is_made_again(
    channel: SinkChannel, database: str
) -> None:
    address = f"{database}?table=ended"
    await channel.send(attempt(address, 1))
    others = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'xscl'"
    )
    in_postgres(database, others)
    kinds = [(await channel.send(attempt(address, 2))).kind for _ in range(2)]
    assert kinds == [OutcomeKind.THROTTLED, OutcomeKind.DELIVERED]


async def test_a_file_that_another_program_has_is_tried_again(
    channel: SinkChannel, tmp_path: Path
) -> None:
    tables = tmp_path / "tables"
    tables.mkdir()
    code = (
        "import duckdb, sys; db = duckdb.connect(sys.argv[1]); print(flush=True); sys.stdin.read()"
    )
    other = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", code, str(tables / "found.duckdb")),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert other.stdout is not None
    assert await other.stdout.readline()
    busy = await channel.send(attempt("duckdb:found.duckdb", 1))
    await other.communicate(b"")
    free = await channel.send(attempt("duckdb:found.duckdb", 1))
    assert (busy.kind, free.kind) == (OutcomeKind.THROTTLED, OutcomeKind.DELIVERED)
    assert "another program has it open" in busy.detail


async def test_a_table_without_the_columns_is_named(channel: SinkChannel, tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    in_duckdb(tmp_path / "tables" / "found.duckdb", "CREATE TABLE matches (seq int)")
    outcome = await channel.send(attempt("duckdb:found.duckdb", 1))
    assert outcome.kind is OutcomeKind.FAILED
    assert 'does not have a column with name "delivery"' in outcome.detail


@pytest.mark.parametrize(
    "text",
    [
        "duckdb:../found.duckdb",
        "duckdb:///etc/passwd",
        "duckdb:found.duckdb?table=a;b",
        "duckdb:found.duckdb?mode=x",
        "postgresql://db.example",
        "postgresql://ann:hush@db.example/x?table=a'b",
        "postgresql://ann:hush@db.example/x?options=-cfoo",
        "postgresql://ann:hush@one,two/x",
        "postgresqls://ann:hush@db.example/x",
        "postgresql://ann:hush@db.example:0/x",
        "redis://ann:hush@db.example/x",
    ],
)
def test_what_is_no_address_is_refused_without_its_secret(text: str) -> None:
    with pytest.raises(SubscriptionError) as error:
        Destination.parse(text)
    assert "hush" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("postgresql://127.0.0.1/x", "`allow_networks` in its settings"),
        ("postgresql://[::1]/x?sslmode=disable", "`allow_networks` in its settings"),
        ("kafka://9.9.9.9,10.0.0.1/x", "9.9.9.9 would be sent matches in the clear"),
        ("kafkas://9.9.9.9,10.0.0.1/x", "10.0.0.1 is a private or reserved address"),
        ("natss://192.168.1.1/x", "`allow_networks` in its settings"),
        ("nats://9.9.9.9/x", "in the clear: write `natss://`"),
        ("mqtt://9.9.9.9/x", "in the clear: write `mqtts://`"),
        ("postgresql://9.9.9.9/x?sslmode=require", "in the clear: write `sslmode=verify-full`"),
    ],
)
async def test_inside_hosts_and_the_clear_are_refused(
    tmp_path: Path, text: str, reason: str
) -> None:
    closed = SinkChannel(tmp_path)
    refusal = await closed.refusal(Destination.parse(text))
    assert refusal is not None
    assert reason in refusal
    outcome = await closed.send(attempt(text, 1))
    assert (outcome.kind, reason in outcome.detail) == (OutcomeKind.FAILED, True)
    await closed.close()


@pytest.mark.parametrize(
    "text", ["postgresql://9.9.9.9/x", "kafkas://9.9.9.9/x", "natss://9.9.9.9/x", "duckdb:x.duckdb"]
)
async def test_what_may_work_is_taken(tmp_path: Path, text: str) -> None:
    assert await SinkChannel(tmp_path).refusal(Destination.parse(text)) is None


@pytest.mark.parametrize("kind", ["kafka", "mqtt", "nats", "postgresql"])
async def test_a_client_that_is_not_installed_is_named(
    channel: SinkChannel, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    address = f"{kind}://127.0.0.1/x"
    refusal = await channel.refusal(Destination.parse(address))
    assert refusal is not None
    assert f"`pip install 'xscl-broker[{kind}]'` where it runs" in refusal
    assert (await channel.send(attempt(address, 1))).detail == refusal


async def test_the_name_of_a_server_must_be_in_its_certificate(
    channel: SinkChannel, server: tuple[int, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    port, authority = server
    asked = f":{port}/postgres?table=certified&sslmode=verify-full"
    unknown = await channel.send(attempt(f"postgresql://postgres:{PASSWORD}@localhost{asked}", 1))
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    known = await channel.send(attempt(f"postgresql://postgres:{PASSWORD}@localhost{asked}", 1))
    other = await channel.send(attempt(f"postgresql://postgres:{PASSWORD}@127.0.0.1{asked}", 1))
    assert "certificate verify failed" in unknown.detail
    assert known.kind is OutcomeKind.DELIVERED, known
    assert 'certificate for "localhost" does not match host name "127.0.0.1"' in other.detail


class Deaf(SinkChannel):
    """Does not hear the first time that all is written."""

    async def send(self, attempt: Attempt) -> Outcome:
        outcome = await super().send(attempt)
        return outcome if attempt.number > 1 else Outcome(OutcomeKind.THROTTLED)


async def test_what_was_written_when_the_answer_was_lost_is_there_once(
    broker: Broker, tmp_path: Path, database: str
) -> None:
    channel = Deaf(tmp_path / "tables", allowed=LOOPBACK, timeout_s=10)
    await delivered(broker, channel, "duckdb:found.duckdb?table=lost", range(1, 6))
    in_file = in_duckdb(tmp_path / "tables" / "found.duckdb", "SELECT seq FROM lost ORDER BY seq")
    broker.events.clear()
    await delivered(broker, channel, f"{database}?table=lost", range(6, 11))
    on_server = in_postgres(database, "SELECT seq FROM lost ORDER BY seq")
    await channel.close()
    assert in_file == [(seq,) for seq in range(1, 6)]
    assert on_server == [(seq,) for seq in range(1, 11)]


async def test_a_broker_writes_to_every_sink_by_its_settings(
    broker: Broker, tmp_path: Path
) -> None:
    settings = Settings(data=tmp_path)
    channels = open_channels(settings, broker.registry, lambda name: "", lambda name: "")
    assert {kind for kind in DestinationKind if kind.is_sink} <= set(channels)
    outcome: Outcome = await channels[DestinationKind.DUCKDB].send(attempt("duckdb:x.duckdb", 1))
    assert outcome.kind is OutcomeKind.DELIVERED
    assert (tmp_path / "tables" / "x.duckdb").exists()
    for channel in channels.values():
        await channel.close()
