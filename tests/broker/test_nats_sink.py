"""Matches in a stream of JetStream, on a real NATS server: each once, in order, over TLS."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import nats as client
import pytest
from support import sink_servers
from support.ports import free_port
from support.sinking import attempt, delivered
from support.subscribers import LOOPBACK, broker_in, found

from broker.delivery.attempt import OutcomeKind
from broker.delivery.sample import sample_attempt
from broker.delivery.sinks.channel import SinkChannel
from broker.delivery.store import delivery_id
from broker.registry.subscription import Destination, PayloadFormat, SubscriptionError

USERS = """
max_payload: 40000
authorization { users: [
  {user: ann, password: hush-7-hush},
  {user: bob, password: hush-8-hush, permissions: {publish: {deny: ["found.>"]}}}
] }
"""


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with sink_servers.nats(tmp_path_factory.mktemp("nats"), USERS) as port:
        yield port


@pytest.fixture
async def channel(tmp_path: Path) -> AsyncIterator[SinkChannel]:
    channel = SinkChannel(
        tmp_path,
        allowed=LOOPBACK,
        timeout_s=10,
        alert_url=lambda name: f"https://broker.example/{name}",
    )
    yield channel
    await channel.close()


@asynccontextmanager
async def stream(port: int, **settings: Any) -> AsyncIterator[Any]:
    """Make the stream of this test's subjects; yields what reads it."""
    async with await client.connect(f"nats://ann:hush-7-hush@127.0.0.1:{port}") as connection:
        jetstream = connection.jetstream()
        await jetstream.add_stream(name="F", subjects=["found.>"], **settings)
        try:
            yield jetstream
        finally:
            await jetstream.delete_stream("F")


async def kept(jetstream: Any) -> list[Any]:
    count = (await jetstream.stream_info("F")).state.messages
    return [await jetstream.get_msg("F", seq) for seq in range(1, count + 1)]


async def test_matches_are_in_the_stream_once_and_in_order(
    channel: SinkChannel, port: int, tmp_path: Path
) -> None:
    address = f"nats://ann:hush-7-hush@127.0.0.1:1,localhost:{port}/found.news"
    async with stream(port) as jetstream:
        with broker_in(tmp_path) as broker:
            name = await delivered(broker, channel, address, range(1, 30))
        again = await channel.send(attempt(address, *range(1, 30), name=name))
        messages = await kept(jetstream)
    assert again.kind is OutcomeKind.DELIVERED
    ids = [found(number).id for number in range(1, 30)]
    assert [json.loads(each.data)["data"]["id"] for each in messages] == ids
    assert [each.headers["Nats-Msg-Id"] for each in messages] == [
        delivery_id(name, id_) for id_ in ids
    ]
    assert {each.headers["xscl-subscription"] for each in messages} == {name}
    assert {each.headers["Content-Type"] for each in messages} == {"application/json"}


async def test_samples_events_and_what_there_is_to_say_beside_them(
    channel: SinkChannel, port: int, tmp_path: Path
) -> None:
    address = f"nats://ann:hush-7-hush@localhost:{port}/found.news"
    options = {"format": PayloadFormat.CLOUDEVENTS, "escalate": "pull", "escalate_after": "1 h"}
    async with stream(port) as jetstream:
        with broker_in(tmp_path) as broker:
            subscription = broker.subscribe(address)
            for _ in range(2):
                await channel.send(sample_attempt(subscription, broker.outbox, 0))
        await channel.send(attempt(address, 1, **options))
        *samples, event = await kept(jetstream)
    assert [json.loads(each.data)["type"] for each in samples] == ["xscl.sample"] * 2
    assert json.loads(event.data)["specversion"] == "1.0"
    assert event.headers["Content-Type"] == "application/cloudevents+json"
    assert event.headers["xscl-alert"] == "https://broker.example/msg_1"


async def test_what_a_server_refuses_says_whose_fault_it_is(
    channel: SinkChannel, port: int
) -> None:
    ann = f"nats://ann:hush-7-hush@localhost:{port}/found.news"
    nobody = await channel.send(attempt(ann, 1))
    assert nobody.kind is OutcomeKind.FAILED
    assert "no stream of JetStream takes the subject 'found.news'" in nobody.detail
    async with stream(port, max_msgs=2, discard="new") as jetstream:
        large = await channel.send(attempt(ann, 1, output=f"<match>{'x' * 50_000}</match>"))
        mixed = attempt(ann, 1, 2)
        full = await channel.send(attempt(ann, 1, 2, 3))
        denied = await channel.send(attempt(ann.replace("ann:hush-7", "bob:hush-8"), 1))
        assert len(await kept(jetstream)) == len(mixed.matches)
    assert (large.kind, full.kind) == (OutcomeKind.REFUSED, OutcomeKind.THROTTLED)
    assert "is larger than the server takes (40000)" in large.detail
    assert "maximum messages exceeded" in full.detail
    assert denied.kind is OutcomeKind.FAILED
    assert 'permissions violation for publish to "found.news"' in denied.detail
    wrong = await channel.send(attempt(ann.replace("hush-7", "wrong"), 1))
    assert "Authorization Violation" in wrong.detail
    away = await channel.send(attempt(f"nats://localhost:{free_port()}/found.news", 1))
    assert (away.kind, "cannot be reached" in away.detail) == (OutcomeKind.THROTTLED, True)
    assert not [each for each in (wrong, denied, full) if "hush" in each.detail]


async def test_the_name_of_a_server_must_be_in_its_certificate(
    channel: SinkChannel, port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink_servers.certify(tmp_path)
    tls = f'tls {{ cert_file: "{tmp_path}/certificate.pem", key_file: "{tmp_path}/key.pem" }}'
    secured = f"authorization {{ token: hush-9-hush }}\n{tls}"
    with sink_servers.nats(tmp_path, secured) as secure:
        unknown = await channel.send(attempt(f"natss://hush-9-hush@localhost:{secure}/found", 1))
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
        other = await channel.send(attempt(f"natss://hush-9-hush@127.0.0.1:{secure}/found", 1))
        known = await channel.send(attempt(f"natss://hush-9-hush@localhost:{secure}/found", 1))
    plain = await channel.send(attempt(f"natss://ann:hush-7-hush@localhost:{port}/found.news", 1))
    assert unknown.detail.startswith("the certificate of localhost does not hold: ")
    assert other.detail.startswith("the certificate of 127.0.0.1 does not hold: IP address mism")
    assert "no stream of JetStream takes the subject" in known.detail
    assert "offers no TLS" in plain.detail


@pytest.mark.parametrize(
    "text",
    [
        "nats://hush@nats.example",
        "nats://hush@nats.example/found.*",
        "nats://hush@nats.example/found.>",
        "nats://hush@nats.example/found%0d%0aPUB x",
        "nats://hush@nats.example/found?tls=no",
    ],
)
def test_what_is_no_subject_is_refused(text: str) -> None:
    with pytest.raises(SubscriptionError) as error:
        Destination.parse(text)
    assert "hush" not in str(error.value)
