"""Matches as records of a topic, on a server of Kafka's protocol: in one partition, in order."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import (
    MessageSizeTooLargeError,
    NotEnoughReplicasError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)
from support import sink_servers
from support.ports import free_port
from support.sinking import attempt, delivered
from support.subscribers import LOOPBACK, broker_in, found

from broker.delivery.attempt import Attempt, OutcomeKind
from broker.delivery.sinks.channel import SinkChannel
from broker.delivery.sinks.kafka import KafkaSink
from broker.delivery.store import delivery_id
from broker.registry.subscription import Destination, PayloadFormat, SubscriptionError


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with sink_servers.tansu() as port:
        yield port


@pytest.fixture
async def channel(tmp_path: Path) -> AsyncIterator[SinkChannel]:
    channel = SinkChannel(tmp_path, allowed=LOOPBACK, timeout_s=15)
    yield channel
    await channel.close()


async def make(port: int, topic: str) -> None:
    administrator = AIOKafkaAdminClient(bootstrap_servers=f"127.0.0.1:{port}")
    await administrator.start()
    await administrator.create_topics([NewTopic(topic, 3, 1)])
    await administrator.close()


async def read(port: int, topic: str, count: int) -> list[Any]:
    reader = AIOKafkaConsumer(
        topic, bootstrap_servers=f"127.0.0.1:{port}", auto_offset_reset="earliest"
    )
    await reader.start()
    try:
        async with asyncio.timeout(20):
            return [await reader.getone() for _ in range(count)]
    finally:
        await reader.stop()


async def test_matches_are_in_one_partition_in_order_with_their_ids(
    channel: SinkChannel, port: int, tmp_path: Path
) -> None:
    await make(port, "news")
    with broker_in(tmp_path) as broker:
        address = f"kafka://127.0.0.1:{port},localhost:{port}/news"
        name = await delivered(broker, channel, address, range(1, 60))
    records = await read(port, "news", 59)
    ids = [found(number).id for number in range(1, 60)]
    assert [json.loads(each.value)["data"]["id"] for each in records] == ids
    assert [dict(each.headers)["xscl-delivery"].decode() for each in records] == [
        delivery_id(name, id_) for id_ in ids
    ]
    assert {each.key.decode() for each in records} == {name}
    assert len({each.partition for each in records}) == 1


async def test_events_say_what_they_are(channel: SinkChannel, port: int) -> None:
    await make(port, "events")
    made = attempt(f"kafka://localhost:{port}/events", 1, format=PayloadFormat.CLOUDEVENTS)
    assert (await channel.send(made)).kind is OutcomeKind.DELIVERED
    (event,) = await read(port, "events", 1)
    assert json.loads(event.value)["specversion"] == "1.0"
    assert dict(event.headers)["content-type"] == b"application/cloudevents+json"


@asynccontextmanager
async def before(port: int, front: int, directory: Path) -> AsyncIterator[None]:
    """Speak TLS on one port, and hand on what is said to another."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "certificate.pem", directory / "key.pem")

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
        writer.close()

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(pass_on(reader, inner[1]), pass_on(inner[0], writer))

    server = await asyncio.start_server(meet, "127.0.0.1", front, ssl=context)
    yield
    server.close()


async def test_the_name_of_a_server_must_be_in_its_certificate(
    channel: SinkChannel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink_servers.certify(tmp_path)
    front = free_port()
    with sink_servers.tansu(front) as inner:
        async with before(inner, front, tmp_path):
            unknown = await channel.send(attempt(f"kafkas://localhost:{front}/safe", 1))
            monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
            known = await channel.send(attempt(f"kafkas://localhost:{front}/safe", 1))
            other = await channel.send(attempt(f"kafkas://127.0.0.1:{front}/safe", 1))
            await channel.close()
    assert unknown.detail.startswith("the certificate of localhost does not hold: ")
    assert known.kind is OutcomeKind.DELIVERED, known
    assert other.detail.startswith("the certificate of 127.0.0.1 does not hold: IP address mism")


async def test_servers_that_let_nobody_in_say_why(channel: SinkChannel, port: int) -> None:
    away = await channel.send(attempt(f"kafka://localhost:{free_port()}/news", 1))
    login = await channel.send(attempt(f"kafka://ann:hush-7-hush@localhost:{port}/news", 1))
    assert (away.kind, login.kind) == (OutcomeKind.THROTTLED, OutcomeKind.THROTTLED)
    assert away.detail == "localhost cannot be reached: Connection refused"
    assert login.detail.startswith("localhost says: UnsupportedSaslMechanismError: ")
    assert "hush" not in login.detail


@pytest.mark.parametrize(
    ("answer", "kind", "reason"),
    [
        (UnknownTopicOrPartitionError(), OutcomeKind.FAILED, "there is no topic 'news': make one"),
        (TopicAuthorizationFailedError(), OutcomeKind.FAILED, "TopicAuthorizationFailedError"),
        (MessageSizeTooLargeError(), OutcomeKind.REFUSED, "news does not take a match of this"),
        (NotEnoughReplicasError(), OutcomeKind.THROTTLED, "NotEnoughReplicasError"),
    ],
)
def test_an_error_of_kafka_says_what_follows(
    answer: Exception, kind: OutcomeKind, reason: str
) -> None:
    """Tansu makes topics by itself, and bounds no record: these it never answers."""
    made: Attempt = attempt("kafka://localhost/news", 1)
    sink = KafkaSink(made.subscription.destination.sink, None, str)  # type: ignore[arg-type]
    failure = sink.failure(answer)
    assert (failure.kind, reason in str(failure)) == (kind, True)


@pytest.mark.parametrize(
    "text",
    [
        "kafka://ann:hush@kafka.example",
        "kafka://ann:hush@kafka.example/..",
        "kafka://ann:hush@kafka.example/found/news",
        "kafka://ann:hush@kafka.example/news?sasl=gssapi",
        "kafka://ann:hush@kafka.example:x/news",
    ],
)
def test_what_is_no_topic_is_refused(text: str) -> None:
    with pytest.raises(SubscriptionError) as error:
        Destination.parse(text)
    assert "hush" not in str(error.value)
