"""What to do about a feed that cannot be read, in a sentence to the operator."""

from __future__ import annotations

from feeds import UnknownFeedError
from feeds.administration import KnownFeedError
from feeds.errors import Fault, FeedError

__all__ = ["refusal_of", "remedy_of"]

_REMEDIES = {
    Fault.GONE: "its publisher took it down for good: `xscl feeds remove URL`",
    Fault.NOT_FOUND: "look for the feed's new address on its site, or give the address of the site",
    Fault.REFUSED: "it wants a login, or no programs: give --header, or ask its publisher",
    Fault.RATE_LIMITED: "it is asked too often; the broker slows down by itself",
    Fault.SERVER: "its server has a problem; the broker goes on trying",
    Fault.TIMEOUT: "its server does not answer in time; the broker goes on trying",
    Fault.NAME: "is the name spelled right, and does this machine have DNS?",
    Fault.CONNECTION: "is the port right, and is the server running?",
    Fault.TLS: "its certificate is not valid for this name today, or it is an http:// address; is"
    " the broker's clock right?",
    Fault.BLOCKED: "if that is meant, name its network in the broker's xscl.toml and start it anew;"
    ' for its own machine: allow_networks = ["127.0.0.0/8"]',
    Fault.NOT_A_FEED: "open the address in a browser and look for its RSS or Atom link",
    Fault.MALFORMED: "its XML is broken beyond repair; tell its publisher",
    Fault.ROBOTS: "its robots.txt asks programs to stay away; without --robots it is read anyway",
}


_LATER = "it was not added; try again later, or add it all the same with --no-check"

_UNSEEN = {Fault.SERVER: _LATER, Fault.TIMEOUT: _LATER, Fault.RATE_LIMITED: _LATER}
"""What there is to do where a feed has been looked at once, and nobody goes on trying."""


def remedy_of(fault: Fault) -> str:
    """Return what can be done about a fault."""
    return _REMEDIES.get(fault, "`xscl feeds check URL` looks at it again")


def refusal_of(error: Exception) -> tuple[str, str | None]:
    """Return what a refusal of `feeds.administration` says to who asked, and what to do."""
    if isinstance(error, FeedError):
        if error.fault is Fault.URL or not error.url:
            return error.detail, None
        return f"{error.url}: {error}", _UNSEEN.get(error.fault) or remedy_of(error.fault)
    is_of_the_list = isinstance(error, KnownFeedError | UnknownFeedError)
    return str(error), "`xscl feeds list` shows the feeds" if is_of_the_list else None
