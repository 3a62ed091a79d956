"""The way from a verb to a running broker: its HTTP API, and plain words for what goes wrong."""

from __future__ import annotations

import json
import re
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

import click
from click.core import ParameterSource

from broker.cli.contexts import Contexts, load_contexts
from broker.cli.terminal import EXIT_NO_BROKER, EXIT_SETTINGS, Failure, message
from broker.settings.config import Settings, find_settings, load_settings
from broker.settings.directory import ADDRESS_FILE, TOKEN_FILE, is_in_use
from broker.settings.reader import SettingsError

__all__ = ["BrokerConnection", "Target", "asked_or_done", "connect", "settings_of", "target"]

T = TypeVar("T")

_TIMEOUT_S = 90.0
"""The slowest answer is about a feed that is looked at: the broker gives up after 75 seconds."""

_PREPARED_S = 3_600.0
"""The same where the broker may make a state first, of all documents that are looked back at: a
minute for a million of them."""

_START_WAIT_S = 60.0
"""From when a broker has its data directory until it listens: seconds, on a cold machine more."""


_SETTINGS = f"{__name__}.settings"

_PAGE = 500
"""Rows that are asked for at once."""


class BrokerConnection:
    """One broker, by the URL of its API; `token` is sent to it, and nowhere else.

    `reason` is why it is this one, where it is not the one of the settings at hand; of that one
    `data` is the data directory, which tells a broker that is starting from none.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        reason: str | None = None,
        *,
        data: Path | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self._token = token
        self._reason = reason
        self._data = data
        self._timeout_s = _TIMEOUT_S

    def get(self, *path: str, **query: object) -> Any:
        """Return the JSON answer to a GET."""
        return self.call("GET", *path, query=query)

    def call(
        self,
        method: str,
        *path: str,
        query: Mapping[str, object] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> Any:
        """Return the JSON answer; `body` is sent as it is where it is bytes, else as JSON.

        Ends the verb with a message where no broker answers or the broker refuses.
        """
        text = self.read(method, *path, query=query, body=body, content_type=content_type)
        return json.loads(text) if text else None

    def read(
        self,
        method: str,
        *path: str,
        query: Mapping[str, object] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> bytes:
        """Return an answer that is not JSON as it is; else as `call`."""
        with self._open(method, path, query, body, content_type) as answer:
            return self._read(answer.read)

    def lines(
        self,
        method: str,
        *path: str,
        query: Mapping[str, object] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> Iterator[Any]:
        """Yield the lines of JSON of an answer that is written as the broker goes on."""
        with self._open(method, path, query, body, content_type) as answer:
            while line := self._read(answer.readline):
                yield json.loads(line)

    def rows(
        self, path: str, *, turned_by: str, limit: int | None = None, **query: object
    ) -> Iterator[dict[str, Any]]:
        """Yield the rows of a list, at most `limit`; the parameter `turned_by` turns its pages."""
        place, missing = None, limit
        while missing is None or missing > 0:
            asked = None if missing is None else min(missing, _PAGE)
            page = self.get(path, **query, limit=asked, **{turned_by: place})
            found = page[path.replace("-", "_")]
            yield from found
            place = page["next"]
            if place is None:
                return
            if missing is not None:
                missing -= len(found)

    def _open(
        self,
        method: str,
        path: tuple[str, ...],
        query: Mapping[str, object] | None,
        body: Any,
        content_type: str,
    ) -> HTTPResponse:
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        request = Request(
            self._address(path, query or {}),
            data=data,
            method=method,
            headers={"Content-Type": content_type} if data is not None else {},
        )
        if self._token is not None:
            # A redirection to elsewhere must not carry it along.
            request.add_unredirected_header("Authorization", f"Bearer {self._token}")
        self._timeout_s = _PREPARED_S if _is_prepared(method, path, query, body) else _TIMEOUT_S
        try:
            return self._answer(request)
        except HTTPError as error:
            raise _refusal(error) from error
        except (URLError, HTTPException, OSError) as error:
            raise self._unreachable(error) from error

    def _answer(self, request: Request) -> HTTPResponse:
        """Send a request, once the broker listens: one that is starting is waited for."""
        deadline = time.monotonic() + _START_WAIT_S
        is_told = False
        while True:
            try:
                answer: HTTPResponse = urlopen(request, timeout=self._timeout_s)
            except URLError as error:
                if not self._is_starting(error) or time.monotonic() > deadline:
                    raise
            else:
                return answer
            if not is_told:
                message(f"a broker runs on {self._data} and does not listen yet; waiting for it")
            is_told = True
            time.sleep(0.2)

    def _is_starting(self, error: URLError) -> bool:
        """Return whether nothing listens yet, although a broker has the data directory."""
        if self._data is None or not isinstance(error.reason, ConnectionRefusedError):
            return False
        return is_in_use(self._data)

    def _read(self, read: Callable[[], bytes]) -> bytes:
        try:
            return read()
        except (HTTPException, OSError) as error:
            raise self._unreachable(error) from error

    def _address(self, path: tuple[str, ...], query: Mapping[str, object]) -> str:
        address = "/".join([self.url, "v1", *(quote(part, safe="") for part in path)])
        given = {name: value for name, value in query.items() if value is not None}
        return f"{address}?{urlencode(given)}" if given else address

    def _unreachable(self, error: Exception) -> Failure:
        reason = getattr(error, "reason", error)
        if isinstance(reason, TimeoutError):
            return Failure(
                f"the broker at {self.url} has not answered within {self._timeout_s:.0f} s",
                hint="it may be starting or busy, and may do yet what it was asked: look with"
                " `xscl top`, and into its log",
                exit_code=EXIT_NO_BROKER,
            )
        if isinstance(reason, ssl.SSLError) and "WRONG_VERSION" in str(reason):
            return Failure(
                f"what listens at {self.url} does not speak TLS",
                hint=f"is it http://{self.url.removeprefix('https://')}?",
                exit_code=EXIT_NO_BROKER,
            )
        hint = (
            "start one with `xscl run`, which takes some seconds, or name one that runs with"
            " `xscl --broker URL`"
        )
        if self._reason is not None:
            hint = f"{self._reason} names this address; is that broker running (`xscl run`)?"
        elif self._data is not None and isinstance(error, URLError) and self._is_starting(error):
            hint = (
                f"a broker runs on {self._data}: has `http` in xscl.toml changed since it started?"
            )
        return Failure(
            f"no broker answers at {self.url} ({reason})", hint=hint, exit_code=EXIT_NO_BROKER
        )


def _is_prepared(
    method: str, path: tuple[str, ...], query: Mapping[str, object] | None, body: Any
) -> bool:
    """Return whether a request may wait for what it looks back at."""
    asked = {**(query or {}), **(body if isinstance(body, dict) else {})}
    return method != "GET" and (path[-1] == "resume" or asked.get("since") is not None)


def _refusal(error: HTTPError) -> Failure:
    """Return the broker's problem details (RFC 9457) as a failure of the verb."""
    try:
        problem = json.loads(error.read())
        text = problem.get("rendered") or problem.get("detail") or problem["title"]
    except (ValueError, KeyError, AttributeError, OSError):
        return Failure(
            f"{error.url} answered {error.code} {error.reason}",
            hint="is this the address of an XSCL broker?",
        )
    return Failure(text, hint=problem.get("hint"))


@dataclass(frozen=True, slots=True)
class Target:
    """The broker that a verb talks to, why that one, and where its token comes from.

    `is_local` says that it is the one of the settings, whose data directory is at hand.
    """

    url: str
    token: str | None = field(repr=False)
    reason: str
    token_place: str
    is_local: bool


def settings_of(context: click.Context) -> Settings:
    """Return the settings that `--config` names, else of the nearest xscl.toml, else defaults.

    They are read once for a command line.
    """
    if _SETTINGS not in context.meta:
        context.meta[_SETTINGS] = _read_settings(context)
    settings: Settings = context.meta[_SETTINGS]
    return settings


def _read_settings(context: click.Context) -> Settings:
    named = context.find_root().params.get("config")
    if named is not None and not Path(named).is_file():
        raise Failure(
            f"there is no settings file {named}",
            hint="`xscl init` writes one",
            exit_code=EXIT_SETTINGS,
        )
    try:
        return load_settings(Path(named) if named else find_settings(Path.cwd()))
    except SettingsError as error:
        raise Failure(str(error), exit_code=EXIT_SETTINGS) from error


def connect(context: click.Context) -> BrokerConnection:
    """Return the connection to the broker that a verb talks to."""
    found = target(context)
    if found.is_local:
        return BrokerConnection(found.url, found.token, data=settings_of(context).data)
    return BrokerConnection(found.url, found.token, found.reason)


def asked_or_done(
    context: click.Context, ask: Callable[[BrokerConnection], T], work: Callable[[Path], T]
) -> tuple[T, str]:
    """Return what the broker answers, and its URL.

    Where none runs on the data at hand, return what `work` makes of the data directory, and this.
    """
    connection = connect(context)
    try:
        return ask(connection), connection.url
    except Failure as failure:
        if failure.code != EXIT_NO_BROKER or not target(context).is_local:
            raise
        data = settings_of(context).data
        if is_in_use(data):
            raise
    return work(data), str(data)


def target(context: click.Context) -> Target:
    """Return the broker that a verb talks to; the order is that of `broker.cli.contexts`."""
    given = context.find_root().params
    named = _named(context)
    if named == "broker":
        return _by_url(given["broker"], given.get("token"), _said(context, "broker"))
    if named == "config":
        return _by_settings(context, given.get("token"), _said(context, "config"))
    contexts = load_contexts()
    if named == "context":
        return _by_context(contexts, given["context"], given.get("token"), _said(context, named))
    if contexts.current is not None:
        return _by_context(contexts, contexts.current, given.get("token"), "`xscl context use`")
    return _by_settings(context, given.get("token"), "")


def _named(context: click.Context) -> str | None:
    """Return which option names the broker: of the command line, else of the environment."""
    root = context.find_root()
    names = ("broker", "context", "config")
    for source in (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT):
        found = [name for name in names if root.get_parameter_source(name) is source]
        if found[:2] == ["broker", "context"] and source is ParameterSource.COMMANDLINE:
            raise Failure("--broker or --context, not both", exit_code=2)
        if found:
            return found[0]
    return None


def _said(context: click.Context, name: str) -> str:
    source = context.find_root().get_parameter_source(name)
    return f"--{name}" if source is ParameterSource.COMMANDLINE else f"XSCL_{name.upper()}"


def _by_url(url: str, token: str | None, reason: str) -> Target:
    if not url.startswith(("http://", "https://")):
        raise Failure(
            f"{url!r} is not an http:// or https:// address",
            hint=f"{reason} is the address of a broker, as in http://127.0.0.1:8420",
            exit_code=2,
        )
    return Target(url, _checked(token, "--token"), reason, _given(token), is_local=False)


def _by_context(contexts: Contexts, name: str, token: str | None, reason: str) -> Target:
    chosen = contexts.find(name)
    found = _checked(token, "--token") or _checked(chosen.token(name), chosen.token_place())
    place = _given(token) or chosen.token_place()
    return Target(chosen.url, found, f"the context {name} ({reason})", place, is_local=False)


def _by_settings(context: click.Context, token: str | None, reason: str) -> Target:
    settings = settings_of(context)
    found = _checked(token, "--token") or _token_of(settings)
    place = _given(token) or (str(_token_file(settings)) if found else "")
    path = context.find_root().params.get("config") or find_settings(Path.cwd())
    named = f"the settings {path}" if path else "the default settings"
    reason = f"{named} ({reason})" if reason else named
    return Target(_url_of(settings), found, reason, place, is_local=True)


def _given(token: str | None) -> str:
    return "--token or XSCL_TOKEN" if token else ""


def _url_of(settings: Settings) -> str:
    address = settings.data / ADDRESS_FILE
    if settings.http.port == 0:
        with suppress(OSError):  # none runs, or it is another user's
            return address.read_text().strip()
    host = f"[{settings.http.host}]" if ":" in settings.http.host else settings.http.host
    return f"http://{host}:{settings.http.port}"


def _token_file(settings: Settings) -> Path:
    return settings.http.token_file or settings.data / TOKEN_FILE


def _token_of(settings: Settings) -> str | None:
    path = _token_file(settings)
    try:
        return _checked(path.read_text(encoding="utf-8").strip(), str(path))
    except (OSError, UnicodeDecodeError) as error:
        if settings.http.token_file is None:
            return None  # no broker has run there, or it is another user's
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise Failure(
            f"the token file {path} cannot be read: {reason}",
            hint="http.token_file in xscl.toml names it",
            exit_code=EXIT_SETTINGS,
        ) from error


def _checked(token: str | None, origin: str) -> str | None:
    """Return a token that can stand in a header; the message about another does not show it."""
    if token and re.fullmatch(r"[!-~]+", token) is None:
        raise Failure(f"what {origin} gives is not a token", exit_code=2)
    return token or None
