"""Words and regular expressions, each looked for in a text with all others.

Words are found in one pass (`xpath_eval.wordindex`), and so are the literals that expressions need
(`xscl.requiredliterals`): an expression is run where a text has one of its literals.  What needs
none, as `[a-z]+`, is run on each text, together with some others (`xpath_eval.expressionsets`).
Who looks for one of several things (`xscl.disjunctions`) is found by any of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from xpath_eval.comparedvalues import ComparedValues
from xpath_eval.expressionsets import ExpressionSets
from xpath_eval.wordindex import WordIndex
from xscl.disjunctions import OperandTest, Together, holds_of, read_disjunction
from xscl.functions import holds, to_double
from xscl.patterns import Pattern, PatternError, compile_pattern
from xscl.prefilters import tag, values_by_place
from xscl.requiredliterals import required_literals
from xscl.texttests import EITHER, REFUTED, TEXT_TESTS

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
    """What is looked for in texts by operators of `xscl.texttests.TEXT_TESTS`, and by whom.

    Each of several things may be one that is compared, and of an operand of its own.
    """

    def __init__(self) -> None:
        self._words = WordIndex[T]()
        self._expressions: dict[tuple[str, str], _Expression[T]] = {}
        self._literals = WordIndex[_Expression[T]]()
        self._folded = WordIndex[_Expression[T]]()
        self._without = ExpressionSets[_Expression[T]]()
        self._compared = ComparedValues[T]()
        self._of_operands: dict[str, TextIndex[T]] = {}
        self._combined: dict[T, list[OperandTest | Together]] = {}

    def __len__(self) -> int:
        own = len(self._words) + len(self._expressions) + len(self._compared)
        return own + sum(map(len, self._of_operands.values()))

    def add(self, operator: str, sought: str, who: T) -> None:
        """Let somebody look for a word, or a regular expression, or one of several things."""
        if operator == EITHER:
            tests = read_disjunction(sought)
            for place, own, data in map(_first, tests):
                self._of_operand(place)._add(own, data, who)
            if any(isinstance(each, Together) for each in tests):
                self._combined[who] = tests
            return
        if operator == REFUTED:
            self._compared.add(operator, to_double(sought), who)
            return
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
        if operator == EITHER:
            for place, own, data in map(_first, read_disjunction(sought)):
                self._of_operand(place)._remove(own, data, who)
            self._combined.pop(who, None)
            return
        if operator == REFUTED:
            self._compared.remove(operator, to_double(sought), who)
            return
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

    def _add(self, operator: str, data: str | float, who: T) -> None:
        """Let somebody look for a text, or compare with a value."""
        if operator in TEXT_TESTS:
            self.add(operator, str(data), who)
        else:
            self._compared.add(operator, data, who)

    def _remove(self, operator: str, data: str | float, who: T) -> None:
        if operator in TEXT_TESTS:
            self.remove(operator, str(data), who)
        else:
            self._compared.remove(operator, data, who)

    def _of_operand(self, place: int) -> TextIndex[T]:
        """Return what is looked for in values of one of several operands; of the only one all."""
        if place < 0:
            return self
        own = self._of_operands.get(tag(place))
        if own is None:
            own = self._of_operands[tag(place)] = TextIndex()
        return own

    def _run_on_each_text(self, expression: _Expression[T]) -> None:
        pattern = expression.compiled()
        if pattern is not None:
            self._without.add(expression, pattern)

    def _index_of(self, flags: str) -> WordIndex[_Expression[T]]:
        return self._folded if "i" in flags else self._literals

    def found(self, texts: Sequence[str]) -> set[T]:
        """Return all who look for something that some of a node's texts have."""
        found: set[T] = set()
        for text in texts:
            self._find(text, found)
        if found and self._combined:
            values = values_by_place(texts)
            found -= {who for who in found if not self._is_met(who, values)}
        return found

    def has_any(self, texts: Sequence[str]) -> bool:
        """Return whether some of the texts has anything that somebody looks for."""
        if self._combined:
            return bool(self.found(texts))
        return any(map(self._has_any, texts))

    def _is_met(self, who: T, values: Mapping[int, Sequence[str]]) -> bool:
        """Return whether all that must hold together does, for somebody who was found."""
        tests = self._combined.get(who)
        return tests is None or holds_of(tests, values)

    def _find(self, text: str, found: set[T]) -> None:
        if len(self._words):
            self._words.find(text, found)
        if self._expressions:
            for expression in self._fitting(text):
                found.update(expression.who)
        if len(self._compared):
            found.update(*self._compared.passed(text))
        if (own := self._of_operands.get(text[:1])) is not None:
            own._find(text[1:], found)

    def _has_any(self, text: str) -> bool:
        if len(self._words):
            found: set[T] = set()
            self._words.find(text, found)
            if found:
                return True
        if self._expressions and any(True for _ in self._fitting(text)):
            return True
        if len(self._compared) and any(self._compared.passed(text)):
            return True
        own = self._of_operands.get(text[:1])
        return own is not None and own._has_any(text[1:])

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


def _first(test: OperandTest | Together) -> tuple[int, str, str | float]:
    """Return the test by which somebody is found: the place of its operand, how, and the data."""
    first = test if isinstance(test, OperandTest) else test.all_of[0]
    assert isinstance(first.data, (str, float)), "it was read"
    return first.place, first.operator, first.data
