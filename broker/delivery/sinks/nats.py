"""Matches as messages of NATS, kept by a stream of JetStream before they count as delivered."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from broker.delivery.attempt import Attempt, OutcomeKind
from broker.delivery.sinks.dialling import Dialling
from broker.delivery.sinks.records import Record, records
from broker.delivery.sinks.sink import SinkError, unreachable
from broker.delivery.sinks.tls import NamedContext
from broker.registry.sinkaddress import SinkAddress

__all__ = ["NatsSink", "open_nats"]

_ANSWER_S = 3_600
"""How long the client waits by itself; the attempt ends before."""

_END_S = 0.1


async def open_nats(
    address: SinkAddress, dialling: Dialling, alert_url: Callable[[str], str]
) -> NatsSink:
    """Connect to the first host that answers; raise `SinkError` where none does."""
    failure: SinkError | None = None
    for host, port in address.hosts:
        try:
            return await _connected(address, host, port, dialling, alert_url)
        except SinkError as error:
            failure = error
    assert failure is not None, "an address names hosts"
    raise failure


async def _connected(
    address: SinkAddress, host: str, port: int, dialling: Dialling, alert_url: Callable[[str], str]
) -> NatsSink:
    # Imported here because the package is an extra.
    from nats.aio.client import Client
    from nats.errors import Error

    dialled = await dialling.address(address, host, port)
    tls = NamedContext(host) if address.is_secure else None

    def told(secret: str | None) -> Callable[[], str] | None:
        """Have the client ask for a secret when it is about to send it."""

        def tell() -> str:
            if tls is not None and not tls.is_used:
                raise SinkError(f"{host} offers no TLS, which `natss://` asks for")
            return secret or ""

        return None if secret is None else tell

    is_token = address.user is None
    sink, client = NatsSink(address.path, alert_url), Client()
    try:
        await client.connect(
            # One host, once: the guard has looked at no other.
            [f"nats://{f'[{dialled}]' if ':' in dialled else dialled}:{port}"],
            name="xscl",
            # It waits for the answer to its login then; who writes on may find the connection
            # reset, and the reason with it.
            verbose=True,
            tls=tls,
            tls_hostname=host if tls else None,
            user=address.user,
            password=None if is_token else told(address.password or ""),
            token=told(address.password) if is_token else None,
            allow_reconnect=False,
            max_reconnect_attempts=1,
            reconnect_time_wait=0,
            error_cb=sink.note,
        )
    except (Error, OSError) as error:
        await _abandon(client)
        reason = sink.noted or error
        if isinstance(reason, OSError):
            raise unreachable(host, reason) from error
        raise SinkError(f"{host} says: {_said(reason)}", OutcomeKind.THROTTLED) from error
    except SinkError:
        await _abandon(client)
        raise
    sink.use(client)
    if tls is not None and not tls.is_used:
        await _abandon(client)
        raise SinkError(f"{host} offers no TLS, which `natss://` asks for")
    return sink


class NatsSink:
    """A subject, over one connection."""

    def __init__(self, subject: str, alert_url: Callable[[str], str]) -> None:
        self._subject = subject
        self._alert_url = alert_url
        self._client: Any = None
        self._broken = asyncio.Event()
        self.noted: Exception | None = None

    def use(self, client: Any) -> None:
        """Take the connection that has been made."""
        self._client = client
        self._stream = client.jetstream(timeout=_ANSWER_S)

    @property
    def is_open(self) -> bool:
        """Whether the connection still stands, as far as is known."""
        return self.noted is None and self._client.is_connected

    async def note(self, error: Exception) -> None:
        """Hear what a server says unasked, as that we may not publish: it answers nothing else."""
        self.noted = error
        self._broken.set()

    async def write(self, attempt: Attempt) -> None:
        """Publish all matches in order, and wait until the stream has them."""
        made = records(attempt, self._alert_url)
        published = [asyncio.create_task(self._publish(each)) for each in made]
        all_kept = asyncio.gather(*published, return_exceptions=True)
        broken = asyncio.create_task(self._broken.wait())
        try:
            both: set[asyncio.Future[Any]] = {all_kept, broken}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (broken, *published):
                task.cancel()
            results = await all_kept
        if self.noted is not None:
            raise self._refused(self.noted)
        for failure in filter(None, results):
            raise failure

    async def close(self) -> None:
        """Give the connection back."""
        await self._client.close()

    def _refused(self, error: Exception) -> SinkError:
        from nats.errors import ConnectionClosedError, StaleConnectionError

        if isinstance(error, StaleConnectionError | ConnectionClosedError | OSError):
            return SinkError(f"the connection was ended: {_said(error)}", OutcomeKind.THROTTLED)
        return SinkError(f"the server says: {_said(error)}")

    async def _publish(self, record: Record) -> None:
        from nats.errors import Error, MaxPayloadError
        from nats.js.errors import APIError, NoStreamResponseError, ServiceUnavailableError

        headers = {
            "Nats-Msg-Id": record.id,
            "Content-Type": record.content_type,
            **record.headers,
        }
        try:
            await self._stream.publish(self._subject, record.body, headers=headers)
        except MaxPayloadError as error:
            raise SinkError(
                f"a match of {len(record.body)} bytes is larger than the server takes"
                f" ({self._client.max_payload}); the others of this message are there",
                OutcomeKind.REFUSED,
                keeps=True,
            ) from error
        except NoStreamResponseError as error:
            raise SinkError(
                f"no stream of JetStream takes the subject {self._subject!r}: make one", keeps=True
            ) from error
        except APIError as error:
            is_busy = isinstance(error, ServiceUnavailableError)
            kind = OutcomeKind.THROTTLED if is_busy else OutcomeKind.FAILED
            raise SinkError(f"JetStream says: {error.description}", kind, keeps=True) from error
        except (Error, OSError) as error:
            raise self._refused(self.noted or error) from error


def _said(error: Exception) -> str:
    return str(error).removeprefix("nats: ").strip("'")


async def _abandon(client: Any) -> None:
    """Give a connection back that was not made; where TLS failed, its end is never announced."""
    with contextlib.suppress(Exception):
        async with asyncio.timeout(_END_S):
            await client.close()
