"""The way from a verb to a running broker: its HTTP API, and plain words for what goes wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

import click

from broker.cli.terminal import EXIT_NO_BROKER, EXIT_SETTINGS, Failure
from broker.config import Settings, SettingsError, find_settings, load_settings

__all__ = ["Connection", "connect", "settings_of"]

_TIMEOUT_S = 60.0


class Connection:
    """One broker, by the URL of its API; `token` is sent to it, and nowhere else."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self.url = url.rstrip("/")
        self._token = token

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
        try:
            with urlopen(request, timeout=_TIMEOUT_S) as answer:
                text = answer.read()
        except HTTPError as error:
            raise _refusal(error) from error
        except (URLError, HTTPException, OSError) as error:
            raise self._unreachable(error) from error
        return json.loads(text) if text else None

    def _address(self, path: tuple[str, ...], query: Mapping[str, object]) -> str:
        address = "/".join([self.url, "v1", *(quote(part, safe="") for part in path)])
        given = {name: value for name, value in query.items() if value is not None}
        return f"{address}?{urlencode(given)}" if given else address

    def _unreachable(self, error: Exception) -> Failure:
        reason = getattr(error, "reason", error)
        return Failure(
            f"no broker answers at {self.url} ({reason})",
            hint="start one with `xscl run`, or name a running one with `xscl --broker URL`",
            exit_code=EXIT_NO_BROKER,
        )


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


def settings_of(context: click.Context) -> Settings:
    """Return the settings that `--config` names, else of the nearest xscl.toml, else defaults."""
    named = context.obj.get("config")
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


def connect(context: click.Context) -> Connection:
    """Return the connection to the broker that `--broker` or the settings name."""
    url, token = context.obj.get("broker"), _checked(context.obj.get("token"), "--token")
    if url is not None:
        if not url.startswith(("http://", "https://")):
            raise Failure(f"{url!r} is not an http:// or https:// address", exit_code=2)
        return Connection(url, token)
    settings = settings_of(context)
    token = token or _token_of(settings)
    address = settings.data / "address"
    if settings.http.port == 0 and address.is_file():
        return Connection(address.read_text().strip(), token)
    host = f"[{settings.http.host}]" if ":" in settings.http.host else settings.http.host
    return Connection(f"http://{host}:{settings.http.port}", token)


def _token_of(settings: Settings) -> str | None:
    path = settings.http.token_file
    if path is None:
        return None
    try:
        return _checked(path.read_text(encoding="utf-8").strip(), str(path))
    except (OSError, UnicodeDecodeError) as error:
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
