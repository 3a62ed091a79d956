"""Every command in the README and in docs/ is run, as it stands there, in the order of the page.

The blocks of a page are run by bash, one after the other in one directory, against a broker on
loopback, with an `xscl` that need not start each time (`support.forkedverbs`).  What names things
of its reader (`sub_5f0c...`, https://example.org/) is replaced by things that there are.  What is
not run here has its reason in `NOT_RUN`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote

import aiohttp
import pytest
from aiohttp import web
from support.feed_server import FeedServer, Page, entries, rss, start_feed_server
from support.forkedverbs import forked_verbs
from support.ports import free_port
from support.small_broker import small_broker
from support.subscribers import item

from broker.registry.ownertoken import keep_owner_token
from broker.registry.tokens import Tokens

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
COMMANDS = ("xscl", "curl", "make", "pip", "python", "python3", "docker", "sudo", "journalctl")
STARTS = re.compile(rf"(?:\$ )?(?:{'|'.join(COMMANDS)}|\.|mkdir|cd|cat|echo) ")
BLOCK = re.compile(r"^```(.*)\n((?:(?!```).*\n)*)```$|((?:^ {4}.*\n)+)", re.MULTILINE)
SHELLS = ("", "sh", "bash", "shell")

NOT_RUN = {
    "make ": "sets up an environment and runs this very test, or the demonstration (test_demo.py)",
    "xscl run": "runs until Ctrl-C (test_kill_and_restart.py); a broker is there already",
    "xscl quickstart": "starts a broker with Spark (test_first_minutes.py)",
    "xscl backup": "copies the data of a broker on this machine (test_restore.py)",
    "xscl restore": "makes the copy the data of a broker on this machine (test_restore.py)",
    "xscl doctor": "its answer is about the reader's machine (test_cli_doctor.py)",
    "xscl dead-letters retry": "names a document of the reader's (test_dead_letters.py)",
    "python3 -m venv xscl-venv": "tests/test_packaging.py installs the wheel",
    ". ": "tests run in an environment that is there",
    "pip install": "takes a network; tests/test_packaging.py installs the wheel",
    "sudo ": "changes the machine; the unit is checked by tests/test_packaging.py",
    "journalctl ": "wants a machine that systemd has booted",
    "docker ": "wants a Docker daemon; the Dockerfile is checked by tests/test_packaging.py",
    "python -m pytest": "a test of its own",
    "cd tests && PYTHONPATH": "the simulation of five thousand histories takes hours",
    "python benchmarks/oracle_run.py": "ten thousand cases take an hour; tests run some of them",
}
"""How the line of a command begins, and why it is not run here."""

ELSEWHERE = {
    "explain.md": "tests/test_explain_page.py holds commands and output together",
    "client.md": "tests/broker/test_client_docs.py runs it as a doctest",
}

SAME_AUTHOR = "news//item->a FOLLOWED BY {a/author = b/author, 1 day} news//item->b"
FOLLOW = "news//item[author = $who]->a FOLLOWED BY {a/category = b/category, $within} news//item->b"


def blocks(page: Path) -> Iterator[str]:
    """Yield the shell blocks of a page: those that begin with a command that we know."""
    for found in BLOCK.finditer(page.read_text(encoding="utf-8")):
        text = found[2] if found[2] is not None else re.sub("^ {4}", "", found[3], flags=re.M)
        if (found[1] or "") in SHELLS and STARTS.match(text):
            yield text


def reason_not_to_run(line: str) -> str | None:
    return next((start for start in NOT_RUN if line.startswith(start)), None)


def without_what_is_not_run(block: str) -> str:
    return "".join(
        line for line in block.splitlines(keepends=True) if reason_not_to_run(line) is None
    )


WITH_COMMANDS = [
    page
    for page in PAGES
    if page.name not in ELSEWHERE
    and any(map(str.strip, map(without_what_is_not_run, blocks(page))))
]


@dataclass
class Place:
    """A directory, a broker and a feed, and what stands for what the pages name."""

    directory: Path
    url: str
    token: str
    replaced: dict[str, str]
    verbs: Path
    groups: list[int] = field(default_factory=list)

    async def run(self, script: str) -> None:
        """Run a block; what it starts in the background goes on until `close`."""
        for name, here in self.replaced.items():
            script = script.replace(name, here)
        output = self.directory.with_name("output")
        with output.open("wb") as file:
            process = await self._start(_waiting_for_servers(script), file)
        self.groups.append(process.pid)
        async with asyncio.timeout(60):
            assert await process.wait() == 0, f"{script}\n{output.read_text()}"

    def close(self) -> None:
        """End what the blocks have started."""
        for group in self.groups:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)

    async def _start(self, script: str, output: BinaryIO) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            "bash",
            "-euo",
            "pipefail",
            "-c",
            f'{script}\npwd > "$WHERE"',
            cwd=self.where.read_text().strip() if self.where.exists() else self.directory,
            env={
                **{k: v for k, v in os.environ.items() if not k.startswith("XSCL_")},
                "PATH": f"{self.verbs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
                "XSCL_BROKER": self.url,
                "XSCL_TOKEN": self.token,
                "XSCL_CONFIG": str(self.directory.with_name("reader.toml")),
                "HOME": str(self.directory),
                "WHERE": str(self.where),
            },
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )

    @property
    def where(self) -> Path:
        """The file that says where the block before has gone."""
        return self.directory.with_name("where")


def _waiting_for_servers(script: str) -> str:
    """Let a line that starts a server end when it listens; people type more slowly."""
    wait = r"\g<0>\nuntil (: < /dev/tcp/127.0.0.1/\1) 2>/dev/null; do sleep 0.05; done"
    return re.sub(r"^python.* (\d{4,5})\b.*&$", wait, script, flags=re.MULTILINE)


async def prepare(directory: Path, url: str, feed: str) -> dict[str, str]:
    """Make what the pages take for granted; return what stands for what they name."""
    # The cases of the other examples are run by test_cases_of_queries.py.
    others = {path.name for path in ROOT.glob("examples/queries/*.test")} - {"same-story.test"}
    shutil.copytree(
        ROOT / "examples", directory / "examples", ignore=lambda _, names: others & set(names)
    )
    for path in (ROOT / "examples" / "queries").glob("same-story.*"):
        shutil.copy(path, directory)
    (directory / "same-author.xscl").write_text(SAME_AUTHOR)
    (directory / "follow.xscl").write_text(FOLLOW)
    (directory / "item.xml").write_text(item(1))
    (directory / "subscriptions.opml").write_text(
        f'<opml version="2.0"><body><outline text="news"><outline xmlUrl="{feed}?opml"/>'
        "</outline></body></opml>"
    )
    _, _, documents = (ROOT / "docs" / "xscl.md").read_text().partition("```documents\n")
    (directory / "documents.jsonl").write_text(documents.partition("```")[0])
    directory.with_name("reader.toml").write_text('allow_networks = ["127.0.0.0/8"]\n')
    page = feed.removesuffix("feed.xml")
    addresses = {"https://example.org/feed.xml": feed, "https://example.org/": page}
    encoded = {quote(name, safe=""): quote(here, safe="") for name, here in addresses.items()}
    ports = {name: str(free_port()) for name in ("8400", "8401")}
    return {"http://127.0.0.1:8420": url, **addresses, **encoded, **ports}


async def with_a_delivery(url: str, token: str, hook: str) -> dict[str, str]:
    """Have something found and sent in vain; return what the page on delivery names."""
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(url, headers=headers) as session:

        async def ask(method: str, path: str, **body: Any) -> Any:
            async with session.request(method, path, **body) as answer:
                assert answer.ok, await answer.text()
                return await answer.json()

        await ask("PUT", "/v1/queries/seen", data="news//item->a")
        asked = {"query": "seen", "destination": hook}
        subscription = (await ask("POST", "/v1/subscriptions", json=asked))["id"]
        await ask("POST", "/v1/streams/news/documents", data=item(1).encode())
        sent: list[Any] = []
        for _ in range(500):
            sent = (await ask("GET", "/v1/deliveries"))["deliveries"]
            if sent:
                break
            await asyncio.sleep(0.02)
        return {"sub_5f0c...": subscription, "msg_6b1f...": sent[0]["id"]}


@pytest.fixture(scope="module")
def verbs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with forked_verbs(tmp_path_factory.mktemp("verbs")) as directory:
        yield directory


@pytest.fixture
async def place(tmp_path: Path, verbs: Path, feed_server: FeedServer) -> AsyncIterator[Place]:
    directory = tmp_path / "reader"
    directory.mkdir()
    token = keep_owner_token(directory / "xscl-data").read_text().strip()
    with contextlib.closing(Tokens(directory / "xscl-data" / "tokens.db")) as tokens:
        async with small_broker(tmp_path / "broker", tokens=tokens) as url:
            replaced = await prepare(directory, url, feed_server.url("/feed.xml"))
            place = Place(directory, url, token, replaced, verbs)
            yield place
            place.close()


async def take_samples(request: web.Request) -> web.Response:
    """A webhook's endpoint that is up, and takes nothing but samples."""
    is_sample = "xscl.sample" in await request.text()
    return web.Response(status=204 if is_sample else 503)


@pytest.fixture
async def feed_server() -> AsyncIterator[FeedServer]:
    server = await start_feed_server()
    link = '<link rel="alternate" type="application/rss+xml" href="/feed.xml">'
    server.pages = {
        "/feed.xml": Page(rss(entries(range(3)))),
        "/hook": take_samples,
        "/": Page(f"<html><head>{link}</head></html>", headers={"Content-Type": "text/html"}),
    }
    yield server
    await server.close()


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.name)
async def test_every_command_of_a_page_can_be_typed(page: Path, place: Place) -> None:
    if "sub_5f0c..." in page.read_text():
        hook = place.replaced["https://example.org/"] + "hook"
        place.replaced |= await with_a_delivery(place.url, place.token, hook)
    for block in blocks(page):
        await place.run(without_what_is_not_run(block))


def test_every_reason_not_to_run_a_command_is_needed() -> None:
    lines = [line for page in PAGES for block in blocks(page) for line in block.splitlines()]
    assert {reason_not_to_run(line) for line in lines} - {None} == set(NOT_RUN)


def test_pages_that_are_run_elsewhere_are_there() -> None:
    for name, where in ELSEWHERE.items():
        assert (ROOT / "docs" / name).exists()
        assert (ROOT / where.split()[0]).exists()


def test_what_is_said_to_run_elsewhere_is_there() -> None:
    reasons = " ".join([*NOT_RUN.values(), *ELSEWHERE.values()])
    named = set(re.findall(r"\btest_\w+\.py", reasons))
    assert named
    assert named <= {path.name for path in (ROOT / "tests").rglob("test_*.py")}
