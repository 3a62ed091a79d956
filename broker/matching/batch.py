"""The batch in hand: all that is found and spent in it, made when it begins and then dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from broker.documents.document import Document
from broker.matching.costs.accounts import Accounts
from broker.matching.finishing.bill import SummedCharges
from broker.matching.finishing.finisher import FinishedMatches
from broker.matching.match import FoundMatch
from broker.matching.outcomes.gathered import Gathered
from broker.matching.outcomes.giving import Giving
from broker.matching.rendering.trees import Trees
from broker.matching.rules.acting import Acting
from broker.matching.rules.candidates import RuleCandidates
from broker.tables.store import TableVersions

__all__ = ["Documents", "MatchingBatch"]


Documents = Callable[[Iterable[int]], Mapping[int, bytes]]
"""Returns the XML of documents from outside, by docid."""


@dataclass
class MatchingBatch:
    """The batch in hand: texts and trees of its documents, and what has been found in it.

    Matches that ask tables are `candidates` first, which `acting` runs and which leave `versions`
    of rows; those of statements with rows or limits are `gathered`, of which `giving` gives some.
    """

    documents: Documents
    trees: Trees
    accounts: Accounts
    candidates: RuleCandidates
    gathered: Gathered
    versions: TableVersions
    acting: Acting
    giving: Giving
    published: list[Document] = field(default_factory=list)
    matches: list[FoundMatch] = field(default_factory=list)

    def take(self, parts: Sequence[FinishedMatches | None]) -> bool:
        """Take the matches that shards have made, if budgets surely allow all of them."""
        if None in parts:
            return False
        made = [part for part in parts if part is not None and len(part.charges.which)]
        if not made:
            return True
        charges = SummedCharges.of([part.charges for part in made])
        if not self.accounts.admits(charges):
            return False
        self.accounts.charge(charges)
        self.matches += (match for part in made for match in part.matches())
        return True

    @property
    def is_known(self) -> bool:
        """Whether its matches are known from an earlier life.

        Then only tuples of inner operators and published documents are found again.
        """
        return self.accounts.is_known
