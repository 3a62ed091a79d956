"""What runs and rows come to for who gets them: by mail, in the Python client, on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from support.kit import parse_case
from support.runners import run_engine
from support.subscribers import Mailbox, broker_in, mailbox, serving, until

from broker.delivery.letter import Letters, Sender
from broker.delivery.mail import MailChannel
from broker.matching.rendering.matchlines import match_lines
from broker.registry.subscription import DestinationKind
from xscl.client import AsyncClient, Match

SENDER = Sender("broker@xscl.example", "XSCL")


BETWEEN = "-" * 72
"""What stands between two matches of a mail."""


async def told(
    directory: Path, query: str, documents: Sequence[str]
) -> tuple[list[Match], list[str]]:
    """Return the matches of documents a minute apart, as the client has them, and as mails do."""
    lines = [
        f"document {number} S 12:{number:02}  {xml}" for number, xml in enumerate(documents, 1)
    ]
    lines.append(f"tick {len(documents) + 1} 14:00")
    case = parse_case("\n".join(["query Q1", f"  {query}", *lines, "----\n"]))
    with broker_in(directory) as broker:
        pulled = broker.subscribe("pull")
        broker.subscribe("mailto:ann@reader.example")
        broker.commit(*run_engine(case))
        async with mailbox() as box, serving(broker) as url, AsyncClient(url) as client:
            channel = MailChannel(
                Letters(SENDER), host="127.0.0.1", port=box.port, sender=SENDER.address
            )
            async with broker.delivering(channels={DestinationKind.EMAIL: channel}):
                found = [match async for match in client.matches(pulled.id, follow=False)]
                await until(lambda: len(_told_in(box)) == len(found))
    return found, _told_in(box)


def _told_in(box: Mailbox) -> list[str]:
    texts = [message.get_body(("plain",)).get_content() for message in box.messages]
    bodies = (text.replace("\r\n", "\n").partition("\n-- \n")[0] for text in texts)
    return [each for body in bodies for each in body.split(BETWEEN)]


async def test_runs_are_lists_in_a_mail_and_in_the_client(tmp_path: Path) -> None:
    prices = (100, 120, 120, 121, 120, 125, 120, 120)
    volumes = (1010, 990, 1005, 999, 999, 750, 950, 700)
    stocks = [
        f"<stock><symbol>I</symbol><price>{price}</price><volume>{volume}</volume></stock>"
        for price, volume in zip(prices, volumes, strict=True)
    ]
    query = (
        "S//stock[price->p][volume->v]+ {first(v) > 1000 AND p > avg(p)} FOLLOWED BY"
        " {w < 0.8 * last(v)} S//stock[volume->w] WITHIN 1 h SAME (//symbol) MATCH NEXT GRACE 0 s"
    )
    found, mails = await told(tmp_path, query, stocks)
    assert sorted(map(str, found)) == [
        "Q1: S/1 ... S/5 (5 documents) + S/6 (0:05:00 apart)",
        "Q1: S/1 ... S/7 (7 documents) + S/8 (0:07:00 apart)",
        "Q1: S/3 + S/4 + S/6 (0:03:00 apart)",
    ]
    assert sorted(mail.count("- I 1") for mail in mails) == [2, 5, 7]
    assert [mail.count("\n* I 12") for mail in mails] == [1, 1, 1]


async def test_a_count_of_runs_is_told_as_a_number(tmp_path: Path) -> None:
    query = (
        "SELECT <n>{count()}</n> FROM S//A[v->v]+ {v > prev(v)} WITHIN 1 h MATCH ANY"
        " WINDOW 0 s HAVING count() > 500000000000 GRACE 0 s"
    )
    documents = [f"<A><v>{n}</v></A>" for n in range(1, 41)]
    (match,), (mail,) = await told(tmp_path, query, documents)
    assert (match.output, mail) == ("<n>549755813888</n>", "* 549755813888\n")
    assert str(match) == "Q1: S/1 ... S/40 (40 documents) (0:39:00 apart)"
    assert [*match_lines(match.line)][1:] == ["  count() = 549755813888"]


async def test_a_digest_lists_its_items(tmp_path: Path) -> None:
    query = (
        'SELECT <digest of="{i/category}" items="{count()}">{collect(i/title)}</digest>'
        " FROM S//item->i WINDOW 1 day BY i/category HAVING count() >= 3 GRACE 0 s"
    )
    titles = ("On tides", "On wind", "On salt")
    items = [f"<item><title>{t}</title><category>sea</category></item>" for t in titles]
    (match,), (mail,) = await told(tmp_path, query, items)
    assert mail == "  of: sea\n  items: 3\n\n- On tides\n- On wind\n- On salt\n"
    assert str(match) == "Q1: S/1 + S/2 + S/3 (0:02:00 apart)"
