"""What matches cost, as it is noted while they are made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from broker.matching.boxes.columns import Ints
from broker.matching.costs.blocks import Account
from broker.matching.costs.budget import Tally

__all__ = ["PaymentColumns", "Payments", "Price"]


class Price(NamedTuple):
    """What each of some matches costs, `kept` of it until the commit.

    They read `leaves`, and `readings` say at what cost; `most` is what a match costs where it is
    the first of its account that reads them.
    """

    most: int
    kept: int
    cost: int
    leaves: Sequence[int]
    readings: Sequence[tuple[int, int]]

    def tell(self, tally: Tally, docid: int, newest: int) -> None:
        """Charge a tally with a match at a position, as far as it counts."""
        if docid < tally.limit:
            account = Account(docid, newest)
            cost = self.cost
            for leaf, (first, again) in zip(self.leaves, self.readings, strict=False):
                cost += first if tally.reads(account, leaf) else again
            tally.pay(account, cost, self.kept)


class PaymentColumns(NamedTuple):
    """Matches that are paid for, in columns: by which query, where each stands, what it costs.

    `price` returns the price of one of them.
    """

    which: Ints
    docids: Ints
    newest: Ints
    most: Ints
    kept: Ints
    price: Callable[[int], Price]


class Payments:
    """What matches cost, in the order in which they are made."""

    def __init__(self) -> None:
        self._payers: list[list[int]] = []
        self._places: list[tuple[int, int]] = []
        self._prices: list[Price] = []
        self._columns: list[PaymentColumns] = []

    def add(self, payers: list[int], docid: int, newest: int, price: Price) -> None:
        """Take matches of one price.

        More of `payers`, queries by number, may come later, before `add_all` and `columns`.
        """
        self._payers.append(payers)
        self._places.append((docid, newest))
        self._prices.append(price)

    def add_all(self, columns: PaymentColumns) -> None:
        """Take matches in columns."""
        self._put_in_columns()
        self._columns.append(columns)

    def columns(self) -> Sequence[PaymentColumns]:
        """Return all that was taken."""
        self._put_in_columns()
        return self._columns

    def _put_in_columns(self) -> None:
        if not self._prices:
            return
        payers, places, prices = self._payers, self._places, self._prices
        self._payers, self._places, self._prices = [], [], []
        which = np.array([*chain.from_iterable(payers)], np.int64)
        of_row = np.repeat(np.arange(len(payers)), [*map(len, payers)])
        amounts = np.array([(price.most, price.kept) for price in prices], np.int64)
        docids, newest = np.array(places, np.int64)[of_row].T
        most, kept = amounts[of_row].T
        own = (which, docids, newest, most, kept)
        self._columns.append(PaymentColumns(*own, lambda row: prices[of_row[row]]))
