"""The pages of what was: documents and a search in them, what became of one, matches, feeds."""

from __future__ import annotations

from aiohttp import web

from broker.api import feeds
from broker.api.backend import BACKEND, in_thread
from broker.api.feeds import FEED_ADMINISTRATION
from broker.api.pickup import PICKUP
from broker.api.querystring import number
from broker.api.streams import rendered_dead_letters
from broker.registry.file import RegistryError
from broker.web import historydata, pagedata
from broker.web.rendering import HEADERS, page
from joins import UNBOUNDED

__all__ = ["ROUTES"]

_WANTED_MAX = 200
_LETTERS_MAX = 50


async def show_history(request: web.Request) -> web.Response:
    """Show the newest documents that have `?find=`, of a `?stream=`, `?in=` elements of a path."""
    asked = {
        name: request.query.get(name, "").strip()[:_WANTED_MAX] for name in ("find", "stream", "in")
    }
    before = number(request, "before", UNBOUNDED)
    values = await in_thread(historydata.history, request.app[BACKEND], asked, before)
    return page(request, "documents.html.j2", values)


async def show_lateness(request: web.Request) -> web.Response:
    """Show how late the newest documents came, feed by feed."""
    values = await in_thread(historydata.lateness, request.app[BACKEND])
    return page(request, "lateness.html.j2", values)


async def show_document(request: web.Request) -> web.Response:
    """Show one document, and what became of it."""
    backend, pickup, docid = request.app[BACKEND], request.app[PICKUP], request.match_info["docid"]
    values = await in_thread(historydata.one_document, backend, int(docid))
    matches, names = values["matches"], values["subscriptions"]
    sent = await pickup.write(lambda: historydata.sent_of(pickup, matches, names))
    return page(request, "document.html.j2", {**values, "sent": sent})


async def show_match(request: web.Request) -> web.Response:
    """Show one match: its documents side by side, what joined them, and its deliveries."""
    pickup, seq = request.app[PICKUP], int(request.match_info["seq"])
    values = await in_thread(historydata.one_match, request.app[BACKEND], seq)
    names = values["subscriptions"]
    found = await pickup.write(lambda: historydata.deliveries_of(pickup, names, seq))
    deliveries = await in_thread(pagedata.with_subscriptions, request.app[BACKEND], found)
    return page(request, "match.html.j2", {**values, "deliveries": deliveries})


async def show_why_not(request: web.Request) -> web.Response:
    """Show what keeps `?documents=` from matching a `?query=`."""
    backend, name = request.app[BACKEND], request.query.get("query", "")
    documents = request.query.get("documents", "").replace(" ", "").strip(",")
    values = await in_thread(historydata.why_not, backend, name, documents)
    return page(request, "whynot.html.j2", values)


async def show_dead_letters(request: web.Request) -> web.Response:
    """Show documents that could not be evaluated, newest first; `?before=` goes on."""
    backend, before = request.app[BACKEND], number(request, "before", UNBOUNDED)
    letters = await in_thread(
        lambda: backend.outbox.dead_letters(before=before, limit=_LETTERS_MAX)
    )
    shown = await in_thread(rendered_dead_letters, backend, letters)
    further = letters[-1].docid if len(letters) == _LETTERS_MAX else None
    return page(request, "deadletters.html.j2", {"letters": shown, "further": further})


async def show_feeds(request: web.Request) -> web.Response:
    """Show all feeds with what can be done with each."""
    found = await in_thread(pagedata.feeds, pagedata.feed_store(request.app))
    wanted = request.query.get("find", "").strip()[:_WANTED_MAX]
    values = pagedata.wanted_feeds(found, wanted)
    polls = FEED_ADMINISTRATION in request.app
    return page(request, "feeds.html.j2", {**values, "wanted": wanted, "polls": polls})


async def get_opml(request: web.Request) -> web.StreamResponse:
    """Answer the feeds as OPML, to be kept as a file."""
    if FEED_ADMINISTRATION not in request.app:
        raise RegistryError("this broker polls no feeds")
    answer = await feeds.export_feeds(request)
    answer.headers.update({**HEADERS, "Content-Disposition": 'attachment; filename="feeds.opml"'})
    return answer


ROUTES = [
    web.get("/documents", show_history),
    web.get(r"/documents/{docid:\d{1,18}}", show_document),
    web.get(r"/matches/{seq:\d{1,18}}", show_match),
    web.get("/lateness", show_lateness),
    web.get("/why-not", show_why_not),
    web.get("/dead-letters", show_dead_letters),
    web.get("/feeds", show_feeds),
    web.get("/feeds.opml", get_opml),
]
