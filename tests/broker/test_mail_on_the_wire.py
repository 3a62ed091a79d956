"""Mails as they leave the broker, byte for byte, and as another parser than Python's reads them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import fast_mail_parser
import pytest
from support.subscribers import Broker, broker_in, found, mailbox, serving

from broker.delivery.letter import Letters, Sender
from broker.delivery.links import link_token
from broker.delivery.mail import MailChannel
from broker.registry.subscription import DestinationKind, SubscriptionState

LINE_OCTETS_MAX = 998
LONG_HOST = "a-rather-long-host-name.of-a-department.of-a-university.example.org"
SENDER = Sender(f"broker@{LONG_HOST}")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with broker_in(tmp_path) as broker:
        yield broker


@asynccontextmanager
async def sent(broker: Broker, base_url: str, **options: Any) -> AsyncIterator[bytes]:
    """Yield the bytes of the mail about one match; its link is below `base_url`."""
    key = broker.registry.key("links")

    def unsubscribe_url(subscription_id: str) -> str:
        return f"{base_url}/v1/unsubscribe/{link_token(key, 'unsubscribe', subscription_id)}"

    async with mailbox() as box:
        channel = MailChannel(
            Letters(SENDER),
            host="127.0.0.1",
            port=box.port,
            sender=SENDER.address,
            unsubscribe_url=unsubscribe_url,
        )
        async with broker.delivering(channels={DestinationKind.EMAIL: channel}):
            broker.subscribe("ann@reader.example", **options)
            broker.commit(found(1))
            await box.wait_for(1)
        yield box.raw[0]


def header_lines(raw: bytes, name: str) -> list[bytes]:
    """Return the lines of a header as they stand: nothing unfolded, nothing decoded."""
    head = raw.split(b"\r\n\r\n", 1)[0]
    return re.findall(rb"(?im)^" + name.encode() + rb": ([^\r]*(?:\r\n[ \t][^\r]*)*)", head)


async def test_the_link_to_unsubscribe_is_a_url_in_the_bytes(broker: Broker) -> None:
    async with sent(broker, "https://broker.example.org") as raw:
        pass
    [line] = header_lines(raw, "List-Unsubscribe")
    assert re.fullmatch(
        rb"<https://broker\.example\.org/v1/unsubscribe/sub_[0-9a-f]+\.[0-9a-f]+>", line
    )
    assert header_lines(raw, "List-Unsubscribe-Post") == [b"List-Unsubscribe=One-Click"]


@pytest.mark.parametrize(
    "name", ["Message-ID", "In-Reply-To", "References", "List-Id", "X-XSCL-Delivery"]
)
async def test_an_id_is_never_encoded_or_broken(broker: Broker, name: str) -> None:
    async with sent(broker, "https://broker.example.org") as raw:
        pass
    [line] = header_lines(raw, name)
    assert b"=?" not in line
    assert len(line.split()) == 1


async def test_no_line_is_longer_than_mail_may_have(broker: Broker) -> None:
    async with sent(broker, "https://broker.example.org/" + "x" * 500) as raw:
        pass
    assert max(map(len, raw.split(b"\r\n"))) <= LINE_OCTETS_MAX


async def test_another_parser_reads_the_mail_as_it_was_meant(broker: Broker) -> None:
    async with sent(broker, "https://broker.example.org") as raw:
        pass
    mail = fast_mail_parser.parse_email(raw)
    assert mail.warnings == []
    [link] = mail.headers["List-Unsubscribe"]
    assert link.startswith("<https://broker.example.org/v1/unsubscribe/sub_")
    assert mail.headers["List-Unsubscribe-Post"] == ["List-Unsubscribe=One-Click"]
    assert mail.subject == "Q1: Story 2"
    [text], [page] = mail.text_plain, mail.text_html
    assert "Story 1" in text
    assert "Story 1" in page


async def test_one_click_works_from_the_bytes_of_a_mail(broker: Broker) -> None:
    async with (
        serving(broker) as url,
        sent(broker, url) as raw,
        aiohttp.ClientSession() as provider,
    ):
        [line] = header_lines(raw, "List-Unsubscribe")
        link = line.decode().strip("<>")
        body = b"List-Unsubscribe=One-Click"
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        async with provider.post(link, data=body, headers=kind) as response:
            assert response.status == 200
        [subscription] = broker.registry.subscriptions.changed_sent(0)
        assert subscription.state is SubscriptionState.REMOVED


async def test_a_link_that_is_not_https_promises_no_click(broker: Broker) -> None:
    async with sent(broker, "http://127.0.0.1:8420") as raw:
        pass
    assert header_lines(raw, "List-Unsubscribe")
    assert header_lines(raw, "List-Unsubscribe-Post") == []
