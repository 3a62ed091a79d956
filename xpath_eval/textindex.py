"""Words and regular expressions, each looked for in a text with all others.

Words are found in one pass (`xpath_eval.wordindex`), and so are the literals that expressions need
(`xscl.requiredliterals`): an expression is run where a text has one of its literals.  What needs
none, as `[a-z]+`, is run on each text, together with some others (`xpath_eval.expressionsets`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from xpath_eval.expressionsets import ExpressionSets
from xpath_eval.wordindex import WordIndex
from xscl.functions import holds
from xscl.patterns import Pattern, PatternError, compile_pattern
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

    def compiled(self) -> Pattern | None:
        """Return the expression, None where it is none, which fits no text."""
        try:
            return compile_pattern(self._pattern, self._flags)
        except PatternError:
            return None

    def fits(self, text: str) -> bool:
        return holds("matches", text, self._pattern, self._flags)


class TextIndex(Generic[T]):
    """What is looked for in texts by operators of `xscl.texttests.TEXT_TESTS`, and by whom."""

    def __init__(self) -> None:
        self._words = WordIndex[T]()
        self._expressions: dict[tuple[str, str], _Expression[T]] = {}
        self._literals = WordIndex[_Expression[T]]()
        self._folded = WordIndex[_Expression[T]]()
        self._without = ExpressionSets[_Expression[T]]()

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
                self._run_on_each_text(expression)
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
            self._without.remove(expression)

    def _run_on_each_text(self, expression: _Expression[T]) -> None:
        pattern = expression.compiled()
        if pattern is not None:
            self._without.add(expression, pattern)

    def _index_of(self, flags: str) -> WordIndex[_Expression[T]]:
        return self._folded if "i" in flags else self._literals

    def find(self, text: str, found: set[T]) -> None:
        """Add all who look for something that the text has."""
        if len(self._words):
            self._words.find(text, found)
        if self._expressions:
            for expression in self._fitting(text):
                found.update(expression.who)

    def has_any(self, text: str) -> bool:
        """Return whether the text has anything that somebody looks for."""
        if len(self._words):
            found: set[T] = set()
            self._words.find(text, found)
            if found:
                return True
        return any(True for _ in self._fitting(text)) if self._expressions else False

    def _fitting(self, text: str) -> Iterator[_Expression[T]]:
        """Yield the expressions that fit a text."""
        found: set[_Expression[T]] = set()
        if len(self._literals):
            self._literals.find(text, found)
        if len(self._folded):
            self._folded.find(text.casefold(), found)
        for expression in found:
            if expression.fits(text):
                yield expression
        yield from self._without.fits(text)
