"""What those who find tuples and make matches ask of the accounts of queries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from broker.matching.costs.budget import Tally
from broker.matching.costs.charges import Charges
from broker.matching.costs.commoncounts import Counted

__all__ = ["Accounting"]


class Accounting(Protocol):
    """The accounts of queries in a batch; `accounts.Accounts` are those of an engine."""

    @property
    def is_known(self) -> bool:
        """Whether the matches of the batch are known."""

    @property
    def step(self) -> int:
        """The step in which what comes is counted (`Tally`)."""

    @property
    def bytes_max(self) -> int:
        """The bytes that the matches of one document may read and write."""

    def of(self, query: str) -> Tally:
        """Return a query's tally in this batch."""

    def opened(self, query: str) -> Tally | None:
        """Return a query's tally if it has one already: its charges are counted one by one."""

    def limit_of(self, query: str) -> int:
        """Return the first document of which nothing counts for a query."""

    def stopped(self) -> Mapping[str, int]:
        """Return the limits of the queries that are over their budget."""

    def charge(self, charges: Charges) -> None:
        """Charge queries with what they have found, or with matches made of it."""

    def hand_on(self, counted: Counted) -> None:
        """Count tuples of a common stream for the queries that have them."""
