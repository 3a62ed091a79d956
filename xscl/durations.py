"""Lengths of time: as they are written in a window, and as `fmt` writes them."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

from xscl.query import INFINITE_US

__all__ = [
    "UNITS",
    "DurationError",
    "iso_duration_us",
    "read_duration",
    "render_duration",
    "to_us",
    "window_us",
]

_MICROSECOND, _MILLISECOND, _SECOND = 1, 1_000, 1_000_000
_MINUTE, _HOUR, _DAY = 60 * _SECOND, 3600 * _SECOND, 86_400 * _SECOND

_SPELLINGS = (
    (_MICROSECOND, "us microsecond microseconds"),
    (_MILLISECOND, "ms millisecond milliseconds"),
    (_SECOND, "s sec second seconds"),
    (_MINUTE, "m min minute minutes"),
    (_HOUR, "h hr hour hours"),
    (_DAY, "d day days"),
    (7 * _DAY, "w week weeks"),
)
UNITS = {word: length for length, words in _SPELLINGS for word in words.split()}
"""The microseconds of each unit, under all its spellings."""
UNITS |= {"secs": _SECOND, "mins": _MINUTE, "hrs": _HOUR, "usec": 1, "msec": _MILLISECOND}

_RENDERED = (
    (_DAY, "day"),
    (_HOUR, "hour"),
    (_MINUTE, "minute"),
    (_SECOND, "second"),
    (_MILLISECOND, "ms"),
    (_MICROSECOND, "us"),
)
_NUMBER = r"\d+(?:\.\d*)?|\.\d+"
_ISO = re.compile(
    rf"P(?:(?P<Y>{_NUMBER})Y)?(?:(?P<M>{_NUMBER})M)?(?:(?P<W>{_NUMBER})W)?(?:(?P<D>{_NUMBER})D)?"
    rf"(?:T(?=[\d.])(?:(?P<h>{_NUMBER})H)?(?:(?P<m>{_NUMBER})M)?(?:(?P<s>{_NUMBER})S)?)?",
    re.IGNORECASE,
)
_ISO_LENGTHS = {"W": 7 * _DAY, "D": _DAY, "h": _HOUR, "m": _MINUTE, "s": _SECOND}
_WRITTEN = re.compile(rf"\s*(?P<number>[+-]?(?:{_NUMBER}))\s*(?P<unit>[^\W\d]+)\s*")


class DurationError(ValueError):
    """A text is not a length of time that can be a window.  `code` is the diagnostic's."""

    def __init__(self, code: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint


@lru_cache(maxsize=4_096)
def to_us(number: str, unit: str) -> int:
    """Return the microseconds of a number and a unit, as in `30 days`; zero and below too."""
    length = UNITS.get(unit) or UNITS.get(unit.lower())
    if length is None:
        raise _unknown_unit(number, unit)
    return round(Fraction(number) * length)


def iso_duration_us(text: str) -> int:
    """Return the microseconds of an ISO 8601 duration without years and months."""
    found = _ISO.fullmatch(text) if len(text) <= 100 else None
    parts = {} if found is None else {k: v for k, v in found.groupdict().items() if v}
    if not parts:
        raise DurationError(
            "XS403", f"`{text}` is not a duration", "write `30 days`, `6 h`, `PT6H` or `INF`"
        )
    if "Y" in parts or "M" in parts:
        raise DurationError(
            "XS402",
            f"`{text}` counts years or months, whose length varies",
            "write days: `P30D` or `30 days`; minutes stand behind a T: `PT30M`",
        )
    return round(sum(Fraction(v) * _ISO_LENGTHS[k] for k, v in parts.items()))


def read_duration(text: str) -> int:
    """Return the microseconds of any spelling of a duration that is not negative.

    >>> read_duration("6 h") == read_duration("PT6H")
    True
    """
    stripped = text.strip()
    if stripped.upper() == "INF":
        return INFINITE_US
    found = _WRITTEN.fullmatch(text) if len(text) <= 100 else None
    length_us = to_us(found["number"], found["unit"]) if found else iso_duration_us(stripped)
    if length_us < 0:
        raise DurationError("XS401", f"`{stripped}` is negative")
    return length_us


def render_duration(length_us: int) -> str:
    """Return a duration in its largest whole unit.

    >>> render_duration(86_400_000_000)
    '1 day'
    """
    if length_us >= INFINITE_US:
        return "INF"
    if length_us == 0:
        return "0 seconds"
    length, unit = next(pair for pair in _RENDERED if length_us % pair[0] == 0)
    count = length_us // length
    plural = "s" if count != 1 and len(unit) > 2 else ""
    return f"{count} {unit}{plural}"


def window_us(length_us: int, text: str) -> int:
    """Return a length that can be a window; raise `DurationError` for one that cannot."""
    if length_us <= 0:
        raise DurationError(
            "XS401",
            f"a window of `{text}` holds nothing: it must be longer than zero",
            "the shortest window is `1 us`; for no bound write `INF`",
        )
    if length_us >= INFINITE_US:
        raise DurationError(
            "XS401", f"a window of `{text}` is too long", "for no bound write `INF`"
        )
    return length_us


def _unknown_unit(number: str, unit: str) -> DurationError:
    if unit.lower() in ("mo", "month", "months", "y", "yr", "year", "years"):
        return DurationError(
            "XS402",
            f"`{number} {unit}` counts years or months, whose length varies",
            "write days, as in `30 days`",
        )
    return DurationError(
        "XS403", f"`{unit}` is not a unit of time", "units are us, ms, s, min, h, d and w"
    )
