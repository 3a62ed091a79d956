"""The Python client against the broker's real HTTP application; no pipeline runs."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import sys
import threading
import warnings
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar
from xml.etree import ElementTree

import pytest
from aiohttp import web
from lxml import etree
from support.ports import free_port
from support.small_broker import small_broker
from support.subscribers import LOOPBACK, Broker, broker_in, found, receiving

from broker.api.backend import Backend
from broker.api.http import add_deliveries, make_application
from broker.api.pickup import Pickup
from broker.delivery.webhook import WebhookChannel
from broker.documents.ingest import Ingest
from broker.documents.ingest_thread import IngestThread
from broker.documents.spool import Spool, SpoolWriter
from broker.matching.match import MatchNode
from broker.registry.streams import Streams
from broker.registry.subscription import DestinationKind
from xscl.client import (
    AsyncClient,
    BrokerUnreachableError,
    Client,
    ClosedError,
    DocumentToPublish,
    QueryRefusedError,
    RefusedError,
    WebhookError,
    verify_webhook,
)
from xscl.client.feeds import AsyncFeedOperations, FeedOperations
from xscl.client.operations import AsyncOperations, Operations

T = TypeVar("T")
QUERY = "news//item->a FOLLOWED BY {a/author = b/author, 2 days} news//item->b"


@contextlib.asynccontextmanager
async def api(broker: Broker, port: int = 0) -> AsyncIterator[str]:
    """Serve the whole API of a broker; yields its URL."""
    spool = SpoolWriter(broker.directory / "spool")
    ingest = IngestThread(
        Ingest(spool), spool, registry_version=broker.registry.revision, linger_s=0
    )
    ingest.start()

    async def change(action: Any, /, *, replan: bool = True, **_: object) -> Any:
        return await asyncio.wrap_future(ingest.exclusively(action))

    backend = Backend(
        registry=broker.registry,
        outbox=broker.outbox,
        ingest=ingest,
        spool=Spool(broker.directory / "spool"),
        streams=Streams(Spool(broker.directory / "spool")),
        change=change,
        unready=lambda: None,
        figures=dict,
        committed=asyncio.Condition(),
    )
    channel = WebhookChannel(allowed=LOOPBACK, allow_http=True)
    application = make_application(backend, body_bytes_max=1_000_000)
    channels = {DestinationKind.WEBHOOK: channel}
    add_deliveries(application, Pickup(broker.outbox, broker.registry, channels=channels))
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, reuse_address=True).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
        await channel.close()
        await asyncio.to_thread(ingest.stop)
        spool.close()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with broker_in(tmp_path) as broker:
        yield broker


@pytest.fixture
async def client(broker: Broker) -> AsyncIterator[AsyncClient]:
    async with api(broker) as url, AsyncClient(url) as client:
        yield client


async def test_a_query_is_registered_paused_resumed_and_removed(client: AsyncClient) -> None:
    registered = await client.register("same", QUERY)
    assert (registered.id, registered.state, registered.text) == ("same", "active", QUERY)
    assert (await client.pause("same")).state == "paused"
    assert (await client.resume("same")).state == "active"
    assert [query.id for query in await client.queries()] == ["same"]
    await client.remove("same")
    assert await client.queries() == []
    with pytest.raises(RefusedError, match="no query") as refused:
        await client.query("same")
    assert refused.value.status == 404


async def test_a_text_that_is_no_query_is_refused_with_its_places(client: AsyncClient) -> None:
    with pytest.raises(QueryRefusedError) as refused:
        await client.register("bad", "S//item FOLLOWED {a = b, 1 d} S//item")
    finding = refused.value.findings[0]
    assert finding.start[0] == 1
    assert finding.start[1] > 1
    assert "^" in str(refused.value)


async def test_documents_are_published_one_by_one_and_many_at_a_time(
    client: AsyncClient,
) -> None:
    time = datetime(2026, 1, 1, tzinfo=UTC)
    receipt = await client.publish("news", "<item>1</item>", key="k1", time=time)
    assert (receipt.docid, receipt.key) == (1, "k1")
    many = [DocumentToPublish(f"<item>{n}</item>") for n in range(2, 27)]
    receipts = [receipt async for receipt in client.publish_many("news", many, batch=10)]
    assert [receipt.docid for receipt in receipts] == list(range(2, 27))
    with pytest.raises(RefusedError, match="XML"):
        await client.publish("news", "<item>")


async def test_publishing_waits_while_the_broker_is_busy() -> None:
    asked: list[float] = []

    async def busy(request: web.Request) -> web.Response:
        asked.append(asyncio.get_running_loop().time())
        if len(asked) == 1:
            return web.json_response({"detail": "full"}, status=429, headers={"Retry-After": "1"})
        receipt = {"outcome": "accepted", "docid": 1, "key": "1", "reason": None}
        return web.json_response({"documents": [receipt]})

    application = web.Application()
    application.add_routes([web.post("/v1/streams/news/documents", busy)])
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with AsyncClient(f"http://127.0.0.1:{runner.addresses[0][1]}") as client:
        assert (await client.publish("news", "<item/>")).docid == 1
    assert asked[1] - asked[0] >= 1
    await runner.cleanup()


async def test_matches_are_read_to_the_end_or_followed(broker: Broker, client: AsyncClient) -> None:
    await client.register("Q1", QUERY)
    subscription = await client.subscribe("Q1")
    broker.commit(found(1), found(2))
    matches = [match async for match in client.matches(subscription.id, follow=False)]
    assert [match.id for match in matches] == [found(1).id, found(2).id]
    assert matches[0].joined == ("Ann",)
    assert matches[0].apart.total_seconds() == 3_600
    following = client.matches(subscription.id, after=matches[0].seq)
    assert (await anext(following)).id == found(2).id
    broker.commit(found(3))
    assert (await anext(following)).id == found(3).id
    await following.aclose()  # type: ignore[attr-defined]


async def test_following_goes_on_when_the_broker_is_back(broker: Broker) -> None:
    subscription, port = broker.subscribe("pull"), free_port()
    async with AsyncClient(f"http://127.0.0.1:{port}") as client:
        following = client.matches(subscription.id, after=0)
        async with api(broker, port):
            broker.commit(found(1))
            assert (await anext(following)).id == found(1).id
        broker.commit(found(2))
        async with api(broker, port):
            async with asyncio.timeout(10):
                assert (await anext(following)).id == found(2).id
            await following.aclose()  # type: ignore[attr-defined]


async def test_a_durable_consumer_answers_for_each_match(
    broker: Broker, client: AsyncClient
) -> None:
    subscription = broker.subscribe("pull")
    broker.commit(found(1), found(2))
    consuming = client.consume(subscription.id, "mine", start="all")
    first, second = await anext(consuming), await anext(consuming)
    assert await first.ack()
    assert not await first.ack()
    assert await second.nak()
    again = await anext(consuming)
    assert (again.match.id, again.attempt) == (found(2).id, 2)
    assert await again.extend()
    assert await again.term(reason="not for me")
    dead = [each async for each in client.deliveries(state="dead")]
    assert [each["detail"] for each in dead] == ["not for me"]
    await consuming.aclose()  # type: ignore[attr-defined]


async def test_a_webhook_is_subscribed_tried_and_verified(client: AsyncClient) -> None:
    await client.register("Q1", QUERY)
    async with receiving() as receiver:
        subscription = await client.subscribe("Q1", receiver.url)
        assert subscription.secret is not None
        sample = await client.send_sample(subscription.id)
        assert sample["outcome"] == "delivered"
        new = await client.rotate_secret(subscription.id)
        await client.send_sample(subscription.id)
    first, second = receiver.received
    assert verify_webhook(subscription.secret, first.headers, first.body)["type"] == "xscl.sample"
    verify_webhook(new, second.headers, second.body)
    verify_webhook([new, subscription.secret], first.headers, first.body)
    with pytest.raises(WebhookError, match="no signature"):
        verify_webhook(new, first.headers, first.body)
    with pytest.raises(WebhookError, match="no signature"):
        verify_webhook(subscription.secret, first.headers, first.body + b" ")
    with pytest.raises(WebhookError, match="old"):
        verify_webhook(subscription.secret, first.headers, first.body, now_s=0)
    with pytest.raises(WebhookError, match="headers"):
        verify_webhook(subscription.secret, {}, first.body)
    assert [each.id for each in await client.subscriptions("Q1")] == [subscription.id]
    await client.unsubscribe(subscription.id)
    assert await client.subscriptions() == []


async def test_a_broker_that_is_not_there_is_named() -> None:
    async with AsyncClient(f"http://127.0.0.1:{free_port()}") as client:
        with pytest.raises(BrokerUnreachableError, match=r"127\.0\.0\.1"):
            await client.queries()


async def test_the_blocking_client_does_the_same_in_another_thread(broker: Broker) -> None:
    async with api(broker) as url:

        def work() -> list[str]:
            with Client(url) as client:
                client.register("Q1", QUERY)
                subscription = client.subscribe("Q1")
                client.publish("news", "<item/>")
                broker.commit(found(2), found(3))
                seen = []
                for message in client.consume(subscription.id, "mine", start="all"):
                    seen.append(message.match.id)
                    message.ack()
                    if len(seen) == 2:
                        break
                seen += [match.id for match in client.matches(subscription.id, follow=False)]
                seen += [
                    receipt.outcome
                    for receipt in client.publish_many("news", [DocumentToPublish("<a/>")])
                ]
                return seen

        seen = await asyncio.to_thread(work)
        assert seen == [found(2).id, found(3).id, found(2).id, found(3).id, "accepted"]
        assert "xscl-client" not in {thread.name for thread in threading.enumerate()}


def test_both_clients_have_the_same_methods_and_arguments() -> None:
    def methods(kind: type) -> dict[str, list[str]]:
        return {
            name: list(inspect.signature(member).parameters)
            for name, member in vars(kind).items()
            if not name.startswith("_")
        }

    assert methods(Client) == methods(AsyncClient)
    assert methods(Operations) == methods(AsyncOperations)
    assert methods(FeedOperations) == methods(AsyncFeedOperations)


async def test_matches_and_queries_show_themselves_in_a_notebook(
    broker: Broker, client: AsyncClient
) -> None:
    registered = await client.register("Q1", "S//item[author = '<Ann>']")
    assert "&lt;Ann&gt;" in registered._repr_html_()
    subscription = await client.subscribe("Q1")
    broker.commit(found(1))
    (match,) = [match async for match in client.matches(subscription.id, follow=False)]
    assert "&lt;match&gt;" in match._repr_html_()
    assert str(match) == "Q1: news/k1 + news/k2 (Ann; 1:00:00 apart)"
    first, second = match.documents
    own = [replace(second, key=f"r{n}", block=1) for n in range(30)]
    run = replace(match, documents=(replace(first, block=0), *own), witnesses=())
    assert str(run) == "Q1: news/k1 + news/r0 ... news/r29 (30 documents) (1:00:00 apart)"
    assert "joined by" not in run._repr_html_()
    own = [replace(first, key=f"r{n}", time=first.time + timedelta(minutes=n)) for n in range(5)]
    row = replace(
        run, documents=tuple(own), start=match.end, end=match.end, line={**match.line, "roots": []}
    )
    assert str(row) == "Q1: news/r0 ... news/r4 (5 documents) (0:04:00 apart)"


async def test_what_is_different_has_not_joined_documents(
    broker: Broker, client: AsyncClient
) -> None:
    await client.register("Q1", "S//item[author = '<Ann>']")
    subscription = await client.subscribe("Q1")
    feeds = {"a/feed": MatchNode(0, 7, "one"), "b/feed": MatchNode(1, 7, "two")}
    first = found(1)
    broker.commit(replace(first, witnesses=({**first.witnesses[0], **feeds},)))
    (match,) = [match async for match in client.matches(subscription.id, follow=False)]
    assert match.witnesses[0]["a/feed"]["value"] == "one"
    assert match.joined == ("Ann",)


ELEMENTS = [
    "<item><t>ž</t></item>",
    b"<item><t>\xc5\xbe</t></item>",
    b"\xef\xbb\xbf<item><t>\xc5\xbe</t></item>",
    "<?xml version='1.0' encoding='iso-8859-2'?><item><t>ž</t></item>".encode("iso-8859-2"),
    "<?xml version='1.0' encoding='utf-16'?><item><t>ž</t></item>".encode("utf-16"),
    etree.fromstring("<root><item><t>ž</t></item>tail</root>")[0],
    ElementTree.fromstring("<root><item><t>ž</t></item>tail</root>")[0],
]


@pytest.mark.parametrize("xml", ELEMENTS, ids=range(len(ELEMENTS)))
async def test_a_document_is_given_as_text_as_bytes_or_as_an_element(
    broker: Broker, client: AsyncClient, xml: Any
) -> None:
    assert (await client.publish("news", xml, time="2026-01-01T00:00:00Z")).docid == 1
    spool = Spool(broker.directory / "spool")
    spool.refresh()
    [kept] = spool.documents([1]).values()
    assert etree.fromstring(kept).findtext("t") == "ž"


async def test_what_is_no_document_and_no_time_is_said_before_it_is_sent(
    client: AsyncClient,
) -> None:
    with pytest.raises(TypeError, match="text, bytes or an element, not int"):
        await client.publish("news", 7)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not text in utf-8"):
        await client.publish("news", b"<a>\xff</a>")
    with pytest.raises(ValueError, match="has no time zone"):
        await client.publish("news", "<a/>", time=datetime(2026, 1, 1))  # noqa: DTZ001
    with pytest.raises(RefusedError, match="ISO 8601"):
        await client.publish("news", "<a/>", time="yesterday")


async def test_documents_of_many_bytes_go_fewer_at_a_time(client: AsyncClient) -> None:
    many = [DocumentToPublish(f"<item>{'x' * 60_000}{n}</item>") for n in range(40)]
    receipts = [receipt async for receipt in client.publish_many("news", many)]
    assert [receipt.docid for receipt in receipts] == list(range(1, 41))


async def test_a_cross_product_is_registered_with_a_warning(client: AsyncClient) -> None:
    assert (await client.register("same", QUERY)).warnings == ()
    registered = await client.register("pairs", "S//a FOLLOWED BY {, 1 h} S//b")
    [warning] = registered.warnings
    assert "each pair of documents within the window is tried" in warning


@pytest.mark.parametrize("make", [AsyncClient, Client])
def test_what_is_no_address_and_no_token_is_said_at_once(make: Any) -> None:
    with pytest.raises(ValueError, match=r"as http://127\.0\.0\.1:8420"):
        make("127.0.0.1:8420")
    with pytest.raises(ValueError, match="a token has no spaces"):
        make("http://127.0.0.1:8420", token="xscl_a\nb")
    client = make("http://127.0.0.1:8420", token="xscl_ab\n")
    if isinstance(client, Client):
        client.close()


def test_a_client_that_is_closed_says_so() -> None:
    client = Client()
    client.close()
    client.close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ClosedError):
            client.queries()
        with pytest.raises(ClosedError):
            next(client.matches("sub_1"))


async def test_an_asynchronous_client_that_is_closed_says_so(broker: Broker) -> None:
    async with AsyncClient(f"http://127.0.0.1:{free_port()}") as client:
        pass
    with pytest.raises(ClosedError):
        await client.queries()


async def test_a_client_that_nobody_closed_ends_quietly(broker: Broker) -> None:
    script = "from xscl.client import Client; import sys; Client(sys.argv[1]).queries()"
    async with api(broker) as url:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-W", "always", "-c", script, url),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await process.communicate()
    assert (process.returncode, said.decode()) == (0, "")


async def test_one_can_wait_until_a_document_is_evaluated(tmp_path: Path) -> None:
    async with small_broker(tmp_path) as url, AsyncClient(url) as client:
        await client.register("all", "news//item")
        mine = await client.subscribe("all")
        receipts = [
            receipt
            async for receipt in client.publish_many(
                "news", [DocumentToPublish(f"<item>{n}</item>") for n in range(20)]
            )
        ]
        last = receipts[-1].docid
        assert last is not None
        await client.wait_for(last)
        assert len([each async for each in client.matches(mine.id, follow=False)]) == 20
        with pytest.raises(RefusedError, match="no document 21"):
            await client.wait_for(21)


async def test_waiting_for_a_document_ends_where_nothing_is_evaluated(client: AsyncClient) -> None:
    receipt = await client.publish("news", "<item/>")
    assert receipt.docid is not None
    with pytest.raises(TimeoutError, match="document 1 is not evaluated"):
        await client.wait_for(receipt.docid, timeout_s=0)


async def test_the_matches_of_a_query_that_was_removed_come_to_an_end(tmp_path: Path) -> None:
    async with small_broker(tmp_path) as url, AsyncClient(url) as client:
        await client.register("all", "news//item")
        mine = await client.subscribe("all")
        for number in range(3):
            await client.publish("news", f"<item>{number}</item>")
        await client.remove("all")
        async with asyncio.timeout(30):
            found = [match.documents[0].docid async for match in client.matches(mine.id, after=0)]
    assert found == [1, 2, 3]
