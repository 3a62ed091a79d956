"""What a condition says of a node, whatever tree the node is one of.

This is XPath's meaning, node by node: predicates filter one after the other, positions count what
those before left, comparisons hold for some value.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from typing import Generic, TypeVar, assert_never

from xscl import functions
from xscl.arithmetic import COMPARE
from xscl.path import (
    And,
    Comparison,
    Condition,
    Exists,
    Literal,
    Not,
    Opaque,
    Or,
    Parameter,
    Path,
    Position,
    Step,
    StringTest,
    Value,
)

__all__ = ["HoldingOf"]

N = TypeVar("N", bound=Hashable)


class HoldingOf(ABC, Generic[N]):
    """Evaluates conditions at the nodes of one tree."""

    __slots__ = ()

    @abstractmethod
    def values(self, value: Value, node: N) -> Sequence[functions.Atom]:
        """Return the values of an operand at a node."""

    @abstractmethod
    def _origins(self, step: Step, context: N) -> Iterable[N]:
        """Yield the context, and where `//` stands before the step all nodes below it."""

    @abstractmethod
    def _axis(self, step: Step, context: N) -> Iterable[N]:
        """Yield what the axis and the node test of a step select."""

    @abstractmethod
    def _holds_opaque(self, condition: Opaque, node: N, position: int, size: int) -> bool:
        """Return whether a condition of XPath 1.0 holds."""

    def survivors(self, filters: Sequence[Condition], candidates: Sequence[N]) -> tuple[N, ...]:
        """Return the candidates that pass all filters, one filter after the other.

        The candidates are what one step selects from one context node, in document order.
        """
        nodes = tuple(candidates)
        for condition in filters:
            size = len(nodes)
            nodes = tuple(n for i, n in enumerate(nodes, 1) if self.holds(condition, n, i, size))
        return nodes

    def select(self, path: Path, context: N) -> list[N]:
        """Return the nodes that a relative path selects from a context node."""
        nodes = [context]
        for step in path.steps:
            nodes = list(dict.fromkeys(n for c in nodes for n in self._step(step, c)))
        return nodes

    def _step(self, step: Step, context: N) -> Iterable[N]:
        for origin in self._origins(step, context):
            found = self._axis(step, origin)
            yield from self.survivors(step.predicates, list(found)) if step.predicates else found

    def holds(self, condition: Condition, node: N, position: int = 1, size: int = 1) -> bool:
        """Return whether a condition holds at a node, which stands at a position among others."""
        match condition:
            case Exists(path):
                return bool(self.select(path, node))
            case Comparison(left, operator, right):
                assert isinstance(right, Literal)
                return functions.compare_literal(self.values(left, node), operator, right.value)
            case StringTest(function, value, argument, flags):
                assert isinstance(argument, Literal)
                return any(
                    functions.holds(function, each, argument.value, flags)
                    for each in self.values(value, node)
                )
            case Position():
                return _position_holds(condition, position, size)
            case And(conditions):
                return all(self.holds(c, node, position, size) for c in conditions)
            case Or(conditions):
                return any(self.holds(c, node, position, size) for c in conditions)
            case Not(inner):
                return not self.holds(inner, node, position, size)
            case Opaque(is_positional=True):
                return self._holds_opaque(condition, node, position, size)
            case Opaque():
                return self._holds_opaque(condition, node, 1, 1)
        assert_never(condition)


def _position_holds(condition: Position, position: int, size: int) -> bool:
    left: float = size if condition.is_size else position
    number = condition.number
    assert not isinstance(number, Parameter)  # they are put in before
    right = float(size - number if condition.of_last else number)
    return right == right and COMPARE[condition.operator](left, right)
