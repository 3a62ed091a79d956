"""`/v1/language`: what is wrong with a text, what may stand in it, what its words mean.

It is `xscl.editing`, as `xscl lsp` serves it to editors, with what this broker knows besides: the
names in recent documents, and the queries and tables that are registered.  Places are offsets in
characters (of Unicode) of the text in the body.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from aiohttp import web

import xscl
from broker.api.backend import BACKEND, Backend, in_thread
from broker.api.body import text_of
from broker.api.problem import Problem
from broker.api.querystring import number
from broker.api.writing.vocabulary import RecentNames
from broker.documents.spool import Spool
from broker.registry.registered import check_among
from xscl.diagnostics import Diagnostic
from xscl.editing.completion import complete
from xscl.editing.fixes import fixes
from xscl.editing.hover import hover
from xscl.path import Span

__all__ = ["NAMES", "ROUTES", "install", "written_text"]

_CHARACTERS_MAX = 20_000
"""Longer texts are not helped with: each keystroke would ask about all of it, for seconds."""

_COMPLETIONS_MAX = 200

NAMES = web.AppKey("recent_names", RecentNames)


def install(application: web.Application) -> None:
    """Give an application what its resources know of documents."""
    directory = application[BACKEND].spool.directory
    application[NAMES] = RecentNames(Spool(directory))


async def check_text(request: web.Request) -> web.Response:
    """Answer what `xscl check` says of the text in the body, and the edits that would mend it.

    With the parameters of one query, so that whoever writes it can be asked for values.
    """
    backend, text = request.app[BACKEND], await written_text(request)
    query_id = request.query.get("id")

    def work() -> dict[str, Any]:
        queries, found = xscl.check(text, id=query_id)
        if query_id and not any(each.is_error for each in found):
            found = [*found, *_among(backend, queries)]
        parameters = queries[0].parameters if len(queries) == 1 else ()
        return {
            "diagnostics": list(map(_diagnosed, found)),
            "parameters": [{"name": name, "type": kind} for name, kind in parameters],
        }

    return await _answer(work)


async def complete_text(request: web.Request) -> web.Response:
    """Answer what may stand at `?offset=`, the likeliest first."""
    names, text = request.app[NAMES], await written_text(request)
    offset = _offset(request, text)

    def work() -> dict[str, Any]:
        found = complete(text, offset, names.vocabulary())
        return {
            "completions": [
                {
                    "text": each.text,
                    "kind": each.kind.value,
                    "detail": each.detail,
                    **_placed(each.span),
                }
                for each in found[:_COMPLETIONS_MAX]
            ]
        }

    return await _answer(work)


async def explain_word(request: web.Request) -> web.Response:
    """Answer what the word at `?offset=` means, null where it means nothing."""
    names, text = request.app[NAMES], await written_text(request)
    offset = _offset(request, text)

    def work() -> dict[str, Any]:
        found = hover(text, offset, names.vocabulary())
        return {"hover": found and {"text": found.text, **_placed(found.span)}}

    return await _answer(work)


async def format_text(request: web.Request) -> web.Response:
    """Answer the text as `xscl fmt` writes it; 422 with diagnostics where it cannot be read."""
    text = await written_text(request)
    return await _answer(lambda: {"text": xscl.render(text)})


async def _answer(work: Callable[[], dict[str, Any]]) -> web.Response:
    return web.json_response(await in_thread(work))


async def written_text(request: web.Request) -> str:
    """Return the text in the body; one that is too long to be helped with ends it with 422."""
    text = await text_of(request)
    if len(text) > _CHARACTERS_MAX:
        detail = f"a text of more than {_CHARACTERS_MAX:,} characters is not helped with"
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail)
    return text


def _offset(request: web.Request, text: str) -> int:
    return min(number(request, "offset", len(text)), len(text))


def _among(backend: Backend, queries: list[xscl.Query]) -> list[Diagnostic]:
    """Return what keeps a query from being registered beside the others, if it is one query."""
    if len(queries) != 1:
        return []
    try:
        check_among(backend.registry, queries[0])
    except xscl.XsclError as error:
        return list(error.diagnostics)
    return []


def _diagnosed(found: Diagnostic) -> dict[str, Any]:
    return {
        "code": found.code,
        "severity": found.severity.value,
        "message": found.message,
        "hint": found.hint,
        **_placed(found.span),
        "fixes": [
            {"title": fix.title, "text": fix.text, **_placed(fix.span)} for fix in fixes(found)
        ],
    }


def _placed(span: Span) -> dict[str, int]:
    return {"start": span.start, "end": span.end}


ROUTES = [
    web.post("/v1/language/check", check_text),
    web.post("/v1/language/completions", complete_text),
    web.post("/v1/language/hover", explain_word),
    web.post("/v1/language/format", format_text),
]
