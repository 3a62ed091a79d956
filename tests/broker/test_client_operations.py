"""What operators ask of a broker through the Python client, against the real HTTP API."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from lxml import html
from support.small_broker import small_broker

from broker.registry.ownertoken import keep_owner_token
from broker.registry.tokens import Tokens
from xscl.client import (
    AsyncClient,
    DocumentToPublish,
    Explanation,
    Match,
    RefusedError,
    matches_frame,
    matches_table,
)

SAME = "news//item->a FOLLOWED BY {a/title = b/title, 2 days} news//item->b"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[AsyncClient]:
    token = keep_owner_token(tmp_path).read_text().strip()
    with closing(Tokens(tmp_path / "tokens.db")) as tokens:
        async with (
            small_broker(tmp_path, tokens=tokens) as url,
            AsyncClient(url, token=token) as client,
        ):
            yield client


async def matched(client: AsyncClient) -> list[Match]:
    await client.register("same", SAME)
    for hour in (12, 18):
        receipt = await client.publish(
            "news", "<item><title>žluť</title></item>", key=f"k{hour}", time=NOON.replace(hour=hour)
        )
    assert receipt.docid is not None
    await client.wait_for(receipt.docid)
    return [match async for match in client.all_matches()]


async def test_all_matches_are_found_by_query_document_and_time(client: AsyncClient) -> None:
    (match,) = await matched(client)
    assert (match.query, match.joined) == ("same", ("žluť",))
    for wanted, count in (
        ({"query_id": "same", "docid": 2}, 1),
        ({"docid": 3}, 0),
        ({"query_id": "other"}, 0),
        ({"since": NOON.replace(year=2020)}, 1),
        ({"until": "2020-01-01T00:00:00Z"}, 0),
        ({"after": match.seq}, 0),
    ):
        found = [each async for each in client.all_matches(**wanted)]  # type: ignore[arg-type]
        assert len(found) == count, wanted
    with pytest.raises(ValueError, match="no zone"):
        await anext(client.all_matches(since=datetime(2026, 1, 1)))  # noqa: DTZ001


async def test_what_there_is_can_be_read(client: AsyncClient) -> None:
    await matched(client)
    (news,) = await client.streams()
    assert (news["name"], news["documents"], news["readers"]) == ("news", 2, 1)
    documents = [each async for each in client.documents()]
    assert [each["key"] for each in documents] == ["k12", "k18"]
    assert await client.document(2) == documents[1]
    assert [each async for each in client.documents(after=2)] == []
    assert (await client.statistics())["matches"] == 1
    assert [each async for each in client.dead_letters()] == []
    with pytest.raises(RefusedError, match="dead letter"):
        await client.retry_dead_letter(1)


async def test_what_a_query_becomes_and_would_do_is_answered(client: AsyncClient) -> None:
    await matched(client)
    assert "same" in json.dumps(await client.explain("same"))
    assert "same" in (await client.explain("same"))._repr_html_()
    reason = await client.why_not("same", [2, 1])
    shown = reason._repr_html_()
    assert html.fromstring(shown).text_content() == reason["rendered"]
    assert "&lt;" in Explanation(odd="<b>")._repr_html_()
    assert "matches_per_day" in await client.estimate("new", SAME)
    found = (await client.dry_run("new", SAME))["found"]
    assert found["matches"]
    parametrised = SAME.replace("a/title = b/title", "a/title = $t")
    with pytest.raises(RefusedError, match="t"):
        await client.dry_run("new", parametrised, parameters={"u": "x"})


async def test_subscriptions_rest_and_go_on(client: AsyncClient) -> None:
    await client.register("same", SAME)
    made = await client.subscribe("same")
    await client.pause_subscription(made.id)
    assert (await client.subscription(made.id)).state == "paused"
    await client.resume_subscription(made.id)
    assert (await client.subscription(made.id)).state == "active"
    with pytest.raises(RefusedError, match="pulls"):
        await client.replay(made.id, since="all")


async def test_tokens_are_made_and_revoked_and_the_trail_tells(client: AsyncClient) -> None:
    secret = await client.create_token("crawler", ["publish:news"])
    assert secret.startswith("xscl_")
    assert "crawler" in {each["name"] for each in await client.tokens()}
    await client.revoke_token("crawler")
    assert "crawler" not in {each["name"] for each in await client.tokens()}
    entries = [each async for each in client.audit(subject="crawler")]
    assert [each["action"] for each in entries] == ["delete_token", "post_token"]


async def test_batches_are_bounded_by_their_bytes(client: AsyncClient) -> None:
    documents = [DocumentToPublish(f"<item>{'x' * 1_000}{n}</item>") for n in range(20)]
    sent: list[int] = []
    call = client._connection.call

    async def noted(*path: str, **asked: object) -> object:
        body = asked["body"]
        assert isinstance(body, bytes)
        sent.append(len(body))
        return await call(*path, **asked)  # type: ignore[arg-type]

    client._connection.call = noted  # type: ignore[method-assign]
    receipts = [each async for each in client.publish_many("news", documents, batch_bytes=3_500)]
    assert [receipt.docid for receipt in receipts] == list(range(1, 21))
    assert len(sent) > 6
    assert max(sent) <= 3_500


async def test_matches_are_tables(client: AsyncClient) -> None:
    matches = await matched(client)
    table = matches_table(matches)
    (row,) = table.to_pylist()
    assert (row["seq"], row["docids"], row["keys"]) == (matches[0].seq, [1, 2], ["k12", "k18"])
    assert (row["start"], row["end"]) == (NOON, NOON.replace(hour=18))
    assert (row["joined"], row["parameters"], row["output"]) == (["žluť"], "{}", matches[0].output)
    frame = matches_frame(matches)
    assert list(frame.index) == [matches[0].seq]
    assert (frame["end"] - frame["start"]).iloc[0].total_seconds() == 6 * 3_600


def test_no_matches_are_a_table_with_the_same_columns() -> None:
    assert matches_table([]).num_rows == 0
    assert list(matches_frame([]).columns) == matches_table([]).column_names[1:]
