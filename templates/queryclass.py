"""A query class: queries that differ only in data share one, and one evaluation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

from templates.chaindecision import DecidedChains
from templates.decision import Decided
from templates.rundecision import DecidedRuns
from templates.template import Template, TemplateRow
from xscl.measures import sets_of
from xscl.query import Call

__all__ = ["QueryClass", "SetKind", "Sides", "SimilarPair"]

Sides = tuple[frozenset[int], frozenset[int]]
"""Variables of the left and of the right side of a class."""


class SetKind(NamedTuple):
    """What sets are made of: the values of a variable, by a call of `words` or the like of `.`."""

    variable: int
    make: Call

    def sets(self, text: str) -> list[frozenset[str]]:
        """Return the sets of a value."""
        return sets_of(self.make, text)


class SimilarPair(NamedTuple):
    """A similarity join of a class: two sets, and their measure.

    `is_turned` says that the right set stands first in the measure.
    """

    measure: str
    left: SetKind
    right: SetKind
    is_turned: bool


@dataclass(slots=True)
class QueryClass:
    """The common part of queries that differ only in window, constants, SELECT and subscriber.

    No field changes: to say so to Python would cost more than all else that makes one.
    It is a template, its row, whether the operator is symmetric (JOIN), and the stratum that the
    operator belongs to.  A class whose tuples are decided says so: they are then no join.  Of a
    class without a value join, `similar` are the similarity joins, in the order of the text: it is
    paired by the first of them.  Their thresholds are data.  Classes that differ in `apart` alone
    are kept from being one.
    """

    template: Template
    row: TemplateRow
    is_symmetric: bool
    stratum: int
    decided: Decided | DecidedRuns | DecidedChains | None = None
    similar: tuple[SimilarPair, ...] = ()
    apart: tuple[str, ...] = ()
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Each use of a class looks it up, and it is large.
        own = (self.template, self.row.variables, self.is_symmetric, self.stratum)
        self._hash = hash((own, self.decided, self.similar, self.apart))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[QueryClass], tuple[Any, ...]]:
        # Strings have other hashes in another process.
        return QueryClass, tuple([getattr(self, each.name) for each in fields(self) if each.init])

    def value_pairs(self) -> Iterator[tuple[int, int]]:
        """Yield the pairs of variables whose values are joined."""
        for left, right in self.template.value_joins:
            yield self.row.variables[left], self.row.variables[right]

    def spelled_in_no_stratum(self) -> str:
        """Return the text of `in_no_stratum`; streams and shards are named by it, for good."""
        row = f"TemplateRow(variables={self.row.variables!r})"
        return (
            f"QueryClass(template={self.template.spelled}, row={row},"
            f" is_symmetric={self.is_symmetric!r}, stratum=-1, decided={self.decided!r},"
            f" similar={self.similar!r}, apart={self.apart!r})"
        )

    def in_no_stratum(self) -> QueryClass:
        """Return the class without its stratum, which the streams that it reads decide."""
        return replace(self, stratum=-1)

    def asked(self) -> Sides:
        """Return, by side, the variables under which an instance must have a value to be paired.

        Without a value join it is all of the side's variables, with or without a value.
        """
        variable, (left, right) = self.row.variables.__getitem__, self.template.asked
        return frozenset(map(variable, left)), frozenset(map(variable, right))

    def sides(self) -> set[tuple[int, ...]]:
        """Return the different sides that an instance may fill; a block alone remembers none."""
        return self.retained() if self.template.asked[1] else set()

    def retained(self) -> set[tuple[int, ...]]:
        """Return the sides whose instances stay where tuples are handed on, each in order."""
        variables = self.row.variables
        return {
            (variables[side[0]],) if len(side) == 1 else tuple(sorted({variables[i] for i in side}))
            for side in self.template.asked
            if side
        }

    def compared(self) -> set[int]:
        """Return the variables whose values the class joins or tests."""
        return {*map(self.row.variables.__getitem__, self.template.compared)}
