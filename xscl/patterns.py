r"""XPath's regular expressions, compiled once each.

They come from users and meet texts that nobody has looked at, for every candidate of a join, so
they are run by RE2: its time grows with the length of the text alone, whatever the expression.
Python's own engine needs hours for `(a+)+b` and thirty letters.  The price are back-references
(`(a)\1`), which no engine with a bound has: they are refused.  With flag m, `^` also fits behind
a line end that ends the text.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

__all__ = [
    "SET_SIZE_MAX",
    "Pattern",
    "PatternError",
    "PatternSet",
    "compile_pattern",
    "without_space",
]


class PatternError(ValueError):
    """A text is not a regular expression of XPath 2.0, or one without a bound on its time."""

    hint = r"a character that has a meaning stands behind a backslash, as in `\(`"


class BackReferenceError(PatternError):
    """A regular expression asks for what it has found before."""

    hint = "compare two parts: `substring-before(x, '-') = substring-after(x, '-')`"


class Pattern:
    """A compiled expression: `size` instructions, with so many `groups` that it captures."""

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled
        self._alone: PatternSet | None = None
        self.groups: int = compiled.groups

    @property
    def size(self) -> int:
        """How many instructions it is."""
        size: int = self._compiled.programsize
        return size

    @property
    def spelled(self) -> str:
        """The expression as RE2 reads it."""
        spelled: str = self._compiled.pattern
        return spelled

    def is_found(self, text: str) -> bool:
        """Return whether the expression fits some part of a text."""
        if self.size > SET_SIZE_MAX:
            return self.is_searched(text)
        if self._alone is None:
            self._alone = PatternSet((self,))
        return bool(self._alone.fitting(text))

    def is_searched(self, text: str) -> bool:
        """Return the same by a search for where, which takes three times as long."""
        return self._compiled.search(_encodable(text)) is not None

    def fits_nothing(self) -> bool:
        """Return whether the expression fits the empty text: then it separates nothing."""
        return self._compiled.search("") is not None

    def found(self, text: str) -> Iterator[Any]:
        """Yield what `re.finditer` would."""
        yield from self._compiled.finditer(_encodable(text))

    def replaced(self, text: str, replacement: Callable[[Any], str]) -> str:
        """Return what `re.sub` would."""
        replaced: str = self._compiled.sub(replacement, _encodable(text))
        return replaced


def _encodable(text: str) -> str:
    """Return a text that UTF-8 can hold: XML has no others, but JSON may bring one in a value."""
    return text if text.isascii() else text.encode(errors="replace").decode()


SET_SIZE_MAX = 256
"""Instructions of a set: `[a-z]+[0-9]` has some 15, `.{1,90}` more than a thousand."""

SET_BYTES = 1 << 20
"""What the automaton of a set may take, some thousand states: behind that it is made anew."""


class PatternSet:
    """A few patterns that are run together, in the time of one or two.

    Where an automaton runs out of memory it says that nothing fits.  So it has one more expression,
    which fits each text: where that does not, and where none could be made, patterns are run one
    by one.
    """

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        import re2

        self._patterns = [*patterns]
        options = re2.Options()
        options.log_errors, options.max_mem = False, SET_BYTES
        together = re2.Set.SearchSet(options)
        self._together: Any = together
        try:
            for pattern in self._patterns:
                together.Add(pattern.spelled)
            together.Add("")
            together.Compile()
        except re2.error:
            self._together = None

    def fitting(self, text: str) -> list[int]:
        """Return which of the patterns fit some part of a text, as indexes."""
        found: list[int] = []
        if self._together is not None:
            found = self._together.Match(_encodable(text)) or found
        if len(self._patterns) in found:
            found.remove(len(self._patterns))
            return found
        return [i for i, pattern in enumerate(self._patterns) if pattern.is_searched(text)]


FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE}
_CLASSES = {
    "d": r"\p{Nd}",
    "D": r"\P{Nd}",
    "s": r"[ \t\n\r]",
    "S": r"[^ \t\n\r]",
    "w": r"[^\p{P}\p{Z}\p{C}]",
    "W": r"[\p{P}\p{Z}\p{C}]",
}
"""Classes whose letters mean something else to RE2; inside brackets they are spelled out."""

_BACK_REFERENCE = re.compile(r"(?:[^\\]|\\[^1-9])*\\[1-9]", re.DOTALL)
_END = r"$(?!\n\Z)"
"""What Python needs for `$`; to RE2 `$` is the end of the text."""


@functools.lru_cache(maxsize=1024)
def compile_pattern(pattern: str, flags: str = "") -> Pattern:
    """Return a pattern that searches as XPath's `matches` does; `flags` are XPath's `smix`."""
    import re2

    for flag in flags:
        if flag not in FLAGS:
            raise PatternError(f"`{flag}` is not one of the flags s, m, i, x")
    if "x" in flags:
        pattern = without_space(pattern)
    if _BACK_REFERENCE.match(pattern):
        raise BackReferenceError(
            "back-references, `\\1`, are not supported: their time has no bound"
        )
    options = re2.Options()
    options.log_errors = False
    try:
        return Pattern(re2.compile(_translated(pattern, flags), options))
    except re2.error as error:
        raise PatternError(_message(error)) from error
    except UnicodeEncodeError as error:
        raise PatternError("it has a character that no text has") from error


def _translated(pattern: str, flags: str) -> str:
    """Return XPath's expression in the syntax of RE2."""
    from elementpath.regex import RegexError, translate_pattern

    bits = (re.IGNORECASE if "i" in flags else 0) | (re.DOTALL if "s" in flags else 0)
    try:
        python = translate_pattern(pattern, bits).replace(_END, "$")
    except (RegexError, OverflowError) as error:
        raise PatternError(str(error)) from error
    own = "".join(flag for flag in "ims" if flag in flags)
    return (f"(?{own})" if own else "") + re.sub(r"\\(.)", _translated_escape, python)


def _translated_escape(found: re.Match[str]) -> str:
    return _CLASSES.get(found[1], found[0])


def _message(error: Exception) -> str:
    told = error.args[0] if error.args else error
    return told.decode(errors="replace") if isinstance(told, bytes) else str(told)


def without_space(pattern: str) -> str:
    """Return the pattern as flag x reads it: without whitespace outside of classes."""
    return re.sub(r"(\[(?:\\.|[^\]\\])*\]|\\.)|[ \t\r\n]+", lambda m: m[1] or "", pattern)
