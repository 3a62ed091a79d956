"""One running broker: ingest, feed poller, Spark pipeline, delivery and HTTP API in one process.

open      the data directory's files; the spool's lock keeps a second broker out
serve     the API answers from here on; what needs the pipeline waits
recover   join state and plans are made again as they were at the last commit, while Spark starts
run       Spark's query, ingest, poller and delivery, until told to stop or until one of them fails
close     in the opposite order; what was accepted is on the disk, what was found is committed
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any, TypeVar

import pyarrow as pa

from broker.api import feeds as feeds_api
from broker.api.access import Gate
from broker.api.admission.connections import Runner
from broker.api.admission.limits import RateLimit
from broker.api.backend import Backend
from broker.api.http import add_deliveries, listen, make_application
from broker.api.pickup import Pickup
from broker.delivery.attempt import Channel
from broker.delivery.channels import notifier, open_channels
from broker.delivery.worker import DeliveryEvent, DeliveryWorker
from broker.documents.ingest import Ingest
from broker.documents.ingest_thread import Busy, IngestThread
from broker.documents.spool import Spool, SpoolWriter
from broker.matching.queries.registration import NOTHING, SetChange
from broker.operations.figures import Figures
from broker.operations.late import tell_late
from broker.operations.log import log_delivery, log_step
from broker.operations.metrics import Stages
from broker.operations.traces import open_traces
from broker.pipeline.commits import announce
from broker.pipeline.evaluation import PlanStore
from broker.pipeline.lookback.backfill import backfill
from broker.pipeline.outbox import Outbox
from broker.pipeline.snapshot import Snapshot
from broker.pipeline.spark import SparkQuery
from broker.pipeline.steps import Pipeline, StepSummary
from broker.registry.audit import AUDIT_FILE, AuditTrail
from broker.registry.ownertoken import keep_owner_token
from broker.registry.queries import Registry
from broker.registry.registered import Engines
from broker.registry.streams import Streams
from broker.registry.subscription import DestinationKind
from broker.registry.tokens import Tokens
from broker.service.ahead import Ahead
from broker.service.holding import deliver
from broker.service.maintenance import Maintenance
from broker.service.pausing import Pausing
from broker.service.planning import Planning
from broker.service.polling import poller, push_of
from broker.service.startup import apart, unless
from broker.service.streaming import Streaming, watch
from broker.settings.config import Settings
from broker.settings.directory import ADDRESS_FILE, is_copy, keep_private
from broker.settings.feeds import configured_feeds
from broker.web import pages
from feeds import FeedStore, networks
from xpath_eval.counters import counters_of

__all__ = ["Service"]

_log = logging.getLogger(__name__)

_BACKFILLS_S = 0.5
_MAINTENANCE_S = 60.0

WAITING_DOCUMENTS_MAX = 200_000
"""Accepted documents that may wait to be evaluated: some ten seconds of work; then 429."""

T = TypeVar("T")


class Service:
    """One broker on one data directory."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._feeds = configured_feeds(settings.feeds)
        self._data = settings.data
        keep_private(self._data)
        self._stack = AsyncExitStack()
        self._unready: str | None = "the broker is starting"
        self._lateness_us = settings.lateness // timedelta(microseconds=1)
        self._channels: dict[DestinationKind, Channel] = {}
        self._open_files()
        self._streaming = Streaming(settings, self._stack, self._registry.key("store"))
        traces = open_traces(settings.tracing, self._registry.key("traces"))
        self._stages = Stages(traces=traces)
        self._plans = PlanStore(self._data / "plans")
        self._engines = Engines(
            self._registry,
            lateness_us=self._lateness_us,
            budget=settings.budget,
            pauses=self._outbox.pauses,
            spill_directory=self._data / "spill",
            processors=self._streaming.processor if settings.shards > 1 else None,
        )
        self._pausing = Pausing(self._outbox, self._registry)
        self._has_pauses = asyncio.Event()
        self._pipeline = Pipeline(
            Spool(self._data / "spool"),
            self._outbox,
            self._engines.make,
            self._plans,
            on_step=self._count,
            plan_of=self._engines.plan,
            follow=self._engines.follow,
            snapshot=Snapshot(self._data / "state"),
        )
        self._figures = Figures(
            self._spool,
            self._outbox,
            self._numbering,
            self._feed_store,
            self._pipeline,
            budget=settings.budget,
            is_holding=lambda: is_copy(self._data),
        )
        self._planning = Planning(self._registry, self._engines, self._pipeline, self._numbering)
        self._ingest = IngestThread(
            self._numbering,
            self._spool,
            registry_version=self._planning.version,
            behind=self._behind,
            on_written=self._stages.written,
            tick_s=settings.clock.every.total_seconds(),
        )
        self._ahead = Ahead(self._pipeline.state, self._registry, self._ingest.exclusively)
        self._maintenance = Maintenance(self._spool, self._pipeline, self._registry, self._ingest)

    async def run(self, stop: asyncio.Event, *, on_listening: Callable[[str], None]) -> bool:
        """Run until `stop` is set; `on_listening` gets the URL of the API when it answers.

        Returns whether it has ever been ready; if not, a thread of the start may be running still.
        Raises what made the broker fail, after everything has been closed.
        """
        self._loop = asyncio.get_running_loop()
        async with self._stack:
            self._stack.callback(self._close_files)
            self._stack.callback(self._stages.close)
            on_listening(await self._serve())
            query = await unless(stop, self._start())
            if query is None:
                return False
            self._stack.push_async_callback(self._ahead.stop)
            self._ingest.start()
            self._stack.push_async_callback(asyncio.to_thread, self._ingest.stop)
            self._unready = None
            _log.info("ready", extra={"seconds": round(self._figures.uptime_s, 1)})
            topics = [
                await self._streaming.topic(each, self._ingest.submit)
                for each in self._settings.kafka
            ]
            await self._work(stop, [query, *topics])
        return True

    async def _start(self) -> SparkQuery:
        if self._settings.shards > 1:  # what is recovered is joined in tasks
            await self._streaming.start()
            await apart(self._recover)
        else:
            await asyncio.gather(self._streaming.start(), apart(self._recover))
        return await self._streaming.documents(
            self._plans.directory,
            self._step,
            through=self._pipeline.through,
            on_evaluated=self._stages.evaluated,
        )

    def _recover(self) -> None:
        """Make the state as it was at the last commit; later documents have today's queries."""
        waiting = self._spool.segments(self._pipeline.through)
        versions = {segment.registry_version for segment in waiting} | {self._registry.revision()}
        first_docid = waiting[0].first_docid if waiting else self._spool.next_docid
        self._pausing.pause_unreadable(versions, first_docid)
        self._pausing.apply()
        self._pipeline.recover(self._registry.revision())
        self._planning.plan()

    def _open_files(self) -> None:
        self._registry = Registry(self._data / "registry.db")
        self._outbox = Outbox(self._data / "outbox.db")
        self._spool = SpoolWriter(self._data / "spool", processed=self._outbox.through())
        if self._settings.http.tokens == "auto":
            keep_owner_token(self._data)
        self._audit = AuditTrail(self._data / AUDIT_FILE)
        self._tokens = Tokens(self._data / "tokens.db")
        self._feed_store = FeedStore(self._data / "feeds.db")
        self._push = push_of(self._settings, self._feed_store)
        self._numbering = Ingest(self._spool)

    def _close_files(self) -> None:
        files = (
            self._feed_store,
            self._tokens,
            self._audit,
            self._outbox,
            self._registry,
            self._spool,
        )
        for file in files:
            file.close()

    async def _serve(self) -> str:
        backend = Backend(
            registry=self._registry,
            outbox=self._outbox,
            ingest=self._ingest,
            spool=Spool(self._data / "spool"),
            streams=Streams(Spool(self._data / "spool")),
            change=self._change,
            unready=lambda: self._unready or self._ingest.unwritable,
            figures=self._figures.read,
            histograms=self._stages.histograms,
            committed=asyncio.Condition(),
            lateness_us=self._lateness_us,
            budget=self._settings.budget,
            in_force=self._pipeline.in_force,
        )
        announcing = asyncio.create_task(announce(self._outbox, backend.committed))
        self._stack.callback(announcing.cancel)
        http = self._settings.http
        if not self._tokens.tokens():
            _log.warning("requests need a token, and there is none: `xscl tokens create --local`")
        application = make_application(
            backend,
            body_bytes_max=http.body_bytes_max,
            gate=Gate(self._tokens),
            limit=RateLimit(http.requests_per_second),
            trail=self._audit,
        )
        add_deliveries(application, self._open_delivery())
        pages.install(application)
        allowed = networks(self._settings.allow_networks)
        feeds_api.install(application, self._feed_store, allowed=allowed)
        if self._push is not None:
            application.add_routes(self._push.routes())
        runner = Runner(application, shutdown_timeout=1.0)
        await runner.setup()
        self._stack.push_async_callback(runner.cleanup)
        url = await listen(runner, http.host, http.port)
        address = self._data / ADDRESS_FILE
        address.write_text(url + "\n")
        self._stack.callback(address.unlink, missing_ok=True)
        return url

    async def _work(self, stop: asyncio.Event, queries: Sequence[SparkQuery]) -> None:
        """Run what never ends by itself; the first to end, or `stop`, ends all."""
        workers: list[Coroutine[Any, Any, object]] = [
            stop.wait(),
            *map(watch, queries),
            self._keep_small(),
            tell_late(lambda: self._numbering.late),
            self._look_back(stop),
            self._pause_spenders(),
            poller(
                self._settings,
                self._feeds,
                self._feed_store,
                self._ingest.submit,
                self._push,
                on_taken=self._stages.fetched,
            ).run(),
            deliver(
                self._data,
                DeliveryWorker(
                    self._outbox,
                    self._registry,
                    self._channels,
                    notifier=notifier(self._channels),
                    on_event=self._note_delivery,
                ),
            ),
        ]
        tasks = [asyncio.create_task(worker) for worker in workers]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            self._unready = "the broker is stopping"
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _pause_spenders(self) -> None:
        """Bring queries that went over their budget to the registry, between two documents."""
        owners = notifier(self._channels)
        while True:
            await self._pausing.tell(None if is_copy(self._data) else owners)
            await self._has_pauses.wait()
            self._has_pauses.clear()
            try:
                await self._change(lambda newest_docid: self._pausing.apply())
            except Busy as busy:
                self._has_pauses.set()
                await asyncio.sleep(busy.retry_after_s)

    async def _keep_small(self) -> None:
        """Merge and delete segments now and then, and processes, beside the pipeline."""
        while True:
            await asyncio.sleep(_MAINTENANCE_S)
            with contextlib.suppress(Busy):
                await asyncio.to_thread(self._maintenance.once)
            await self._streaming.end_planners()

    async def _look_back(self, stop: asyncio.Event) -> None:
        """Match earlier documents for registrations that ask for it, beside the pipeline."""
        spool = Spool(self._data / "spool")
        while True:
            if self._registry.backfills():
                await asyncio.to_thread(
                    backfill,
                    self._registry,
                    self._outbox,
                    spool,
                    lateness_us=self._lateness_us,
                    budget=self._settings.budget,
                    is_stopping=stop.is_set,
                )
                self._has_pauses.set()
            await asyncio.sleep(_BACKFILLS_S)

    def _open_delivery(self) -> Pickup:
        self._channels = open_channels(
            self._settings,
            self._registry,
            lambda subscription_id: pickup.unsubscribe_url(subscription_id),
            lambda delivery_id: pickup.alert_url(delivery_id),
        )
        for channel in self._channels.values():
            self._stack.push_async_callback(channel.close)
        pickup = Pickup(
            self._outbox,
            self._registry,
            channels=self._channels,
            base_url=self._settings.http.public_url,
            confirms_addresses=self._settings.smtp is not None and self._settings.smtp.confirm,
        )
        return pickup

    async def _change(
        self, action: Callable[[int], T], /, *, replan: bool = True, ahead: SetChange = NOTHING
    ) -> T:
        """Change the registry between two documents; see `broker.api.backend.Change`."""

        def change(newest_docid: int) -> T:
            result = action(newest_docid)
            if replan:
                self._planning.note_change()
            return result

        return await self._ahead.run(change, ahead)

    def _behind(self) -> str | None:
        """Return why no documents should be taken now, if the pipeline is far behind."""
        waiting = self._figures.waiting
        if waiting < WAITING_DOCUMENTS_MAX:
            return None
        return f"{waiting} documents are waiting to be evaluated"

    def _step(self, witnesses: pa.Table) -> None:
        self._figures.evaluation.add(counters_of(witnesses))
        self._pipeline.step(witnesses)

    def _count(self, step: StepSummary) -> None:
        self._figures.count(step)
        if step.pauses:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._has_pauses.set)
        self._stages.committed(step)
        log_step(step)

    def _note_delivery(self, event: DeliveryEvent) -> None:
        self._stages.delivered(event)
        log_delivery(event)
