"""The world around the demonstration's broker, and the broker itself as a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from email.message import Message
from pathlib import Path
from typing import Any

from aiohttp import web

from broker.demo.examples import examples_directory
from broker.demo.feed_server import FeedServer
from broker.demo.receivers import MailSink, Receipts, WebhookReceiver
from broker.registry.ownertoken import keep_owner_token
from broker.settings.directory import ADDRESS_FILE, TOKEN_FILE, keep_private

__all__ = ["STREAMS", "World", "WorldError"]

_LOOPBACK = "127.0.0.1"
_STOP_S = 15.0
_END_WAIT_S = 10.0

_SETTINGS = """\
# Settings of the broker in `xscl demo`.
data = "data"
allow_networks = ["127.0.0.0/8"]

[http]
port = {api}

[clock]
every = "1 s"

[smtp]
host = "127.0.0.1"
port = {smtp}
sender = "broker@demo.example"

[webhooks]
allow_http = true
"""
_FEED = """
[[feeds]]
url = "http://127.0.0.1:{port}/{feed}.xml"
stream = "{stream}"
every = "2 s"
"""
STREAMS = {"lighthouse-press": "announcements", "tide-gauge": "gauges"}
"""The streams of feeds that do not go into `news`."""


class WorldError(RuntimeError):
    """The demonstration cannot go on; the message says what the broker said last."""


class World:
    """Feed server, webhook receiver, mail sink and broker, in one directory.

    The directory remembers ports and the start, so that the same world can be entered again:
    a feed's address is part of what makes an item the same one.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.data = directory / "data"
        self.token_file = self.data / TOKEN_FILE
        keep_private(directory)  # the keys of webhooks are remembered in it
        self._memory = directory / "demo.json"
        self._known: dict[str, Any] = (
            json.loads(self._memory.read_text()) if self._memory.exists() else {}
        )
        self.is_known = bool(self._known)
        started = self._known.setdefault("started", datetime.now(UTC).isoformat())
        self.examples = examples_directory()
        self.feeds = FeedServer(self.examples / "feeds", datetime.fromisoformat(started))
        self.receipts = Receipts(directory / "received.jsonl")
        self.webhooks = WebhookReceiver(self.receipts)
        self.webhooks.keys.update(self._known.setdefault("keys", {}))
        self.mail = MailSink(self.receipts, _delivery_id)
        self._stack = AsyncExitStack()
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> World:
        await self._stack.__aenter__()
        feed_port = await self._serve("feeds", self.feeds.application())
        await self._serve("webhooks", self.webhooks.application())
        smtp_port = await self._listen_for_mail()
        api_port = self._known.setdefault("api", 0)
        settings = _SETTINGS.format(api=api_port, smtp=smtp_port)
        for feed in self.feeds.feeds:
            stream = STREAMS.get(feed, "news")
            settings += _FEED.format(port=feed_port, feed=feed, stream=stream)
        (self.directory / "xscl.toml").write_text(settings)
        keep_private(self.data)
        keep_owner_token(self.data)
        self.remember()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()

    def remember(self) -> None:
        """Write down what the next start on this directory needs."""
        self._known["keys"] = self.webhooks.keys
        self._memory.write_text(json.dumps(self._known))

    def headers(self) -> dict[str, str]:
        """Return the headers with which the broker admits a request."""
        return {"Authorization": f"Bearer {self.token_file.read_text().strip()}"}

    def webhook_url(self, query: str) -> str:
        """Return the URL to which the matches of a query are delivered."""
        return f"http://{_LOOPBACK}:{self._known['webhooks']}/{query}"

    async def start_broker(self, wait_s: float) -> str:
        """Start `xscl run` and return the URL of its API, once it answers."""
        log = (self.directory / "broker.log").open("ab")
        self._stack.callback(log.close)
        address = self.data / ADDRESS_FILE
        address.unlink(missing_ok=True)
        # The broker ends when its standard input does, so it never outlives the demonstration.
        self._process = await asyncio.create_subprocess_exec(
            *(
                sys.executable,
                "-P",
                "-m",
                "broker.cli",
                "--config",
                "xscl.toml",
                "run",
                "--until-eof",
            ),
            cwd=self.directory,
            stdin=asyncio.subprocess.PIPE,
            stdout=log,
            stderr=log,
        )
        self._stack.push_async_callback(self._stop_broker)
        async with asyncio.timeout(wait_s):
            while not address.exists() or not address.read_text().endswith("\n"):
                self.check_broker()
                await asyncio.sleep(0.05)
        return address.read_text().strip()

    def check_broker(self) -> None:
        """Raise `WorldError` if the broker has ended."""
        if self._process is not None and self._process.returncode is not None:
            lines = (self.directory / "broker.log").read_text(errors="replace").splitlines()
            said = "\n".join(lines[-15:])
            raise WorldError(f"the broker ended with {self._process.returncode}; it said:\n{said}")

    async def await_end_of_broker(self) -> None:
        """Raise `WorldError` as soon as the broker has ended; return if it does not soon."""
        with contextlib.suppress(TimeoutError):
            assert self._process is not None
            async with asyncio.timeout(_END_WAIT_S):
                await self._process.wait()
        self.check_broker()

    async def _stop_broker(self) -> None:
        process = self._process
        if process is None or process.returncode is not None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(_STOP_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()

    async def _serve(self, name: str, application: web.Application) -> int:
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.5)
        await runner.setup()
        self._stack.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, _LOOPBACK, self._known.get(name, 0)).start()
        port: int = runner.addresses[0][1]
        self._known[name] = port
        return port

    async def _listen_for_mail(self) -> int:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(self.mail.protocol, _LOOPBACK, self._known.get("smtp", 0))
        self._stack.callback(server.close)
        port: int = server.sockets[0].getsockname()[1]
        self._known["smtp"] = port
        return port


def _delivery_id(message: Message) -> str:
    return str(message["X-XSCL-Delivery"])
