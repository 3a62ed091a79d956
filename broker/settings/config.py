"""The broker's settings, read from `xscl.toml`.

The dataclasses below are the table of what may be set: a field is a setting, its type decides what
is accepted, its default what holds where the file says nothing; `reader` fills them from the file.
"""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Literal

from broker.documents.document import check_stream
from broker.matching.costs.budget import DEFAULT_BUDGET, Budget
from broker.settings.reader import SettingsError, SettingsReader
from broker.settings.storeaddress import parse_address

__all__ = [
    "FILE_NAME",
    "FeedSettings",
    "HeaderSettings",
    "HttpSettings",
    "KafkaOption",
    "KafkaSettings",
    "LogSettings",
    "Settings",
    "SmtpSettings",
    "SparkSettings",
    "WebhookSettings",
    "find_settings",
    "load_settings",
    "parse_settings",
]

FILE_NAME = "xscl.toml"

PUBLIC_URL_MAX = 500
"""Characters of `public_url`: the links below it stand on one line of a mail, of 998 at most."""


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """Where the broker's HTTP API listens.  `port = 0` takes any free one.

    `public_url` is how the API is reached from outside, for one-click unsubscribing and for the
    hubs of feeds; without it mails have no such link and feeds are polled only.

    `requests_per_second` bounds what each token, and each address without one, may ask; 0 is no
    bound.  With `tokens = "required"` the broker makes no token for the owner of its data.
    `token_file` holds the token that verbs send to this broker, where it is not that one.
    """

    host: str = "127.0.0.1"
    port: int = 8420
    public_url: str = ""
    body_bytes_max: int = 16 * 1024 * 1024
    requests_per_second: int = 1_000
    tokens: Literal["auto", "required"] = "auto"
    token_file: Path | None = None

    def __post_init__(self) -> None:
        for name in ("body_bytes_max", "requests_per_second"):
            if getattr(self, name) < 0:
                raise ValueError(f"'{name}' cannot be less than 0")
        if self.public_url:
            _check_public_url(self.public_url)


def _check_public_url(url: str) -> None:
    """Raise `ValueError` for what cannot stand in a mail as the beginning of a link."""
    if len(url) > PUBLIC_URL_MAX:
        raise ValueError(f"'public_url' has at most {PUBLIC_URL_MAX} characters")
    if re.fullmatch(r"https?://[!-;=?-~]+", url) is None:
        text = "'public_url' must begin with https:// and be ASCII: write a domain as xn--..."
        raise ValueError(text)


@dataclass(frozen=True, slots=True)
class LogSettings:
    """What the broker logs on standard error: from which level on, and for whom."""

    format: Literal["text", "json"] = "text"
    level: Literal["debug", "info", "warning", "error"] = "info"


@dataclass(frozen=True, slots=True)
class ClockSettings:
    """How long nothing has to come until the broker's clock ticks; 0 for a clock that stands."""

    every: timedelta = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """How Spark runs: its master, and how often it looks for new documents.

    `store` is where executors read and write that do not see the broker's data.
    """

    master: str = "local[2]"
    interval: timedelta = timedelta(milliseconds=150)
    store: str = ""

    def __post_init__(self) -> None:
        if self.store:
            parse_address(self.store)


@dataclass(frozen=True, slots=True)
class TracingSettings:
    """Which collector of OpenTelemetry gets traces, and of what part of the documents."""

    endpoint: str = ""
    one_in: int = 100

    def __post_init__(self) -> None:
        if self.endpoint and not self.endpoint.startswith(("http://", "https://")):
            raise ValueError("'endpoint' must begin with http:// or https://")
        if self.one_in < 1:
            raise ValueError("'one_in' must be at least 1")


@dataclass(frozen=True, slots=True)
class SmtpSettings:
    """The mail server for e-mail subscriptions.

    The password comes from the environment variable XSCL_SMTP_PASSWORD, or from `password_file`.
    Templates in the directory `templates` stand before the broker's own.  With `confirm` an address
    gets one mail with a link, and matches once the link was followed.
    """

    host: str
    sender: str
    port: int = 25
    security: Literal["none", "starttls", "tls"] = "none"
    username: str | None = None
    password_file: Path | None = None
    templates: Path | None = None
    confirm: bool = False

    def password(self) -> str | None:
        """Return the password, or None where none is set."""
        from_environment = os.environ.get("XSCL_SMTP_PASSWORD")
        if from_environment is not None or self.password_file is None:
            return from_environment
        return self.password_file.read_text().strip()


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """How webhooks and chats are called; `allow_http` admits addresses that are not https.

    `telegram_url` is where the API for Telegram's bots is.
    """

    allow_http: bool = False
    timeout: timedelta = timedelta(seconds=20)
    telegram_url: str = "https://api.telegram.org"


@dataclass(frozen=True, slots=True)
class HeaderSettings:
    """A header that requests for one feed carry; its value is a secret.

    The value stands in the settings, in the environment variable `env`, or in `file`.
    """

    name: str
    value: str | None = field(default=None, repr=False)
    env: str | None = None
    file: Path | None = None

    def __post_init__(self) -> None:
        if re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", self.name) is None:
            raise ValueError(f"{self.name!r} is not the name of a header")
        if sum(each is not None for each in (self.value, self.env, self.file)) != 1:
            raise ValueError("one of 'value', 'env' and 'file' must be set")

    def secret(self) -> str:
        """Return the value; raise `SettingsError` where it cannot be had."""
        if self.value is not None:
            return self.value
        if self.file is not None:
            try:
                return self.file.read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise SettingsError(f"{self.file}: cannot be read: {error}") from error
        found = os.environ.get(self.env or "")
        if found is None:
            raise SettingsError(f"the environment variable {self.env} is not set")
        return found


@dataclass(frozen=True, slots=True)
class FeedSettings:
    """One feed to poll: its address, the stream of its items, and how it is read.

    Without `every` the broker finds out how often to look.  With `since`, `backlog` is "since".
    """

    url: str
    stream: str
    every: timedelta | None = None
    title: str = ""
    item: Literal["normalised", "raw"] = "normalised"
    on_update: Literal["ignore", "new document"] = "ignore"
    backlog: Literal["all", "new", "since"] = "all"
    since: datetime | None = None
    headers: tuple[HeaderSettings, ...] = ()
    proxy: str | None = field(default=None, repr=False)
    robots: bool = False

    def __post_init__(self) -> None:
        check_stream(self.stream)
        if self.every == timedelta(0):
            raise ValueError("'every' must be longer than nothing")
        if self.backlog == "since" and self.since is None:
            raise ValueError("'since' must be set where 'backlog' is \"since\"")
        if self.backlog == "new" and self.since is not None:
            raise ValueError("'since' cannot be set where 'backlog' is \"new\"")


@dataclass(frozen=True, slots=True)
class KafkaOption:
    """An option of Spark's Kafka connector."""

    name: str
    value: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """A Kafka topic whose records are documents of a stream; `begin` holds for the first time."""

    servers: str
    topic: str
    stream: str
    begin: Literal["earliest", "latest"] = "earliest"
    options: tuple[KafkaOption, ...] = ()

    def __post_init__(self) -> None:
        check_stream(self.stream)


_DATA = "xscl-data"

_REFERENCE_ENGINES = ("sequential", "mmqjp", "mmqjp-views")


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of a broker.  Relative paths in the file are relative to the file.

    `allow_networks` are the private networks that feeds and webhooks may reach, as in
    `["127.0.0.0/8"]`; without it only public addresses are dialled.  `apprise` lets subscribers
    name any address that Apprise knows, which no such check holds for.  Files of DuckDB that
    matches are written into are in the directory `tables`.
    """

    data: Path = Path(_DATA)
    lateness: timedelta = timedelta(days=1)
    engine: Literal["signatures"] = "signatures"
    shards: int = 1
    allow_networks: tuple[str, ...] = ()
    apprise: bool = False
    tables: Path | None = None
    budget: Budget = DEFAULT_BUDGET
    http: HttpSettings = HttpSettings()
    log: LogSettings = LogSettings()
    tracing: TracingSettings = TracingSettings()
    spark: SparkSettings = SparkSettings()
    clock: ClockSettings = ClockSettings()
    smtp: SmtpSettings | None = None
    webhooks: WebhookSettings = WebhookSettings()
    feeds: tuple[FeedSettings, ...] = ()
    kafka: tuple[KafkaSettings, ...] = ()

    def __post_init__(self) -> None:
        if self.shards < 1:
            raise ValueError("'shards' must be at least 1")
        if self.smtp is not None and self.smtp.confirm and not self.http.public_url:
            raise ValueError("'smtp.confirm' needs 'http.public_url', which its links begin with")


def find_settings(start: Path) -> Path | None:
    """Return the nearest `xscl.toml` in `start` or a directory above it."""
    for directory in (start, *start.parents):
        if (directory / FILE_NAME).is_file():
            return directory / FILE_NAME
    return None


def load_settings(path: Path | None) -> Settings:
    """Read a settings file; without one, everything has its default."""
    if path is None:
        return Settings()
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: cannot be read: {error}") from error
    return parse_settings(text, path)


def parse_settings(text: str, path: Path) -> Settings:
    """Read settings from text; `path` is for messages and for what is relative to it."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path}: not TOML: {error}") from error
    reader = SettingsReader(text, path)
    # What is left out stands beside the file, too: not where a verb happens to be called.
    values.setdefault("data", _DATA)
    if values.get("engine") in _REFERENCE_ENGINES:
        raise reader.error(("engine",), _for_reference(values["engine"]))
    settings: Settings = reader.table(Settings, values, ())
    try:
        for text in settings.allow_networks:
            ip_network(text, strict=False)
    except ValueError as error:
        raise reader.error(("allow_networks",), str(error)) from error
    return settings


def _for_reference(engine: str) -> str:
    return (
        f"a broker joins with 'signatures'; {engine!r} is for reference and finds the same matches:"
        f" leave this out, and compare with `xscl replay --engine {engine}`"
    )
