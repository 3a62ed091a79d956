"""Write matches into sinks over kept connections, and make outcomes of what goes wrong.

A connection serves one attempt at a time.  It is closed when it fails, and when nobody has written
for half a minute: a server that ended it meanwhile would cost the next match an attempt.
"""

from __future__ import annotations

import asyncio
import importlib.util
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from broker.delivery.attempt import RESPONSE_KEPT_MAX, Attempt, Outcome, OutcomeKind
from broker.delivery.sinks.dialling import Dialling
from broker.delivery.sinks.kafka import open_kafka
from broker.delivery.sinks.mqtt import open_mqtt
from broker.delivery.sinks.nats import open_nats
from broker.delivery.sinks.postgresql import open_postgresql
from broker.delivery.sinks.sink import Sink, SinkError
from broker.registry.destination import Destination, DestinationKind
from broker.registry.sinkaddress import SinkAddress
from feeds.guard import Network

__all__ = ["SinkChannel"]

_IDLE_S = 30.0


@dataclass(frozen=True, slots=True)
class _Kind:
    """How a kind of sink is opened, and which package that needs; our extra has the kind's name."""

    open: Callable[[SinkChannel, SinkAddress], Awaitable[Sink]]
    package: str


@dataclass(slots=True)
class _Connection:
    """The connection to one destination, if there is one, and whose turn it is."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    sink: Sink | None = None
    idle: asyncio.TimerHandle | None = None


class SinkChannel:
    """Writes to sinks of all kinds.

    Servers at global addresses are dialled, over TLS, and servers in the `allowed` networks.  Files
    of DuckDB are in `directory`.  `alert_url` returns the page on which a message is answered, or
    "".
    """

    def __init__(
        self,
        directory: Path,
        *,
        allowed: Iterable[Network] = (),
        timeout_s: float = 15.0,
        alert_url: Callable[[str], str] = lambda delivery_id: "",
    ) -> None:
        self.directory = directory
        self.dialling = Dialling(tuple(allowed))
        self.alert_url = alert_url
        self._timeout_s = timeout_s
        self._places: dict[str, _Connection] = {}
        self._closing: set[asyncio.Task[None]] = set()

    async def send(self, attempt: Attempt) -> Outcome:
        """Write the matches once; what goes wrong is an outcome, never an exception."""
        destination = attempt.subscription.destination
        began = time.perf_counter_ns()
        kind, detail = await self._written(destination, attempt)
        elapsed_us = (time.perf_counter_ns() - began) // 1_000
        outcome = Outcome(kind, detail=detail[:RESPONSE_KEPT_MAX], elapsed_us=elapsed_us)
        return outcome.hiding(destination.sink.secrets)

    async def refusal(self, destination: Destination) -> str | None:
        """Return why a sink is never written to: a package is missing, or a host is inside."""
        missing = _missing(destination.kind)
        if missing:
            return missing
        for host, port in destination.sink.hosts:
            try:
                await self.dialling.address(destination.sink, host, port)
            except SinkError as error:
                # A name that cannot be looked up now may be tomorrow.
                if error.kind is not OutcomeKind.THROTTLED:
                    return str(error)
        return None

    async def close(self) -> None:
        """Give connections back."""
        for place in self._places.values():
            if place.idle is not None:
                place.idle.cancel()
            self._close(place)
        self._places.clear()
        await asyncio.gather(*self._closing, return_exceptions=True)

    async def _written(self, destination: Destination, attempt: Attempt) -> tuple[OutcomeKind, str]:
        place = self._places.setdefault(destination.address, _Connection())
        try:
            async with asyncio.timeout(self._timeout_s), place.turn:
                await self._write(place, destination, attempt)
        except SinkError as error:
            return error.kind, str(error)
        except TimeoutError:
            return OutcomeKind.THROTTLED, "no answer in time"
        except OSError as error:
            return OutcomeKind.THROTTLED, f"it cannot be reached: {error.strerror or error}"
        except Exception as error:
            # Clients of many kinds, by as many authors: any error is a failed attempt.
            return OutcomeKind.FAILED, f"{type(error).__name__}: {error}"
        return OutcomeKind.DELIVERED, ""

    async def _write(self, place: _Connection, destination: Destination, attempt: Attempt) -> None:
        is_good = False
        try:
            if place.sink is not None and not place.sink.is_open:
                self._close(place)
            if place.sink is None:
                place.sink = await self._opened(destination)
            await place.sink.write(attempt)
            is_good = True
        except SinkError as error:
            is_good = error.keeps
            raise
        finally:
            if not is_good:
                self._close(place)
            self._rest(place, destination.address)

    async def _opened(self, destination: Destination) -> Sink:
        missing = _missing(destination.kind)
        if missing:
            raise SinkError(missing)
        return await _KINDS[destination.kind].open(self, destination.sink)

    def _rest(self, place: _Connection, address: str) -> None:
        """Have a connection closed, unless it is used again before long."""
        if place.idle is not None:
            place.idle.cancel()
        place.idle = asyncio.get_running_loop().call_later(_IDLE_S, self._let_go, address)

    def _let_go(self, address: str) -> None:
        place = self._places[address]
        if place.turn.locked():
            return  # whoever has its turn will come here again
        del self._places[address]
        self._close(place)

    def _close(self, place: _Connection) -> None:
        sink, place.sink = place.sink, None
        if sink is not None:
            task = asyncio.create_task(sink.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)


def _missing(kind: DestinationKind) -> str | None:
    if importlib.util.find_spec(_KINDS[kind].package) is not None:
        return None
    return (
        f"this broker has no client for {kind.value}:"
        f" `pip install 'xscl-broker[{kind.value}]'` where it runs brings one"
    )


async def _kafka(channel: SinkChannel, address: SinkAddress) -> Sink:
    return await open_kafka(address, channel.dialling, channel.alert_url)


async def _mqtt(channel: SinkChannel, address: SinkAddress) -> Sink:
    return await open_mqtt(address, channel.dialling, channel.alert_url)


async def _nats(channel: SinkChannel, address: SinkAddress) -> Sink:
    return await open_nats(address, channel.dialling, channel.alert_url)


async def _postgresql(channel: SinkChannel, address: SinkAddress) -> Sink:
    return await open_postgresql(address, channel.dialling)


async def _duckdb(channel: SinkChannel, address: SinkAddress) -> Sink:
    from broker.delivery.sinks.duckdb import DuckDBSink

    return DuckDBSink(address, channel.directory)


_KINDS: Mapping[DestinationKind, _Kind] = {
    DestinationKind.DUCKDB: _Kind(_duckdb, "duckdb"),
    DestinationKind.KAFKA: _Kind(_kafka, "aiokafka"),
    DestinationKind.MQTT: _Kind(_mqtt, "paho"),
    DestinationKind.NATS: _Kind(_nats, "nats"),
    DestinationKind.POSTGRESQL: _Kind(_postgresql, "psycopg"),
}
