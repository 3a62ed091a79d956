"""Where the matches of a subscription go, as people write it.

Tokens and the addresses of incoming webhooks are secrets: who has one can write there.  `shown` is
what others may see, and no error has one in it.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_address
from urllib.parse import urlsplit

import idna

from broker.registry.sinkaddress import SINK_FORMS, SinkAddress, SinkAddressError

__all__ = ["Destination", "DestinationKind", "SubscriptionError", "checked_address"]


class SubscriptionError(ValueError):
    """A subscription cannot be made as asked.  The subscriber can act on it."""


class DestinationKind(StrEnum):
    """How matches reach the subscriber.

    A kind that `is_chat` is written `KIND:ADDRESS`, and gets messages for people to read.  One that
    `is_sink` is a server or a table from which other programs read.
    """

    WEBHOOK = "webhook"
    EMAIL = "email"
    PULL = "pull"
    APPRISE = "apprise"
    SLACK = "slack"
    DISCORD = "discord"
    TEAMS = "teams"
    NTFY = "ntfy"
    TELEGRAM = "telegram"
    MATRIX = "matrix"
    KAFKA = "kafka"
    NATS = "nats"
    MQTT = "mqtt"
    POSTGRESQL = "postgresql"
    DUCKDB = "duckdb"

    @property
    def is_chat(self) -> bool:
        """Whether a service with an API of its own shows the matches to people."""
        return self in _FORMS

    @property
    def is_sink(self) -> bool:
        """Whether matches become records of a log, messages of a bus, or rows of a table."""
        return self.value in SINK_FORMS

    @property
    def is_signed(self) -> bool:
        """Whether what is sent carries signatures of Standard Webhooks."""
        return self is DestinationKind.WEBHOOK or self.is_chat


# RFC 5322's dot-atom on the left, with letters beyond ASCII (RFC 6532); no white space, and nothing
# that a header could read as more than one address, on the right.
_ADDRESS = re.compile(
    r"""[!#$%&'*+/=?^_`{|}~.A-Za-z0-9\u0080-\U0010ffff-]{1,64}"""
    r"""@[^\s@<>,;:"\\()\[\]\x00-\x1f\x7f]{1,255}"""
)

_WEB = ("http://", "https://")
_NUMBER = re.compile(r"\d+|0[xX][0-9a-fA-F]*")
"""What ends the name of no host: who resolves such a name takes it for an address, as numbers were
written long ago, and who sends to it does not."""
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://")

_FORMS = {
    DestinationKind.SLACK: "slack:https://hooks.slack.com/services/...",
    DestinationKind.DISCORD: "discord:https://discord.com/api/webhooks/...",
    DestinationKind.TEAMS: "teams:https://...",
    DestinationKind.NTFY: "ntfy:https://SERVER/TOPIC or ntfy:TOKEN@https://SERVER/TOPIC",
    DestinationKind.TELEGRAM: "telegram:TOKEN@CHAT",
    DestinationKind.MATRIX: "matrix:TOKEN@https://SERVER/!ROOM",
}
"""How each chat is written."""

_TOKEN = re.compile(r"[\x21-\x3f\x41-\x7e]{1,1000}")
_TOPIC = re.compile(r"[-_A-Za-z0-9]{1,64}")
_BOT = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{10,100}")
_CHAT = re.compile(r"-?[0-9]{1,20}|@[A-Za-z][A-Za-z0-9_]{3,63}")
_ROOM = re.compile(r"![^/\s?#%]{1,255}")


@dataclass(frozen=True, slots=True)
class Destination:
    """Where matches go: the address is what stands behind the kind; it is empty for pull."""

    kind: DestinationKind
    address: str = ""

    @classmethod
    def parse(cls, text: str) -> Destination:
        """Read a destination as people write it.

        >>> Destination.parse("https://example.org/hook").kind.value
        'webhook'
        >>> Destination.parse("mailto:ann@example.org")
        Destination(kind=<DestinationKind.EMAIL: 'email'>, address='ann@example.org')
        >>> Destination.parse("pull").kind.value
        'pull'
        >>> Destination.parse("slack:https://hooks.slack.com/services/T0/B0/x").kind.value
        'slack'
        >>> Destination.parse("kafkas://ann:hush@kafka.example/found").kind.value
        'kafka'
        """
        if text == "pull":
            return cls(DestinationKind.PULL)
        if text.lower().startswith(_WEB):
            scheme, _, rest = text.partition(":")
            text = f"{scheme.lower()}:{rest}"
            return cls(DestinationKind.WEBHOOK, _checked_url(text))
        kind, colon, address = text.partition(":")
        if colon and kind == DestinationKind.APPRISE:
            return cls(DestinationKind.APPRISE, address)
        if colon and kind in _FORMS:
            return cls(DestinationKind(kind), address)._checked()
        if SinkAddress.is_one(text):
            return _sink(text)
        if unknown := _SCHEME.match(text):
            raise SubscriptionError(f"no destination begins with {unknown[0]!r}")
        return cls(DestinationKind.EMAIL, checked_address(text))

    def __str__(self) -> str:
        if self.kind is DestinationKind.PULL:
            return "pull"
        if self.kind is DestinationKind.APPRISE or self.kind.is_chat:
            return f"{self.kind.value}:{self.address}"
        return self.address

    @property
    def shown(self) -> str:
        """The destination without what is a secret.

        >>> Destination.parse("apprise:slack://token/other").shown
        'apprise:slack://...'
        >>> Destination.parse("slack:https://hooks.slack.com/services/T0/B0/x").shown
        'slack:https://hooks.slack.com/...'
        >>> Destination.parse("telegram:123456:AbC-dEf_GhI@@harbour").shown
        'telegram:...@@harbour'
        >>> Destination.parse("mqtts://ann:hush@mqtt.example/found/news").shown
        'mqtts://ann:...@mqtt.example:8883/found/news'
        """
        if self.kind.is_sink:
            return self.sink.shown
        if self.kind is DestinationKind.APPRISE:
            return f"apprise:{self.address.partition('://')[0][:20]}://..."
        if self.kind in (DestinationKind.TELEGRAM, DestinationKind.MATRIX):
            return f"{self.kind.value}:...@{self.place}"
        if self.kind.is_chat:
            parts = urlsplit(self.place)
            return f"{self.kind.value}:{parts.scheme}://{parts.netloc}/..."
        return str(self)

    @property
    def token(self) -> str:
        """What a chat knows its writer by, "" where its address says that itself."""
        return "" if self.address.startswith(_WEB) else self.address.partition("@")[0]

    @property
    def place(self) -> str:
        """Where in a chat is written: a URL, for Telegram the name or number of the chat."""
        is_whole = self.address.startswith(_WEB)
        return self.address if is_whole else self.address.partition("@")[2]

    @property
    def sink(self) -> SinkAddress:
        """The address of a sink, read."""
        return SinkAddress.parse(self.address)

    @property
    def endpoint(self) -> str:
        """What concurrency and rates are counted by: the host and port, or the mail domain."""
        if self.kind.is_sink:
            return self.sink.endpoint
        if self.kind is DestinationKind.EMAIL:
            return "@" + self.address.rpartition("@")[2].lower()
        if self.kind is DestinationKind.TELEGRAM:
            return self.kind.value
        url = self.place if self.kind.is_chat else self.address
        return urlsplit(url).netloc.rpartition("@")[2].lower() or self.address

    def _checked(self) -> Destination:
        """Return this chat; raise `SubscriptionError`, without the token, if it cannot be one."""
        token, place = self.token, self.place
        if self.kind is DestinationKind.TELEGRAM:
            is_right = bool(_BOT.fullmatch(token) and _CHAT.fullmatch(place))
        elif not _is_url(place):
            is_right = False
        elif self.kind is DestinationKind.NTFY:
            topic = urlsplit(place).path.rpartition("/")[2]
            plain = bool(_TOPIC.fullmatch(topic)) and not set("?#") & set(place)
            is_right = plain and (not token or bool(_TOKEN.fullmatch(token)))
        elif self.kind is DestinationKind.MATRIX:
            room = place.partition("://")[2].partition("/")[2]
            is_right = bool(_TOKEN.fullmatch(token) and _ROOM.fullmatch(room))
        else:
            is_right = not token
        if not is_right:
            raise SubscriptionError(
                f"an address of {self.kind.value} is written `{_FORMS[self.kind]}`"
            )
        return self


def _sink(text: str) -> Destination:
    try:
        return Destination(DestinationKind(SinkAddress.parse(text).kind), text)
    except SinkAddressError as error:
        raise SubscriptionError(str(error)) from error


def checked_address(text: str) -> str:
    """Return an e-mail address, its domain in the form that mail servers know.

    >>> checked_address("mailto:jörg@straße.example")
    'jörg@xn--strae-oqa.example'
    """
    address = unicodedata.normalize("NFC", text.removeprefix("mailto:"))
    if not _ADDRESS.fullmatch(address) or not address.isprintable():
        raise SubscriptionError(f"{text!r} is neither an http(s) URL, an e-mail address nor 'pull'")
    name, _, domain = address.partition("@")
    try:
        # Python's own codec is of 2003, and takes another domain where there is an ß.
        return f"{name}@{domain if domain.isascii() else idna.encode(domain, uts46=True).decode()}"
    except idna.IDNAError as error:
        raise SubscriptionError(f"{domain!r} is not a usable domain") from error


def _checked_url(text: str) -> str:
    if "@" in text.partition("://")[2].partition("/")[0]:
        raise SubscriptionError(
            "a URL with a user or a password is not called, since lists would show them: leave"
            " them out; each message carries a signature that says who sends it"
        )
    if not _is_url(text):
        raise SubscriptionError(f"{text!r} is not a usable URL")
    host = urlsplit(text).hostname or ""
    if _NUMBER.fullmatch(host.rpartition(".")[2]) and not _is_address(host):
        raise SubscriptionError(f"{host} is no name, and no address: write that as `192.0.2.1`")
    return text


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        # A password would show in listings; who must know the sender checks the signature.
        usable = bool(parts.hostname) and parts.port != 0 and "@" not in parts.netloc
    except ValueError:
        return False
    return usable and text.startswith(_WEB) and not re.search(r"[\s\x00-\x1f\x7f]", text)
