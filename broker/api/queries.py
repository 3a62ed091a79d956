"""`/v1/queries`: the queries of the broker."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from functools import lru_cache
from http import HTTPStatus
from typing import Any

from aiohttp import web

import xscl
from broker.api.audit import note
from broker.api.backend import BACKEND, Backend, in_thread
from broker.api.body import text_of
from broker.api.problem import Problem
from broker.documents.document import NAME_CHARACTERS_MAX, NAME_RULE, render_time
from broker.matching.queries.registration import NOTHING
from broker.pipeline.lookback.backfill import check_unread, look_back
from broker.registry.file import RegistryError
from broker.registry.queries import QueryState, RegisteredText
from broker.registry.registered import check_among, looking_back, parsed, users_among
from xscl.diagnostics import Severity
from xscl.lexer import is_name, tokenise
from xscl.reader import check
from xscl.report import Report
from xscl.spelling import did_you_mean

__all__ = [
    "ROUTES",
    "check_id",
    "one_query",
    "point_since",
    "present_query",
    "said_of",
]

_COMPARED_MAX = 10_000
"""Ids among which the nearest to a wrong one is looked for: 0.1 s."""

_VISIBLE = (QueryState.ACTIVE, QueryState.PAUSED)


async def list_queries(request: web.Request) -> web.Response:
    """Answer all queries that are not removed, by id."""
    backend = request.app[BACKEND]
    queries = await in_thread(lambda: backend.registry.queries(states=_VISIBLE))

    def render() -> list[dict[str, Any]]:
        matches = backend.outbox.matches.counts()
        subscriptions = backend.registry.subscriptions.counts()
        sources = backend.registry.sources(queries)
        return [
            {
                **_rendered(query, matches.get(query.id, 0), subscriptions.get(query.id, 0)),
                **said_of(sources[query.id]),
            }
            for query in queries
        ]

    return web.json_response({"queries": await in_thread(render)})


async def get_query(request: web.Request) -> web.Response:
    """Answer one query, or 404."""
    backend = request.app[BACKEND]
    query = await in_thread(present_query, backend, request.match_info["id"])
    return await _answer(backend, query)


async def put_query(request: web.Request) -> web.Response:
    """Register the query in the body, or a new text of it; 422 with diagnostics if it is none.

    It sees the documents accepted after it, or those behind `?since=` too.  The very same text
    again changes nothing: a query that is paused stays so.
    """
    backend, query_id = request.app[BACKEND], request.match_info["id"]
    await in_thread(check_id, backend, query_id)
    source = await text_of(request)
    query = await in_thread(one_query, source, query_id)
    note(request, version=query.version)
    since = request.query.get("since")
    present = await in_thread(_same, backend, query)
    if present is not None and since is None:
        await in_thread(backend.registry.keep_source, query_id, query.version, source)
        note(request, outcome="unchanged")
        return await _answer(backend, present, outcome="unchanged")
    before = await in_thread(backend.registry.revision)
    point = await in_thread(point_since, backend, since)
    ahead = NOTHING

    def check() -> None:
        check_among(backend.registry, query)
        if since is not None:
            check_unread(backend.registry, query)

    if point is not None:
        await in_thread(check)
        ahead = await in_thread(looking_back, backend.registry, query, point)

    def register(newest_docid: int) -> RegisteredText:
        check()  # others may have been registered meanwhile
        registered = backend.registry.register(
            query_id,
            query.text,
            version=query.version,
            point=newest_docid,
            since=point,
        )
        backend.registry.keep_source(query_id, query.version, source)
        return registered

    registered = await backend.change(register, ahead=ahead)
    outcome = "unchanged" if registered.revision <= before else "registered"
    note(request, outcome=outcome)
    return await _answer(backend, registered, outcome=outcome)


async def pause_query(request: web.Request) -> web.Response:
    """Stop evaluating a query from the next document on."""
    return await _change(request, QueryState.PAUSED)


async def resume_query(request: web.Request) -> web.Response:
    """Evaluate a paused query again from the next document on."""
    return await _change(request, QueryState.ACTIVE)


async def delete_query(request: web.Request) -> web.Response:
    """Remove a query from the next document on; with it its subscriptions end.

    These get what documents accepted before have to match still, and go 30 days later.
    """
    await _change(request, QueryState.REMOVED)
    return web.Response(status=HTTPStatus.NO_CONTENT)


async def _change(request: web.Request, state: QueryState) -> web.Response:
    backend, query_id = request.app[BACKEND], request.match_info["id"]
    present = await in_thread(present_query, backend, query_id)
    ahead = NOTHING
    if state is QueryState.ACTIVE:  # it sees again what it saw before it was paused
        ahead = await in_thread(looking_back, backend.registry, parsed(present), present.point)

    def change(newest_docid: int) -> RegisteredText:
        query = parsed(present_query(backend, query_id))
        if state is not QueryState.ACTIVE:
            _check_unused(backend, query)
        else:
            # Others may have been registered while it was paused.
            check_among(backend.registry, query)
        return backend.registry.set_state(query_id, state, effective=newest_docid)

    return await _answer(backend, await backend.change(change, ahead=ahead))


def check_id(backend: Backend, query_id: str) -> None:
    """End the request with 422 where an id is not well-formed, unless a query has it already.

    An id stands in addresses, in logs and on the page, and so is as plain as a stream's name.
    """
    if len(query_id) > NAME_CHARACTERS_MAX:
        reason = f"it has {len(query_id)} characters, and at most {NAME_CHARACTERS_MAX} may be"
    elif not is_name(query_id):
        reason = NAME_RULE
    else:
        return
    try:
        backend.registry.query(query_id)
    except RegistryError as error:
        detail = f"{query_id!r} cannot be the id of a query: {reason}"
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail) from error


def _same(backend: Backend, query: xscl.Query) -> RegisteredText | None:
    """Return the query of that id if it is active and says the very same."""
    try:
        present = present_query(backend, query.id)
    except (RegistryError, Problem):
        return None
    is_same = (present.state, present.text) == (QueryState.ACTIVE, query.text)
    return present if is_same else None


def one_query(text: str, query_id: str) -> xscl.Query:
    """Return the query that a text is; what is none, or several, ends the request with 422."""
    queries = xscl.parse(text, id=query_id)
    if len(queries) == 1 and queries[0].id != query_id:
        detail = f"the id of a table is its name: {queries[0].id!r}, not {query_id!r}"
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail)
    if len(queries) != 1:
        detail = f"the body holds {len(queries)} statements; a query is one"
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail)
    return queries[0]


def _check_unused(backend: Backend, query: xscl.Query) -> None:
    """End the request with 409 if others use the table that a query creates."""
    users = users_among(backend.registry, query)
    if users:
        named = ", ".join(map(repr, users[:5]))
        detail = f"the table {query.id!r} is used by {named}: remove these first"
        raise Problem(HTTPStatus.CONFLICT, detail)


def present_query(backend: Backend, query_id: str) -> RegisteredText:
    """Return a query that is not removed, or end the request with 404 and the nearest id."""
    with contextlib.suppress(RegistryError):
        query = backend.registry.query(query_id)
        if query.state in _VISIBLE:
            return query
    ids = [each.id for each in backend.registry.queries(states=_VISIBLE)]
    near = did_you_mean(query_id, ids) if len(ids) <= _COMPARED_MAX else None
    extra = {"hint": near} if near else {}
    raise Problem(HTTPStatus.NOT_FOUND, f"no query {query_id!r}", extra=extra)


def point_since(backend: Backend, since: str | int | None) -> int | None:
    """Return the registration point that a request asks for, None if it asks for none."""
    return None if since is None else look_back(backend.spool, str(since))


async def _answer(
    backend: Backend, query: RegisteredText, *, outcome: str | None = None
) -> web.Response:
    matches = await in_thread(backend.outbox.matches.count, query.id)
    subscriptions = await in_thread(backend.registry.subscriptions.count, query.id)
    warnings = await in_thread(_warnings, query.id, query.text)
    source = await in_thread(backend.registry.source, query)
    answer = {
        **_rendered(query, matches, subscriptions),
        "source": source,
        **said_of(source),
        "warnings": list(warnings),
    }
    if outcome is not None:
        answer["outcome"] = outcome
    return web.json_response(answer)


def _rendered(query: RegisteredText, matches: int, subscriptions: int) -> dict[str, Any]:
    return {
        "id": query.id,
        "version": query.version,
        "state": query.state.value,
        "reason": query.reason,
        "point": query.point,
        "effective": query.effective,
        "changed": render_time(query.changed_us),
        "matches": matches,
        "subscriptions": subscriptions,
        "text": query.text,
    }


@lru_cache(maxsize=10_000)
def said_of(source: str) -> Mapping[str, Any]:
    """Return what the comments at the beginning of a text say: its description, owner and tags."""
    is_said = source.lstrip().startswith(("--", "(:"))
    description = _description_of(source) if is_said else ""
    return {"description": description, **_labels_of(description)}


def _description_of(source: str) -> str:
    r"""Return the comments at the beginning of a text, without their delimiters.

    >>> _description_of("-- Stories that two feeds have.\n(: Slow. :)\nnews//item")
    'Stories that two feeds have.\nSlow.'
    """
    _, comments = tokenise(source, Report(source))
    said = []
    end = 0
    for comment in comments:
        if source[end : comment.start].strip():
            break
        text = comment.text.removeprefix("--").removeprefix("(:").removesuffix(":)")
        said += [line.strip() for line in text.strip().splitlines()]
        end = comment.end
    return "\n".join(said)


def _labels_of(description: str) -> dict[str, Any]:
    r"""Return whom a query belongs to and its tags, from lines that begin with these words.

    >>> _labels_of("Stories.\nowner: ann@example.org\nTags: news, two words,, news")
    {'owner': 'ann@example.org', 'tags': ['news', 'two words']}
    >>> _labels_of("Stories of an owner: hers.")
    {'owner': None, 'tags': []}
    """
    said = [line.partition(":") for line in description.splitlines()]
    owners = [text.strip() for name, _, text in said if name.strip().lower() == "owner"]
    lists = [text.split(",") for name, _, text in said if name.strip().lower() == "tags"]
    tags = dict.fromkeys(tag.strip() for each in lists for tag in each if tag.strip())
    return {"owner": next(filter(None, owners), None), "tags": list(tags)}


@lru_cache(maxsize=10_000)
def _warnings(query_id: str, text: str) -> tuple[str, ...]:
    """Return what the author of a text is warned of; a text that is no query any more has none."""
    _, found = check(text, id=query_id)
    return tuple(each.message for each in found if each.severity is Severity.WARNING)


ROUTES = [
    web.get("/v1/queries", list_queries),
    web.get("/v1/queries/{id}", get_query),
    web.put("/v1/queries/{id}", put_query),
    web.delete("/v1/queries/{id}", delete_query),
    web.post("/v1/queries/{id}/pause", pause_query),
    web.post("/v1/queries/{id}/resume", resume_query),
]
