"""Kill a broker at random moments while all goes on, and say whether anything was lost.

    make soak ARGS="--only 'random moments'"
    python -m kills --minutes 60 --seed 7      in tests/, with both directories on PYTHONPATH

A round is one directory: callers publish, register, subscribe and copy, while its broker is killed
again and again; then it may finish, and all is compared (`verdict`).  Behind it some of the copies
are restored, run beside the receiver without a word, are killed, and take over.  A round has a seed
of its own, which is printed; what two processes do at the same moment it does not repeat.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import random
import shutil
import socket
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from broker.documents.document import Document
from broker.operations.restore import restore, take_over
from kills.lives import LIGHT, REAL, Life
from kills.traffic import Receipt, Receiver, Traffic
from kills.verdict import Faults, documents_in, judge, judge_copy, settled_in, state_of

DOCUMENTS = 300
COPIES_TRIED = 2
_SETTLE_WAIT_S = 300.0
_LOOK_S = 1.5
_QUIET_LOOKS = 3


@dataclass
class Tally:
    """What was tried."""

    rounds: int = 0
    kills: int = 0
    real_kills: int = 0
    documents: int = 0
    changes: int = 0
    matches: int = 0
    receipts: int = 0
    again: int = 0
    copies: int = 0
    refused: list[str] = field(default_factory=list)

    def shown(self) -> str:
        return (
            f"{self.rounds} rounds, {self.kills} kills ({self.real_kills} with Spark),"
            f" {self.documents:,} documents, {self.changes} registrations and removals,"
            f" {self.matches:,} matches, {self.receipts:,} messages ({self.again} of them again),"
            f" {self.copies} copies restored"
        )


class Round:
    """One directory, its broker, and who uses it."""

    def __init__(self, directory: Path, seed: int, real: float, tally: Tally) -> None:
        self._directory = directory
        self._data = directory / "data"
        self._chosen = random.Random(seed)
        self._real = real
        self._tally = tally
        self._faults = Faults()
        self._known: dict[int, Document] = {}
        self._settled: dict[str, int] = {}
        port = _free_port()
        self._url = f"http://127.0.0.1:{port}"
        settings = (
            f'lateness = "30 s"\nallow_networks = ["127.0.0.0/8"]\n[http]\nport = {port}\n'
            '[webhooks]\nallow_http = true\n[log]\nlevel = "warning"\n'
        )
        for place in (directory, directory / "other"):
            place.mkdir()
            (place / "xscl.toml").write_text(f'data = "data"\n{settings}')

    async def run(self) -> list[str]:
        """Return what is not as it must be."""
        self._receiver = Receiver(random.Random(self._chosen.random()))
        async with self._receiver.serving():
            traffic = Traffic(
                self._directory,
                self._url,
                self._receiver,
                random.Random(self._chosen.random()),
                DOCUMENTS,
            )
            self._journal = traffic.journal
            await self._live(traffic)
            self._conclude(traffic)
            for copy, newest in self._some_copies():
                await self._go_on_from(copy, newest)
        return list(self._faults.shown())

    async def _live(self, traffic: Traffic) -> None:
        """Kill the broker until the callers are done; then let it finish."""
        self._receiver.life = "original"
        using = asyncio.create_task(traffic.run())
        while not using.done():
            await self._kill_one(self._directory)
            async with traffic.copying:
                self._look()
        using.result()
        await self._finish(self._directory)

    async def _kill_one(self, directory: Path) -> None:
        is_real = self._chosen.random() < self._real
        life = Life(directory, self._url, REAL if is_real else LIGHT)
        try:
            await life.kill(self._chosen, at_start=self._chosen.random() < 0.3)
        finally:
            life.end()
        self._tally.kills += 1
        self._tally.real_kills += is_real
        await self._receiver.idle()

    def _look(self) -> None:
        """Note what the broker that was killed had written down."""
        for id_ in settled_in(self._data):
            self._settled.setdefault(id_, self._got)
        self._known |= documents_in(self._data)

    async def _finish(self, directory: Path) -> None:
        """Run a broker until nothing moves any more, and stop it."""
        is_real = self._chosen.random() < self._real
        life = Life(directory, self._url, REAL if is_real else LIGHT)
        try:
            await life.ready()
            await self._settle(directory / "data")
            await life.stop()
        finally:
            life.end()

    async def _settle(self, data: Path) -> None:
        """Return when everything is evaluated and delivered; what is missing says the verdict."""
        deadline, before, looks = time.monotonic() + _SETTLE_WAIT_S, (), 0
        while looks < _QUIET_LOOKS and time.monotonic() < deadline:
            await asyncio.sleep(_LOOK_S)
            state = await asyncio.to_thread(state_of, data)
            now = (state.through, len(state.matches), len(state.deliveries), self._got)
            is_quiet = now == before and state.is_evaluated and not state.waiting
            looks, before = (looks + 1 if is_quiet else 0), now

    @property
    def _got(self) -> int:
        return len(self._receiver.receipts)

    def _conclude(self, traffic: Traffic) -> None:
        """Compare all that the original has with what it must have."""
        state = state_of(self._data, self._known)
        receipts = self._receipts("original")
        self._faults.add(judge(state, self._journal, receipts, self._settled), "original")
        tally = self._tally
        tally.rounds += 1
        tally.documents += len(self._journal.documents)
        tally.changes += len(self._journal.queries) + len(self._journal.removals)
        tally.changes += len(self._journal.subscriptions) + len(self._journal.ends)
        tally.matches += len(state.matches)
        tally.receipts += len(receipts)
        tally.again += len(receipts) - len({receipt.id for receipt in receipts})
        tally.refused += traffic.refused

    def _receipts(self, life: str) -> list[Receipt]:
        return [receipt for receipt in self._receiver.receipts if receipt.life == life]

    def _some_copies(self) -> list[tuple[Path, int]]:
        copies = self._journal.copies
        return self._chosen.sample(copies, min(COPIES_TRIED, len(copies)))

    async def _go_on_from(self, copy: Path, newest: int) -> None:
        """Restore a copy; it keeps still, is killed, and takes over."""
        place = self._directory / "other"
        shutil.rmtree(place / "data", ignore_errors=True)
        await asyncio.to_thread(restore, copy, place / "data")
        before = state_of(place / "data")
        missing = [docid for docid in range(1, newest + 1) if docid not in before.documents]
        missing = [docid for docid in missing if docid not in self._known]  # deleted before
        self._faults.check(not missing, f"{copy.name} lacks acknowledged documents {missing[:9]}")
        self._receiver.life = copy.name
        for _ in range(2):
            await self._kill_one(place)
        self._faults.check(not self._receipts(copy.name), f"{copy.name} sent before it was told")
        take_over(place / "data")
        await self._kill_one(place)
        await self._finish(place)
        state = state_of(place / "data", before.documents)
        self._faults.add(judge_copy(before, state, self._receipts(copy.name)), copy.name)
        self._tally.copies += 1


def _free_port() -> int:
    """Return a port that nobody is given for a connection between two lives of a broker."""
    ports = range(20_000, 32_000)
    while True:
        with (
            contextlib.suppress(OSError),
            socket.create_server(("127.0.0.1", random.choice(ports))) as server,
        ):
            return int(server.getsockname()[1])


async def search(minutes: float, seed: int, real: float, kept: Path | None) -> bool:
    """Run rounds until the time is over; return whether nothing was found."""
    tally, ends = Tally(), time.monotonic() + minutes * 60
    is_clean = True
    while tally.rounds == 0 or time.monotonic() < ends:
        directory = Path(tempfile.mkdtemp(prefix=f"kills-{seed}-", dir=kept))
        began = time.monotonic()
        found = await Round(directory / "round", seed, real, tally).run()
        seconds = time.monotonic() - began
        verdict = "FAULTS FOUND" if found else "nothing lost"
        print(f"round {tally.rounds}, seed {seed}, {seconds:.0f} s: {verdict}", flush=True)
        print(f"  until now {tally.shown()}", flush=True)
        for text in found:
            print(f"  {text}", flush=True)
        if found:
            print(f"  see {directory}", flush=True)
            is_clean = False
        else:
            shutil.rmtree(directory)
        seed += 1
    print(tally.shown())
    for text in sorted(set(tally.refused)):
        print(f"  a copy was not made: {text}")
    print("nothing lost, nothing settled sent again" if is_clean else "FAULTS FOUND")
    return is_clean


def main() -> None:
    """Run rounds for some minutes, and end with a verdict."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--real", type=float, default=0.15, help="the share of lives with Spark")
    parser.add_argument("--directory", type=Path, help="where directories with faults are kept")
    given = parser.parse_args()
    logging.getLogger("broker").setLevel(logging.ERROR)
    if given.directory is not None:
        given.directory.mkdir(parents=True, exist_ok=True)
    is_clean = asyncio.run(search(given.minutes, given.seed, given.real, given.directory))
    sys.exit(not is_clean)


if __name__ == "__main__":
    main()
