"""Many words, looked for in a text in one pass.

`contains`, `starts-with`, `ends-with` and `=` with constants are all questions to one Aho-Corasick
automaton (Aho and Corasick, CACM 1975): an occurrence at the start, at the end, or at both answers
those three.  The cost of a text is its length and the words found in it, not the words looked for.

An automaton cannot grow, so new words wait in a small one, which is built again for each change
that is followed by a search, until there are as many of them as of the old; a removed word stays
in its automaton with nobody interested in it.  So adding words one by one costs O(log n) each.

When the automaton is built, states at which words end change places with those that were made
first, one after the other, and then the circles that come of it are followed from each of their
members.  Where nearly every state ends a word, as with words that begin each other, there are few
circles and they are long: 100,000 words took 4 s, a million 500.  So a word that no text has stands
in front, whose states are as many as there may be circles: with an eighth of the words, each is
followed eight steps or so, and a million words take half a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, NamedTuple, TypeVar

from ahocorasick_rs import AhoCorasick

__all__ = ["WordIndex"]

T = TypeVar("T")

_IN_NO_TEXT = "\0"
"""A character that XML has no way to write."""

_WORDS_A_STATE = 8

_NO_FUNCTION = ""


class _Several(Generic[T]):
    """All who look for one word: anywhere, at the start, at the end, as the whole text."""

    __slots__ = ("anywhere", "as_whole", "at_end", "at_start")

    def __init__(self) -> None:
        self.anywhere: list[T] = []
        self.as_whole: list[T] = []
        self.at_start: list[T] = []
        self.at_end: list[T] = []

    def of(self, function: str) -> list[T]:
        """Return who looks for it by an operator of `xscl.texttests`."""
        if function == "contains":
            return self.anywhere
        if function == "starts-with":
            return self.at_start
        return self.as_whole if function == "equals" else self.at_end

    def __bool__(self) -> bool:
        return bool(self.anywhere or self.at_start or self.at_end or self.as_whole)


class _Word(Generic[T]):
    """Who looks for one word: as mostly but one, by a function, who needs no lists; or several."""

    __slots__ = ("function", "several", "who")

    def __init__(self, function: str, who: T) -> None:
        self.function = function
        self.who = who
        self.several: _Several[T] | None = None

    def add(self, function: str, who: T) -> None:
        """Let somebody else look for it."""
        if self.several is None:
            self.several = _Several()
            self.several.of(self.function).append(self.who)
        self.several.of(function).append(who)

    def remove(self, function: str, who: T) -> None:
        """Let somebody look for it no more."""
        if self.several is None:
            self.function = _NO_FUNCTION
        else:
            self.several.of(function).remove(who)

    def __bool__(self) -> bool:
        return self.function != _NO_FUNCTION if self.several is None else bool(self.several)

    def find(self, start: int, end: int, size: int, found: set[T]) -> None:
        """Add who looks for it where it stands, in a text of a size."""
        several = self.several
        if several is None:
            function = self.function
            if (
                function == "contains"
                or (function == "starts-with" and start == 0)
                or (function == "ends-with" and end == size)
                or (function == "equals" and end - start == size)
            ):
                found.add(self.who)
            return
        found.update(several.anywhere)
        if start == 0:
            found.update(several.at_start)
        if end == size:
            found.update(several.at_end)
        if end - start == size:
            found.update(several.as_whole)


class WordIndex(Generic[T]):
    """Words, each with all that look for it.

    Fewer than `fresh_min` of them are always built at once: 256 in about 0.1 ms.
    """

    def __init__(self, fresh_min: int = 256) -> None:
        self._fresh_min = fresh_min
        self._words: dict[str, _Word[T]] = {}
        self._built: list[_Built[T]] = []
        # Words that are in no automaton, of which some may be gone, or stand here twice.
        self._fresh: list[str] = []
        self._gone = 0

    def __len__(self) -> int:
        return len(self._words)

    def add(self, function: str, word: str, who: T) -> None:
        """Let somebody look for a word by `contains`, `starts-with`, `ends-with` or `equals`."""
        entry = self._words.get(word)
        if entry is None:
            self._words[word] = _Word(function, who)
            self._fresh.append(word)
        else:
            entry.add(function, who)

    def remove(self, function: str, word: str, who: T) -> None:
        """Undo `add`."""
        entry = self._words[word]
        entry.remove(function, who)
        if not entry:
            del self._words[word]
            self._gone += 1

    def find(self, text: str, found: set[T]) -> None:
        """Add all who look for a word that the text has, where they look for it."""
        if self._fresh or self._gone > len(self._words):
            self._build()
        size = len(text)
        if (empty := self._words.get("")) is not None:
            for at in (0, size):
                empty.find(at, at, size, found)
        for _, entries, automaton in self._built:
            for i, start, end in automaton.find_matches_as_indexes(text, overlapping=True):
                if i:  # not what stands in front
                    entries[i - 1].find(start, end, size, found)

    def _build(self) -> None:
        if self._gone > len(self._words):
            self._built, self._gone = [], 0
            self._fresh = [*self._words]
        words = {word: self._words[word] for word in self._fresh if word in self._words}
        self._fresh = []
        if not words:
            return
        # Sizes at least double from one automaton to the one before it.
        while self._built and len(self._built[-1].words) < max(2 * len(words), self._fresh_min):
            earlier = self._built.pop()
            words = {**dict(zip(earlier.words, earlier.entries, strict=True)), **words}
        self._built.append(_Built.of(words))


class _Built(NamedTuple, Generic[T]):
    """An automaton with its words behind the one in front, and who looks for each."""

    words: list[str]
    entries: list[_Word[T]]
    automaton: AhoCorasick

    @classmethod
    def of(cls, words: Mapping[str, _Word[T]]) -> _Built[T]:
        """Return an automaton for words that somebody looks for."""
        alive = {word: entry for word, entry in words.items() if word and entry}
        in_front = _IN_NO_TEXT * (1 + len(alive) // _WORDS_A_STATE)
        return cls([*alive], [*alive.values()], AhoCorasick([in_front, *alive]))
