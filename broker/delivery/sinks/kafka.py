"""Matches as records of a Kafka topic, acknowledged by all replicas that are in sync.

The subscription is the key of its records, so that they are in one partition, in order; the id of
each is a header.  Kafka names the servers that are written to: the guard looks at each of them
before the first record, but the client looks the name up once more.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from typing import Any

from broker.delivery.attempt import Attempt, OutcomeKind
from broker.delivery.sinks.dialling import Dialling
from broker.delivery.sinks.records import Record, records
from broker.delivery.sinks.sink import SinkError, unreachable
from broker.registry.sinkaddress import SinkAddress

__all__ = ["KafkaSink", "open_kafka"]

_REQUEST_MS = 6_000
"""How long the client tries by itself; an attempt has more, so that the reason is heard."""

_BYTES_MAX = 1 << 30
"""What a record may have is for the topic to say, not for the client."""


async def open_kafka(
    address: SinkAddress, dialling: Dialling, alert_url: Callable[[str], str]
) -> KafkaSink:
    """Connect; raise `SinkError` where no server or the guard lets us."""
    # Imported here because the package is an extra.
    from aiokafka import AIOKafkaProducer
    from aiokafka.errors import KafkaConnectionError

    sink = KafkaSink(address, dialling, alert_url)
    for host, port in address.hosts:
        await sink.check(host, port)
    # It tells its log each try of each connection; what came of an attempt is kept with that.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    login = _login(address)
    producer = AIOKafkaProducer(
        bootstrap_servers=[f"{host}:{port}" for host, port in address.hosts],
        acks="all",
        max_request_size=_BYTES_MAX,
        **login,
    )
    try:
        await producer.start()
    except KafkaConnectionError as error:
        raise SinkError(await _reason(address, login), OutcomeKind.THROTTLED) from error
    sink.use(producer)
    return sink


def _login(address: SinkAddress) -> dict[str, Any]:
    layer = "SSL" if address.is_secure else "PLAINTEXT"
    return {
        "client_id": "xscl",
        "request_timeout_ms": _REQUEST_MS,
        "security_protocol": layer if address.user is None else f"SASL_{layer}",
        "ssl_context": ssl.create_default_context() if address.is_secure else None,
        "sasl_mechanism": address.options.get("sasl", "plain").upper(),
        "sasl_plain_username": address.user,
        "sasl_plain_password": address.password,
    }


async def _reason(address: SinkAddress, login: dict[str, Any]) -> str:
    """Return why the first host does not let us in: the client tells its log only."""
    from aiokafka.conn import create_conn
    from aiokafka.errors import KafkaError

    host, port = address.hosts[0]
    try:
        (await create_conn(host, port, **login)).close()
    except TimeoutError:
        return f"{host} gives no answer"
    except OSError as error:
        return str(unreachable(host, error))
    except KafkaError as error:
        return f"{host} says: {_said(error)}"
    return f"{host} names no servers"


class KafkaSink:
    """A topic, over the connections to the servers that have it."""

    def __init__(
        self, address: SinkAddress, dialling: Dialling, alert_url: Callable[[str], str]
    ) -> None:
        self._address = address
        self._dialling = dialling
        self._alert_url = alert_url
        self._producer: Any = None
        self._checked: set[tuple[str, int]] = set()

    def use(self, producer: Any) -> None:
        """Take the connections that have been made."""
        self._producer = producer

    async def check(self, host: str, port: int) -> None:
        """Raise `SinkError` where the guard does not let us dial a host."""
        if (host, port) in self._checked:
            return
        await self._dialling.address(self._address, host, port)
        self._checked.add((host, port))

    @property
    def is_open(self) -> bool:
        """The client makes its connections anew by itself."""
        return True

    async def write(self, attempt: Attempt) -> None:
        """Send all matches in order, and wait until the replicas have them."""
        for server in self._producer.client.cluster.brokers():
            await self.check(server.host, server.port)
        made = records(attempt, self._alert_url)
        key = attempt.subscription.id.encode()
        answers = [await self._send(key, each) for each in made]
        results = await asyncio.gather(*answers, return_exceptions=True)
        failures = [each for each in results if isinstance(each, Exception)]
        # What is tried again is all there once it is; what is refused is said of the rest.
        failures.sort(key=_is_refusal)
        if failures:
            raise self.failure(failures[0]) from failures[0]

    async def close(self) -> None:
        """Give the connections back."""
        await self._producer.stop()

    async def _send(self, key: bytes, record: Record) -> asyncio.Future[Any]:
        from aiokafka.errors import KafkaError

        headers = {"xscl-delivery": record.id, "content-type": record.content_type}
        try:
            answer: asyncio.Future[Any] = await self._producer.send(
                self._address.path,
                record.body,
                key=key,
                headers=[(n, v.encode()) for n, v in {**headers, **record.headers}.items()],
            )
        except KafkaError as error:
            raise self.failure(error) from error
        return answer

    def failure(self, error: Exception) -> SinkError:
        """Return what an error of the client means to a delivery."""
        from aiokafka.errors import KafkaTimeoutError, UnknownTopicOrPartitionError

        topic = self._address.path
        if _is_refusal(error):
            detail = f"{topic} does not take a match of this size; the others are there"
            return SinkError(detail, OutcomeKind.REFUSED, keeps=True)
        if isinstance(error, UnknownTopicOrPartitionError):
            return SinkError(f"there is no topic {topic!r}: make one", keeps=True)
        is_away = isinstance(error, KafkaTimeoutError | OSError)
        is_later = is_away or getattr(error, "retriable", False)
        kind = OutcomeKind.THROTTLED if is_later else OutcomeKind.FAILED
        return SinkError(f"Kafka says: {_said(error)}", kind)


def _is_refusal(error: Exception) -> bool:
    """Return whether an error is about one record, and the others have none."""
    from aiokafka.errors import MessageSizeTooLargeError, RecordListTooLargeError

    return isinstance(error, MessageSizeTooLargeError | RecordListTooLargeError)


def _said(error: Exception) -> str:
    """Return the name of an error, by which Kafka's manuals know it, and what it means."""
    return f"{type(error).__name__}: {getattr(error, 'description', '') or error}"
