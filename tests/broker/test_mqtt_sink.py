"""Matches as messages of MQTT, on real servers: one of MQTT 5, and one that has 3.1.1 only."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from support import sink_servers
from support.ports import free_port
from support.sinking import attempt, delivered
from support.subscribers import LOOPBACK, broker_in, found, until

from broker.delivery.attempt import OutcomeKind
from broker.delivery.sinks.channel import SinkChannel
from broker.delivery.store import delivery_id
from broker.registry.subscription import Destination, SubscriptionError

USERS = {"ann": "hush-7-hush", "reader": "reads"}
ACCESS = "user ann\ntopic write found/#\nuser reader\ntopic read #\n"


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with sink_servers.mosquitto(tmp_path_factory.mktemp("mqtt"), USERS, ACCESS) as port:
        yield port


@pytest.fixture(scope="module")
def old_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    port = free_port()
    settings = f'mqtt {{ listen: "127.0.0.1:{port}" }}'
    with sink_servers.nats(tmp_path_factory.mktemp("nats"), settings):
        yield port


@pytest.fixture
async def channel(tmp_path: Path) -> AsyncIterator[SinkChannel]:
    channel = SinkChannel(tmp_path, allowed=LOOPBACK, timeout_s=10)
    yield channel
    await channel.close()


@contextmanager
def reading(port: int, version: MQTTProtocolVersion) -> Iterator[list[Any]]:
    """Subscribe to everything; yields the messages that arrive."""
    arrived: list[Any] = []
    ready = threading.Event()
    client = Client(CallbackAPIVersion.VERSION2, protocol=version)
    client.username_pw_set("reader", "reads")
    client.on_message = lambda client, userdata, message: arrived.append(message)
    client.on_subscribe = lambda *told: ready.set()
    client.on_connect = lambda client, *told: client.subscribe("#", qos=1)
    client.connect("127.0.0.1", port)
    client.loop_start()
    try:
        assert ready.wait(10)
        yield arrived
    finally:
        client.disconnect()
        client.loop_stop()


async def test_matches_arrive_in_order_with_their_ids(
    channel: SinkChannel, port: int, tmp_path: Path
) -> None:
    with reading(port, MQTTProtocolVersion.MQTTv5) as messages, broker_in(tmp_path) as broker:
        address = f"mqtt://ann:hush-7-hush@localhost:{port}/found/news"
        name = await delivered(broker, channel, address, range(1, 60))
        await until(lambda: len(messages) >= 59)
    ids = [found(number).id for number in range(1, 60)]
    assert [json.loads(each.payload)["data"]["id"] for each in messages] == ids
    assert [dict(each.properties.UserProperty) for each in messages] == [
        {"xscl-delivery": delivery_id(name, id_), "xscl-subscription": name} for id_ in ids
    ]
    assert {each.properties.ContentType for each in messages} == {"application/json"}
    assert {(each.topic, each.qos, each.retain) for each in messages} == {("found/news", 1, False)}


async def test_a_server_that_has_the_older_version_only_gets_that(
    channel: SinkChannel, old_port: int
) -> None:
    with reading(old_port, MQTTProtocolVersion.MQTTv311) as messages:
        outcome = await channel.send(attempt(f"mqtt://localhost:{old_port}/found", 1, 2, 3))
        await until(lambda: len(messages) >= 3)
    assert outcome.kind is OutcomeKind.DELIVERED
    ids = [json.loads(each.payload)["data"]["id"] for each in messages]
    assert ids == [found(number).id for number in (1, 2, 3)]


async def test_what_a_server_refuses_says_whose_fault_it_is(
    channel: SinkChannel, port: int
) -> None:
    ann = f"mqtt://ann:hush-7-hush@localhost:{port}/found/news"
    denied = await channel.send(attempt(ann.replace("found/news", "other"), 1, 2))
    wrong = await channel.send(attempt(ann.replace("hush-7", "wrong-7"), 1))
    large = attempt(ann, 1, output=f"<match>{'x' * 50_000}</match>")
    with reading(port, MQTTProtocolVersion.MQTTv5) as messages:
        both = [*large.matches, *attempt(ann, 2).matches]
        too_large = await channel.send(replace(large, matches=both))
        await until(lambda: len(messages) == 1)
    away = await channel.send(attempt(f"mqtt://localhost:{free_port()}/found", 1))
    assert (denied.kind, wrong.kind) == (OutcomeKind.FAILED, OutcomeKind.FAILED)
    assert denied.detail == "localhost does not take messages of 'other': Not authorized"
    assert wrong.detail == "localhost says: Not authorized"
    assert too_large.kind is OutcomeKind.REFUSED
    assert "is larger than the server takes (40000)" in too_large.detail
    assert away.kind is OutcomeKind.THROTTLED
    assert away.detail == "localhost cannot be reached: Connection refused"


async def test_the_name_of_a_server_must_be_in_its_certificate(
    channel: SinkChannel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink_servers.certify(tmp_path)
    tls = [f"certfile {tmp_path}/certificate.pem", f"keyfile {tmp_path}/key.pem"]
    with sink_servers.mosquitto(tmp_path, USERS, ACCESS, 0, *tls) as port:
        ann = f"mqtts://ann:hush-7-hush@localhost:{port}/found"
        unknown = await channel.send(attempt(ann, 1))
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
        known = await channel.send(attempt(ann, 1))
        other = await channel.send(attempt(ann.replace("localhost", "127.0.0.1"), 1))
    assert unknown.detail.startswith("the certificate of localhost does not hold: ")
    assert known.kind is OutcomeKind.DELIVERED, known
    assert other.detail.startswith("the certificate of 127.0.0.1 does not hold: IP address mism")


async def test_a_connection_that_the_server_ended_is_made_again(
    channel: SinkChannel, tmp_path: Path
) -> None:
    with sink_servers.mosquitto(tmp_path, USERS, ACCESS) as port:
        address = f"mqtt://ann:hush-7-hush@localhost:{port}/found/news"
        assert (await channel.send(attempt(address, 1))).kind is OutcomeKind.DELIVERED
    with sink_servers.mosquitto(tmp_path, USERS, ACCESS, port):
        await asyncio.sleep(0)  # the servers were changed while the event loop stood
        assert (await channel.send(attempt(address, 2))).kind is OutcomeKind.DELIVERED
    assert (await channel.send(attempt(address, 3))).kind is OutcomeKind.THROTTLED


@pytest.mark.parametrize(
    "text",
    [
        "mqtt://ann:hush@mqtt.example",
        "mqtt://ann:hush@mqtt.example/",
        "mqtt://ann:hush@mqtt.example/found/#",
        "mqtt://ann:hush@mqtt.example/found/+/x",
        "mqtt://ann:hush@mqtt.example/$SYS/x",
        "mqtt://ann:hush@one,two/found",
    ],
)
def test_what_is_no_topic_is_refused(text: str) -> None:
    with pytest.raises(SubscriptionError) as error:
        Destination.parse(text)
    assert "hush" not in str(error.value)
