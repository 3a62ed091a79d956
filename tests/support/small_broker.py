"""A whole broker in one process without Spark: the API, delivery, and the pipeline in a thread."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from broker.api import feeds as feeds_api
from broker.api.access import Gate
from broker.api.admission.connections import Runner
from broker.api.backend import Backend
from broker.api.http import add_deliveries, listen, make_application
from broker.api.pickup import Pickup
from broker.delivery.attempt import Channel
from broker.delivery.webhook import WebhookChannel
from broker.delivery.worker import DeliveryEvent, DeliveryWorker
from broker.documents.ingest import Ingest
from broker.documents.ingest_thread import IngestThread
from broker.documents.spool import Spool, SpoolWriter
from broker.matching.queries.registration import NOTHING, SetChange
from broker.pipeline.commits import announce
from broker.pipeline.evaluation import PlanStore
from broker.pipeline.steps import Pipeline
from broker.registry.audit import AuditTrail
from broker.registry.registered import Engines
from broker.registry.streams import Streams
from broker.registry.subscription import DestinationKind
from broker.registry.tokens import Tokens
from broker.service.ahead import Ahead
from broker.service.planning import Planning
from broker.web import pages
from feeds import FeedStore, networks
from support.subscribers import FAST, LOOPBACK, broker_in

T = TypeVar("T")
DAY_US = 86_400_000_000


@contextlib.asynccontextmanager
async def small_broker(
    directory: Path,
    port: int = 0,
    *,
    tokens: Tokens | None = None,
    on_event: Callable[[DeliveryEvent], None] = lambda event: None,
    channels: Mapping[DestinationKind, Channel] = MappingProxyType({}),
) -> AsyncIterator[str]:
    """Run a broker on a directory; yields the URL of its API, which is closed if it has tokens.

    Webhooks are called, and what else `channels` has.
    """
    with (
        broker_in(directory) as files,
        contextlib.closing(SpoolWriter(directory / "spool")) as spool,
        contextlib.closing(FeedStore(directory / "feeds.db")) as feed_store,
        contextlib.closing(AuditTrail(directory / "audit.db")) as trail,
    ):
        engines = Engines(files.registry, lateness_us=DAY_US)
        pipeline = Pipeline(
            Spool(directory / "spool"),
            files.outbox,
            engines.make,
            PlanStore(directory / "plans"),
            plan_of=engines.plan,
            follow=engines.follow,
        )
        pipeline.recover(files.registry.revision())
        numbering = Ingest(spool)
        planning = Planning(files.registry, engines, pipeline, numbering)
        planning.plan()
        ingest = IngestThread(numbering, spool, registry_version=planning.version, linger_s=0)

        ahead_of = Ahead(pipeline.state, files.registry, ingest.exclusively)

        async def change(
            action: Callable[[int], T], /, *, replan: bool = True, ahead: SetChange = NOTHING
        ) -> T:
            def work(newest: int) -> T:
                result = action(newest)
                if replan:
                    planning.note_change()
                return result

            return await ahead_of.run(work, ahead)

        backend = Backend(
            registry=files.registry,
            outbox=files.outbox,
            ingest=ingest,
            spool=Spool(directory / "spool"),
            streams=Streams(Spool(directory / "spool")),
            change=change,
            unready=lambda: None,
            figures=dict,
            committed=asyncio.Condition(),
            in_force=pipeline.in_force,
        )
        ingest.start()
        webhooks = WebhookChannel(allowed=LOOPBACK, allow_http=True)
        ways = {DestinationKind.WEBHOOK: webhooks, **channels}
        worker = DeliveryWorker(files.outbox, files.registry, ways, policy=FAST, on_event=on_event)
        application = make_application(
            backend, body_bytes_max=1_000_000, gate=Gate(tokens) if tokens else None, trail=trail
        )
        feeds_api.install(application, feed_store, allowed=networks(["127.0.0.0/8"]))
        pages.install(application)
        add_deliveries(application, Pickup(files.outbox, files.registry, channels=ways))
        runner = Runner(application, shutdown_timeout=0.1)
        await runner.setup()
        url = await listen(runner, "127.0.0.1", port)
        running = [worker.run(), _drain(pipeline), announce(files.outbox, backend.committed)]
        tasks = [asyncio.create_task(each) for each in running]
        try:
            yield url
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await ahead_of.stop()
            await runner.cleanup()
            await asyncio.to_thread(ingest.stop)


async def _drain(pipeline: Pipeline) -> None:
    while True:
        await asyncio.to_thread(lambda: list(pipeline.drain()))
        await asyncio.sleep(0.02)
