"""The words that boxes look for in texts, and how many boxes look for each."""

from __future__ import annotations

from xpath_eval.wordindex import WordIndex
from xscl.evaluation import values_of_optional
from xscl.functions import to_double

__all__ = ["SoughtWords", "spelled"]


class SoughtWords:
    """The words that boxes of a form look for at one place, each with how many do.

    At a place of several values it is looked in each of them; with `=` the words are numbers.
    """

    def __init__(self, function: str, *, is_of_several: bool = False) -> None:
        self._is_of_several = is_of_several
        self._function = function
        self._index = WordIndex[str]()
        self._counts: dict[str, int] = {}

    def add(self, word: str) -> None:
        """Look for a word."""
        count = self._counts.get(word, 0)
        self._counts[word] = count + 1
        if not count and self._function != "=":
            self._index.add(self._function, word, word)

    def remove(self, word: str) -> None:
        """Undo one `add`."""
        self._counts[word] -= 1
        if not self._counts[word]:
            del self._counts[word]
            if self._function != "=":
                self._index.remove(self._function, word, word)

    def found(self, text: str) -> list[str]:
        """Return the words that a text has."""
        texts = map(str, values_of_optional(text)) if self._is_of_several else (text,)
        if self._function == "=":
            return sorted(self._counts.keys() & {spelled(to_double(each)) for each in texts})
        words: set[str] = set()
        for each in texts:
            self._index.find(each, words)
        return sorted(words)


def spelled(number: float) -> str:
    """Return a number as a text that equal numbers have in common; zeros of both signs are one."""
    return repr(number + 0.0)
