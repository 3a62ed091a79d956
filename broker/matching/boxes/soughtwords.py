"""What boxes look for in texts, words and regular expressions, and how many look for each."""

from __future__ import annotations

from collections.abc import Iterable

from xpath_eval.textindex import TextIndex
from xscl.evaluation import values_of_optional
from xscl.functions import to_double
from xscl.prefilters import spell_number

__all__ = ["SoughtWords"]


class SoughtWords:
    """The words that boxes of a form look for at one place, each with how many do.

    They are what `operator` looks for in a text, regular expressions too; with `=` they are
    numbers.  At a place of several values it is looked in each of them.
    """

    def __init__(self, operator: str, *, is_of_several: bool = False) -> None:
        self._is_of_several = is_of_several
        self._operator = operator
        self._index = TextIndex[str]()
        self._counts: dict[str, int] = {}

    def add_all(self, words: Iterable[str]) -> None:
        """Look for words, once more each."""
        counts, new = self._counts, list[str]()
        for word in words:
            count = counts.get(word, 0)
            counts[word] = count + 1
            if not count:
                new.append(word)
        if self._operator != "=":
            for word in new:
                self._index.add(self._operator, word, word)

    def remove_all(self, words: Iterable[str]) -> None:
        """Look for words once less each."""
        for word in words:
            self._counts[word] -= 1
            if not self._counts[word]:
                del self._counts[word]
                if self._operator != "=":
                    self._index.remove(self._operator, word, word)

    def found(self, text: str) -> list[str]:
        """Return the words that a text has."""
        texts = [*map(str, values_of_optional(text))] if self._is_of_several else [text]
        if self._operator == "=":
            return sorted(self._counts.keys() & {spell_number(to_double(each)) for each in texts})
        return sorted(self._index.found(texts))
