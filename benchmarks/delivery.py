"""What delivery carries: `python benchmarks/delivery.py [webhooks] [streams] [fanout] [alerts]`.

    webhooks   1,000 endpoints on loopback, one of them slow and one that never answers
    streams    1,000 event streams among 10,000 subscriptions: time from commit to client
    fanout     one match for 100,000 subscriptions: delivery rows made per second, while the
               pipeline commits; and the time that these commits take
    alerts     the same where each subscription has a key, a group and a throttle, and where not

Receivers and stream clients are a process of their own, as they would be in life.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import resource
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import aiohttp
from aiohttp import web
from lxml import etree

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "tests")]

from support.subscribers import LOOPBACK, Broker, broker_in, found  # noqa: E402

from broker.api.http import add_deliveries  # noqa: E402
from broker.api.pickup import Pickup  # noqa: E402
from broker.delivery.dispatch import Dispatch  # noqa: E402
from broker.delivery.webhook import WebhookChannel  # noqa: E402
from broker.delivery.worker import DeliveryEventKind, DeliveryWorker  # noqa: E402
from broker.matching.match import parameters_key  # noqa: E402
from broker.registry.subscription import (  # noqa: E402
    Destination,
    DestinationKind,
    Options,
    Subscription,
)

SLOW_S = 5.0
VISIT_ROWS = 500
ALERT_PARTS = 10


class Endpoint(asyncio.Protocol):
    """The cheapest HTTP server that there is: the receiver must not be what is measured."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._buffer = b""

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (head_end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:head_end]
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            if len(self._buffer) < head_end + 4 + length:
                return
            self._buffer = self._buffer[head_end + 4 + length :]
            self._answer(head)

    def _answer(self, head: bytes) -> None:
        if head.startswith(b"POST /dead"):
            return
        if head.startswith(b"POST /slow"):
            asyncio.get_running_loop().call_later(SLOW_S, self._say)
        else:
            self._say()

    def _say(self) -> None:
        if not self._transport.is_closing():
            self._transport.write(b"HTTP/1.1 204 No Content\r\n\r\n")  # type: ignore[attr-defined]


def serve_endpoints(pipe: Connection) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Endpoint, "0.0.0.0", 0, backlog=4_096)
        pipe.send(server.sockets[0].getsockname()[1])
        await asyncio.to_thread(pipe.recv)

    asyncio.run(main())


async def webhooks(broker: Broker, endpoints: int = 1_000, matches: int = 20) -> dict[str, object]:
    pipe, process = _start(serve_endpoints)
    port = pipe.recv()
    paths = {0: "/slow", 1: "/dead"}
    for number in range(endpoints):
        host = f"127.0.{number // 250}.{number % 250 + 1}"
        broker.subscribe(f"http://{host}:{port}{paths.get(number, '/hook')}")
    healthy = {
        each.id
        for each in broker.registry.subscriptions.find(limit=endpoints)
        if each.destination.address.endswith("/hook")
    }
    taken: dict[str, float] = {}
    done = asyncio.Event()

    def on_event(event) -> None:  # type: ignore[no-untyped-def]
        if event.kind is DeliveryEventKind.DELIVERED and event.subscription.id in healthy:
            lag_s = time.time() - event.matches[0].committed_us / 1e6
            taken[event.delivery_id] = lag_s
            if len(taken) == len(healthy) * matches:
                done.set()

    channel = WebhookChannel(allowed=LOOPBACK, allow_http=True)
    worker = DeliveryWorker(
        broker.outbox, broker.registry, {DestinationKind.WEBHOOK: channel}, on_event=on_event
    )
    running = asyncio.create_task(worker.run())
    broker.commit(*(found(number) for number in range(1, matches + 1)))
    began, cpu = time.perf_counter(), time.process_time()
    async with asyncio.timeout(300):
        await done.wait()
    seconds = time.perf_counter() - began
    cpu_s = time.process_time() - cpu
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    pipe.send("stop")
    process.join()
    return {
        "deliveries": len(taken),
        "deliveries/s": round(len(taken) / seconds),
        "seconds": round(seconds, 2),
        "deliveries per CPU second of the worker": round(len(taken) / cpu_s),
        "slowest healthy delivery, s after commit": round(max(taken.values()), 2),
    }


def serve_clients(pipe: Connection) -> None:
    """Hold event streams open and report when each match arrives."""

    async def listen(session: aiohttp.ClientSession, url: str, lags: list[float]) -> None:
        async with session.get(url) as response:
            async for line in response.content:
                if line.startswith(b"data: "):
                    output = json.loads(line[6:])["output"]
                    lags.append(time.time() - float(etree.fromstring(output).text or ""))

    async def main() -> None:
        urls, expected = pipe.recv()
        lags: list[float] = []
        connector = aiohttp.TCPConnector(limit=0)
        timeout = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
            tasks = [asyncio.create_task(listen(session, url, lags)) for url in urls]
            await asyncio.sleep(3)
            pipe.send("ready")
            deadline = time.time() + 120
            while len(lags) < expected and time.time() < deadline:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        pipe.send(lags)

    asyncio.run(main())


async def streams(
    broker: Broker, subscriptions: int = 10_000, live: int = 1_000, matches: int = 30
) -> dict[str, object]:
    pull = Destination.parse("pull")
    made = [Subscription(f"sub_{n}", f"Q{n % 20}", "{}", pull, 0) for n in range(subscriptions)]
    broker.registry.subscriptions.add(made)
    application = web.Application()
    add_deliveries(application, Pickup(broker.outbox, broker.registry))
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=2_048).start()
    base = f"http://127.0.0.1:{runner.addresses[0][1]}/v1/subscriptions"
    pipe, process = _start(serve_clients)
    # Every live stream is of one query: each match goes to all of them.
    chosen = [each.id for each in made if each.query == "Q0"]
    urls = [f"{base}/{chosen[n % len(chosen)]}/stream?after=0" for n in range(live)]
    pipe.send((urls, live * matches))
    await asyncio.to_thread(pipe.recv)
    for number in range(1, matches + 1):
        broker.commit(found(number, query="Q0", output=f"<match>{time.time()}</match>"))
        await asyncio.sleep(0.5)
    lags = sorted(await asyncio.to_thread(pipe.recv))
    process.join()
    await runner.cleanup()
    return {
        "live streams": live,
        "events": len(lags),
        "p50 ms": round(statistics.median(lags) * 1_000),
        "p99 ms": round(lags[int(len(lags) * 0.99)] * 1_000),
        "peak memory of the server, MB": _peak_mb(),
    }


class FanOut:
    """One match for many subscriptions, of which a visit makes so many deliveries at a time."""

    def __init__(self, broker: Broker, subscriptions: int, options: Options | None = None) -> None:
        self._broker = broker
        self.subscriptions = subscriptions
        began = time.perf_counter()
        broker.registry.subscriptions.add(
            Subscription(
                f"sub_{n}",
                "Q1",
                parameters_key({}),
                Destination.parse(f"https://h{n % 5_000}.example/{n}"),
                0,
                options=options or Options(),
            )
            for n in range(subscriptions)
        )
        self.added_s = time.perf_counter() - began
        self._dispatch = Dispatch(
            broker.directory / "deliveries.db", broker.outbox, broker.registry, 60_000_000
        )
        began = time.perf_counter()
        while self._dispatch.visit([], 0, _now_us()).is_behind:
            pass
        self.placed_s = time.perf_counter() - began

    def find(self, number: int) -> None:
        """Commit a match that all of them get."""
        self._broker.commit(found(number))

    def visit(self) -> tuple[int, float, float]:
        """Make deliveries; return how many, the seconds and the processor's.

        Where there are none yet, because a group is waited for, none of that counts.
        """
        while True:
            began, cpu = time.perf_counter(), time.thread_time()
            report = self._dispatch.visit([], VISIT_ROWS, _now_us())
            seconds, cpu_s = time.perf_counter() - began, time.thread_time() - cpu
            if report.taken:
                return len(report.taken), seconds, cpu_s
            if report.next_ready_us is not None:
                time.sleep(max(0.0, (report.next_ready_us - _now_us()) / 1e6))


async def fanout(broker: Broker, subscriptions: int = 100_000) -> dict[str, object]:
    fan = FanOut(broker, subscriptions)
    idle_ms = _commit_times(broker, lambda: False, 20)
    fan.find(1)
    rows, busy = 0, [True]
    commits: list[list[float]] = []
    watcher = threading.Thread(
        target=lambda: commits.append(_commit_times(broker, lambda: busy[0], None))
    )
    watcher.start()
    seconds = cpu_s = 0.0
    while rows < subscriptions:
        made, visit_s, visit_cpu_s = fan.visit()
        rows, seconds, cpu_s = rows + made, seconds + visit_s, cpu_s + visit_cpu_s
    busy[0] = False
    watcher.join()
    return {
        "subscriptions added/s": round(subscriptions / fan.added_s),
        "lanes made/s": round(subscriptions / fan.placed_s),
        "delivery rows/s": round(rows / seconds),
        "delivery rows per CPU second": round(rows / cpu_s),
        "median ms of a pipeline commit, idle": round(statistics.median(idle_ms), 1),
        "median ms of a pipeline commit, while fanning out": round(
            statistics.median(commits[0]), 1
        ),
        "peak memory, MB": _peak_mb(),
    }


async def alerts(broker: Broker, subscriptions: int = 100_000) -> dict[str, object]:
    """The fan-out to subscriptions with a key, a group and a throttle, beside one without.

    Visits of both take turns, A B A B, so that what else the machine does slows both: the ratios
    of ten parts of the way are its range.
    """
    options = Options(key=("who",), group="1 s", throttle="3 per 1 h")
    costs: dict[str, list[float]] = {"plain": [], "alerts": []}
    with (
        tempfile.TemporaryDirectory() as first,
        tempfile.TemporaryDirectory() as second,
        broker_in(Path(first)) as plain_broker,
        broker_in(Path(second)) as alerts_broker,
    ):
        fans = {
            "plain": FanOut(plain_broker, subscriptions),
            "alerts": FanOut(alerts_broker, subscriptions, options),
        }
        for fan in fans.values():
            fan.find(1)
        while len(costs["alerts"]) * VISIT_ROWS < subscriptions:
            for name, fan in fans.items():
                rows, _, cpu_s = fan.visit()
                costs[name].append(cpu_s / rows)
    part = max(1, len(costs["plain"]) // ALERT_PARTS)
    ratios = sorted(
        statistics.median(costs["plain"][at : at + part])
        / statistics.median(costs["alerts"][at : at + part])
        for at in range(0, len(costs["plain"]) - part + 1, part)
    )
    medians = {name: statistics.median(each) for name, each in costs.items()}
    return {
        **{f"{name}: CPU us a delivery": round(each * 1e6, 1) for name, each in medians.items()},
        "alerts: deliveries of 100 plain ones": round(
            100 * medians["plain"] / medians["alerts"], 1
        ),
        "  the least of ten parts": round(100 * ratios[0], 1),
        "  the most": round(100 * ratios[-1], 1),
    }


def _commit_times(broker: Broker, go_on: Callable[[], bool], count: int | None) -> list[float]:
    times = []
    number = 1_000_000 + int(time.time() * 10) % 1_000_000
    while (len(times) < count) if count is not None else go_on():
        began = time.perf_counter()
        broker.commit(*(found(number + i, query="other") for i in range(20)))
        times.append((time.perf_counter() - began) * 1_000)
        number += 20
        time.sleep(0.02)
    return times or [float("nan")]


def _start(target: Callable[[Connection], None]) -> tuple[Connection, multiprocessing.Process]:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=target, args=(there,), daemon=True)
    process.start()
    return here, process  # type: ignore[return-value]


def _now_us() -> int:
    return time.time_ns() // 1_000


def _peak_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1_024


BENCHMARKS = {"webhooks": webhooks, "streams": streams, "fanout": fanout, "alerts": alerts}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[*BENCHMARKS, []], default=[])
    for name in parser.parse_args().names or BENCHMARKS:
        with tempfile.TemporaryDirectory() as directory, broker_in(Path(directory)) as broker:
            figures = asyncio.run(BENCHMARKS[name](broker))
        print(name)
        for figure, value in figures.items():
            print(f"  {figure:<50} {value:>10}")


if __name__ == "__main__":
    main()
