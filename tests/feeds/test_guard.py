"""The SSRF guard: no socket for an address inside, however it is written or looked up."""

from __future__ import annotations

import socket
from typing import Any

import aiohttp
import pytest
from aiohttp.abc import AbstractResolver, ResolveResult
from hypothesis import given
from hypothesis import strategies as st
from support.feed_server import Page, entries, rss

from feeds import Fault, FeedError, Request, fetch, guarded_connector, networks
from feeds.guard import is_allowed

INSIDE = [
    "127.0.0.1",
    "127.255.255.254",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "0.0.0.0",
    "255.255.255.255",
    "224.0.0.1",
    "240.0.0.1",
    "192.0.0.1",
    "192.0.0.9",
    "192.0.0.170",
    "192.0.0.255",
    "::127.0.0.1",
    "::10.0.0.1",
    "::8.8.8.8",
    "::ffff:0:127.0.0.1",
    "::ffff:0:a9fe:a9fe",
    "192.0.2.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "192.88.99.1",
    "::1",
    "::",
    "fe80::1",
    "fe80::1%eth0",
    "fc00::1",
    "fd00:ec2::254",
    "ff02::1",
    "fec0::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1",
    "2002:7f00:1::",
    "2001::1",
    "2001:db8::1",
    "3fff::1",
    "5f00::1",
    "100::1",
]
OUTSIDE = ["1.1.1.1", "8.8.8.8", "93.184.216.34", "2606:4700:4700::1111", "::ffff:8.8.8.8"]


@pytest.mark.parametrize("address", INSIDE)
def test_addresses_inside_are_refused(address: str):
    assert not is_allowed(address)


@pytest.mark.parametrize("address", OUTSIDE)
def test_addresses_outside_are_dialled(address: str):
    assert is_allowed(address)


def test_what_is_allowed_is_dialled_and_nothing_beside_it():
    allowed = networks(["10.1.0.0/16", "::1"])
    assert is_allowed("10.1.2.3", allowed)
    assert is_allowed("::1", allowed)
    assert is_allowed("::ffff:10.1.2.3", allowed)
    assert not is_allowed("10.2.0.1", allowed)


@given(st.ip_addresses(v=4).filter(lambda address: not address.is_global))
def test_no_disguise_of_a_private_address_gets_through(address: Any):
    assert not is_allowed(str(address))
    assert not is_allowed(f"::ffff:{address}")
    assert not is_allowed(f"64:ff9b::{address}")


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f.1", "0.0.0.0", "[::1]"]
)
async def test_no_spelling_of_loopback_is_dialled(server, host: str):
    server.pages["/feed"] = Page(rss(entries([1])))
    async with aiohttp.ClientSession(connector=guarded_connector()) as session:
        found = await fetch(session, Request(f"http://{host}:{server.port}/feed"))
    assert isinstance(found, FeedError)
    assert found.fault in (Fault.BLOCKED, Fault.URL, Fault.CONNECTION, Fault.NAME)
    assert server.requests == []


class Rebinding(AbstractResolver):
    """DNS that names a public address first and loopback from then on."""

    def __init__(self) -> None:
        self.answers = iter(["192.0.2.1", "127.0.0.1"])

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        address = next(self.answers, "127.0.0.1")
        return [
            ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0)
        ]

    async def close(self) -> None:
        return None


async def test_dns_that_rebinds_to_loopback_is_caught_at_the_dial(server):
    server.pages["/feed"] = Page(rss(entries([1])))
    connector = guarded_connector()
    connector._resolver = Rebinding()
    connector._use_dns_cache = False
    async with aiohttp.ClientSession(connector=connector) as session:
        for _ in range(3):
            request = Request(f"http://rebinding.example:{server.port}/feed")
            found = await fetch(session, request)
            assert isinstance(found, FeedError)
            assert found.fault is Fault.BLOCKED
    assert server.requests == []
