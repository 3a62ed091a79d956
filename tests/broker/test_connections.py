"""However many connect and say nothing, or say it slowly, the API answers who asks."""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
import socket
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st
from support.api_room import Room
from support.examples import examples

import broker.api.admission.connections
import broker.api.body
from broker.api.admission.connections import CONNECTIONS, Connections, Runner, raise_file_limit
from broker.api.http import listen, make_application

HALF = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-"
REST = b"Rest: 1\r\n\r\n"

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Api:
    """The API of a broker on a real socket, with so many connections at most."""

    def __init__(self, room: Room, most: int) -> None:
        self.application = make_application(room.backend, body_bytes_max=10_000)
        self.application[CONNECTIONS] = self.connections = Connections(most)
        self.application.middlewares[0] = self.connections.note
        self.waiting = asyncio.Event()
        self.application.router.add_get("/v1/wait", self._wait)
        self.runner = Runner(self.application, shutdown_timeout=0.1)
        self.port = 0

    async def _wait(self, request: web.Request) -> web.Response:
        await self.waiting.wait()
        return web.Response(text="waited")

    async def connect(self, said: bytes) -> Streams:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(said)
        await writer.drain()
        return reader, writer

    async def status(self, streams: Streams, said: bytes = b"") -> int | None:
        """Say something and return the status of the answer, None where it has been closed."""
        reader, writer = streams
        with contextlib.suppress(ConnectionError):
            writer.write(said)
            await writer.drain()
        line = b""
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(20):
                line = await reader.readline()
        return int(line.split()[1]) if line else None


@contextlib.asynccontextmanager
async def api(room: Room, most: int = 4) -> AsyncIterator[Api]:
    served = Api(room, most)
    await served.runner.setup()
    url = await listen(served.runner, "127.0.0.1", 0)
    served.port = int(url.rpartition(":")[2])
    try:
        yield served
    finally:
        served.waiting.set()
        await served.runner.cleanup()


def asks(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()


async def test_half_a_head_is_not_waited_for_for_ever(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker.api.admission.connections, "IDLE_S", 0.2)
    async with api(room) as served:
        for said in (b"", HALF, b"GET "):
            half = await served.connect(said)
            assert await served.status(half) is None


async def test_a_body_that_does_not_come_is_not_waited_for_for_ever(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker.api.body, "WAIT_S", 0.2)
    async with api(room) as served:
        head = b"PUT /v1/queries/q HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\nS//"
        assert await served.status(await served.connect(head)) == 408


async def test_one_more_closes_the_oldest_that_has_asked_nothing(room: Room) -> None:
    async with api(room, most=3) as served:
        kept = await served.connect(asks("/healthz"))
        assert await served.status(kept) == 200
        halves = [await served.connect(HALF) for _ in range(2)]
        await _are_open(served, 3)
        asked = await served.connect(asks("/healthz"))
        assert await served.status(asked) == 200
        assert await served.status(halves[0], REST) is None
        assert await served.status(halves[1], REST) == 200


async def test_those_that_are_at_work_are_left_alone(room: Room) -> None:
    async with api(room, most=2) as served:
        at_work = [await served.connect(asks("/v1/wait")) for _ in range(2)]
        await _are_open(served, 2)
        await _until(lambda: len(served.connections._busy) == 2)
        assert await served.status(await served.connect(asks("/healthz"))) is None
        served.waiting.set()
        assert [await served.status(each) for each in at_work] == [200, 200]
        assert await served.status(await served.connect(asks("/healthz"))) == 200


async def _are_open(served: Api, count: int) -> None:
    server = super(Runner, served.runner).server
    assert server is not None
    await _until(lambda: len(server.connections) == count)


async def _until(condition: Callable[[], bool]) -> None:
    for _ in range(100_000):
        if condition():
            return
        await asyncio.sleep(0)
    pytest.fail("it has not come about")


SERVER = """
import asyncio, resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
from support.small_broker import small_broker
async def main():
    async with small_broker(Path(sys.argv[1])) as url:
        print(url, flush=True)
        await asyncio.to_thread(sys.stdin.read)
asyncio.run(main())
"""


def test_two_thousand_half_open_connections_do_not_end_the_api(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert raise_file_limit() > 2_200, "this test holds 2,000 connections: raise `ulimit -Hn`"
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[1],
    )
    halves: list[socket.socket] = []
    try:
        assert process.stdout is not None
        url = process.stdout.readline().decode().strip()
        address = ("127.0.0.1", int(url.rpartition(":")[2]))
        for number in range(2_000):
            halves.append(socket.create_connection(address, timeout=30))
            halves[-1].sendall(HALF)
            if number % 250 == 0:
                _asks(url)
        _asks(url)
    finally:
        for each in halves:
            each.close()
        process.communicate(b"", timeout=60)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert process.returncode == 0


def _asks(url: str) -> None:
    with urllib.request.urlopen(f"{url}/v1/queries", timeout=20) as answer:
        assert json.load(answer) == {"queries": []}


HEADS = st.builds(
    lambda method, target, version, headers, end: (
        b" ".join([method, target, version]) + b"\r\n" + b"".join(headers) + end
    ),
    st.sampled_from(
        [b"GET", b"POST", b"PUT", b"DELETE", b"OPTIONS", b"get", b"G\x00T", b"", b"PRI"]
    ),
    st.one_of(
        st.sampled_from(
            [
                *(b"/", b"*", b"//", b"/%", b"/%ff", b"/v1/queries/%00", b"/v1/matches?after=%"),
                *(b"/../../etc/passwd", b"http://[::1", b"/v1/documents/" + b"9" * 400),
                *(b"/v1/queries/" + b"q" * 9_000, b"/v1/queries?" + b"a=b&" * 2_000, b"\xff"),
            ]
        ),
        st.binary(max_size=40),
    ),
    st.sampled_from([b"HTTP/1.1", b"HTTP/1.0", b"HTTP/2.0", b"HTTP/9.9", b"", b"HTTP/1.1 x"]),
    st.lists(
        st.sampled_from(
            [
                b"Host: 127.0.0.1\r\n",
                b"Host: [::1\r\n",
                b"Host: a\r\nHost: b\r\n",
                b"Content-Length: 5\r\n",
                b"Content-Length: -1\r\n",
                b"Content-Length: 5\r\nContent-Length: 6\r\n",
                b"Content-Length: 99999999999999999999\r\n",
                b"Transfer-Encoding: chunked\r\n",
                b"Transfer-Encoding: gzip, chunked\r\n",
                b"Content-Encoding: gzip\r\n",
                b"Content-Type: application/json; charset=nonsense\r\n",
                b"Content-Type: \x00\r\n",
                b"Expect: 100-continue\r\n",
                b"Expect: nonsense\r\n",
                b"Upgrade: websocket\r\nConnection: Upgrade\r\n",
                b"Authorization: Bearer \xff\r\n",
                b"Range: bytes=0-,0-\r\n",
                b'If-None-Match: "\r\n',
                b"Cookie: a=\x01; b\r\n",
                b"Last-Event-ID: 9e99\r\n",
                b"X: " + b"x" * 9_000 + b"\r\n",
                b" folded\r\n",
                b"no colon\r\n",
            ]
        ),
        max_size=4,
    ),
    st.sampled_from(
        [b"\r\n", b"\n", b"", b"\r\nhello", b"\r\n5\r\nhello\r\n0\r\n\r\n", b"\r\nzz\r\n"]
    ),
)


@pytest.mark.timeout(300)
def test_bytes_that_are_no_request_do_no_harm(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    room = Room(tmp_path)
    room.ingest.start()
    with asyncio.Runner() as runner:
        stack = contextlib.AsyncExitStack()
        served = runner.run(stack.enter_async_context(api(room, most=8)))

        @settings(max_examples=examples(100), deadline=None, database=None)
        @given(said=st.one_of(HEADS, st.binary(max_size=200)))
        def say(said: bytes) -> None:
            runner.run(_say(served, said))

        say()
        runner.run(stack.aclose())
    room.close()
    assert [each.getMessage() for each in caplog.records if each.levelname == "ERROR"] == []


async def _say(served: Api, said: bytes) -> None:
    """Say something, hear at most a moment of the answer, and see that others are answered."""
    reader, writer = await served.connect(said)
    writer.write_eof()
    with contextlib.suppress(ConnectionError, TimeoutError):
        async with asyncio.timeout(0.05):
            head = await reader.read(1_000)
        status = head.split(b" ", 2)[1] if head.startswith(b"HTTP/") else b""
        assert not status.startswith(b"5"), (said, head)
    writer.close()
    assert await served.status(await served.connect(asks("/healthz"))) == 200
