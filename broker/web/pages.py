"""`/`, `/queries/{id}`, `/subscriptions/{id}`, `/tables`, `/audit` and the way in: for browsers.

Everything is made on the server and readable without scripts; `live.js` only asks again.  What
feeds have written is text everywhere: templates escape, and the browser is told to run nothing
that is not ours.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from importlib import resources
from typing import Any

import jinja2
from aiohttp import web

from broker.api.access import GATE, PAGES, SESSIONS, caller_of, name_of
from broker.api.admission.sessions import COOKIE, Sessions
from broker.api.audit import AUDIT
from broker.api.backend import BACKEND, in_thread
from broker.api.body import bytes_of
from broker.api.pickup import PICKUP
from broker.api.problem import Problem, problems
from broker.api.queries import present_query
from broker.api.querystring import number
from broker.registry.file import RegistryError
from broker.registry.tokens import AccessToken, Scope
from broker.web import pagedata

__all__ = ["ROUTES", "install"]

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self';"
        " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_WANTED_MAX = 200
"""Characters that are looked for."""

_KINDS = {
    "style.css": "text/css",
    "live.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
_ENVIRONMENT = jinja2.Environment(
    loader=jinja2.PackageLoader("broker.web"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.filters.update(
    ago=pagedata.ago, moment=pagedata.moment, count=pagedata.count, spelled=pagedata.spelled
)


def install(application: web.Application) -> None:
    """Add the pages to an application that has the API's and delivery's resources."""
    application[SESSIONS] = Sessions()
    application.add_routes(ROUTES)
    # Between the API's problems and the rules: what a page is refused with is a page.
    place = application.middlewares.index(problems) + 1
    application.middlewares.insert(place, _problem_pages)


@web.middleware
async def _problem_pages(request: web.Request, handler: _Handler) -> web.StreamResponse:
    if name_of(request) not in PAGES:
        return await handler(request)
    try:
        return await handler(request)
    except RegistryError as error:
        problem = Problem(HTTPStatus.NOT_FOUND, str(error))
    except Problem as found:
        problem = found
    if problem.status is HTTPStatus.UNAUTHORIZED:
        return _login_page("", problem.status, problem.headers)
    shown = {"status": int(problem.status), "title": problem.status.phrase}
    values = {**shown, "detail": problem.detail, "hint": problem.extra.get("hint", "")}
    return _page("problem.html.j2", values, status=problem.status, headers=problem.headers)


async def show_overview(request: web.Request) -> web.Response:
    """Show what runs and what fails; to who has only subscriptions, these."""
    backend, pickup, caller = request.app[BACKEND], request.app[PICKUP], caller_of(request)
    if caller is not None and Scope.ADMIN not in caller.scopes:
        own = await in_thread(pagedata.own_subscriptions, backend, caller.subscriptions)
        return _page("own.html.j2", {"subscriptions": own}, caller)
    found = await pickup.write(lambda: pagedata.failing_deliveries(pickup.deliveries))
    failing = await in_thread(pagedata.with_subscriptions, backend, found)
    feeds = await in_thread(pagedata.feeds, pagedata.feed_store(request.app))
    wanted = request.query.get("find", "").strip()[:_WANTED_MAX]
    overview = await in_thread(pagedata.overview, backend, wanted)
    failing = [each for each in failing if _is_wanted(each, wanted)]
    shown = pagedata.wanted_feeds(feeds, wanted)
    values = {**overview, **shown, "deliveries": failing, "wanted": wanted}
    return _page("overview.html.j2", values, caller)


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
    return _page("query.html.j2", values, caller_of(request))


async def show_subscription(request: web.Request) -> web.Response:
    """Show one subscription, its latest messages and its latest matches."""
    backend, pickup, name = request.app[BACKEND], request.app[PICKUP], request.match_info["id"]
    values = await in_thread(pagedata.one_subscription, backend, name)
    values |= await pickup.write(lambda: pagedata.messages(pickup, name))
    return _page("subscription.html.j2", values, caller_of(request))


async def show_changes(request: web.Request) -> web.Response:
    """Show who changed what, newest first; `?before=` goes on, `?by=` and `?subject=` choose."""
    trail = request.app.get(AUDIT)
    if trail is None:
        raise Problem(HTTPStatus.NOT_FOUND, "this broker keeps no audit trail")
    chosen = {name: request.query.get(name, "").strip()[:_WANTED_MAX] for name in ("by", "subject")}
    before = number(request, "before", 1 << 62)
    values = await in_thread(lambda: pagedata.changes(trail, **chosen, before=before))
    return _page("audit.html.j2", {**values, **chosen}, caller_of(request))


async def show_tables(request: web.Request) -> web.Response:
    """Show the tables that are registered."""
    values = await in_thread(pagedata.tables, request.app[BACKEND])
    return _page("tables.html.j2", values, caller_of(request))


async def show_table(request: web.Request) -> web.Response:
    """Show a table and its rows by key; `?find=` looks for a text in them, `?after=` goes on."""
    backend, name = request.app[BACKEND], request.match_info["name"]
    wanted = request.query.get("find", "").strip()[:_WANTED_MAX]
    after = request.query.get("after", "")
    values = await in_thread(lambda: pagedata.one_table(backend, name, wanted, after))
    return _page("table.html.j2", values, caller_of(request))


async def show_login(request: web.Request) -> web.Response:
    """Show the form that takes a token."""
    return _login_page("", HTTPStatus.OK)


async def log_in(request: web.Request) -> web.Response:
    """Begin a session for a token that sees something, and go to the first page."""
    if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        return _login_page("That form was not ours.", HTTPStatus.FORBIDDEN)
    await bytes_of(request)
    try:
        secret = str((await request.post()).get("token", "")).strip()
    except ValueError:
        secret = ""
    found = request.app[GATE].find(secret) if secret else None
    if found is None:
        said = "That is not, or no longer, a token of this broker."
        return _login_page(said, HTTPStatus.UNAUTHORIZED)
    if not found.scopes & {Scope.ADMIN, Scope.SUBSCRIBE}:
        said = "That token sees nothing here."
        return _login_page(said, HTTPStatus.FORBIDDEN)
    answer = web.Response(status=HTTPStatus.SEE_OTHER, headers={**_HEADERS, "Location": "/"})
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
    answer = web.Response(status=HTTPStatus.SEE_OTHER, headers={**_HEADERS, "Location": "/login"})
    answer.del_cookie(COOKIE)
    return answer


async def get_asset(request: web.Request) -> web.Response:
    """Answer the style, the script or the icon."""
    name = request.match_info["name"]
    if name not in _KINDS:
        raise Problem(HTTPStatus.NOT_FOUND, f"no asset {name!r}")
    body = resources.files("broker.web").joinpath("assets", name).read_bytes()
    headers = {**_HEADERS, "Cache-Control": "public, max-age=300"}
    return web.Response(body=body, content_type=_KINDS[name], charset="utf-8", headers=headers)


def _login_page(said: str, status: HTTPStatus, headers: Any | None = None) -> web.Response:
    return _page("login.html.j2", {"said": said}, status=status, headers=headers)


def _page(
    template: str,
    values: dict[str, Any],
    caller: AccessToken | None = None,
    *,
    status: HTTPStatus = HTTPStatus.OK,
    headers: Any | None = None,
) -> web.Response:
    text = _ENVIRONMENT.get_template(template).render(**values, caller=caller)
    return web.Response(
        text=text, content_type="text/html", status=status, headers={**(headers or {}), **_HEADERS}
    )


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
]
