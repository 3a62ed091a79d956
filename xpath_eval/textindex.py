"""Words and regular expressions, each looked for in a text with all others.

Words are found in one pass (`xpath_eval.wordindex`), and so are the literals that expressions need
(`xscl.requiredliterals`): an expression is run where a text has one of its literals.  What needs
none, as `[a-z]+`, is run on each text.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from xpath_eval.wordindex import WordIndex
from xscl.functions import holds
from xscl.requiredliterals import required_literals

__all__ = ["TextIndex"]

T = TypeVar("T")


class _Expression(Generic[T]):
    """A regular expression with its flags, and who looks for it."""

    __slots__ = ("_flags", "_pattern", "literals", "who")

    def __init__(self, pattern: str, flags: str) -> None:
        self._pattern = pattern
        self._flags = flags
        self.literals = required_literals(pattern, flags)
        self.who: list[T] = []

    def fits(self, text: str) -> bool:
        return holds("matches", text, self._pattern, self._flags)


class TextIndex(Generic[T]):
    """What is looked for in texts by operators of `xscl.texttests.TEXT_TESTS`, and by whom."""

    def __init__(self) -> None:
        self._words = WordIndex[T]()
        self._expressions: dict[tuple[str, str], _Expression[T]] = {}
        self._literals = WordIndex[_Expression[T]]()
        self._folded = WordIndex[_Expression[T]]()
        self._without: dict[_Expression[T], None] = {}

    def __len__(self) -> int:
        return len(self._words) + len(self._expressions)

    def add(self, operator: str, sought: str, who: T) -> None:
        """Let somebody look for a word, or a regular expression."""
        function, _, flags = operator.partition("/")
        if function != "matches":
            self._words.add(function, sought, who)
            return
        expression = self._expressions.get((flags, sought))
        if expression is None:
            expression = self._expressions[flags, sought] = _Expression[T](sought, flags)
            for literal in expression.literals:
                self._index_of(flags).add("contains", literal, expression)
            if not expression.literals:
                self._without[expression] = None
        expression.who.append(who)

    def remove(self, operator: str, sought: str, who: T) -> None:
        """Undo `add`."""
        function, _, flags = operator.partition("/")
        if function != "matches":
            self._words.remove(function, sought, who)
            return
        expression = self._expressions[flags, sought]
        expression.who.remove(who)
        if not expression.who:
            del self._expressions[flags, sought]
            for literal in expression.literals:
                self._index_of(flags).remove("contains", literal, expression)
            self._without.pop(expression, None)

    def _index_of(self, flags: str) -> WordIndex[_Expression[T]]:
        return self._folded if "i" in flags else self._literals

    def find(self, text: str, found: set[T]) -> None:
        """Add all who look for something that the text has."""
        if len(self._words):
            self._words.find(text, found)
        if self._expressions:
            for expression in self._candidates(text):
                if expression.fits(text):
                    found.update(expression.who)

    def has_any(self, text: str) -> bool:
        """Return whether the text has anything that somebody looks for."""
        if len(self._words):
            found: set[T] = set()
            self._words.find(text, found)
            if found:
                return True
        if self._expressions:
            for expression in self._candidates(text):
                if expression.fits(text):
                    return True
        return False

    def _candidates(self, text: str) -> set[_Expression[T]]:
        """Return the expressions that may fit a text."""
        found = set(self._without)
        if len(self._literals):
            self._literals.find(text, found)
        if len(self._folded):
            self._folded.find(text.casefold(), found)
        return found
