"""The pages on which a query is written: a form by itself, and with scripts an editor."""

from __future__ import annotations

from http import HTTPStatus

from aiohttp import web

from broker.api.backend import BACKEND, in_thread
from broker.api.queries import present_query
from broker.web.rendering import page

__all__ = ["ROUTES", "edit_page"]

_TEXT_MAX = 20_000
"""Characters of a text that an address may bring along."""

_EXAMPLE = """\
news//item->first
FOLLOWED BY {first/title = second/title AND first/feed != second/feed, 1 day}
news//item->second"""


async def show_new(request: web.Request) -> web.Response:
    """Show the form of a new query; `?text=` is what it begins with, so that it can be shared."""
    return edit_page(request, "", request.query.get("text", "")[:_TEXT_MAX])


async def show_edit(request: web.Request) -> web.Response:
    """Show the form of a query that is there, as its author wrote it."""
    backend, name = request.app[BACKEND], request.match_info["id"]
    query = await in_thread(present_query, backend, name)
    return edit_page(request, name, await in_thread(backend.registry.source, query))


def edit_page(request: web.Request, name: str, text: str, *, wrong: str = "") -> web.Response:
    """Return the form with a text; `wrong` says why it was not registered."""
    is_new = "id" not in request.match_info or request.path == "/register"
    status = HTTPStatus.UNPROCESSABLE_ENTITY if wrong else HTTPStatus.OK
    values = {"name": name, "text": text, "wrong": wrong, "is_new": is_new, "example": _EXAMPLE}
    return page(request, "edit.html.j2", values, status=status)


ROUTES = [
    web.get("/register", show_new),
    web.get("/queries/{id}/edit", show_edit),
]
