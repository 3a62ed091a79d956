"""Which server of a sink may be dialled: the guard of webhooks, for clients that dial themselves.

A name is looked up here and the client is given the address that was looked at, so that a second
answer of DNS cannot lead elsewhere.  What is sent in the clear goes to networks that the settings
name, and nowhere else: others could read it on its way.
"""

from __future__ import annotations

import asyncio
import socket

from broker.delivery.sinks.sink import SinkError, unreachable
from broker.registry.sinkaddress import SinkAddress
from feeds.guard import REASON, Network, is_allowed, is_listed

__all__ = ["Dialling"]


class Dialling:
    """Looks hosts up for sinks; `allowed` are the private networks that may be reached."""

    def __init__(self, allowed: tuple[Network, ...]) -> None:
        self._allowed = allowed

    async def address(self, sink: SinkAddress, host: str, port: int) -> str:
        """Return the address of a sink's host that is to be dialled; raise `SinkError` if none."""
        try:
            found = await asyncio.get_running_loop().getaddrinfo(
                host, port, type=socket.SOCK_STREAM
            )
        except UnicodeError as error:
            raise SinkError(f"{host} is not the name of a host") from error
        except OSError as error:
            raise unreachable(host, error) from error
        addresses = [str(place[0]) for *_, place in found]
        for address in addresses:
            if is_allowed(address, self._allowed):
                self._check_clear(sink, host, address)
                return address
        raise SinkError(
            f"{host} {REASON} ({addresses[0]}), which this broker does not call:"
            " `allow_networks` in its settings admits some"
        )

    def is_listed(self, address: str) -> bool:
        """Return whether the settings name the network of an address."""
        return is_listed(address, self._allowed)

    def _check_clear(self, sink: SinkAddress, host: str, address: str) -> None:
        """Raise `SinkError` where others could read what is sent to an address in the clear."""
        if sink.safe is not None and not self.is_listed(address):
            raise SinkError(
                f"{host} would be sent matches in the clear: write `{sink.safe}`, or name its"
                " network in `allow_networks`"
            )
