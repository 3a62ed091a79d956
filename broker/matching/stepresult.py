"""What an engine finds in a batch of documents: one value, from the engine to the outbox."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain

from broker.documents.document import Document
from broker.matching.costs.budget import Pause, Spent
from broker.matching.match import FoundMatch
from broker.matching.outcomes.kept import Note
from broker.tables.store import RowChange

__all__ = ["StepResult"]


@dataclass(frozen=True, slots=True)
class StepResult:
    """What a batch brought, in order: matches, documents published, dead letters.

    The newest document of a match is in the batch.  A dead letter is the docid of a document that
    could not be evaluated, with the reason.
    `rows` are the rows of tables that it changed, each as often as it did.
    `notes` are what statements with LIMIT and DISJOINT have given; notes that are not asked for
    any more at `notes_since_us` can go.
    `waves` is how many waves its transactions took, which batches have a part in.
    `pauses` are the queries that went over their budget, `spent` is what the others have found in
    the last block of documents.
    """

    matches: Sequence[FoundMatch] = ()
    published: Sequence[Document] = ()
    dead_letters: Sequence[tuple[int, str]] = ()
    pauses: Sequence[Pause] = ()
    spent: Sequence[Spent] = ()
    rows: Sequence[RowChange] = ()
    notes: Sequence[Note] = ()
    notes_since_us: int | None = None
    waves: int = field(default=0, compare=False)

    @classmethod
    def of_parts(cls, parts: Sequence[StepResult]) -> StepResult:
        """Return the result of a batch that was processed in parts, one after the other."""
        return cls(
            matches=list(chain.from_iterable(part.matches for part in parts)),
            published=list(chain.from_iterable(part.published for part in parts)),
            dead_letters=list(chain.from_iterable(part.dead_letters for part in parts)),
            pauses=list(chain.from_iterable(part.pauses for part in parts)),
            spent=parts[-1].spent,
            rows=list(chain.from_iterable(part.rows for part in parts)),
            notes=list(chain.from_iterable(part.notes for part in parts)),
            notes_since_us=parts[-1].notes_since_us,
            waves=sum(part.waves for part in parts),
        )
