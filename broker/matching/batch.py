"""The batch in hand: all that is found and spent in it, made when it begins and then dropped."""

from __future__ import annotations

from dataclasses import dataclass, field

from broker.documents.document import Document
from broker.matching.costs.accounts import Accounts
from broker.matching.match import FoundMatch
from broker.matching.outcomes.gathered import Gathered
from broker.matching.outcomes.giving import Giving
from broker.matching.rendering.trees import Trees
from broker.matching.rules.acting import Acting
from broker.matching.rules.candidates import RuleCandidates
from broker.tables.store import TableVersions

__all__ = ["MatchingBatch"]


@dataclass
class MatchingBatch:
    """The batch in hand: the trees of its documents, and what has been found in it.

    Matches that ask tables are `candidates` first, which `acting` runs and which leave `versions`
    of rows; those of statements with rows or limits are `gathered`, of which `giving` gives some.
    """

    trees: Trees
    accounts: Accounts
    candidates: RuleCandidates
    gathered: Gathered
    versions: TableVersions
    acting: Acting
    giving: Giving
    published: list[Document] = field(default_factory=list)
    matches: list[FoundMatch] = field(default_factory=list)

    @property
    def is_known(self) -> bool:
        """Whether its matches are known from an earlier life.

        Then only tuples of inner operators and published documents are found again.
        """
        return self.accounts.is_known
