"""The addresses of sinks: servers and tables from which other programs read matches, as URLs.

An `s` behind the scheme asks for TLS, as in https.  A password is a secret, and so is what stands
alone before the `@` of NATS, a token: `shown` has neither, and no error has a part of an address.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import parse_qsl, unquote

__all__ = ["SINK_FORMS", "SinkAddress", "SinkAddressError"]


class SinkAddressError(ValueError):
    """An address cannot be read; the text says how one is written."""


SINK_FORMS: Mapping[str, str] = {
    "kafka": "kafka://HOST:9092/TOPIC or kafkas://USER:PASSWORD@HOST:9093/TOPIC",
    "nats": "nats://HOST:4222/SUBJECT or natss://TOKEN@HOST:4222/SUBJECT",
    "mqtt": "mqtt://HOST:1883/TOPIC or mqtts://USER:PASSWORD@HOST:8883/TOPIC",
    "postgresql": "postgresql://USER:PASSWORD@HOST:5432/DATABASE?table=matches",
    "duckdb": "duckdb:NAME.duckdb?table=matches",
}
"""How the address of each kind of sink is written."""

_VERIFIED = "verify-full"

_NAME = r"[A-Za-z_][A-Za-z0-9_]{0,62}"
_TABLE = re.compile(rf"(?:{_NAME}\.)?{_NAME}")
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_SUBJECT = re.compile(r"[^\s.*>\x00-\x1f]+(?:\.[^\s.*>\x00-\x1f]+){0,30}")
_KAFKA_TOPIC = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")
_MQTT_TOPIC = re.compile(r"[^+#$\x00-\x1f][^+#\x00-\x1f]{0,999}")

_URL = re.compile(
    r"(?P<scheme>[a-z]+)://(?:(?P<user>[^/@:]*)(?P<colon>:(?P<password>[^/@]*))?@)?"
    r"(?P<hosts>[^/?#@]+)/(?P<path>[^?#]*)(?:\?(?P<query>[^?#]*))?"
)
_HOST = re.compile(
    r"(?:\[(?P<six>[0-9A-Fa-f:.]{2,45})\]|(?P<name>[^\[\]:,]{1,253}))(?::(?P<port>\d{1,5}))?"
)


@dataclass(frozen=True, slots=True)
class _Scheme:
    """What one kind of URL may have: ports without and with TLS, and options with their values."""

    ports: tuple[int, int]
    is_target: Callable[[str], object]
    options: Mapping[str, Callable[[str], object]] = field(default_factory=dict)
    has_many_hosts: bool = False


_SCHEMES: Mapping[str, _Scheme] = {
    "kafka": _Scheme(
        (9092, 9093),
        _KAFKA_TOPIC.fullmatch,
        {"sasl": re.compile("plain|scram-sha-256|scram-sha-512").fullmatch},
        has_many_hosts=True,
    ),
    "nats": _Scheme((4222, 4222), _SUBJECT.fullmatch, has_many_hosts=True),
    "mqtt": _Scheme((1883, 8883), _MQTT_TOPIC.fullmatch),
    "postgresql": _Scheme(
        (5432, 5432),
        re.compile(r"[^/\x00-\x1f]{1,63}").fullmatch,
        {
            "table": _TABLE.fullmatch,
            "sslmode": re.compile("disable|prefer|require|verify-ca|verify-full").fullmatch,
        },
    ),
}


@dataclass(frozen=True, slots=True)
class SinkAddress:
    """Where a sink is, and what in it is written to.

    `path` is the topic, the subject, the database, or the file.  Without a password, `user` is None
    or a name; a token of NATS is a password without a user.
    """

    kind: str
    path: str
    hosts: tuple[tuple[str, int], ...] = ()
    is_secure: bool = False
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def is_one(cls, text: str) -> bool:
        """Return whether a text is meant to be the address of a sink."""
        scheme = text.partition(":")[0]
        return scheme == "postgres" or scheme in SINK_FORMS or scheme[:-1] in _SCHEMES

    @classmethod
    def parse(cls, text: str) -> SinkAddress:
        """Read an address; raise `SinkAddressError` where it is not one.

        >>> SinkAddress.parse("kafka://one:9092,two/news").hosts
        (('one', 9092), ('two', 9092))
        >>> SinkAddress.parse("duckdb:found.duckdb?table=rows").table
        'rows'
        """
        return _parse(text)

    @property
    def table(self) -> str:
        """The table, with its schema if that was named."""
        return self.options.get("table", "matches")

    @property
    def endpoint(self) -> str:
        """What concurrency is counted by: the hosts, or the file."""
        return ",".join(f"{host}:{port}".lower() for host, port in self.hosts) or self.path

    @property
    def safe(self) -> str | None:
        """What would ask for TLS, where the address does not; None where it does.

        >>> SinkAddress.parse("nats://nats.example/found").safe
        'natss://'
        """
        if self.kind == "postgresql":
            # Without a word of it, how the server is reached is up to where it is.
            is_weak = self.options.get("sslmode", _VERIFIED) != _VERIFIED
            return f"sslmode={_VERIFIED}" if is_weak else None
        return None if self.is_secure or not self.hosts else f"{self.kind}s://"

    @property
    def secrets(self) -> tuple[str, ...]:
        """What nobody is shown."""
        return tuple(filter(None, (self.password,)))

    @property
    def shown(self) -> str:
        """The address without what is a secret.

        >>> SinkAddress.parse("postgresql://ann:hush@db.example/x").shown
        'postgresql://ann:...@db.example:5432/x'
        >>> SinkAddress.parse("natss://hush@nats.example/found").shown
        'natss://...@nats.example:4222/found'
        """
        asked = "&".join(f"{name}={value}" for name, value in self.options.items())
        behind = f"{self.path}{'?' if asked else ''}{asked}"
        if self.kind == "duckdb":
            return f"duckdb:{behind}"
        hidden = None if self.password is None else "..."
        who = ":".join(filter(None, (self.user, hidden)))
        hosts = ",".join(f"{_bracketed(host)}:{port}" for host, port in self.hosts)
        scheme = f"{self.kind}{'s' if self.is_secure else ''}"
        return f"{scheme}://{who}{'@' if who else ''}{hosts}/{behind}"


@lru_cache(maxsize=1_024)
def _parse(text: str) -> SinkAddress:
    scheme = text.partition(":")[0]
    if scheme == "duckdb":
        return _file(text)
    kind = {"postgres": "postgresql"}.get(scheme, scheme)
    # PostgreSQL has an option for it, `sslmode`.
    is_secure = kind not in _SCHEMES and kind[:-1] in _SCHEMES and kind != "postgresqls"
    kind = kind[:-1] if is_secure else kind
    known, found = _SCHEMES.get(kind), _URL.fullmatch(text)
    if known is None or found is None or not text.isprintable():
        raise _unreadable(kind)
    user, password = _who(kind, found["user"], found["password"])
    path = unquote(found["path"])
    hosts = tuple(_host(kind, each, known.ports[is_secure]) for each in found["hosts"].split(","))
    if not known.is_target(path) or (len(hosts) > 1 and not known.has_many_hosts):
        raise _unreadable(kind)
    options = _options(kind, found["query"], known.options)
    return SinkAddress(kind, path, hosts, is_secure, user, password, options)


def _file(text: str) -> SinkAddress:
    path, _, query = text.partition(":")[2].partition("?")
    if not _FILE.fullmatch(path):
        raise _unreadable("duckdb")
    options = _options("duckdb", query, {"table": _TABLE.fullmatch})
    return SinkAddress("duckdb", path, options=options)


def _who(kind: str, user: str | None, password: str | None) -> tuple[str | None, str | None]:
    name, secret = (None if each is None else unquote(each) for each in (user, password))
    if kind == "nats" and name and secret is None:
        return None, name
    return name or None, secret


def _host(kind: str, text: str, port: int) -> tuple[str, int]:
    found = _HOST.fullmatch(text)
    if found is None or not 0 < int(found["port"] or port) < 1 << 16:
        raise _unreadable(kind)
    return found["six"] or found["name"], int(found["port"] or port)


def _options(
    kind: str, query: str | None, known: Mapping[str, Callable[[str], object]]
) -> dict[str, str]:
    given = dict(parse_qsl(query or "", keep_blank_values=True))
    if any(name not in known or not known[name](value) for name, value in given.items()):
        raise _unreadable(kind)
    return given


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _unreadable(kind: str) -> SinkAddressError:
    kind = kind if kind in SINK_FORMS else kind[:-1]
    return SinkAddressError(f"an address of {kind} is written `{SINK_FORMS[kind]}`")
