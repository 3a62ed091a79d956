"""Matches as messages of MQTT, at least once: each is answered by the server before it counts.

MQTT 5 is spoken where the server has it, 3.1.1 where it does not.  Only with 5 does a server say
that a message was not taken: with 3.1.1 it may acknowledge one and drop it.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from typing import Any

from broker.delivery.attempt import Attempt, OutcomeKind
from broker.delivery.sinks.dialling import Dialling
from broker.delivery.sinks.records import Record, records
from broker.delivery.sinks.sink import SinkError, unreachable
from broker.delivery.sinks.tls import NamedContext
from broker.registry.sinkaddress import SinkAddress

__all__ = ["MqttSink", "open_mqtt"]

_KEEPALIVE_S = 20
_BUSY = frozenset({0x88, 0x89, 0x93, 0x96, 0x97, 0x9F})
"""Reason codes of a server that will take a message later."""

_UNTAKEN = frozenset({0x95, 0x99})
"""Reason codes about one message: it is too large, or not of the form that the server wants."""

_UNSPOKEN = 0x84

_BYTES_MAX = 268_435_455
"""What the protocol has room for."""


async def open_mqtt(
    address: SinkAddress, dialling: Dialling, alert_url: Callable[[str], str]
) -> MqttSink:
    """Connect; raise `SinkError` where the server or the guard refuses."""
    # Imported here because the package is an extra.
    from paho.mqtt.enums import MQTTProtocolVersion

    ((host, port),) = address.hosts
    dialled = await dialling.address(address, host, port)
    for version in (MQTTProtocolVersion.MQTTv5, MQTTProtocolVersion.MQTTv311):
        sink = MqttSink(address, alert_url, version)
        try:
            await sink.open(dialled, port)
        except SinkError:
            await sink.close()
            if version is MQTTProtocolVersion.MQTTv5 and sink.is_unspoken:
                continue
            raise
        except BaseException:
            await sink.close()
            raise
        return sink
    raise AssertionError("the last version is not passed over")


class MqttSink:
    """A topic, over one connection, which a thread of the client reads."""

    def __init__(self, address: SinkAddress, alert_url: Callable[[str], str], version: Any) -> None:
        from paho.mqtt.client import Client
        from paho.mqtt.enums import CallbackAPIVersion

        self._host = address.hosts[0][0]
        self._topic = address.path
        self._alert_url = alert_url
        self._loop = asyncio.get_running_loop()
        self._connected: asyncio.Future[Any] = self._loop.create_future()
        self._ended: asyncio.Future[str] = self._loop.create_future()
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._bytes_max = _BYTES_MAX
        self.is_unspoken = False
        client = Client(
            CallbackAPIVersion.VERSION2,
            f"xscl-{secrets.token_hex(8)}",
            protocol=version,
            reconnect_on_failure=False,
        )
        if address.user is not None:
            client.username_pw_set(address.user, address.password)
        if address.is_secure:
            client.tls_set_context(NamedContext(self._host))
        client.on_connect = self._heard(self._note_connected)
        client.on_disconnect = self._heard(self._note_ended)
        client.on_publish = self._heard(self._note_answer)
        self._client = client

    async def open(self, address: str, port: int) -> None:
        """Connect to an address of the host, and wait until the server lets us in."""
        try:
            await asyncio.to_thread(self._client.connect, address, port, _KEEPALIVE_S)
        except OSError as error:
            raise unreachable(self._host, error) from error
        self._client.loop_start()
        await asyncio.wait({self._connected, self._ended}, return_when=asyncio.FIRST_COMPLETED)
        if not self._connected.done():
            self.is_unspoken = True
            raise self._lost()
        code = self._connected.result()
        if code.is_failure:
            self.is_unspoken = code.value == _UNSPOKEN
            kind = OutcomeKind.THROTTLED if code.value in _BUSY else OutcomeKind.FAILED
            raise SinkError(f"{self._host} says: {code}", kind)

    @property
    def is_open(self) -> bool:
        """Whether the connection still stands, as far as is known."""
        return not self._ended.done()

    async def write(self, attempt: Attempt) -> None:
        """Publish all matches in order, and wait for the server's answer to each."""
        made = records(attempt, self._alert_url)
        fitting = [each for each in made if len(each.body) <= self._bytes_max]
        answers = [self._publish(each) for each in fitting]
        all_answered = asyncio.gather(*answers, return_exceptions=True)
        try:
            both: set[asyncio.Future[Any]] = {all_answered, self._ended}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if not all_answered.done():
                raise self._lost()
        finally:
            for answer in answers:
                answer.cancel()
            self._answers.clear()
            codes = await all_answered
        for code in codes:
            assert not isinstance(code, BaseException), "none is cancelled before all are there"
            if code.is_failure:
                raise self._refused(code)
        if len(fitting) < len(made):
            large = max(len(each.body) for each in made)
            raise SinkError(
                f"a match of {large} bytes is larger than the server takes ({self._bytes_max});"
                " the others of this message are there",
                OutcomeKind.REFUSED,
                keeps=True,
            )

    async def close(self) -> None:
        """Give the connection back."""
        self._client.disconnect()
        await asyncio.to_thread(self._client.loop_stop)

    def _publish(self, record: Record) -> asyncio.Future[Any]:
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        properties: Any = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
        properties.ContentType = record.content_type
        properties.UserProperty = [("xscl-delivery", record.id), *record.headers.items()]
        sent = self._client.publish(self._topic, record.body, qos=1, properties=properties)
        # Answers are heard in this thread, so none can have come yet.
        self._answers[sent.mid] = answer = self._loop.create_future()
        return answer

    def _refused(self, code: Any) -> SinkError:
        detail = f"{self._host} does not take messages of {self._topic!r}: {code}"
        if code.value in _UNTAKEN:
            return SinkError(detail, OutcomeKind.REFUSED, keeps=True)
        kind = OutcomeKind.THROTTLED if code.value in _BUSY else OutcomeKind.FAILED
        return SinkError(detail, kind, keeps=True)

    def _lost(self) -> SinkError:
        detail = f"{self._host} ended the connection: {self._ended.result()}"
        return SinkError(detail, OutcomeKind.THROTTLED)

    def _heard(self, note: Callable[..., None]) -> Callable[..., None]:
        """Have what the client's thread tells be noted in the event loop."""

        def hear(client: Any, userdata: Any, *told: Any) -> None:
            self._loop.call_soon_threadsafe(note, *told)

        return hear

    def _note_connected(self, flags: Any, code: Any, properties: Any) -> None:
        self._bytes_max = getattr(properties, "MaximumPacketSize", _BYTES_MAX)
        if not self._connected.done():
            self._connected.set_result(code)

    def _note_ended(self, flags: Any, code: Any, properties: Any) -> None:
        if not self._ended.done():
            self._ended.set_result(str(code))

    def _note_answer(self, mid: int, code: Any, properties: Any) -> None:
        answer = self._answers.pop(mid, None)
        if answer is not None and not answer.done():
            answer.set_result(code)
