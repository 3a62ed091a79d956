"""What rows of contenders must have in common, and what is tested of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from joins.sequences.contender import Contender, Row
from templates.decision import Conjunction, TupleStream

__all__ = ["RowTest", "RowView", "Values", "keys_of", "values_of"]

Values = Mapping[str, str | None]
"""The values of a row by the names of its terms."""


@dataclass(frozen=True, slots=True)
class RowView:
    """Rows together, as conditions read them: no parameter is left in what is decided."""

    values: Values
    start_us: int
    end_us: int

    @property
    def parameters(self) -> Mapping[str, Any]:
        """No values."""
        return {}

    def value(self, name: str) -> str:
        """Return the value of a term."""
        value = self.values[name]
        assert value is not None
        return value


def values_of(stream: TupleStream, row: Row) -> dict[str, str | None]:
    """Return the values of a row by the names of its stream's terms."""
    return dict(zip(stream.terms, row.values, strict=True))


def keys_of(
    contender: Contender, stream: TupleStream, terms: Sequence[str]
) -> set[tuple[str, ...]]:
    """Return the values of some terms together in each row of a contender in a stream.

    The empty string joins nothing.
    """
    if not terms:
        return {()} if stream.name in contender.rows else set()
    places = [stream.terms.index(term) for term in terms]
    found: set[tuple[str, ...]] = set()
    for row in contender.rows.get(stream.name, ()):
        values = [row.values[place] for place in places]
        if all(values):
            found.add(tuple(value for value in values if value))
    return found


class RowTest:
    """Tests a conjunction on contenders' rows together."""

    def __init__(self, asked: Conjunction) -> None:
        self._joins = asked.joins
        self._rest = asked.compile()

    @property
    def is_by_key(self) -> bool:
        """Whether equal keys are all that it asks."""
        return self._rest is None

    def pairs(
        self,
        lefts: Iterable[tuple[Values, Row]],
        rights: Iterable[tuple[Values, Row]],
        interval_us: tuple[int, int],
    ) -> Iterator[tuple[Row, Row]]:
        """Yield the pairs of rows that it holds of; `interval_us` is that of both together."""
        for (of_left, left), (of_right, right) in product(lefts, list(rights)):
            if self.holds(of_left, of_right, interval_us):
                yield left, right

    def holds(self, left: Values, right: Values, interval_us: tuple[int, int]) -> bool:
        """Return whether it holds of two rows."""
        for a, b in self._joins:
            if not left[a] or left[a] != right[b]:
                return False
        if self._rest is None:
            return True
        return self._rest(RowView({**left, **right}, *interval_us))
