"""Matches as records of a topic on several servers, by another hand than that of `test_kafka_sink`.

The servers are those that Confluent's client brings for tests, and its consumer reads.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from support.sinking import delivered
from support.subscribers import LOOPBACK, broker_in, found

from broker.delivery.sinks.channel import SinkChannel
from broker.delivery.store import delivery_id

MATCHES = range(1, 60)


@pytest.fixture
def servers() -> Iterator[list[str]]:
    """Run three servers, for as long as their producer lives."""
    producer = Producer({"test.mock.num.brokers": "3", "log_level": "4"})
    found_brokers = producer.list_topics(timeout=20).brokers.values()
    yield [f"{each.host}:{each.port}" for each in found_brokers]
    producer.flush(0)


def read(server: str, topic: str, count: int) -> list[Any]:
    consumer = Consumer(
        {"bootstrap.servers": server, "group.id": "reader", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    try:
        messages: list[Any] = []
        while len(messages) < count and (message := consumer.poll(20)) is not None:
            messages.append(message)
        return messages
    finally:
        consumer.close()


async def test_another_client_reads_all_matches_in_order_from_one_partition(
    servers: list[str], tmp_path: Path
) -> None:
    channel = SinkChannel(tmp_path, allowed=LOOPBACK, timeout_s=15)
    with broker_in(tmp_path) as broker:
        address = f"kafka://{servers[0]},{servers[1]}/news"
        name = await delivered(broker, channel, address, MATCHES)
    await channel.close()
    messages = await asyncio.to_thread(read, servers[2], "news", len(MATCHES))
    assert [each.error() for each in messages] == [None] * len(MATCHES)
    ids = [found(number).id for number in MATCHES]
    assert [json.loads(each.value())["data"]["id"] for each in messages] == ids
    told = [dict(each.headers())["xscl-delivery"].decode() for each in messages]
    assert told == [delivery_id(name, id_) for id_ in ids]
    assert {each.key().decode() for each in messages} == {name}
    assert len({each.partition() for each in messages}) == 1
