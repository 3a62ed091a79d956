"""A subscription: a query, an assignment of its parameters, and where its matches go."""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

import idna

from broker.registry.cadence import Cadence, CadenceError, Throttle, between, check_zone

__all__ = [
    "KEY_TERMS_MAX",
    "Destination",
    "DestinationKind",
    "Digest",
    "Options",
    "PayloadFormat",
    "Secret",
    "Subscription",
    "SubscriptionError",
    "SubscriptionState",
]


KEY_TERMS_MAX = 4
"""A key is compared and shown whole."""


class SubscriptionError(ValueError):
    """A subscription cannot be made as asked.  The subscriber can act on it."""


class SubscriptionState(StrEnum):
    """Whether a subscription's matches are delivered; a disabled one was stopped by the broker.

    An unconfirmed one waits until somebody who reads mail at its address has said yes.
    """

    ACTIVE = "active"
    UNCONFIRMED = "unconfirmed"
    PAUSED = "paused"
    DISABLED = "disabled"
    REMOVED = "removed"


class DestinationKind(StrEnum):
    """How matches reach the subscriber."""

    WEBHOOK = "webhook"
    EMAIL = "email"
    PULL = "pull"
    APPRISE = "apprise"


class Digest(StrEnum):
    """How often an address is written to, where the digest has a name."""

    IMMEDIATE = "immediate"
    HOURLY = "hourly"
    DAILY = "daily"
    WEEKLY = "weekly"


class PayloadFormat(StrEnum):
    """The envelope of a webhook's body."""

    STANDARD = "standard"
    CLOUDEVENTS = "cloudevents"


# RFC 5322's dot-atom on the left, with letters beyond ASCII (RFC 6532); no white space, and nothing
# that a header could read as more than one address, on the right.
_ADDRESS = re.compile(
    r"""[!#$%&'*+/=?^_`{|}~.A-Za-z0-9\u0080-\U0010ffff-]{1,64}"""
    r"""@[^\s@<>,;:"\\()\[\]\x00-\x1f\x7f]{1,255}"""
)


@dataclass(frozen=True, slots=True)
class Destination:
    """Where matches go: the address is a URL, an e-mail address, or empty for pull."""

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
        """
        if text == "pull":
            return cls(DestinationKind.PULL)
        if text.startswith(("http://", "https://")):
            return cls(DestinationKind.WEBHOOK, _checked_url(text))
        if text.startswith("apprise:"):
            return cls(DestinationKind.APPRISE, text.removeprefix("apprise:"))
        return cls(DestinationKind.EMAIL, _checked_address(text))

    def __str__(self) -> str:
        if self.kind is DestinationKind.PULL:
            return "pull"
        if self.kind is DestinationKind.APPRISE:
            return f"apprise:{self.address}"
        return self.address

    @property
    def shown(self) -> str:
        """The destination without what is a secret: Apprise's addresses have their tokens in them.

        >>> Destination.parse("apprise:slack://token/other").shown
        'apprise:slack://...'
        """
        if self.kind is DestinationKind.APPRISE:
            return f"apprise:{self.address.partition('://')[0][:20]}://..."
        return str(self)

    @property
    def endpoint(self) -> str:
        """What concurrency and rates are counted by: the host and port, or the mail domain."""
        if self.kind is DestinationKind.EMAIL:
            return "@" + self.address.rpartition("@")[2].lower()
        return urlsplit(self.address).netloc.rpartition("@")[2].lower() or self.address


def _checked_address(text: str) -> str:
    """Return an e-mail address, its domain in the form that mail servers know.

    >>> _checked_address("mailto:jörg@straße.example")
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
    try:
        parts = urlsplit(text)
        # A password would show in listings; who must know the sender checks the signature.
        usable = bool(parts.hostname) and parts.port != 0 and "@" not in parts.netloc
    except ValueError:
        usable = False
    if not usable or re.search(r"[\s\x00-\x1f\x7f]", text):
        raise SubscriptionError(f"{text!r} is not a usable URL")
    return text


@dataclass(frozen=True, slots=True)
class Options:
    """What a subscriber can choose.  `batch_max` matches at most go in one webhook call.

    `rate_per_s` bounds the calls to the endpoint; 0 leaves it to the broker.  `owner` is the
    address that is told when the subscription is disabled.  The others are those of docs/alerts.md,
    as they are written there; what follows from them stands behind them.  A subscription that
    gathers has matches wait for others, one that is keyed tells its messages apart.
    """

    digest: str = Digest.IMMEDIATE
    batch_max: int = 1
    format: PayloadFormat = PayloadFormat.STANDARD
    rate_per_s: float = 0.0
    owner: str = ""
    key: tuple[str, ...] = ()
    group: str = ""
    throttle: str = ""
    quiet: str = ""
    timezone: str = "UTC"
    collect: bool = False
    escalate: str = ""
    escalate_after: str = ""

    cadence: Cadence = field(init=False, repr=False, compare=False)
    throttled: Throttle | None = field(init=False, repr=False, compare=False)
    escalate_after_us: int = field(init=False, repr=False, compare=False)
    gathers: bool = field(init=False, repr=False, compare=False)
    is_keyed: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 1 <= self.batch_max <= 1_000:
            raise SubscriptionError("a batch holds 1 to 1000 matches")
        if self.rate_per_s < 0:
            raise SubscriptionError("a rate is not negative")
        if len(self.key) > KEY_TERMS_MAX:
            raise SubscriptionError(f"a key has at most {KEY_TERMS_MAX} terms")
        if bool(self.escalate) != bool(self.escalate_after):
            raise SubscriptionError("an escalation has an address and a time: `escalate_after`")
        if self.escalate and self.collect:
            raise SubscriptionError("what is collected is not sent, and cannot be escalated")
        try:
            self._derive()
        except CadenceError as error:
            raise SubscriptionError(str(error)) from error

    def _derive(self) -> None:
        """Read what is written, once: each delivery asks for it."""
        group_us = between("a group", self.group) if self.group else 0
        cadence = Cadence(self.digest, group_us, self.quiet, self.timezone).checked()
        after = self.escalate_after
        derived = {
            "cadence": cadence,
            "throttled": Throttle.parse(self.throttle) if self.throttle else None,
            "escalate_after_us": between("an escalation", after) if after else 0,
            "gathers": bool(self.group) or self.digest != Digest.IMMEDIATE,
            "is_keyed": bool(self.key or self.throttle or self.collect),
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    def checked(self, kind: DestinationKind) -> Options:
        """Return the options as they are kept; raise `SubscriptionError` for a wrong address.

        What was kept before addresses were checked is read as it is, and so is a time zone that
        was known to another machine.
        """
        if kind is DestinationKind.PULL and (
            self.is_keyed or self.escalate or not self.cadence.is_immediate
        ):
            raise SubscriptionError(
                "who pulls gets each match when it is found: these options are for what is sent"
            )
        if self.escalate and Destination.parse(self.escalate).kind is DestinationKind.PULL:
            raise SubscriptionError("an escalation is sent: to an address or a URL, not 'pull'")
        try:
            check_zone(self.timezone)
        except CadenceError as error:
            raise SubscriptionError(str(error)) from error
        try:
            return replace(self, owner=_checked_address(self.owner)) if self.owner else self
        except SubscriptionError as error:
            raise SubscriptionError(f"the owner {self.owner!r} is no e-mail address") from error

    def render(self) -> str:
        """Return the options as JSON; what has its default is left out."""
        default = Options()
        chosen = {
            name: getattr(self, name)
            for name in _CHOICES
            if getattr(self, name) != getattr(default, name)
        }
        return json.dumps(chosen, sort_keys=True)

    @classmethod
    def parse(cls, text: str) -> Options:
        """Read what `render` wrote, or what a subscriber sent."""
        given: Any = json.loads(text)
        if not isinstance(given, dict):
            raise SubscriptionError("options are a JSON object")
        unknown = sorted(set(given) - set(_CHOICES))
        if unknown:
            raise SubscriptionError(f"unknown option {unknown[0]!r}")
        try:
            return cls(
                digest=str(given.get("digest", Digest.IMMEDIATE)),
                batch_max=int(given.get("batch_max", 1)),
                format=PayloadFormat(given.get("format", PayloadFormat.STANDARD)),
                rate_per_s=float(given.get("rate_per_s", 0.0)),
                owner=str(given.get("owner", "")),
                key=_terms(given.get("key", [])),
                group=str(given.get("group", "")),
                throttle=str(given.get("throttle", "")),
                quiet=str(given.get("quiet", "")),
                timezone=str(given.get("timezone", "UTC")),
                collect=_flag("collect", given.get("collect", False)),
                escalate=str(given.get("escalate", "")),
                escalate_after=str(given.get("escalate_after", "")),
            )
        except (TypeError, ValueError) as error:
            raise SubscriptionError(str(error)) from error


_CHOICES = tuple(each.name for each in fields(Options) if each.init)


def _terms(given: object) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(term, str) for term in given):
        raise SubscriptionError(
            "a key is a list of names: of what the query compares, or `output/...`"
        )
    return tuple(given)


def _flag(name: str, given: object) -> bool:
    if not isinstance(given, bool):
        raise SubscriptionError(f"{name!r} is true or false")
    return given


@dataclass(frozen=True, slots=True)
class Secret:
    """A key that a subscription's webhooks are signed with, until it expires."""

    value: str
    expires_us: int | None = None


@dataclass(frozen=True, slots=True)
class Subscription:
    """One subscription as the registry holds it.

    `parameters` is the canonical key of the assignment (see `parameters_key`).  It gets the
    matches of `query` under these parameters all of whose docids exceed `point`, and, where it has
    ended, none exceeds `until`.
    """

    id: str
    query: str
    parameters: str
    destination: Destination
    point: int
    state: SubscriptionState = SubscriptionState.ACTIVE
    reason: str = ""
    options: Options = field(default_factory=Options)
    created_us: int = 0
    revision: int = 0
    until: int | None = None
    secrets: tuple[Secret, ...] = field(default=(), repr=False)

    @property
    def topic(self) -> tuple[str, str]:
        """Which matches it gets: subscriptions of one topic share them."""
        return (self.query, self.parameters)
