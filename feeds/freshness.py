"""How long an answer calls itself fresh: Cache-Control max-age, else Expires."""

from __future__ import annotations

import re
from collections.abc import Mapping

from feeds.fetcher import http_date_s

__all__ = ["fresh_s"]

_MAX_AGE = re.compile(r"(?:^|[,\s])max-age\s*=\s*\"?(\d{1,9})")


def fresh_s(headers: Mapping[str, str], now_s: float) -> float:
    """Return the seconds until the answer is stale, 0 where it does not say or says "now".

    `headers` has lower-case names.  The age that a cache on the way reports is taken off.

    >>> fresh_s({"cache-control": "public, max-age=600", "age": "100"}, 0.0)
    500.0
    """
    control = headers.get("cache-control", "").lower()
    if "no-cache" in control or "no-store" in control:
        return 0.0
    found = _MAX_AGE.search(control)
    if found:
        return max(0.0, float(found[1]) - _age(headers))
    expires_s = http_date_s(headers.get("expires", ""))
    if expires_s is None:
        return 0.0
    return max(0.0, expires_s - (http_date_s(headers.get("date", "")) or now_s))


def _age(headers: Mapping[str, str]) -> float:
    age = headers.get("age", "").strip()
    return float(age[:9]) if age.isdecimal() else 0.0
