"""Requests to a broker, with its refusals as exceptions, and its event streams."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import quote

import aiohttp

from xscl.client.errors import BrokerUnreachableError, BusyError, ClosedError, refusal

__all__ = ["Connection", "OverError", "ServerEvent"]

_LINE_BYTES_MAX = 64 * 1024 * 1024
"""A match line is one line of a stream; some outputs are large."""


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """A server-sent event, or (without data) the place where a stream begins."""

    id: str
    data: str


class Connection:
    """One broker, by its URL.  Belongs to the event loop in which it is first used."""

    def __init__(self, url: str, token: str | None, timeout_s: float) -> None:
        self.url = _checked_url(url)
        self._token = _checked_token(token)
        self._is_closed = False
        self._timeout_s = timeout_s
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *unused: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Give connections back; nothing can be asked any more."""
        self._is_closed = True
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def call(
        self,
        method: str,
        *path: str,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        timeout_s: float | None = None,
    ) -> Any:
        """Return the JSON answer; `body` is sent as it is where it is bytes, else as JSON."""
        text = await self.read(
            method,
            *path,
            query=query,
            body=body,
            content_type=content_type,
            timeout_s=timeout_s,
        )
        return json.loads(text) if text else None

    async def read(
        self,
        method: str,
        *path: str,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        timeout_s: float | None = None,
    ) -> bytes:
        """Return an answer that is not JSON as it is; else as `call`."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        headers = {"Content-Type": content_type} if data is not None else {}
        try:
            async with self._opened().request(
                method,
                self._address(path),
                params={k: str(v) for k, v in (query or {}).items() if v is not None},
                data=data,
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=timeout_s or self._timeout_s),
            ) as response:
                return await self._read(response)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._unreachable(error) from error

    async def events(self, *path: str, last_id: str | None = None) -> AsyncIterator[ServerEvent]:
        """Yield a stream's events until it ends; raise `BrokerUnreachableError` if it breaks.

        Raises `OverError` where there will never be another one.
        """
        headers = {"Accept": "text/event-stream"}
        if last_id is not None:
            headers["Last-Event-ID"] = last_id
        timeout = aiohttp.ClientTimeout(total=None, sock_read=60, sock_connect=self._timeout_s)
        try:
            async with self._opened().get(
                self._address(path), headers=headers, timeout=timeout
            ) as response:
                if response.status == 204:
                    raise OverError
                if response.status != 200:
                    await self._read(response)
                async for event in _events(response):
                    yield event
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise self._unreachable(error) from error

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        text = await response.read()
        if response.status < 300:
            return text
        try:
            problem = json.loads(text)
        except ValueError:
            problem = {}
        error = refusal(response.status, problem if isinstance(problem, dict) else {})
        retry_after = response.headers.get("Retry-After", "")
        if response.status == 429 and retry_after.isdecimal():
            raise BusyError(error.detail, float(retry_after)) from error
        raise error

    def _opened(self) -> aiohttp.ClientSession:
        if self._is_closed:
            raise ClosedError("this client has been closed")
        if self._session is None:
            bearer = {"Authorization": f"Bearer {self._token}"} if self._token else {}
            self._session = aiohttp.ClientSession(
                headers={"User-Agent": "xscl-client", **bearer}, read_bufsize=_LINE_BYTES_MAX
            )
        return self._session

    def _address(self, path: tuple[str, ...]) -> str:
        return "/".join([self.url, "v1", *(quote(part, safe="") for part in path)])

    def _unreachable(self, error: Exception) -> BrokerUnreachableError:
        return BrokerUnreachableError(f"no broker answers at {self.url}: {error or 'no answer'}")


class OverError(Exception):
    """A stream has come to its end for good."""


def _checked_url(url: str) -> str:
    """Return the address of a broker; raise `ValueError` for what is none."""
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"{url!r} is not an http:// or https:// address, as http://{url}")
    return url.rstrip("/")


def _checked_token(token: str | None) -> str | None:
    """Return a token as it can be sent, without spaces around it; raise `ValueError` for others."""
    token = token.strip() if token else None
    if token and not re.fullmatch(r"[!-~]+", token):
        raise ValueError("a token has no spaces, line ends or letters other than ASCII in it")
    return token


async def _events(response: aiohttp.ClientResponse) -> AsyncIterator[ServerEvent]:
    last_id = ""
    data: list[str] = []
    async for raw in response.content:
        line = raw.decode().rstrip("\r\n")
        name, _, value = line.partition(":")
        if not line:
            if data or last_id:
                yield ServerEvent(last_id, "\n".join(data))
            data = []
        elif name == "id":
            last_id = value.removeprefix(" ")
        elif name == "data":
            data.append(value.removeprefix(" "))
