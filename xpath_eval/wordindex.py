"""Many words, looked for in a text in one pass.

`contains`, `starts-with` and `ends-with` with constants are all questions to one Aho-Corasick
automaton (Aho and Corasick, CACM 1975): an occurrence at the start, or at the end, answers those
two.  The cost of a text is its length and the words found in it, not the words looked for.

An automaton cannot grow, so new words wait in a small one, which is built again for each change
that is followed by a search, until there are as many of them as of the old; a removed word stays
in its automaton with nobody interested in it.  So adding words one by one costs O(log n) each.
"""

from __future__ import annotations

from collections.abc import Iterator

import ahocorasick

__all__ = ["WordIndex"]

FRESH_MIN = 256
"""So few words are always built at once: about 0.1 ms."""


class _Word:
    """Who looks for one word: anywhere, at the start, at the end."""

    __slots__ = ("anywhere", "at_end", "at_start", "size")

    def __init__(self, word: str) -> None:
        self.size = len(word)
        self.anywhere: list[int] = []
        self.at_start: list[int] = []
        self.at_end: list[int] = []

    def of(self, function: str) -> list[int]:
        """Return who looks for it by a function of XPath."""
        if function == "contains":
            return self.anywhere
        return self.at_start if function == "starts-with" else self.at_end

    def __bool__(self) -> bool:
        return bool(self.anywhere or self.at_start or self.at_end)


class WordIndex:
    """Words, each with the numbers of those who look for it."""

    def __init__(self) -> None:
        self._words: dict[str, _Word] = {}
        self._built: list[dict[str, _Word]] = []
        self._automata: list[ahocorasick.Automaton] = []
        self._fresh: dict[str, _Word] = {}
        self._dead = 0

    def __len__(self) -> int:
        return len(self._words)

    def add(self, function: str, word: str, number: int) -> None:
        """Let `number` look for a word by `contains`, `starts-with` or `ends-with`."""
        entry = self._words.get(word)
        if entry is None:
            entry = self._words[word] = self._fresh[word] = _Word(word)
        entry.of(function).append(number)

    def remove(self, function: str, word: str, number: int) -> None:
        """Undo `add`."""
        entry = self._words[word]
        entry.of(function).remove(number)
        if not entry:
            del self._words[word]
            if self._fresh.pop(word, None) is None:
                self._dead += 1

    def find(self, text: str) -> set[int]:
        """Return all who look for a word that the text has, where they look for it."""
        found: set[int] = set()
        if not self._words:
            return found
        self._build()
        empty = self._words.get("")
        if empty is not None:
            found.update(empty.anywhere, empty.at_start, empty.at_end)
        last = len(text) - 1
        for automaton in self._automata:
            for end, word in automaton.iter(text):
                found.update(word.anywhere)
                if word.at_start and end == word.size - 1:
                    found.update(word.at_start)
                if word.at_end and end == last:
                    found.update(word.at_end)
        return found

    def _build(self) -> None:
        if self._dead > len(self._words):
            self._built, self._automata, self._dead = [], [], 0
            self._fresh = dict(self._words)
        if not self._fresh:
            return
        # Sizes at least double from one automaton to the one before it.
        words = self._fresh
        while self._built and len(self._built[-1]) < max(2 * len(words), FRESH_MIN):
            words = {**self._built.pop(), **words}
            self._automata.pop()
        self._built.append(words)
        self._automata.append(_automaton(words))
        self._fresh = {}


def _automaton(words: dict[str, _Word]) -> ahocorasick.Automaton:
    automaton = ahocorasick.Automaton()
    for word, entry in _alive(words):
        automaton.add_word(word, entry)
    if len(automaton):
        automaton.make_automaton()
        return automaton
    return _Nothing()


def _alive(words: dict[str, _Word]) -> Iterator[tuple[str, _Word]]:
    return ((word, entry) for word, entry in words.items() if word and entry)


class _Nothing:
    """Stands where there is no word: the library refuses to search for none."""

    def iter(self, _: str) -> tuple[()]:
        return ()
