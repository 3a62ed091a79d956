"""Templates as answers: every page with the same headers, under which it runs nothing but ours."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import jinja2
from aiohttp import web

from broker.api.access import caller_of, form_token
from broker.api.admission.browsers import FORM_TOKEN
from broker.registry.tokens import TokenScope
from broker.web import pagedata

__all__ = ["BACK", "HEADERS", "login_page", "page", "problem_page"]

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self';"
        " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}

_ENVIRONMENT = jinja2.Environment(
    loader=jinja2.PackageLoader("broker.web"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def _segment(text: str) -> str:
    """Return a text as one segment of an address, its slashes too."""
    return quote(text, safe="")


_ENVIRONMENT.filters.update(
    ago=pagedata.ago,
    count=pagedata.count,
    length_of=pagedata.length_of,
    moment=pagedata.moment,
    segment=_segment,
    spelled=pagedata.spelled,
)


def page(
    request: web.Request,
    template: str,
    values: Mapping[str, Any],
    *,
    status: HTTPStatus = HTTPStatus.OK,
    headers: Mapping[str, str] | None = None,
) -> web.Response:
    """Return a page of whoever asks; its forms have the token that lets them be sent."""
    caller = caller_of(request)
    text = _ENVIRONMENT.get_template(template).render(
        **values,
        caller=caller,
        is_admin=caller is None or TokenScope.ADMIN in caller.scopes,
        form_name=FORM_TOKEN,
        form_token=form_token(request),
    )
    return web.Response(
        text=text, content_type="text/html", status=status, headers={**(headers or {}), **HEADERS}
    )


def login_page(
    request: web.Request,
    said: str,
    status: HTTPStatus,
    headers: Mapping[str, str] | None = None,
) -> web.Response:
    """Return the form that takes a token."""
    return page(request, "login.html.j2", {"said": said}, status=status, headers=headers)


BACK = web.RequestKey("back", str)
"""The address of the form that was sent."""

_TITLES = {
    HTTPStatus.BAD_REQUEST: "That was not understood",
    HTTPStatus.FORBIDDEN: "Your token is not for that",
    HTTPStatus.NOT_FOUND: "There is no such thing",
    HTTPStatus.CONFLICT: "That was not done",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "That is too large",
    HTTPStatus.UNPROCESSABLE_ENTITY: "That was not done",
    HTTPStatus.TOO_MANY_REQUESTS: "Too much at a time",
}


def problem_page(
    request: web.Request,
    status: HTTPStatus,
    detail: str,
    *,
    hint: str = "",
    headers: Mapping[str, str] | None = None,
) -> web.Response:
    """Return the page that says why something was refused; without a token, the way in."""
    if status is HTTPStatus.UNAUTHORIZED:
        return login_page(request, "", status, headers)
    title = _TITLES.get(status, status.phrase)
    values: dict[str, Any] = {"status": int(status), "title": title, "detail": detail, "hint": hint}
    values["back"] = request.get(BACK, "")
    return page(request, "problem.html.j2", values, status=status, headers=headers)
