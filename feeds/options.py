"""The options of a feed as JSON values, as the API takes them and everybody may see them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, get_args
from urllib.parse import urlsplit, urlunsplit

from feeds.feed import Backlog, FeedOptions, ItemForm, OnUpdate

__all__ = ["OptionError", "parse_headers", "parse_options", "render_options"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\U0010ffff]{0,8000}")
_Reader = Callable[[str, Any], object]


class OptionError(ValueError):
    """An option of a feed, or a header, that cannot be."""


def parse_options(values: Mapping[str, Any]) -> FeedOptions:
    """Return the options that `values` name; raise `OptionError` for what is none.

    >>> parse_options({"every_s": 60, "since": "1970-01-01T00:00:01Z"}).since_us
    1000000
    """
    if unknown := sorted(set(values) - set(_OPTIONS)):
        raise OptionError(f"unknown option {unknown[0]!r}; there are {', '.join(_OPTIONS)}")
    found = {}
    for name, value in values.items():
        field, read = _OPTIONS[name]
        if value is not None:
            found[field] = read(name, value)
    if "since_us" in found:
        if found.setdefault("backlog", "since") == "new":
            raise OptionError("'since' cannot be set where 'backlog' is 'new'")
        found["backlog"] = "since"
    elif found.get("backlog") == "since":
        raise OptionError("'since' must be set where 'backlog' is 'since'")
    return FeedOptions(**found)  # type: ignore[arg-type]  # each reader gives what its field takes


def render_options(options: FeedOptions) -> dict[str, Any]:
    """Return the options for people to see: without a password that the proxy's URL has."""
    since_us, proxy = options.since_us, options.proxy
    moment = None if since_us is None else _EPOCH + timedelta(microseconds=since_us)
    return {
        "every_s": options.interval_s,
        "title": options.title,
        "item": options.item,
        "on_update": options.on_update,
        "backlog": options.backlog,
        "since": moment.isoformat().replace("+00:00", "Z") if moment else None,
        "proxy": _without_user(proxy) if proxy else None,
        "robots": options.robots,
    }


def parse_headers(values: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return request headers; raise `OptionError`, which shows no value, for what is none."""
    for name, value in values.items():
        if _NAME.fullmatch(name) is None:
            raise OptionError(f"{name!r} is not the name of a header")
        if not isinstance(value, str) or _VALUE.fullmatch(value) is None:
            raise OptionError(f"the value of the header {name!r} is not a line of text")
    return tuple(values.items())


def _without_user(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise OptionError(f"{name!r} must be a string")
    return value


def _address(name: str, value: Any) -> str:
    text = _text(name, value)
    if re.match(r"https?://[^/]", text) is None:
        raise OptionError(f"{name!r} must be an http:// or https:// address")
    return text


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise OptionError(f"{name!r} must be true or false")
    return value


def _seconds(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.1 <= value < 1e9:
        raise OptionError(f"{name!r} must be a number of seconds, from 0.1 on")
    return float(value)


def _time_us(name: str, value: Any) -> int:
    try:
        moment = datetime.fromisoformat(_text(name, value))
    except ValueError as error:
        raise OptionError(f"{name!r} must be an ISO 8601 time, not {value!r}") from error
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)


def _one_of(*choices: str) -> _Reader:
    def read(name: str, value: Any) -> str:
        if value not in choices:
            raise OptionError(f"{name!r} must be one of {', '.join(map(repr, choices))}")
        return str(value)

    return read


_OPTIONS: dict[str, tuple[str, _Reader]] = {
    "every_s": ("interval_s", _seconds),
    "title": ("title", _text),
    "item": ("item", _one_of(*get_args(ItemForm))),
    "on_update": ("on_update", _one_of(*get_args(OnUpdate))),
    "backlog": ("backlog", _one_of(*get_args(Backlog))),
    "since": ("since_us", _time_us),
    "proxy": ("proxy", _address),
    "robots": ("robots", _flag),
}
"""Each option by the name that people use, with its field and what reads it."""
