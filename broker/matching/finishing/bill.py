"""What queries are to be charged with for what a shard has made, which knows no budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from broker.matching.boxes.columns import Ints
from broker.matching.costs.budget import Tally
from broker.matching.costs.charges import Amounts, Charges
from broker.matching.costs.commoncounts import Counted
from broker.matching.fewuses import distinct_rows
from joins import UNBOUNDED

__all__ = ["Bill", "SummedCharges"]


@dataclass(frozen=True)
class SummedCharges(Charges):
    """Charges that are within the bounds of the budget: no tally is ever told them."""

    sums: Amounts

    @property
    def amounts(self) -> Amounts:
        """What each adds to sums."""
        return self.sums

    def tell(self, tally: Tally, own: Ints) -> None:
        """Charge a tally with some."""
        raise AssertionError(f"what {tally.query} is charged with was within its budget")

    @classmethod
    def of(cls, parts: Sequence[Charges]) -> SummedCharges:
        """Return charges as one for each query, document and newest document."""
        names: dict[str, int] = {}
        which = [_renumbered(part, names)[part.which] for part in parts]
        places = [
            np.concatenate([np.zeros(0, np.int64), *columns])
            for columns in (
                which,
                [part.docids for part in parts],
                [part.newest for part in parts],
            )
        ]
        (own, docids, newest), inverse = distinct_rows(places)
        nothing = np.zeros((0, len(Amounts._fields)), np.int64)
        rows = np.concatenate([nothing, *(np.stack(part.amounts, axis=1) for part in parts)])
        sums = np.zeros((len(own), rows.shape[1]), np.int64)
        np.add.at(sums, inverse, rows)
        return cls([*names], own, docids, newest, Amounts(*sums.T))


def _renumbered(charges: Charges, names: dict[str, int]) -> Ints:
    """Return the number of each query of charges among `names`, which grow."""
    return np.array([names.setdefault(each, len(names)) for each in charges.queries], np.int64)


class Bill:
    """The accounts of queries that nobody stops: what they are charged with is noted."""

    is_known = False
    step = 0

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.charges: list[Charges] = []

    def of(self, query: str) -> Tally:
        """Return a query's tally."""
        raise AssertionError(f"{query} has no tally here")

    def opened(self, query: str) -> Tally | None:
        """Return a query's tally if it has one already."""

    def limit_of(self, query: str) -> int:
        """Return the first document of which nothing counts for a query."""
        return UNBOUNDED

    def stopped(self) -> Mapping[str, int]:
        """Return the limits of the queries that are over their budget."""
        return {}

    def charge(self, charges: Charges) -> None:
        """Charge queries with what they have found, or with matches made of it."""
        self.charges.append(charges)

    def hand_on(self, counted: Counted) -> None:
        """Count tuples of a common stream for the queries that have them."""
        raise AssertionError("tuples are not handed on here")
