"""`xscl quickstart`: a broker of one's own, with a query, two feeds and a match."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from broker.cli.connection import BrokerConnection
from broker.cli.init import write_settings
from broker.cli.terminal import Failure, echo, message
from broker.cli.wait import until_ready
from broker.settings.config import load_settings
from broker.settings.directory import TOKEN_FILE, keep_private

__all__ = ["quickstart"]

_PORT = 8420
_QUERY = "same-story"
_FEEDS = ("courier", "wire")
_ROUND = "3.xml"
_START_WAIT_S = 600.0
_MATCH_WAIT_S = 120.0
_FETCH_WAIT_S = 20


@click.command()
@click.argument(
    "directory", default="xscl-quickstart", type=click.Path(file_okay=False, path_type=Path)
)
def quickstart(directory: Path) -> None:
    """Start a broker in DIRECTORY, with a query, two feeds and a first match, and leave it running.

    DIRECTORY is new.  It gets settings, the example query same-story and two example feeds, which
    a small server on this machine publishes.  Both processes go on when this verb ends; it says
    how to end them.

    \b
    Examples:
      xscl quickstart
      xscl quickstart ~/my-broker
    """
    began = time.monotonic()
    place = _Workplace(directory.absolute())
    try:
        place.prepare()
        place.start()
        match = place.match()
    except BaseException:
        place.end()
        raise
    _show(place, match)
    _explain(place, time.monotonic() - began)


@dataclass
class _Workplace:
    """A directory, and what runs on it."""

    directory: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def prepare(self) -> None:
        """Write settings, the query and the feeds."""
        from broker.demo.examples import examples_directory

        if self.directory.exists() and any(self.directory.iterdir()):
            hint = f"name another, or run the broker that is there: cd {self.directory}; xscl run"
            raise Failure(f"{self.directory} is not empty", hint=hint)
        self.path = write_settings(self.directory, for_loopback=True, port=_free_port(_PORT))
        keep_private(self.directory)
        examples = examples_directory()
        shutil.copy(examples / "queries" / f"{_QUERY}.xscl", self.directory)
        (self.directory / "feeds").mkdir()
        for feed in _FEEDS:
            shutil.copy(examples / "feeds" / feed / _ROUND, self.feed(feed))
        self.settings = load_settings(self.path)
        self.url = f"http://127.0.0.1:{self.settings.http.port}"

    def feed(self, name: str) -> Path:
        """Return the file of a feed."""
        return self.directory / "feeds" / f"{name}.xml"

    def start(self) -> None:
        """Start the server of the feeds and the broker, and wait until it is ready."""
        port = _free_port()
        server = ["http.server", str(port), "--bind", "127.0.0.1", "--directory", "feeds"]
        self._run("feeds.log", *server)
        broker = self._run("broker.log", "broker.cli", "--config", str(self.path), "run")
        self.feeds = [f"http://127.0.0.1:{port}/{name}.xml" for name in _FEEDS]
        message(f"starting a broker in {self.directory}: Java, Spark, DuckDB")
        try:
            until_ready(lambda: self.url, lambda: broker.poll() is None, _START_WAIT_S)
        except Failure as failure:
            said = (self.directory / "broker.log").read_text(errors="replace")[-2_000:]
            raise Failure(f"{failure.message}; it said:\n{said}") from failure
        token = (self.settings.data / TOKEN_FILE).read_text(encoding="ascii").strip()
        self.broker = BrokerConnection(self.url, token)

    def match(self) -> dict[str, Any]:
        """Register the query, subscribe to it, add the feeds; return the first match."""
        query = (self.directory / f"{_QUERY}.xscl").read_bytes()
        self.broker.call("PUT", "queries", _QUERY, body=query, content_type="text/plain")
        asked = {"query": _QUERY, "destination": "pull"}
        self.broker.call("POST", "subscriptions", body=asked)
        message(f"registered {_QUERY}, and subscribed to it")
        for feed in self.feeds:
            self.broker.call("POST", "feeds", body={"url": feed, "stream": "news"})
            message(f"added the feed {feed} to the stream news")
        deadline = time.monotonic() + _MATCH_WAIT_S
        while time.monotonic() < deadline:
            asked_for = {"query": _QUERY, "after": 0, "limit": 1, "wait": _FETCH_WAIT_S}
            if matches := self.broker.get("matches", **asked_for)["matches"]:
                return dict(matches[0])
        raise Failure("no match was found in time", hint=f"see {self.directory}/broker.log")

    def end(self) -> None:
        """End what was started."""
        for process in self.processes:
            process.terminate()

    def _run(self, log: str, module: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (self.directory / log).open("wb") as output:
            process = subprocess.Popen(
                # Not the modules of the directory in which the verb is called.
                [sys.executable, "-P", "-m", module, *arguments],
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.processes.append(process)
        return process


def _free_port(*wanted: int) -> int:
    """Return the first of some ports that is free, or another one that is."""
    for port in wanted:
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    with socket.create_server(("127.0.0.1", 0)) as server:
        found: int = server.getsockname()[1]
    return found


def _show(place: _Workplace, match: dict[str, Any]) -> None:
    from rich.console import Console

    from broker.demo.screen import match_block, read_item

    documents = [place.broker.get("documents", str(each["docid"])) for each in match["documents"]]
    console = Console(no_color=True)
    with console.capture() as block:
        console.print(match_block(match, [read_item(each) for each in documents], []))
    echo(f"\n{block.get()}".rstrip())


def _explain(place: _Workplace, seconds: float) -> None:
    numbers = " ".join(str(process.pid) for process in place.processes)
    token = (place.settings.data / TOKEN_FILE).relative_to(place.directory)
    echo(f"\nA broker runs at {place.url}/, after {seconds:.0f} s. Go on with:\n")
    for command, purpose in (
        (f"cd {place.directory}", ""),
        ("xscl top", "what it does"),
        ("xscl tail --after 0", "its matches"),
        (f"xscl show {_QUERY}", "the query"),
        ("xscl feeds list", "the feeds"),
        (f"cat {token}", "what the page at that address asks for"),
        (f"kill {numbers}", "the end of the feeds and of the broker; `xscl run` goes on"),
    ):
        echo(f"  {command:<28}{'# ' if purpose else ''}{purpose}".rstrip())
