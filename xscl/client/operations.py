"""What operators and authors of queries ask of a broker, in both clients.

Values of which a program wants a few members come as the API answers them (docs/api.md).
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, TypeVar

from xscl.client.connection import Connection
from xscl.client.errors import RefusedError
from xscl.client.values import (
    Explanation,
    Match,
    SubscriptionInfo,
    read_match,
    read_subscription,
)

__all__ = ["AsyncOperations", "Operations"]

T = TypeVar("T")
Fields = Mapping[str, Any]

_DRY_RUN_S = 150.0
"""A minute of looking at documents, what the broker waits for another's, and some air."""


class AsyncOperations:
    """The part of `AsyncClient` that is about the broker and its history."""

    _connection: Connection

    async def streams(self) -> list[Fields]:
        """Return the streams: what is kept of each, how fast it comes, who reads it."""
        return list((await self._connection.call("GET", "streams"))["streams"])

    async def documents(self, *, after: int = 0) -> AsyncIterator[Fields]:
        """Yield the documents that are kept, with docids above `after`."""
        while True:
            page = await self._connection.call("GET", "documents", query={"after": after})
            for document in page["documents"]:
                yield document
                after = document["docid"]
            if not page["documents"]:
                return

    async def document(self, docid: int) -> Fields:
        """Return one document that is kept."""
        return dict(await self._connection.call("GET", "documents", str(docid)))

    async def dead_letters(self) -> AsyncIterator[Fields]:
        """Yield documents that could not be evaluated, newest first, with the reason."""
        async for letter in self._turned("dead-letters", {}):
            yield letter

    async def retry_dead_letter(self, docid: int) -> int:
        """Accept such a document once more, as a new one; return its docid."""
        answer = await self._connection.call("POST", "dead-letters", str(docid), "retry")
        return int(answer["docid"])

    async def statistics(self) -> Fields:
        """Return how many there are of everything, and the figures of `/metrics`."""
        return dict(await self._connection.call("GET", "statistics"))

    async def all_matches(
        self,
        *,
        after: int = 0,
        query_id: str | None = None,
        docid: int | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
    ) -> AsyncIterator[Match]:
        """Yield matches of all queries, or of one, numbered above `after`, up to the last so far.

        Of these only which one document is part of, and which were found in [since, until).
        """
        wanted = {"query": query_id, "document": docid, "since": _text(since)}
        wanted["until"] = _text(until)
        while True:
            query = {**wanted, "after": after}
            page = await self._connection.call("GET", "matches", query=query)
            for fields in page["matches"]:
                yield read_match(fields, fields["seq"])
            if not page["matches"]:
                return
            after = page["next"]

    async def explain(self, query_id: str) -> Explanation:
        """Return what a query becomes, as `xscl explain --format json` prints it."""
        return Explanation(await self._connection.call("GET", "queries", query_id, "explain"))

    async def why_not(
        self, query_id: str, docids: Iterable[int], *, parameters: Fields | None = None
    ) -> Explanation:
        """Return what keeps documents, one for each block, from matching; `rendered` is text."""
        query = {"documents": ",".join(map(str, docids)), "parameters": _json(parameters)}
        return Explanation(
            await self._connection.call("GET", "queries", query_id, "why-not", query=query)
        )

    async def estimate(self, query_id: str, text: str) -> Explanation:
        """Return what a query would cost and match, from the newest documents."""
        answer = await self._connection.call(
            *("POST", "queries", query_id, "estimate"),
            body=text.encode(),
            content_type="text/plain",
        )
        return Explanation(answer)

    async def dry_run(
        self,
        query_id: str,
        text: str,
        *,
        parameters: Fields | None = None,
        documents: int | None = None,
        seconds: int | None = None,
    ) -> Explanation:
        """Return what a query would have matched among the documents that are kept."""
        answer = await self._connection.read(
            *("POST", "queries", query_id, "rehearsal"),
            query={
                "parameters": _json(parameters),
                "documents": documents,
                "seconds": seconds,
            },
            body=text.encode(),
            content_type="text/plain",
            timeout_s=_DRY_RUN_S,
        )
        last = json.loads(answer.splitlines()[-1])
        if "error" in last:
            raise RefusedError(500, str(last["error"]))
        return Explanation(last)

    async def subscription(self, subscription_id: str) -> SubscriptionInfo:
        """Return one subscription."""
        return read_subscription(
            await self._connection.call("GET", "subscriptions", subscription_id)
        )

    async def pause_subscription(self, subscription_id: str) -> None:
        """Deliver nothing until it is resumed."""
        await self._connection.call("POST", "subscriptions", subscription_id, "pause")

    async def resume_subscription(self, subscription_id: str) -> None:
        """Deliver again, beginning with what was missed."""
        await self._connection.call("POST", "subscriptions", subscription_id, "resume")

    async def replay(self, subscription_id: str, *, since: datetime | str | int) -> None:
        """Send a subscription's matches since a time, a docid or `"all"` again."""
        await self._connection.call(
            *("POST", "subscriptions", subscription_id, "replay"), query={"since": _text(since)}
        )

    async def tokens(self) -> list[Fields]:
        """Return the access tokens, without their secrets."""
        return list((await self._connection.call("GET", "tokens"))["tokens"])

    async def create_token(
        self,
        name: str,
        scopes: Iterable[str],
        *,
        subscriptions: Iterable[str] = (),
        expires: datetime | str | None = None,
    ) -> str:
        """Make an access token, and return its secret, which is not shown again."""
        body = {
            "name": name,
            "scopes": list(scopes),
            "subscriptions": list(subscriptions),
            "expires": _text(expires),
        }
        return str((await self._connection.call("POST", "tokens", body=body))["token"])

    async def revoke_token(self, name: str) -> None:
        """Make an access token worthless from the next request on."""
        await self._connection.call("DELETE", "tokens", name)

    async def audit(
        self, *, by: str | None = None, subject: str | None = None
    ) -> AsyncIterator[Fields]:
        """Yield who changed what, newest first."""
        async for entry in self._turned("audit", {"by": by, "subject": subject}):
            yield entry

    async def _turned(self, name: str, wanted: Fields) -> AsyncIterator[Fields]:
        before: int | None = None
        while True:
            page = await self._connection.call("GET", name, query={**wanted, "before": before})
            for fields in page[name.replace("-", "_")]:
                yield fields
            before = page["next"]
            if before is None:
                return


class Operations(ABC):
    """The same of `Client`; see `AsyncOperations` for what methods promise."""

    _client: AsyncOperations

    def streams(self) -> list[Fields]:
        """Return the streams."""
        return self._run(self._client.streams())

    def documents(self, *, after: int = 0) -> Iterator[Fields]:
        """Yield the documents that are kept."""
        return self._each(self._client.documents(after=after))

    def document(self, docid: int) -> Fields:
        """Return one document."""
        return self._run(self._client.document(docid))

    def dead_letters(self) -> Iterator[Fields]:
        """Yield documents that could not be evaluated."""
        return self._each(self._client.dead_letters())

    def retry_dead_letter(self, docid: int) -> int:
        """Accept such a document once more."""
        return self._run(self._client.retry_dead_letter(docid))

    def statistics(self) -> Fields:
        """Return how many there are of everything."""
        return self._run(self._client.statistics())

    def all_matches(
        self,
        *,
        after: int = 0,
        query_id: str | None = None,
        docid: int | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
    ) -> Iterator[Match]:
        """Yield matches of all queries."""
        wanted = {"query_id": query_id, "docid": docid, "since": since, "until": until}
        return self._each(self._client.all_matches(after=after, **wanted))  # type: ignore[arg-type]

    def explain(self, query_id: str) -> Explanation:
        """Return what a query becomes."""
        return self._run(self._client.explain(query_id))

    def why_not(
        self, query_id: str, docids: Iterable[int], *, parameters: Fields | None = None
    ) -> Explanation:
        """Return what keeps documents from matching."""
        return self._run(self._client.why_not(query_id, docids, parameters=parameters))

    def estimate(self, query_id: str, text: str) -> Explanation:
        """Return what a query would cost and match."""
        return self._run(self._client.estimate(query_id, text))

    def dry_run(
        self,
        query_id: str,
        text: str,
        *,
        parameters: Fields | None = None,
        documents: int | None = None,
        seconds: int | None = None,
    ) -> Explanation:
        """Return what a query would have matched."""
        asked = self._client.dry_run(
            query_id, text, parameters=parameters, documents=documents, seconds=seconds
        )
        return self._run(asked)

    def subscription(self, subscription_id: str) -> SubscriptionInfo:
        """Return one subscription."""
        return self._run(self._client.subscription(subscription_id))

    def pause_subscription(self, subscription_id: str) -> None:
        """Deliver nothing until it is resumed."""
        self._run(self._client.pause_subscription(subscription_id))

    def resume_subscription(self, subscription_id: str) -> None:
        """Deliver again."""
        self._run(self._client.resume_subscription(subscription_id))

    def replay(self, subscription_id: str, *, since: datetime | str | int) -> None:
        """Send a subscription's matches again."""
        self._run(self._client.replay(subscription_id, since=since))

    def tokens(self) -> list[Fields]:
        """Return the access tokens."""
        return self._run(self._client.tokens())

    def create_token(
        self,
        name: str,
        scopes: Iterable[str],
        *,
        subscriptions: Iterable[str] = (),
        expires: datetime | str | None = None,
    ) -> str:
        """Make an access token, and return its secret."""
        made = self._client.create_token(name, scopes, subscriptions=subscriptions, expires=expires)
        return self._run(made)

    def revoke_token(self, name: str) -> None:
        """Make an access token worthless."""
        self._run(self._client.revoke_token(name))

    def audit(self, *, by: str | None = None, subject: str | None = None) -> Iterator[Fields]:
        """Yield who changed what."""
        return self._each(self._client.audit(by=by, subject=subject))

    @abstractmethod
    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what work in the client's loop returns."""

    @abstractmethod
    def _each(self, values: AsyncIterator[T]) -> Iterator[T]:
        """Yield values that the client's loop yields."""


def _text(moment: datetime | str | int | None) -> str | None:
    if not isinstance(moment, datetime):
        return None if moment is None else str(moment)
    if moment.tzinfo is None:
        raise ValueError(f"{moment} has no zone: give it one, as tzinfo=UTC")
    return moment.isoformat()


def _json(parameters: Fields | None) -> str | None:
    return None if parameters is None else json.dumps(dict(parameters))
