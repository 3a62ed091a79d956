"""What a broker is used for, by callers who try again until they are answered; and their journal.

Invariant: the journal has what was acknowledged, and in which order things were asked and answered.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from broker.operations.copies import check_copy

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TEXTS = (
    "S//d->a FOLLOWED BY {a/v = b/v, 40 s} S//d->b",
    "S//d->a JOIN {a/v = b/v, 20 s} S//d->b",
    "S//d[v = '1']->a",
    "(S//d->a FOLLOWED BY {a/v = b/v, 20 s} S//d->b) FOLLOWED BY {b/v = c/v, 20 s} S//d->c",
    "S//d->a NEXT {a/v = b/v, 40 s} S//d->b GRACE 10 s",
    "S//d->a NOT FOLLOWED BY {a/v = b/v, 20 s} S//d->b GRACE 5 s",
    "S//d->a FOLLOWED BY {a/v = b/v, 20 s} S//d->b UNLESS {a/v > c/v} S//d->c GRACE 5 s",
)
SHARED = "S//d->a FOLLOWED BY {a/v = b/v, $within} S//d->b"
RULE = "S//d->a FOLLOWED BY {a/v = b/v, 20 s} S//d->b GRACE 5 s"
LASTING = {
    "shared": SHARED,
    "seen": "CREATE TABLE seen (v KEY, n DEFAULT 0)",
    "counts": f"{RULE} ON MATCH SET seen[b/v].n = seen[b/v].n + 1",
    "few": "S//d->a NEXT {a/v = b/v, 40 s} S//d->b WHERE seen[a/v].n < 6 GRACE 5 s",
    "inferred": "SELECT * FROM S//d[v->x] FOLLOWED BY {x = y, 20 s} S//d[v->y]"
    " LOSS 0.5 DELAY uniform(0 s, 30 s) FOLLOWED BY {y = z, 20 s} S//d[v->z] GRACE 5 s PUBLISH L",
    "sure": "L//d[v->x] FOLLOWED BY {x = y, 20 s} S//d[v->y] CONFIDENCE 0.3",
}
"""What is registered before all documents, and stays: a rule that counts in a table, who asks it,
and who reads what was inferred."""
OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"batch_max": 5},
    {"group": "2 s"},
    {"key": ["a/v"], "throttle": "2 per 10 s"},
    {"key": ["a/v"], "group": "1 s", "throttle": "3 per 20 s"},
)
_PAUSE_S = 0.15
_FAILING = 0.03
"""The share of messages that the receiver refuses the first time."""


@dataclass(frozen=True)
class Asked:
    """A change that was acknowledged: when it was first asked for, and when it was answered."""

    first: int
    last: int


@dataclass
class Journal:
    """What was acknowledged; moments are counted, not timed."""

    documents: dict[str, tuple[int, str, Asked]] = field(default_factory=dict)
    queries: dict[str, tuple[bool, Asked]] = field(default_factory=dict)
    removals: dict[str, Asked] = field(default_factory=dict)
    subscriptions: dict[str, Asked] = field(default_factory=dict)
    ends: dict[str, Asked] = field(default_factory=dict)
    copies: list[tuple[Path, int]] = field(default_factory=list)
    """Copies that `xscl backup` made, and the newest document acknowledged before each."""
    moments: itertools.count[int] = field(default_factory=itertools.count)

    @property
    def newest_docid(self) -> int:
        return max((docid for docid, _, _ in self.documents.values()), default=0)


@dataclass(frozen=True)
class Receipt:
    """A message that the receiver has got, with what it said to it."""

    life: str
    path: str
    id: str
    body: bytes
    status: int

    @property
    def is_taken(self) -> bool:
        return self.status == 204


class Receiver:
    """Takes webhooks: refuses some once, and is slow with others, so that kills find them open."""

    def __init__(self, chosen: random.Random) -> None:
        self._chosen = chosen
        self._refused: set[str] = set()
        self.life = ""
        self.receipts: list[Receipt] = []
        self.at_work = 0
        self.url = ""

    async def handle(self, request: web.Request) -> web.Response:
        self.at_work += 1
        try:
            body, id_ = await request.read(), request.headers["webhook-id"]
            is_refused = id_ not in self._refused and self._chosen.random() < _FAILING
            self._refused.add(id_)
            status = 500 if is_refused else 204
            self.receipts.append(Receipt(self.life, request.path, id_, body, status))
            if self._chosen.random() < 0.1:
                await asyncio.sleep(self._chosen.random())
            return web.Response(status=status)
        finally:
            self.at_work -= 1

    async def idle(self) -> None:
        """Return when no message is being answered."""
        while self.at_work:  # noqa: ASYNC110
            await asyncio.sleep(0.02)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        application = web.Application(client_max_size=1 << 26)
        application.router.add_post("/{tail:.*}", self.handle)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield
        finally:
            await runner.cleanup()


class Traffic:
    """Callers of one broker, which answers at `url`, if at all."""

    def __init__(
        self, directory: Path, url: str, receiver: Receiver, chosen: random.Random, documents: int
    ) -> None:
        self._directory = directory
        self._url = url
        self._receiver = receiver
        self._chosen = chosen
        self._documents = documents
        self._paths = itertools.count(1)
        self.journal = Journal()
        self.copying = asyncio.Lock()
        """Held while the files are copied: whoever ends a copy may tidy its databases up."""
        self.refused: list[str] = []

    async def run(self) -> None:
        """Do everything at once, until all documents are published and nothing is left open."""
        async with self.connected():
            for name, text in LASTING.items():
                await self.register(name, text)
            publishing = asyncio.create_task(self._publish())
            others = [self._change, self._subscribe, self._copy]
            tasks = [asyncio.create_task(each(publishing)) for each in others]
            await asyncio.gather(publishing, *tasks)

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        """Within it, things can be asked for one by one."""
        timeout = aiohttp.ClientTimeout(total=20)
        async with aiohttp.ClientSession(timeout=timeout) as self._session:
            yield

    async def _publish(self) -> None:
        number = 0
        while number < self._documents:
            count = self._chosen.choice([1, 1, 2, 5])
            lines = [self._line(number + i) for i in range(count)]
            await self.publish(lines)
            number += count
            await asyncio.sleep(self._chosen.random() * _PAUSE_S * 2)

    def _line(self, number: int) -> dict[str, str]:
        time = NOON + timedelta(seconds=number - self._chosen.choice([0, 0, 0, 5]))
        xml = f"<d><v>{self._chosen.randrange(12)}</v><n>{number}</n></d>"
        return {"stream": "S", "key": f"k{number}", "time": time.isoformat(), "xml": xml}

    async def publish(self, lines: list[dict[str, str]]) -> None:
        first = next(self.journal.moments)
        body = "\n".join(map(json.dumps, lines)).encode()
        answer = await self._asked(
            "POST", "/v1/streams/S/documents", data=body, content_type="application/x-ndjson"
        )
        asked = Asked(first, next(self.journal.moments))
        for line, receipt in zip(lines, answer["documents"], strict=True):
            assert receipt["outcome"] in ("accepted", "duplicate"), receipt
            self.journal.documents[line["key"]] = (receipt["docid"], line["xml"], asked)

    async def _change(self, publishing: asyncio.Task[None]) -> None:
        """Register queries, and remove some, also ones that have just been registered."""
        for number in itertools.count():
            if publishing.done():
                return
            looks_back = self._chosen.random() < 0.3
            await self.register(f"q{number}", self._chosen.choice(TEXTS), looks_back=looks_back)
            await asyncio.sleep(self._chosen.random() * 8)
            present = sorted(self.journal.queries.keys() - self.journal.removals - LASTING.keys())
            if len(present) > 3 or self._chosen.random() < 0.2:
                await self.remove(self._chosen.choice(present))

    async def register(self, name: str, text: str, *, looks_back: bool = False) -> None:
        first = next(self.journal.moments)
        since = "?since=all" if looks_back else ""
        path = f"/v1/queries/{name}{since}"
        await self._asked("PUT", path, data=text.encode(), content_type="text/plain")
        self.journal.queries[name] = (looks_back, Asked(first, next(self.journal.moments)))

    async def remove(self, name: str) -> None:
        first = next(self.journal.moments)
        await self._asked("DELETE", f"/v1/queries/{name}", gone=True)
        self.journal.removals[name] = Asked(first, next(self.journal.moments))

    async def _subscribe(self, publishing: asyncio.Task[None]) -> None:
        """Subscribe to queries, and end some subscriptions."""
        while not publishing.done():
            await self._subscribe_once()
            await asyncio.sleep(self._chosen.random() * 3)
            present = sorted(set(self.journal.subscriptions) - set(self.journal.ends))
            if len(present) > 12:
                await self.end(self._chosen.choice(present))

    async def _subscribe_once(self) -> None:
        present = sorted(self.journal.queries.keys() - self.journal.removals - {"seen"})
        query = self._chosen.choice(present)
        asked = {"options": self._chosen.choice(OPTIONS)}
        if query == "shared":
            asked["parameters"] = {"within": self._chosen.choice(["10 s", "30 s"])}
        await self.subscribe(query, **asked)

    async def subscribe(self, query: str, **others: Any) -> None:
        first = next(self.journal.moments)
        # Who has no answer asks again, for another address: both may be there.
        while True:
            address = f"{self._receiver.url}/{next(self._paths)}"
            try:
                answer = await self._once(
                    "POST",
                    "/v1/subscriptions",
                    json={"query": query, "destination": address, **others},
                )
            except UnansweredError:
                continue
            if answer is not None:  # otherwise the query has gone, or has no such key
                last = next(self.journal.moments)
                self.journal.subscriptions[answer["id"]] = Asked(first, last)
            return

    async def end(self, subscription: str) -> None:
        first = next(self.journal.moments)
        await self._asked("DELETE", f"/v1/subscriptions/{subscription}", gone=True)
        self.journal.ends[subscription] = Asked(first, next(self.journal.moments))

    async def _copy(self, publishing: asyncio.Task[None]) -> None:
        """Take copies, whether the broker runs or not; one in four is killed as well."""
        for number in itertools.count():
            await asyncio.sleep(3 + self._chosen.random() * 15)
            if publishing.done():
                return
            target = self._directory / f"copy-{number}"
            newest = self.journal.newest_docid
            async with self.copying:
                process, said = await self._copy_to(target)
            if process.returncode == 0:
                check_copy(target)
                self.journal.copies.append((target, newest))
            elif process.returncode > 0:
                self.refused.append(said.decode().strip().splitlines()[-1])

    async def _copy_to(self, target: Path) -> tuple[asyncio.subprocess.Process, bytes]:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "broker.cli", "--config"),
            *(str(self._directory / "xscl.toml"), "backup", str(target)),
            stderr=asyncio.subprocess.PIPE,
        )
        if self._chosen.random() < 0.25:
            await asyncio.sleep(self._chosen.random() * 3)
            with suppress(ProcessLookupError):
                process.kill()
        _, said = await process.communicate()
        return process, said

    async def _asked(self, method: str, path: str, *, gone: bool = False, **others: Any) -> Any:
        """Ask until there is an answer.  `gone` is what a repeated removal says."""
        while True:
            with suppress(UnansweredError):
                return await self._once(method, path, **others)

    async def _once(self, method: str, path: str, *, content_type: str = "", **others: Any) -> Any:
        """Ask once; return None where there is no such thing."""
        try:
            token = (self._directory / "data" / "admin-token").read_text().strip()
            headers = {"Authorization": f"Bearer {token}"}
            headers |= {"Content-Type": content_type} if content_type else {}
            async with self._session.request(
                method, f"{self._url}{path}", headers=headers, **others
            ) as answer:
                text = await answer.text()
                if answer.status == 404:
                    return None
                # 401: it answers before it has read its tokens; 503, 429: not now.
                if answer.status in (429, 503):
                    raise OSError(text)
                if answer.status == 422 and "is no key" in text:
                    return None  # the query compares nothing
                assert answer.status < 400, (method, path, answer.status, text)
                return json.loads(text) if text else {}
        except (OSError, aiohttp.ClientError, TimeoutError, json.JSONDecodeError) as error:
            await asyncio.sleep(0.1)
            raise UnansweredError from error


class UnansweredError(Exception):
    """Nobody knows whether it was done."""
