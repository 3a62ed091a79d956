"""One conditional GET, done politely and within bounds.

Validators are opaque: what the server sent is sent back byte for byte, or not at all.  Redirects
are followed here, not by the client library, because it matters who said what: only a chain of
permanent ones may ever move a feed, credentials never leave their origin, and nothing falls
from https to http.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from urllib.parse import urljoin, urlsplit

import aiohttp
from multidict import CIMultiDict

from feeds.errors import Fault, FeedError
from feeds.feed import Secrets
from feeds.guard import REASON as BLOCKED_REASON

__all__ = ["Limits", "Request", "Response", "Validators", "fetch", "same_origin", "user_agent"]

ACCEPT = (
    "application/atom+xml, application/rss+xml, application/feed+json, application/rdf+xml, "
    "application/xml;q=0.9, text/xml;q=0.9, application/json;q=0.8, */*;q=0.1"
)
_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_PERMANENT = frozenset((301, 308))
_CHUNK_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of our time and memory one answer may take."""

    body_bytes_max: int = 10_000_000
    total_s: float = 60.0
    connect_s: float = 10.0
    read_s: float = 30.0
    redirects_max: int = 5


@dataclass(frozen=True, slots=True)
class Validators:
    """What the server gave to recognise its answer by.  Opaque."""

    etag: str | None = None
    last_modified: str | None = None

    def __bool__(self) -> bool:
        return self.etag is not None or self.last_modified is not None


@dataclass(frozen=True, slots=True)
class Request:
    """What to ask for, and what we hold already."""

    url: str
    validators: Validators = Validators()
    secrets: Secrets = field(default_factory=Secrets)
    user_agent: str = ""
    proxy: str | None = None
    accept: str = ACCEPT


@dataclass(frozen=True, slots=True)
class Response:
    """An answer that carries a feed (200) or says that ours is current (304).

    `moved_to` is where a chain of permanent redirects led, `headers` has lower-case names.
    """

    url: str
    status: int
    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    validators: Validators = Validators()
    moved_to: str | None = None
    elapsed_s: float = 0.0

    @property
    def is_not_modified(self) -> bool:
        """Whether the server said that what we hold is current."""
        return self.status == 304

    @property
    def body_hash(self) -> str:
        """A hash by which equal bodies are recognised where a server has no validators."""
        return hashlib.sha256(self.body).hexdigest()


def user_agent(contact: str = "https://pypi.org/project/xscl-broker/", subscribers: int = 1) -> str:
    """Return who we are: the product, where to complain, for how many we ask."""
    plural = "" if subscribers == 1 else "s"
    return f"xscl-broker/0.1 (+{contact}; {subscribers} subscriber{plural})"


async def fetch(
    session: aiohttp.ClientSession, request: Request, limits: Limits | None = None
) -> Response | FeedError:
    """Return the answer to one conditional GET, or what went wrong, in words.

    Never raises for anything that the network or the server does.
    """
    limits = limits or Limits()
    started = time.monotonic()
    try:
        async with asyncio.timeout(limits.total_s):
            answer = await _follow(session, request, limits)
    except Exception as error:
        return _explained(error, request.url, limits)
    if isinstance(answer, FeedError):
        return answer
    return replace(answer, elapsed_s=time.monotonic() - started)


async def _follow(
    session: aiohttp.ClientSession, request: Request, limits: Limits
) -> Response | FeedError:
    url, is_permanent, moved_to = request.url, True, None
    for _ in range(limits.redirects_max + 1):
        async with _get(session, request, url, limits) as answer:
            if answer.status not in _REDIRECTS or "location" not in answer.headers:
                found = await _read(answer, request, url, limits)
                return replace(found, moved_to=moved_to) if isinstance(found, Response) else found
            target = urljoin(url, answer.headers["location"])
            is_permanent = is_permanent and answer.status in _PERMANENT
        fault = _refusal(url, target)
        if fault is not None:
            return fault
        url, moved_to = target, target if is_permanent else None
    return FeedError(Fault.REDIRECT, request.url, f"more than {limits.redirects_max} redirects")


def _refusal(url: str, target: str) -> FeedError | None:
    if urlsplit(target).scheme not in ("http", "https"):
        return FeedError(Fault.REDIRECT, url, f"it redirects to {target!r}, which is not http")
    if urlsplit(url).scheme == "https" and urlsplit(target).scheme == "http":
        return FeedError(Fault.REDIRECT, url, f"it redirects from https to plain http: {target}")
    return None


def _get(
    session: aiohttp.ClientSession, request: Request, url: str, limits: Limits
) -> aiohttp.client._RequestContextManager:
    return session.get(
        url,
        headers=_headers(request, url),
        allow_redirects=False,
        proxy=request.proxy,
        timeout=aiohttp.ClientTimeout(
            total=limits.total_s, sock_connect=limits.connect_s, sock_read=limits.read_s
        ),
    )


def _headers(request: Request, url: str) -> CIMultiDict[str]:
    headers: CIMultiDict[str] = CIMultiDict()
    headers["User-Agent"] = request.user_agent or user_agent()
    headers["Accept"] = request.accept
    headers["A-IM"] = "feed"
    if request.validators.etag is not None:
        headers["If-None-Match"] = request.validators.etag
    if request.validators.last_modified is not None:
        headers["If-Modified-Since"] = request.validators.last_modified
    if same_origin(request.url, url):
        if request.secrets.username:
            headers["Authorization"] = _basic(request.secrets)
        headers.update(request.secrets.headers)
    return headers


def _basic(secrets: Secrets) -> str:
    """Return the Authorization header of a user name and a password (RFC 7617)."""
    pair = f"{secrets.username}:{secrets.password}".encode()
    return f"Basic {base64.b64encode(pair).decode()}"


def same_origin(one: str, other: str) -> bool:
    """Return whether two URLs name the same server: what is secret stays with it."""
    a, b = urlsplit(one), urlsplit(other)
    return (a.scheme, a.hostname, a.port) == (b.scheme, b.hostname, b.port)


async def _read(
    answer: aiohttp.ClientResponse, request: Request, url: str, limits: Limits
) -> Response | FeedError:
    headers = {name.lower(): value for name, value in answer.headers.items()}
    if answer.status == 304:
        return Response(url, 304, b"", headers, _refreshed(answer, request.validators))
    if answer.status not in (200, 203, 226):
        return _status_error(answer.status, url, headers)
    body = await _bounded_body(answer, limits.body_bytes_max)
    if body is None:
        megabytes = limits.body_bytes_max / 1e6
        return FeedError(Fault.TOO_LARGE, url, f"more than {megabytes:g} MB")
    return Response(url, answer.status, body, headers, _validators(answer))


async def _bounded_body(answer: aiohttp.ClientResponse, bytes_max: int) -> bytes | None:
    """Return the decompressed body, or None as soon as it is longer than `bytes_max`."""
    body = bytearray()
    async for chunk in answer.content.iter_chunked(_CHUNK_BYTES):
        body += chunk
        if len(body) > bytes_max:
            answer.close()
            return None
    return bytes(body)


def _validators(answer: aiohttp.ClientResponse) -> Validators:
    return Validators(_opaque(answer, b"etag"), _opaque(answer, b"last-modified"))


def _opaque(answer: aiohttp.ClientResponse, name: bytes) -> str | None:
    """Return a validator that can be sent back byte for byte, else None.

    Header values are written as UTF-8; other bytes would come back changed, and a changed
    validator is worse than none.
    """
    for key, value in answer.raw_headers:
        if key.lower() == name and value:
            try:
                return value.decode()
            except UnicodeDecodeError:
                return None
    return None


def _refreshed(answer: aiohttp.ClientResponse, held: Validators) -> Validators:
    """A 304 may bring newer validators for the same content (RFC 9111, section 4.3.4)."""
    new = _validators(answer)
    return Validators(new.etag or held.etag, new.last_modified or held.last_modified)


_STATUS_WORDS: dict[int, tuple[Fault, str]] = {
    401: (Fault.REFUSED, "the server wants a user name and a password (401)"),
    403: (Fault.REFUSED, "the server refuses to show it (403)"),
    404: (Fault.NOT_FOUND, "there is nothing at this address (404)"),
    410: (Fault.GONE, "the publisher says that it is gone for good (410)"),
    429: (Fault.RATE_LIMITED, "the server says that we ask too often (429)"),
    503: (Fault.SERVER, "the server is not available now (503)"),
}


def _status_error(status: int, url: str, headers: Mapping[str, str]) -> FeedError:
    fault, words = _STATUS_WORDS.get(status, (Fault.STATUS, f"the server answered {status}"))
    if status >= 500 and status != 503:
        fault, words = Fault.SERVER, f"the server failed ({status})"
    if status == 403 and _is_out_of_tokens(headers):
        fault, words = Fault.RATE_LIMITED, "the server's rate limit is used up (403)"
    wish = retry_after_s(headers, time.time())
    return FeedError(fault, url, words, status=status, retry_after_s=wish)


def _is_out_of_tokens(headers: Mapping[str, str]) -> bool:
    return headers.get("x-ratelimit-remaining", "").strip() in ("0", "0.0")


def retry_after_s(headers: Mapping[str, str], now_s: float) -> float | None:
    """Return how long the server asks us to stay away, never negative; None: it does not say."""
    value = headers.get("retry-after", "").strip()
    if value.isdecimal():
        return float(value[:9])
    moment = http_date_s(value)
    if moment is not None:
        return max(0.0, moment - (http_date_s(headers.get("date", "")) or now_s))
    reset = headers.get("x-ratelimit-reset", "").strip()
    if not reset.replace(".", "", 1).isdecimal():
        return None
    seconds = float(reset[:20])
    # Some servers give seconds to wait, others the moment since 1970.
    return seconds if seconds < 1e9 else max(0.0, seconds - now_s)


def http_date_s(text: str) -> float | None:
    """Return the seconds since 1970 of an HTTP date, or None."""
    try:
        return parsedate_to_datetime(text).timestamp() if text else None
    except (ValueError, TypeError, OverflowError):
        return None


def _explained(error: Exception, url: str, limits: Limits) -> FeedError:
    """Return the error in words, with the fault that the schedule goes by."""
    if BLOCKED_REASON in str(error):
        # Several addresses of one host fail as one OSError that keeps only their texts.
        said = str(getattr(error, "os_error", error))
        fault, words = Fault.BLOCKED, re.sub(r"\[Errno \d+\] ", "", said)
    elif isinstance(error, TimeoutError):
        fault, words = Fault.TIMEOUT, f"no complete answer within {limits.total_s:g} s"
    elif isinstance(error, aiohttp.ClientConnectorDNSError):
        fault, words = Fault.NAME, f"the host name {urlsplit(url).hostname} is not known"
    elif isinstance(error, aiohttp.ClientSSLError):
        fault, words = Fault.TLS, f"no secure connection: {error}"
    elif isinstance(error, aiohttp.InvalidURL):
        fault, words = Fault.URL, f"not a usable address: {error}"
    elif isinstance(error, aiohttp.ClientPayloadError):
        fault, words = Fault.ENCODING, f"the answer broke off or is wrongly compressed: {error}"
    else:
        fault, words = Fault.CONNECTION, f"no connection: {error or type(error).__name__}"
    found = FeedError(fault, url, words)
    found.__cause__ = error
    return found
