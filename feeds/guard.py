"""Which addresses may be dialled: the SSRF guard.

A URL from outside may name, or redirect to, or resolve to an address inside our own network.
The check therefore stands where the socket is made: after DNS, with the very address that is
about to be dialled, so that a second answer from DNS cannot differ from the one checked.

Invariant: no socket is created for an address that is neither global nor explicitly allowed.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable, Iterable
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

import aiohttp

__all__ = [
    "REASON",
    "BlockedAddressError",
    "Network",
    "guarded_connector",
    "is_allowed",
    "is_listed",
    "networks",
]

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

AddressInfo = tuple[int, int, int, str, tuple[object, ...]]

_SPECIAL = tuple(
    ip_network(text)
    for text in (
        "192.0.0.0/24",  # protocol assignments (RFC 6890)
        "192.88.99.0/24",  # 6to4 relay anycast (RFC 7526)
        "::/96",  # IPv4-compatible: any IPv4 address in disguise (RFC 4291)
        "::ffff:0:0:0/96",  # IPv4-translated: the same (RFC 7915)
        "64:ff9b::/96",  # NAT64: any IPv4 address in disguise (RFC 6052)
        "64:ff9b:1::/48",  # local NAT64 (RFC 8215)
        "2002::/16",  # 6to4: any IPv4 address in disguise (RFC 3056)
        "2001::/32",  # Teredo
        "3fff::/20",  # documentation (RFC 9637)
        "5f00::/16",  # segment routing (RFC 9602)
        "fec0::/10",  # site-local, deprecated
    )
)
"""Ranges that `is_global` of Python 3.11 lets through and that lead, or may lead, inside."""


REASON = "is a private or reserved address"


class BlockedAddressError(OSError):
    """The address about to be dialled is private, and nobody has allowed it."""

    def __init__(self, address: str) -> None:
        super().__init__(errno.EACCES, f"{address} {REASON}; allow it explicitly")


def networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Return the allow-list that `texts` name ("127.0.0.0/8", "10.1.2.3"); raise ValueError."""
    return tuple(ip_network(text, strict=False) for text in texts)


def is_allowed(text: str, allowed: Iterable[Network] = ()) -> bool:
    """Return whether the address `text` is global, or lies in one of the `allowed` networks."""
    address = _read(text)
    if is_listed(text, allowed):
        return True
    if address.is_multicast or not address.is_global:
        return False
    return not any(address in network for network in _SPECIAL)


def is_listed(text: str, allowed: Iterable[Network]) -> bool:
    """Return whether the address `text` lies in one of the `allowed` networks."""
    address = _read(text)
    return any(address in network for network in allowed)


def _read(text: str) -> Address:
    address = ip_address(text.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def guarded_connector(allowed: Iterable[Network] = (), *, limit: int = 100) -> aiohttp.TCPConnector:
    """Return a connector that dials global and `allowed` addresses only.

    DNS answers are not cached for long, and connections are kept alive for seconds only: a
    feed is asked once, and thousands of idle connections are no courtesy to anybody.
    """
    return aiohttp.TCPConnector(
        socket_factory=_socket_factory(tuple(allowed)),
        limit=limit,
        ttl_dns_cache=60,
        keepalive_timeout=5,
    )


def _socket_factory(allowed: tuple[Network, ...]) -> Callable[[AddressInfo], socket.socket]:
    def make(info: AddressInfo) -> socket.socket:
        family, kind, protocol, _, place = info
        address = str(place[0])
        if not is_allowed(address, allowed):
            raise BlockedAddressError(address)
        return socket.socket(family=family, type=kind, proto=protocol)

    return make
