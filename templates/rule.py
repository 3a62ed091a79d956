"""A conjunction that is asked of rows, taken apart: what columns say, and what is called."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from templates.decision import NOTHING, Conjunction
from xscl.evaluation import Condition, compile_conjunction
from xscl.functions import to_double
from xscl.query import Residual, VariableValue

__all__ = ["OPERATORS", "Condition", "Rule", "numbers_of"]

OPERATORS = ("=", "!=", "<", "<=", ">", ">=")
"""Operators of comparisons, by number: from the third on they compare numbers."""


class Rule:
    """A conjunction: `joins`, `comparisons` of two terms, and a `condition` of what is left.

    A comparison is a term, the number of its operator, and a term.
    """

    def __init__(self, asked: Conjunction) -> None:
        self.joins = asked.joins
        self.comparisons: list[tuple[str, int, str]] = []
        others: list[Residual] = []
        for each in asked.rest.residuals:
            left, right = each.left, each.right
            if isinstance(left, VariableValue) and isinstance(right, VariableValue):
                operator = OPERATORS.index(each.operator)
                self.comparisons.append((left.variable, operator, right.variable))
            else:
                others.append(each)
        rest = replace(asked.rest, residuals=tuple(others))
        self.condition = None if rest == NOTHING else compile_conjunction(rest)

    @property
    def has_numbers(self) -> bool:
        """Whether it compares numbers."""
        return any(operator > 1 for _, operator, _ in self.comparisons)


def numbers_of(values: Iterable[str | None]) -> list[float]:
    """Return values as `xs:double`; what is no number is NaN."""
    return [to_double(value or "") for value in values]
