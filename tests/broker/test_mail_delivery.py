from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from email import message_from_bytes
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.lines import render
from support.examples import examples
from support.ports import free_port
from support.subscribers import Broker, Mailbox, broker_in, found, item, mailbox, until

from broker.delivery.atom import matches_feed
from broker.delivery.attempt import Attempt, OutcomeKind
from broker.delivery.endpoints import EndpointLimits
from broker.delivery.letter import Letters, Sender
from broker.delivery.mail import MailChannel, judge
from broker.delivery.summary import summarise
from broker.delivery.worker import DeliveryEventKind as Event
from broker.matching.match import MatchNode, parameters_key
from broker.pipeline.matchlog import CommittedMatch
from broker.registry.subscription import (
    Destination,
    DestinationKind,
    Subscription,
    SubscriptionError,
)

SENDER = Sender("broker@xscl.example", "XSCL")
LETTERS = Letters(SENDER)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with broker_in(tmp_path) as broker:
        yield broker


def mailing(box: Mailbox, **settings: Any) -> dict[DestinationKind, MailChannel]:
    channel = MailChannel(
        LETTERS, host="127.0.0.1", port=box.port, sender=SENDER.address, **settings
    )
    return {DestinationKind.EMAIL: channel}


def written(*outputs: str, query: str = "Q1", address: str = "ann@reader.example") -> Any:
    """Return the mail about matches with these outputs."""
    matches = []
    for number, output in enumerate(outputs, 1):
        match = found(number, query=query, output=output)
        matches.append(
            CommittedMatch(number, match.id, query, "{}", number, number, render(match), 0)
        )
    subscription = Subscription(
        "sub_1", query, parameters_key({}), Destination(DestinationKind.EMAIL, address), 0
    )
    attempt = Attempt("msg_1", 1, subscription, matches, 0)
    return LETTERS.write(attempt, "https://broker.example/v1/unsubscribe/token")


async def test_a_match_arrives_as_text_and_html(broker: Broker) -> None:
    async with mailbox() as box, broker.delivering(channels=mailing(box)):
        subscription = broker.subscribe("ann@reader.example")
        broker.commit(found(1))
        (message,) = await box.wait_for(1)
        assert message["To"] == "ann@reader.example"
        assert message["Subject"] == "Q1: Story 2"
        assert message["Message-ID"].startswith("<msg_")
        assert subscription.id in message["References"]
        text = message.get_body(("plain",)).get_content()  # type: ignore[union-attr]
        page = message.get_body(("html",)).get_content()  # type: ignore[union-attr]
        for part in ("Story 1", "https://two.example/2", "Ann", "1 hour"):
            assert part in text
            assert part in page


async def test_a_mail_that_may_have_been_taken_is_sent_again_as_the_same_message(
    broker: Broker,
) -> None:
    async with mailbox() as box:
        box.drop_after_data = 1
        async with broker.delivering(channels=mailing(box)):
            broker.subscribe("ann@reader.example")
            broker.commit(found(1))
            first, second = await box.wait_for(2)
        assert first["Message-ID"] == second["Message-ID"]


async def test_a_mail_server_that_is_not_there_is_told_by_its_name() -> None:
    port = free_port()
    channel = MailChannel(LETTERS, host="127.0.0.1", port=port, sender="xscl@broker.example")
    outcome = await channel.notify("ann@reader.example", "news", "some")
    assert outcome.kind is OutcomeKind.THROTTLED
    wanted = f"the mail server 127.0.0.1:{port} cannot be reached: Connection refused"
    assert outcome.detail == wanted


async def test_an_unknown_mailbox_disables_its_subscription_only(broker: Broker) -> None:
    async with mailbox() as box:
        box.unknown = {"nobody@reader.example"}
        async with broker.delivering(channels=mailing(box)):
            gone = broker.subscribe("nobody@reader.example")
            broker.subscribe("ann@reader.example")
            broker.commit(found(1))
            await box.wait_for(1)
            await until(lambda: broker.registry.subscriptions.get(gone.id).state == "disabled")


async def test_a_refused_message_is_a_dead_letter_and_the_next_one_is_sent(
    broker: Broker,
) -> None:
    async with mailbox() as box:
        box.replies = ["554 5.6.0 not this one"]
        async with broker.delivering(channels=mailing(box)):
            broker.subscribe("ann@reader.example")
            broker.commit(found(1), found(2))
            (message,) = await box.wait_for(1)
        assert message["Subject"] == "Q1: Story 3"
        assert [event.kind for event in broker.events].count(Event.DEAD) == 1


async def test_mail_is_retried_when_the_server_is_busy(broker: Broker) -> None:
    async with mailbox() as box:
        box.replies = ["451 try later", "452 full"]
        async with broker.delivering(channels=mailing(box)):
            broker.subscribe("ann@reader.example")
            broker.commit(found(1))
            await box.wait_for(1)


@settings(max_examples=examples(12), deadline=None)
@given(text=st.text())
def test_nothing_in_a_feed_or_a_query_id_can_add_a_header(text: str) -> None:
    plain = [name for name, _ in written(f"<match>{item(1)}</match>").items()]
    attack = f"Q\r\nBcc: eve@evil.example {text}"
    title = "T&#13;&#10;Bcc: eve@evil.example"
    output = f"<match><item><title>{title}</title></item></match>"
    for message in (written(output), written(f"<match>{item(1)}</match>", query=attack)):
        sent = message_from_bytes(message.as_bytes())
        assert [name for name, _ in sent.items()] == plain


@pytest.mark.parametrize(
    "address",
    [
        "a@b\r\nBcc: c@d",
        "a b@c",
        "a@b,c@d",
        "@b",
        "a@",
        "<a@b>",
        "a@b\x00",
        "a@b@c",
        "a\u202eb@c.example",
    ],
)
def test_what_is_not_one_address_is_refused(address: str) -> None:
    with pytest.raises(SubscriptionError):
        Destination.parse(address)


def test_html_from_a_feed_keeps_text_and_links_and_nothing_that_runs() -> None:
    bad = (
        "&lt;p onclick='x()'&gt;Read &lt;a href='https://ok.example'&gt;this&lt;/a&gt;"
        "&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src='https://spy.example/p.gif'&gt;"
        "&lt;a href='javascript:alert(1)'&gt;that&lt;/a&gt;&lt;/p&gt;"
    )
    page = (
        written(f"<match>{item(1, summary=bad)}{item(2)}</match>").get_body(("html",)).get_content()
    )
    assert 'href="https://ok.example"' in page
    for forbidden in ("<script", "alert", "onclick", "<img", "javascript:"):
        assert forbidden not in page


def test_a_link_that_runs_is_not_a_link() -> None:
    bad = "<item><title>T</title><link>javascript:alert(1)</link></item>"
    message = written(f"<match>{bad}{item(2)}</match>")
    assert "javascript:" not in message.get_body(("html",)).get_content()
    assert "javascript:" not in message.get_body(("plain",)).get_content()


def test_what_is_different_did_not_join_two_documents() -> None:
    match = found(1)
    feeds = {"a/feed": MatchNode(0, 7, "one"), "b/feed": MatchNode(1, 7, "two")}
    different = replace(match, witnesses=({**match.witnesses[0], **feeds},))
    committed = CommittedMatch(1, match.id, "Q1", "{}", 1, 1, render(different), 0)
    assert [value for _, value in summarise(committed).joined] == ["Ann"]
    page = matches_feed("t", "https://broker.example/", [committed]).decode()
    assert "Joined by Ann; " in page
    assert 'category term="one"' not in page


def test_one_click_unsubscribe_stands_in_the_headers() -> None:
    message = written(f"<match>{item(1)}</match>")
    assert message["List-Unsubscribe"] == "<https://broker.example/v1/unsubscribe/token>"
    assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"


def test_a_constructed_output_shows_its_own_fields() -> None:
    output = '<coverage of="Tides" by="Wire"><delay>PT1H</delay><title>On tides</title></coverage>'
    text = written(output).get_body(("plain",)).get_content()
    for line in ("of: Tides", "by: Wire", "delay: PT1H", "* On tides"):
        assert line in text


def test_the_text_of_a_constructed_output_is_its_title() -> None:
    output = '<burst link="https://t.example/1" feeds="5">Harbour\n shut</burst>'
    message = written(output)
    assert message["Subject"] == "Q1: Harbour shut"
    text = message.get_body(("plain",)).get_content()
    assert text.startswith("* Harbour shut\n  link: https://t.example/1\n  feeds: 5\n")


def test_values_of_several_elements_are_not_one_word() -> None:
    stock = "<stock><symbol>IBM</symbol><price>90</price><volume>100</volume></stock>"
    assert written(f"<match>{stock}{stock}</match>")["Subject"] == "Q1: IBM 90 100"


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (
            '<digest of="sea">{}</digest>',
            "  of: sea\n\n- One, two\n- Three\n\n",
        ),
        ("<digest>{}</digest>", "- One, two\n- Three\n\n"),
        ("<digest><item>{}</item></digest>", "  item: One, two\n  item: Three\n\n"),
    ],
)
def test_what_a_row_has_collected_is_a_list(output: str, expected: str) -> None:
    values = {"count()": 2, "collect(i/title)": ["One, \n two", "Three"]}
    match = replace(
        found(1), roots=(), output=output.format("One, \n two Three"), values=values, witnesses=()
    )
    committed = CommittedMatch(1, match.id, "Q1", "{}", 1, 1, render(match), 0)
    subscription = Subscription(
        "sub_1", "Q1", parameters_key({}), Destination(DestinationKind.EMAIL, "a@b.example"), 0
    )
    message = LETTERS.write(Attempt("msg_1", 1, subscription, [committed], 0), "")
    assert message.get_body(("plain",)).get_content().startswith(expected)


def test_several_matches_share_one_mail() -> None:
    message = written(*(f"<match>{item(n)}{item(n + 1)}</match>" for n in range(3)))
    assert message["Subject"] == "Q1: Story 1 and 2 more"
    assert "3. Story 3" in message.get_body(("plain",)).get_content()


@pytest.mark.parametrize(
    ("code", "text", "about_recipient", "kind"),
    [
        (421, "closing", False, OutcomeKind.THROTTLED),
        (451, "busy", True, OutcomeKind.THROTTLED),
        (550, "5.1.1 no such user", True, OutcomeKind.GONE),
        (550, "5.7.1 blocked by policy", True, OutcomeKind.REFUSED),
        (554, "5.6.0 content", False, OutcomeKind.REFUSED),
        (535, "5.7.8 bad password", False, OutcomeKind.FAILED),
    ],
)
def test_bounce_codes_are_told_apart(
    code: int, text: str, about_recipient: bool, kind: OutcomeKind
) -> None:
    assert judge(code, text, is_about_recipient=about_recipient).kind is kind


async def test_a_flood_of_matches_goes_in_one_mail(broker: Broker) -> None:
    async with mailbox() as box:
        broker.subscribe("ann@reader.example")
        broker.commit(*(found(number) for number in range(1, 251)))
        async with broker.delivering(channels=mailing(box)):
            first, second = (await box.wait_for(2))[:2]
        assert first["Subject"] == "Q1: Story 2 and 199 more"
        assert second["Subject"] == "Q1: Story 202 and 49 more"


async def test_one_address_is_not_written_to_faster_than_its_bound(broker: Broker) -> None:
    recipient = EndpointLimits(concurrency=1, rate_per_s=4, burst_s=0.5)
    async with mailbox() as box:
        broker.subscribe("ann@reader.example")
        broker.subscribe("bob@reader.example")
        broker.commit(*(found(number) for number in range(1, 8)))
        async with broker.delivering(channels=mailing(box), recipient=recipient):
            begun = asyncio.get_running_loop().time()
            messages = await box.wait_for(14)
            assert 0.9 < asyncio.get_running_loop().time() - begun < 10
        assert {message["To"] for message in messages[:4]} == {
            "ann@reader.example",
            "bob@reader.example",
        }


@pytest.mark.parametrize("elements", [2, 30, 45])
def test_a_run_is_a_list_under_what_stands_before_it(elements: int) -> None:
    first = found(1)
    run = [
        replace(first.documents[1], docid=n, key=f"k{n}", block=1) for n in range(2, 2 + elements)
    ]
    output = "".join(item(n) for n in range(1, 2 + elements))
    match = replace(
        first,
        documents=(replace(first.documents[0], block=0), *run),
        roots=(0,) * (1 + elements),
        output=f"<match>{output}</match>",
    )
    summary = summarise(CommittedMatch(elements, match.id, "Q1", "{}", 1, 1, render(match), 0))
    assert [each.is_list for each in summary.groups] == [False, True]
    assert summary.headline == f"Story {1 + elements}"
    subscription = Subscription(
        "sub_1", "Q1", parameters_key({}), Destination(DestinationKind.EMAIL, "a@b.example"), 0
    )
    committed = CommittedMatch(elements, match.id, "Q1", "{}", 1, 1, render(match), 0)
    message = LETTERS.write(Attempt("msg_1", 1, subscription, [committed], 0), "")
    page, text = (message.get_body((kind,)).get_content() for kind in ("html", "plain"))
    assert page.count("font-size:18px") == 1
    assert page.count("<li") == min(elements, 30) + (elements > 30)
    assert ("and 15 more" in page) == ("- and 15 more" in text) == (elements == 45)
    assert text.count("\n- Story ") == min(elements, 30)
    assert "* Story 1\n" in text
