"""Who may use which resource.

Everything but `PUBLIC` needs a token whose scope the table of rules names, whichever way a request
comes.  A request from this machine may be anyone's: another user's, or that of a web page, of a
proxy that adds no header or of a tunnel.  The verbs of whoever owns the data directory find their
token there (`broker.registry.ownertoken`).  What the table does not name is for `admin`, so that a
new resource is closed until someone decides otherwise.

An application that is made without a store of tokens, as parts of one are tried, serves programs
on its own machine, and neither web pages nor proxies that say what they are.  No broker is.

Invariant: who has only the scope `subscribe` sees the subscriptions of the token, and nothing else
but the queries that its scopes name.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from ipaddress import IPv6Address, ip_address
from urllib.parse import urlsplit

from aiohttp import web

from broker.api.admission.browsers import FORM_HEADER, FORM_TOKEN, FORMS, PAGES
from broker.api.admission.limits import RateLimit
from broker.api.admission.sessions import COOKIE, Sessions
from broker.api.body import form_of
from broker.api.problem import Problem
from broker.delivery.links import read_link_token
from broker.registry.tokens import TOKEN_PREFIX, AccessToken, Tokens, TokenScope

__all__ = [
    "GATE",
    "LIMIT",
    "LINKS_KEY",
    "RULES",
    "SESSIONS",
    "AccessRule",
    "Gate",
    "access",
    "caller_of",
    "check_named",
    "form_token",
    "is_still_admitted",
    "name_of",
    "operation_of",
]

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class AccessRule(Enum):
    """Who may use a resource; an admin may use each."""

    PUBLIC = "anyone"
    PUBLISH = "publish"
    OWN = "subscribe, and sees what is its own"
    SELF = "subscribe to a query or table by name, for what the token has subscribed by itself"
    CHOSEN = "subscribe to a query or table by name, for this one"
    READ = "subscribe, or the subscription's own token, for the subscription in the address"
    METRICS = "metrics"
    ADMIN = "admin"


_CONSUMER = "/v1/subscriptions/{id}/consumers/{name}"

RULES = {
    "GET /healthz": AccessRule.PUBLIC,
    "GET /readyz": AccessRule.PUBLIC,
    "GET /v1/openapi.json": AccessRule.PUBLIC,
    "GET /assets/{name}": AccessRule.PUBLIC,
    "GET /login": AccessRule.PUBLIC,
    "POST /login": AccessRule.PUBLIC,
    "POST /logout": AccessRule.PUBLIC,
    "GET /": AccessRule.OWN,
    "GET /live": AccessRule.OWN,
    "GET /subscriptions/{id}": AccessRule.OWN,
    # The token in these addresses is for one thing, and is all that mail programs and hubs have.
    "GET /v1/unsubscribe/{token}": AccessRule.PUBLIC,
    "POST /v1/unsubscribe/{token}": AccessRule.PUBLIC,
    "GET /v1/alerts/{token}": AccessRule.PUBLIC,
    "POST /v1/alerts/{token}": AccessRule.PUBLIC,
    "GET /v1/confirm/{token}": AccessRule.PUBLIC,
    "POST /v1/confirm/{token}": AccessRule.PUBLIC,
    "GET /websub/{token}": AccessRule.PUBLIC,
    "POST /websub/{token}": AccessRule.PUBLIC,
    "POST /v1/streams/{stream}/documents": AccessRule.PUBLISH,
    "GET /v1/documents/{docid}/evaluation": AccessRule.PUBLISH,
    "GET /metrics": AccessRule.METRICS,
    "GET /v1/queries/{id}": AccessRule.CHOSEN,
    # A table is registered under its name, like a query.
    "GET /v1/tables": AccessRule.SELF,
    "GET /v1/tables/{name}/rows": AccessRule.CHOSEN,
    "GET /v1/subscriptions": AccessRule.OWN,
    "POST /v1/subscriptions": AccessRule.SELF,
    "DELETE /v1/subscriptions/{id}": AccessRule.SELF,
    "POST /v1/subscriptions/{id}/pause": AccessRule.SELF,
    "POST /v1/subscriptions/{id}/resume": AccessRule.SELF,
    "POST /v1/subscriptions/{id}/test": AccessRule.SELF,
    "GET /v1/subscriptions/{id}/token": AccessRule.SELF,
    "GET /v1/subscriptions/{id}": AccessRule.OWN,
    "GET /v1/subscriptions/{id}/matches": AccessRule.READ,
    "GET /v1/subscriptions/{id}/stream": AccessRule.READ,
    "GET /v1/subscriptions/{id}/feed.atom": AccessRule.READ,
    "GET /v1/subscriptions/{id}/consumers": AccessRule.READ,
    f"PUT {_CONSUMER}": AccessRule.READ,
    f"GET {_CONSUMER}": AccessRule.READ,
    f"DELETE {_CONSUMER}": AccessRule.READ,
    f"POST {_CONSUMER}/fetch": AccessRule.READ,
    f"POST {_CONSUMER}/answer": AccessRule.READ,
}
"""The rule of each resource that is not for admins only."""

_SCOPES = {
    AccessRule.PUBLISH: TokenScope.PUBLISH,
    AccessRule.METRICS: TokenScope.METRICS,
    **dict.fromkeys(
        (AccessRule.OWN, AccessRule.READ, AccessRule.SELF, AccessRule.CHOSEN), TokenScope.SUBSCRIBE
    ),
}
_SELF_SERVICE = frozenset({AccessRule.SELF, AccessRule.CHOSEN})


@dataclass(frozen=True, slots=True)
class Gate:
    """What admits requests: those with a token of the store, where there is one."""

    tokens: Tokens | None = None

    def is_open(self) -> bool:
        """Return whether requests from this machine need no token."""
        return self.tokens is None

    def find(self, secret: str) -> AccessToken | None:
        """Return the token with that secret, None if it is good for nothing."""
        return self.tokens.find(secret) if self.tokens else None


GATE = web.AppKey("gate", Gate)
LINKS_KEY = web.AppKey("links_key", bytes)
LIMIT = web.AppKey("limit", RateLimit)
SESSIONS = web.AppKey("sessions", Sessions)
_CALLER = web.RequestKey("caller", AccessToken)
_SESSION = web.RequestKey("session", str)
_OWN_SITES = ("same-origin", "none")


def caller_of(request: web.Request) -> AccessToken | None:
    """Return the token that a request was admitted with, None where none was needed."""
    return request.get(_CALLER)


def is_still_admitted(request: web.Request) -> bool:
    """Return whether a request that takes long, or has no end, would still be let in now."""
    gate, caller = request.app.get(GATE), caller_of(request)
    if gate is None:
        return True  # an application without rules
    if caller is None:
        return gate.is_open()
    try:
        _caller(request, gate, _rule(request))
    except Problem:
        return False
    return True


@web.middleware
async def access(request: web.Request, handler: _Handler) -> web.StreamResponse:
    """Let through whom the rules admit; answer others with 401, 403, 404 or 429."""
    rule, gate, limit = _rule(request), request.app[GATE], request.app[LIMIT]
    address = f"address {request.remote}"
    if rule is AccessRule.PUBLIC:
        limit.admit(address)
    elif gate.is_open():
        _check_local(request)
        limit.admit(address)
    else:
        # Who guesses tokens, or has none, is bounded before a token is looked up.
        limit.admit(address, counts=False)
        try:
            caller = _caller(request, gate, rule)
        except Problem:
            limit.admit(address)
            raise
        limit.admit(f"token {caller.name}")
        if _SESSION in request and name_of(request) not in PAGES:
            await _check_form(request)
        _check_scope(request, caller, rule)
        request[_CALLER] = caller
    return await handler(request)


def _rule(request: web.Request) -> AccessRule:
    return RULES.get(operation_of(request), AccessRule.ADMIN)


def operation_of(request: web.Request) -> str:
    """Return the name of what is asked for, of a form the operation that it stands for."""
    name = name_of(request)
    return FORMS.get(name, name)


def form_token(request: web.Request) -> str:
    """Return the token with which forms of a page may be sent, "" where none is needed."""
    sessions, session = request.app.get(SESSIONS), request.get(_SESSION)
    return sessions.form_token(session) if sessions is not None and session is not None else ""


def name_of(request: web.Request) -> str:
    """Return the method and the pattern of what is asked for, "" where there is no such thing."""
    resource = request.match_info.route.resource
    method = "GET" if request.method == "HEAD" else request.method
    return f"{method} {resource.canonical}" if resource else ""


def _caller(request: web.Request, gate: Gate, rule: AccessRule) -> AccessToken:
    secret = _bearer(request) or _session(request)
    link = request.query.get("token") if secret is None else secret
    if secret is not None and secret.startswith(TOKEN_PREFIX):
        found = gate.find(secret)
    elif link is not None and rule is AccessRule.READ:
        # The token that one subscription's links carry; access tokens never stand in addresses.
        read = read_link_token(request.app[LINKS_KEY], "read", link)
        found = None
        if read is not None:
            found = AccessToken(
                f"link of {read}", frozenset({TokenScope.SUBSCRIBE}), frozenset({read}), 0
            )
    elif secret is None:
        raise _unauthorized("this needs a token", 'Bearer realm="xscl"')
    else:
        found = None
    if found is None:
        challenge = 'Bearer realm="xscl", error="invalid_token"'
        raise _unauthorized("the token is not, or no longer, one of this broker's", challenge)
    return found


def _session(request: web.Request) -> str | None:
    """Return the secret that a browser's session stands for.

    Beside pages it needs the token of one, which a script sends in a header, a form as a field.
    """
    sessions, name = request.app.get(SESSIONS), name_of(request)
    if sessions is None or not (name in PAGES or name in FORMS or FORM_HEADER in request.headers):
        return None
    session = request.cookies.get(COOKIE, "")
    secret = sessions.secret(session)
    if secret is not None:
        request[_SESSION] = session
    return secret


async def _check_form(request: web.Request) -> None:
    """Refuse what a session asks for that no page of it has sent."""
    given = request.headers.get(FORM_HEADER, "")
    if not given and name_of(request) in FORMS:
        given = (await form_of(request)).get(FORM_TOKEN, "")
    is_elsewhere = request.headers.get("Sec-Fetch-Site", "same-origin") not in _OWN_SITES
    if is_elsewhere or not request.app[SESSIONS].is_form_token(request[_SESSION], given):
        raise Problem(
            HTTPStatus.FORBIDDEN,
            "that form was not ours, or is older than your login; nothing has changed",
            extra={"hint": "go back, load the page again and send it once more"},
        )


def _bearer(request: web.Request) -> str | None:
    kind, _, secret = request.headers.get("Authorization", "").partition(" ")
    return secret.strip() if kind.lower() == "bearer" else None


def _check_scope(request: web.Request, caller: AccessToken, rule: AccessRule) -> None:
    if TokenScope.ADMIN in caller.scopes:
        return
    needed = _SCOPES.get(rule, TokenScope.ADMIN)
    if needed not in caller.scopes:
        raise _insufficient(caller, needed)
    if rule in _SELF_SERVICE and not caller.queries:
        raise _insufficient(caller, f"{TokenScope.SUBSCRIBE}:QUERY")
    stream, name = request.match_info.get("stream"), request.match_info.get("id")
    if rule is AccessRule.CHOSEN and name is None:
        name = request.match_info.get("name")
    if rule is AccessRule.PUBLISH and stream is not None and caller.streams:
        check_named(caller, TokenScope.PUBLISH, stream, caller.streams)
    if rule is AccessRule.CHOSEN and name is not None:
        check_named(caller, TokenScope.SUBSCRIBE, name, caller.queries)
    elif needed is TokenScope.SUBSCRIBE and name is not None and name not in caller.subscriptions:
        # Another's and none are answered alike: whether an id exists is not told.
        raise Problem(HTTPStatus.NOT_FOUND, f"no subscription {name!r} for this token")


def check_named(caller: AccessToken, scope: TokenScope, name: str, names: Collection[str]) -> None:
    """Refuse a name that the scope of a token is not narrowed to, whether or not there is one."""
    if name not in names:
        raise _insufficient(caller, f"{scope}:{name}")


def _insufficient(caller: AccessToken, scope: str) -> Problem:
    return Problem(
        HTTPStatus.FORBIDDEN,
        f"the token {caller.name!r} does not have the scope {str(scope)!r}",
        extra={"hint": "ask who runs the broker for a token that has it"},
        headers={"WWW-Authenticate": 'Bearer realm="xscl", error="insufficient_scope"'},
    )


def _unauthorized(detail: str, challenge: str) -> Problem:
    hint = (
        "`xscl tokens create` makes one; give it with --token, XSCL_TOKEN or as bearer token. On"
        " the broker's machine its owner's is in `admin-token` of the data directory"
    )
    return Problem(
        HTTPStatus.UNAUTHORIZED,
        detail,
        extra={"hint": hint},
        headers={"WWW-Authenticate": challenge},
    )


def _check_local(request: web.Request) -> None:
    """Refuse what did not begin on this machine, or began in a web page."""
    host = request.headers.get("Host")
    name = _host_of(f"//{host}") if host is not None else "localhost"
    origin = request.headers.get("Origin")
    is_forwarded = any(each in request.headers for each in ("Forwarded", "X-Forwarded-For", "Via"))
    is_own_page = origin is None or origin == f"{request.scheme}://{host}"
    if _is_loopback(request.remote) and _is_loopback(name) and is_own_page and not is_forwarded:
        return
    raise Problem(
        HTTPStatus.FORBIDDEN,
        "without a token only programs on the broker's own machine are served",
        extra={"hint": "make a token with `xscl tokens create`, and send it with each request"},
    )


def _host_of(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _is_loopback(host: str | None) -> bool:
    """Return whether an address or a host name is this machine as only itself can reach it.

    >>> [_is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "a.example")]
    [True, True, True, False, False]
    """
    if host is None:
        return False
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback
