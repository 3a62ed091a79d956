"""`/`, `/queries/{id}`, `/subscriptions/{id}`, `/tables`, `/audit` and the way in: for browsers.

Everything is made on the server and readable without scripts; `live.js` only asks again when
`livepage` says so.  What feeds have written is text everywhere: templates escape, and the browser
is told to run nothing that is not ours.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache
from http import HTTPStatus
from importlib import resources

from aiohttp import web

from broker.api.access import GATE, SESSIONS, caller_of, name_of
from broker.api.admission.browsers import FORMS, PAGES
from broker.api.admission.sessions import COOKIE, Sessions
from broker.api.audit import AUDIT
from broker.api.backend import BACKEND, in_thread
from broker.api.body import form_of
from broker.api.pickup import PICKUP
from broker.api.problem import Problem, problems
from broker.api.queries import present_query
from broker.api.querystring import number
from broker.pipeline.lookback.backfill import LookBackError
from broker.registry.file import RegistryError
from broker.registry.subscription import SubscriptionError
from broker.registry.tokens import TokenScope
from broker.web import editpages, forms, historypages, livepage, pagedata, planpages
from broker.web.rendering import HEADERS, login_page, page, problem_page
from joins import UNBOUNDED
from xscl import XsclError

__all__ = ["ROUTES", "install"]

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_WANTED_MAX = 200
"""Characters that are looked for."""

_LOGIN_BYTES_MAX = 10_000

_KINDS = {
    "style.css": "text/css",
    "codemirror.js": "text/javascript",
    "codemirror.txt": "text/plain",
    "edit.js": "text/javascript",
    "editor.js": "text/javascript",
    "highlight.js": "text/javascript",
    "live.js": "text/javascript",
    "trial.js": "text/javascript",
    "xscl.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}


def install(application: web.Application) -> None:
    """Add the pages to an application that has the API's and delivery's resources."""
    application[SESSIONS] = Sessions()
    livepage.install(application)
    application.add_routes(ROUTES)
    # Between the API's problems and the rules: what a page is refused with is a page.
    place = application.middlewares.index(problems) + 1
    application.middlewares.insert(place, _problem_pages)


@web.middleware
async def _problem_pages(request: web.Request, handler: _Handler) -> web.StreamResponse:
    if name_of(request) not in PAGES and name_of(request) not in FORMS:
        return await handler(request)
    try:
        return await handler(request)
    except RegistryError as error:
        return problem_page(request, HTTPStatus.NOT_FOUND, str(error))
    except Problem as found:
        if forms.SENT_TEXT in request and found.status is HTTPStatus.UNPROCESSABLE_ENTITY:
            return forms.not_registered(request, found.detail)
        hint = found.extra.get("hint", "")
        return problem_page(request, found.status, found.detail, hint=hint, headers=found.headers)
    except (SubscriptionError, LookBackError, XsclError) as error:
        if forms.SENT_TEXT in request:
            return forms.not_registered(request, str(error))
        return problem_page(request, HTTPStatus.UNPROCESSABLE_ENTITY, str(error))


async def show_overview(request: web.Request) -> web.Response:
    """Show what runs and what fails; to who has only subscriptions, these."""
    backend, pickup, caller = request.app[BACKEND], request.app[PICKUP], caller_of(request)
    if caller is not None and TokenScope.ADMIN not in caller.scopes:
        own = await in_thread(pagedata.own_subscriptions, backend, caller.subscriptions)
        offers = await in_thread(pagedata.offers, backend, caller.queries)
        return page(request, "own.html.j2", {"subscriptions": own, "offers": offers})
    found = await pickup.write(lambda: pagedata.failing_deliveries(pickup.deliveries))
    failing = await in_thread(pagedata.with_subscriptions, backend, found)
    feeds = await in_thread(pagedata.feeds, pagedata.feed_store(request.app))
    wanted = request.query.get("find", "").strip()[:_WANTED_MAX]
    overview = await in_thread(pagedata.overview, backend, wanted)
    failing = [each for each in failing if _is_wanted(each, wanted)]
    shown = pagedata.wanted_feeds(feeds, wanted)
    values = {**overview, **shown, "deliveries": failing, "wanted": wanted}
    return page(request, "overview.html.j2", values)


def _is_wanted(failing: pagedata.Failing, wanted: str) -> bool:
    texts = [failing.delivery.subscription, failing.delivery.last_detail or ""]
    if failing.subscription is not None:
        texts += [failing.subscription.query, failing.subscription.destination.shown]
    return pagedata.has_text(wanted, *texts)


async def show_query(request: web.Request) -> web.Response:
    """Show one query and its latest matches."""
    backend = request.app[BACKEND]
    query = await in_thread(present_query, backend, request.match_info["id"])
    values = await in_thread(pagedata.one_query, backend, query)
    return page(request, "query.html.j2", values)


async def show_subscription(request: web.Request) -> web.Response:
    """Show one subscription, its latest messages and its latest matches."""
    backend, pickup, name = request.app[BACKEND], request.app[PICKUP], request.match_info["id"]
    values = await in_thread(pagedata.one_subscription, backend, name)
    values |= await pickup.write(lambda: pagedata.messages(pickup, name))
    caller = caller_of(request)
    values["may_change"] = (
        caller is None or bool(caller.queries) or TokenScope.ADMIN in caller.scopes
    )
    return page(request, "subscription.html.j2", values)


async def show_changes(request: web.Request) -> web.Response:
    """Show who changed what, newest first; `?before=` goes on, `?by=` and `?subject=` choose."""
    trail = request.app.get(AUDIT)
    if trail is None:
        raise Problem(HTTPStatus.NOT_FOUND, "this broker keeps no audit trail")
    chosen = {name: request.query.get(name, "").strip()[:_WANTED_MAX] for name in ("by", "subject")}
    before = number(request, "before", UNBOUNDED)
    values = await in_thread(lambda: pagedata.changes(trail, **chosen, before=before))
    return page(request, "audit.html.j2", {**values, **chosen})


async def show_tables(request: web.Request) -> web.Response:
    """Show the tables that are registered."""
    values = await in_thread(pagedata.tables, request.app[BACKEND])
    return page(request, "tables.html.j2", values)


async def show_table(request: web.Request) -> web.Response:
    """Show a table and its rows by key; `?find=` looks for a text in them, `?after=` goes on."""
    backend, name = request.app[BACKEND], request.match_info["name"]
    wanted = request.query.get("find", "").strip()[:_WANTED_MAX]
    after = request.query.get("after", "")
    values = await in_thread(lambda: pagedata.one_table(backend, name, wanted, after))
    return page(request, "table.html.j2", values)


async def show_login(request: web.Request) -> web.Response:
    """Show the form that takes a token."""
    return login_page(request, "", HTTPStatus.OK)


async def log_in(request: web.Request) -> web.Response:
    """Begin a session for a token that sees something, and go to the first page."""
    if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        return login_page(request, "That form was not ours.", HTTPStatus.FORBIDDEN)
    secret = (await form_of(request, bytes_max=_LOGIN_BYTES_MAX)).get("token", "").strip()
    found = request.app[GATE].find(secret) if secret else None
    if found is None:
        said = "That is not, or no longer, a token of this broker."
        return login_page(request, said, HTTPStatus.UNAUTHORIZED)
    if not found.scopes & {TokenScope.ADMIN, TokenScope.SUBSCRIBE}:
        said = "That token sees nothing here."
        return login_page(request, said, HTTPStatus.FORBIDDEN)
    answer = web.Response(status=HTTPStatus.SEE_OTHER, headers={**HEADERS, "Location": "/"})
    answer.set_cookie(
        COOKIE,
        request.app[SESSIONS].begin(secret),
        httponly=True,
        samesite="Strict",
        secure=request.secure or request.app[PICKUP].base_url.startswith("https:"),
    )
    return answer


async def log_out(request: web.Request) -> web.Response:
    """End the session."""
    request.app[SESSIONS].end(request.cookies.get(COOKIE, ""))
    answer = web.Response(status=HTTPStatus.SEE_OTHER, headers={**HEADERS, "Location": "/login"})
    answer.del_cookie(COOKIE)
    return answer


async def get_asset(request: web.Request) -> web.Response:
    """Answer a style, a script, an icon or a notice."""
    name = request.match_info["name"]
    if name not in _KINDS:
        raise Problem(HTTPStatus.NOT_FOUND, f"no asset {name!r}")
    body = await in_thread(_asset, name)
    headers = {**HEADERS, "Cache-Control": "public, max-age=300"}
    return web.Response(body=body, content_type=_KINDS[name], charset="utf-8", headers=headers)


@cache
def _asset(name: str) -> bytes:
    return resources.files("broker.web").joinpath("assets", name).read_bytes()


ROUTES = [
    web.get("/", show_overview),
    web.get("/queries/{id}", show_query),
    web.get("/subscriptions/{id}", show_subscription),
    web.get("/tables", show_tables),
    web.get("/tables/{name}", show_table),
    web.get("/audit", show_changes),
    web.get("/login", show_login),
    web.post("/login", log_in),
    web.post("/logout", log_out),
    web.get("/assets/{name}", get_asset),
    *editpages.ROUTES,
    *historypages.ROUTES,
    *livepage.ROUTES,
    *planpages.ROUTES,
    *forms.ROUTES,
]
