"""Which entry is which: keys, sticky policies for feeds with bad guids, and what is new.

The key of an entry is its guid, else its link, else a hash of its content.  A feed whose guids
or links do not tell its entries apart is keyed by the next rung, and stays on it: a policy that
flips back would make every entry new again.  Moving a rung up is told apart from news by the
content that was accepted under the old keys.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from feeds.document import fingerprint
from feeds.item import FeedItem
from feeds.store import Seen

__all__ = ["POLICIES", "FeedEntry", "News", "choose_policy", "entries", "news"]

BAD_SHARE_MAX = 0.05
"""Above this share of entries that share a key with another one, the next policy is taken."""
_KEY_MAX = 600


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """An item with the key that tells it apart in its feed, and its content's fingerprint."""

    key: str
    item: FeedItem
    content: bytes


@dataclass(frozen=True, slots=True)
class News:
    """What a feed document brings: entries never seen, edited ones, and what to remember."""

    new: tuple[FeedEntry, ...]
    revised: tuple[FeedEntry, ...]
    memory: Mapping[str, Seen]


def _by_guid(item: FeedItem) -> str:
    return _scheme_blind(item.id) if item.id else _by_link(item)


def _by_link(item: FeedItem) -> str:
    return _scheme_blind(item.link) if item.link else _by_content(item)


def _by_link_and_title(item: FeedItem) -> str:
    return f"{_by_link(item)} {_digest(item.title)}" if item.link else _by_content(item)


def _by_content(item: FeedItem) -> str:
    text = "\0".join((item.title, item.link, str(item.event_time_us), item.summary, item.content))
    return f"content:{_digest(text)}"


POLICIES: dict[str, Callable[[FeedItem], str]] = {
    "guid": _by_guid,
    "link": _by_link,
    "link and title": _by_link_and_title,
    "content": _by_content,
}
"""The ladder, in order.  Each falls through to the later ones for entries without its field."""


def choose_policy(items: Sequence[FeedItem], current: str = "") -> str:
    """Return the first policy, from the `current` one on, that tells the items apart."""
    names = list(POLICIES)
    for name in names[names.index(current) if current in names else 0 :]:
        if _bad_share(items, POLICIES[name]) <= BAD_SHARE_MAX:
            return name
    return "content"


def entries(items: Sequence[FeedItem], policy: str) -> list[FeedEntry]:
    """Return the items with their keys, oldest first; of items with one key the latest."""
    keyed: dict[str, FeedEntry] = {}
    for item in items:
        key = _bounded(POLICIES[policy](item))
        held = keyed.get(key)
        if held is None or _age(item) > _age(held.item):
            keyed[key] = FeedEntry(key, item, fingerprint(item))
    # Feeds list the newest first: backwards, entries without a date keep the publisher's order.
    oldest_first = list(keyed.values())[::-1]
    return sorted(oldest_first, key=lambda entry: entry.item.event_time_us or 0)


def news(
    current: Sequence[FeedEntry],
    seen: Mapping[str, Seen],
    known_content: frozenset[bytes] = frozenset(),
) -> News:
    """Tell new entries from edited and from old ones.

    `known_content` are fingerprints that were accepted under the keys of an earlier policy.
    """
    new, revised, memory = [], [], {}
    for entry in current:
        before = seen.get(entry.key)
        if before is None:
            memory[entry.key] = Seen(entry.content)
            if entry.content not in known_content:
                new.append(entry)
        elif before.content != entry.content:
            memory[entry.key] = Seen(entry.content, before.revision + 1)
            revised.append(entry)
        else:
            memory[entry.key] = before
    return News(tuple(new), tuple(revised), memory)


def _bad_share(items: Sequence[FeedItem], policy: Callable[[FeedItem], str]) -> float:
    """The share of items whose key another, different item has too."""
    distinct = {_by_content(item): policy(item) for item in items}
    counts = Counter(distinct.values())
    bad = sum(count for count in counts.values() if count > 1)
    return bad / len(distinct) if distinct else 0.0


def _age(item: FeedItem) -> int:
    times = [time for time in (item.updated_us, item.published_us) if time is not None]
    return max(times, default=0)


def _scheme_blind(text: str) -> str:
    """A guid or link that moves from http to https names the same entry."""
    return f"https://{text[7:]}" if text.startswith("http://") else text


def _bounded(key: str) -> str:
    return key if len(key) <= _KEY_MAX else f"hash:{_digest(key)}"


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
