"""A subscription: a query, an assignment of its parameters, and where its matches go."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any

from broker.registry.cadence import Cadence, CadenceError, Throttle, between, check_zone
from broker.registry.destination import (
    Destination,
    DestinationKind,
    SubscriptionError,
    checked_address,
)

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


class SubscriptionState(StrEnum):
    """Whether a subscription's matches are delivered; a disabled one was stopped by the broker.

    An unconfirmed one waits until somebody who reads mail at its address has said yes.
    """

    ACTIVE = "active"
    UNCONFIRMED = "unconfirmed"
    PAUSED = "paused"
    DISABLED = "disabled"
    REMOVED = "removed"


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
            return replace(self, owner=checked_address(self.owner)) if self.owner else self
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

    @property
    def shown(self) -> dict[str, Any]:
        """What was chosen, without what is a secret in the address of an escalation."""
        chosen: dict[str, Any] = json.loads(self.render())
        if self.escalate:
            chosen["escalate"] = Destination.parse(self.escalate).shown
        return chosen

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
