"""Values that are nearly equal: what tells them apart, and which function would not see it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import combinations, islice, product

__all__ = ["NearMiss", "near_miss", "nearest"]

PAIRS_MAX = 2_000
"""Pairs of values that are looked at for the nearest one."""

SIMILAR = 0.85
"""From this ratio on, values that share no rule count as similar."""

_QUOTES = str.maketrans("‘’“”–—‐‑…\u00a0", "''\"\"----. ")


@dataclass(frozen=True, slots=True)
class _Rule:
    """A difference between values: its name, what removes it, and the same in XSCL."""

    name: str
    remove: Callable[[str], str]
    wrap: str = ""


_RULES = (
    _Rule("white space", lambda v: " ".join(v.split()), "normalize-space({})"),
    _Rule("case", str.casefold, "lower-case({})"),
    _Rule("a trailing slash", lambda v: v.rstrip("/"), "replace({}, '/+$', '')"),
    _Rule(
        "http and https", lambda v: re.sub(r"^https?://", "", v), "replace({}, '^https?://', '')"
    ),
    _Rule(
        "a `www.`",
        lambda v: re.sub(r"^(https?://)?www\.", r"\1", v),
        "replace({}, '//www\\.', '//')",
    ),
    _Rule(
        "what follows `?` or `#`",
        lambda v: re.split(r"[?#]", v)[0],
        "replace({}, '[?#].*$', '')",
    ),
    _Rule("how characters are encoded (Unicode)", lambda v: unicodedata.normalize("NFKC", v)),
    _Rule("typographic quotes, dashes or spaces", lambda v: v.translate(_QUOTES)),
)


@dataclass(frozen=True, slots=True)
class NearMiss:
    """What tells two values apart; `wraps` are XSCL functions under which they are equal.

    `wraps` is empty where there are no such functions, or the values are only similar.
    """

    differences: tuple[str, ...]
    wraps: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The differences in words."""
        return "they differ only in " + " and ".join(self.differences)

    def rewrite(self, left: str, operator: str, right: str) -> str | None:
        """Return the comparison under which the values are equal, if functions can say it."""
        if not self.wraps:
            return None
        for wrap in self.wraps:
            left, right = wrap.format(left), wrap.format(right)
        return f"{left} {operator} {right}"


def near_miss(left: str, right: str) -> NearMiss | None:
    """Return what tells two different values apart, if it is little.

    >>> near_miss("https://a.org/x/", "http://a.org/x").text
    'they differ only in a trailing slash and http and https'
    >>> near_miss("a", "b") is None
    True
    """
    if not left.strip() or not right.strip():
        return None
    for size in (1, 2, 3):
        for rules in combinations(_RULES, size):
            if _removed(left, rules) == _removed(right, rules) != "":
                names = tuple(rule.name for rule in rules)
                wraps = tuple(rule.wrap for rule in rules)
                return NearMiss(names, wraps if all(wraps) else ())
    if min(len(left), len(right)) >= 6 and _ratio(left, right) >= SIMILAR:
        return NearMiss(("a few characters",))
    return None


def _removed(value: str, rules: Sequence[_Rule]) -> str:
    for rule in rules:
        value = rule.remove(value)
    return value


def _ratio(left: str, right: str) -> float:
    matcher = SequenceMatcher(None, left[:300], right[:300], autojunk=False)
    return matcher.ratio() if matcher.quick_ratio() >= SIMILAR else 0.0


def nearest(left: Iterable[str], right: Iterable[str]) -> tuple[str, str, NearMiss] | None:
    """Return the two values, one of each side, that are told apart by the least, if any are."""
    found: list[tuple[int, str, str, NearMiss]] = []
    for a, b in islice(product(sorted(left), sorted(right)), PAIRS_MAX):
        miss = near_miss(a, b)
        if miss is not None:
            rank = len(miss.differences) + (0 if miss.wraps else 10)
            found.append((rank, a, b, miss))
    if not found:
        return None
    _, a, b, miss = min(found, key=lambda each: each[:3])
    return a, b, miss
