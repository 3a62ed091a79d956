"""Random documents, as lines of a match case.

Vocabulary and values are small on purpose, for matches, ties and near misses.
"""

from __future__ import annotations

from collections.abc import Sequence

from generators.mood import Mood

__all__ = ["NAMESPACES", "Documents"]

NAMES = ("c", "t", "c", "c", "c", "t", "p", "i")
COMMON = ("x", "x", "y", "x", "1", "x")
RARE = ("X", " x", "x,y", "x y", "", "1.0", "2", "10", "http://www.a.org/x", "n,", "http://a.org")
NUMERALS = ("1", "2", "1.0", "10", " 2 ", "x", "1.0", "1", "")
KEYS = ("k0", "k1", "k2", "k0", "k1", "1", "3", "k0#2")
ATTRIBUTES = ("h", "k")
NAMESPACES = (("dc", "http://purl.org/dc/elements/1.1/"), ("n", "urn:n"))


class Documents:
    """Writes documents; in a case about `words`, most of their values are among these."""

    def __init__(self, mood: Mood, words: Sequence[str]) -> None:
        self._mood = mood
        self._words = words
        self._keyed: dict[str, str] = {}
        self._has_time = False

    def line(self, number: int) -> str:
        """Return the line of a document."""
        mood = self._mood
        elsewhere = 30 if mood.is_about("late") else 0
        stream = "T" if mood.rarely(20, "stream") or mood.chance(elsewhere) else "S"
        xml = self._element(0)
        if mood.chance(10) if mood.is_about("key") else mood.rarely(4):
            xml = xml[: len(xml) // 2]
        key, xml = self._key(xml)
        return f"document {number} {stream} {self._times()}{key}  {xml}"

    def _times(self) -> str:
        """Return the time of a document, and when it arrives, where that is said."""
        mood = self._mood
        minute = 5 * mood.integer(0, 24)
        if mood.chance(12) if mood.is_about("late") else mood.rarely(5):
            return "-" if self._has_time and mood.chance(50) else f"- arrival={_clock(minute)}"
        self._has_time = True
        if mood.rarely(20, "late"):
            return f"{_clock(minute)} arrival={_clock(minute + 5 * mood.integer(-6, 10))}"
        return _clock(minute)

    def _key(self, xml: str) -> tuple[str, str]:
        """Return the key of a document and its text, which may be that of an earlier one."""
        is_keyed = self._mood.rarely(15, "key")
        if not is_keyed and not (self._mood.has_revisions and self._mood.chance(80)):
            return "", xml
        key = self._mood.choice(KEYS)
        xml = self._keyed.setdefault(key, xml) if self._mood.chance(40) else xml
        return f" key={key}", xml

    def _element(self, depth: int) -> str:
        mood = self._mood
        name = "i" if depth == 0 and not mood.rarely(10) else mood.choice(NAMES)
        attributes = "".join(
            f' {attribute}="{self._value()}"'
            for attribute in ATTRIBUTES
            if mood.chance(70 if mood.is_about("axis") else 25)
        )
        tag = name
        if mood.rarely(4, "namespace") and (depth > 0 or mood.is_wild):
            prefix, uri = mood.choice(NAMESPACES)
            tag, attributes = f"{prefix}:{name}", f'{attributes} xmlns:{prefix}="{uri}"'
        if depth > 0 and not (name in "ip" and mood.chance(80)):
            content = self._value(name)
        else:
            content = self._contents(depth)
        return f"<{tag}{attributes}>{content}</{tag}>"

    def _contents(self, depth: int) -> str:
        """Return what an element has: little where one value is to decide."""
        first, width = "", self._mood.integer(2, 3 if self._mood.is_about("nested") else 5)
        if self._mood.is_about("function"):
            first, width = f"<c>{self._value()}</c>", self._mood.integer(0, 1)
        elif self._mood.is_about("empty", "condition", "residual", "parameter"):
            first = f"<c>{self._value()}</c><t>{self._value('t')}</t>"
            width = self._mood.integer(0, 1)
        return first + "".join(self._content(depth) for _ in range(width))

    def _content(self, depth: int) -> str:
        if depth < 2 and not self._mood.rarely(10):
            return self._element(depth + 1)
        return self._mood.choice((self._value(), "<!-- no -->", "x<!-- no -->y"))

    def _value(self, name: str = "") -> str:
        mood = self._mood
        if mood.is_about("empty") and mood.chance(40):
            return ""
        if mood.is_about("residual") and name == "t" and mood.chance(80):
            return mood.choice(NUMERALS)
        if self._words and mood.chance(75):
            return mood.choice(self._words)
        return mood.choice(RARE if mood.rarely(25) else COMMON)


def _clock(minute: int) -> str:
    return f"{max(minute, 0) // 60:02}:{max(minute, 0) % 60:02}"
