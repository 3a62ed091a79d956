"""XPath's regular expressions, compiled once each."""

from __future__ import annotations

import functools
import re

__all__ = ["PatternError", "compile_pattern"]


class PatternError(ValueError):
    """A text is not a regular expression of XPath 2.0."""


_FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": 0}


@functools.lru_cache(maxsize=1024)
def compile_pattern(pattern: str, flags: str = "") -> re.Pattern[str]:
    """Return a pattern that searches as XPath's `matches` does; `flags` are XPath's `smix`."""
    from elementpath.regex import RegexError, translate_pattern

    bits = 0
    for flag in flags:
        if flag not in _FLAGS:
            raise PatternError(f"`{flag}` is not one of the flags s, m, i, x")
        bits |= _FLAGS[flag]
    if "x" in flags:
        pattern = _without_space(pattern)
    try:
        translated = translate_pattern(pattern, bits)
        return re.compile(translated, bits)
    except (RegexError, re.error, OverflowError) as error:
        raise PatternError(str(error)) from error


def _without_space(pattern: str) -> str:
    """Return the pattern as flag x reads it: without whitespace outside of classes."""
    return re.sub(r"(\[(?:\\.|[^\]\\])*\]|\\.)|[ \t\r\n]+", lambda m: m[1] or "", pattern)
