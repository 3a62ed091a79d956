"""Conditions of a node with the constants of all who share it, and the values that these test.

A condition that is written out in a block, `[price < 10]`, is data where that costs no tuple: the
node's **prefilter** has the path and the operator, and no constant, so statements that differ in
constants have one node.  Evaluation leaves out documents that none of them can want; whose a node
is, each one's box says, of the node's `Values`.  docs/tuples.md has the theory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from xscl.evaluation import optional_values
from xscl.functions import to_double
from xscl.path import Path, PathValue

__all__ = ["Admitted", "Prefilter", "Values", "ValuesKind"]


class ValuesKind(Enum):
    """What of several values is looked at."""

    ALL = "all"
    LEAST = "least"
    GREATEST = "greatest"


@dataclass(frozen=True, slots=True)
class Values:
    """The values that a path has at a node, as one: all of them, or a number by its text.

    The number is the least of them, or the greatest.  Where there is nothing, there is no value.
    """

    operand: PathValue
    kind: ValuesKind

    def of(self, values: Sequence[str]) -> tuple[str, ...]:
        """Return what several values come to."""
        if self.kind is ValuesKind.ALL:
            return (optional_values(values),) if values else ()
        numbers = [(number, value) for value in values if (number := to_double(value)) == number]
        if not numbers:
            return ()
        return ((min if self.kind is ValuesKind.LEAST else max)(numbers)[1],)


class Prefilter(NamedTuple):
    """A condition `path operator constant` of a node, for the constants of all who share the node.

    Documents in which no node fulfils it for any of them have no such node.  In all others it lets
    through all nodes: what a statement is charged for then does not depend on who shares it.
    """

    path: Path
    operator: str

    @property
    def values(self) -> Values:
        """The values that are held against a constant."""
        kind = {"<": ValuesKind.LEAST, ">": ValuesKind.GREATEST}.get(self.operator[0])
        return Values(PathValue(self.path), kind or ValuesKind.ALL)


Admitted = tuple[Prefilter, str | float]
"""A condition with the constant of one who shares the node."""
