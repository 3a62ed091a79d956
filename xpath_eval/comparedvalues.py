"""Bounds and values that texts are compared with, all of them at once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from xscl.calculations import CALCULATED, passes_calculated
from xscl.disjunctions import OTHER_NUMBER
from xscl.functions import to_double
from xscl.solving import refutes
from xscl.texttests import REFUTED

__all__ = ["ComparedValues"]

T = TypeVar("T")

_PASSED: dict[str, Callable[[Sequence[float], float], slice]] = {
    "<": lambda bounds, number: slice(bisect_right(bounds, number), None),
    "<=": lambda bounds, number: slice(bisect_left(bounds, number), None),
    ">": lambda bounds, number: slice(bisect_left(bounds, number)),
    ">=": lambda bounds, number: slice(bisect_right(bounds, number)),
}
"""Which of some bounds, in ascending order, a number passes."""


class _OfOperator(Generic[T]):
    """The data of one operator, each with who compares texts with it."""

    __slots__ = ("_ordered", "who")

    def __init__(self) -> None:
        self.who: dict[Any, list[T]] = {}
        self._ordered: list[float] | None = None

    def add(self, data: str | float, who: T) -> None:
        own = self.who.get(data)
        if own is None:
            self.who[data] = [who]
            self._ordered = None
        else:
            own.append(who)

    def remove(self, data: str | float, who: T) -> None:
        own = self.who[data]
        own.remove(who)
        if not own:
            del self.who[data]
            self._ordered = None

    @property
    def ordered(self) -> list[float]:
        """The data in ascending order."""
        if self._ordered is None:
            self._ordered = sorted(self.who)
        return self._ordered


class ComparedValues(Generic[T]):
    """What texts are compared with by inequalities, `=` and `OTHER_NUMBER`, and `!=` as texts.

    A number that is `REFUTED` is passed by the comparisons that do not hold of it, and a comparison
    that is `CALCULATED` by the numbers that it holds of.
    """

    def __init__(self) -> None:
        self._by_operator: dict[str, _OfOperator[T]] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, operator: str, data: str | float, who: T) -> None:
        """Let somebody compare texts with a value; what is no number is passed by none."""
        if data == data:
            self._by_operator.setdefault(operator, _OfOperator()).add(data, who)
            self._size += 1

    def remove(self, operator: str, data: str | float, who: T) -> None:
        """Undo `add`."""
        if data == data:
            self._by_operator[operator].remove(data, who)
            self._size -= 1

    def passed(self, text: str) -> Iterator[Iterable[T]]:
        """Yield who compares with a value that a text passes, value by value."""
        number = to_double(text)
        for operator, compared in self._by_operator.items():
            who = compared.who
            if operator == "!=":
                yield from (own for data, own in who.items() if data != text)
            elif operator == CALCULATED:
                yield from (own for data, own in who.items() if passes_calculated(text, data))
            elif operator == REFUTED:
                yield from (own for data, own in who.items() if refutes(text, data))
            elif number != number:
                continue
            elif operator == "=":
                yield who.get(number, ())
            elif operator == OTHER_NUMBER:
                yield from (own for data, own in who.items() if data != number)
            else:
                ordered = compared.ordered
                yield from (who[data] for data in ordered[_PASSED[operator](ordered, number)])
