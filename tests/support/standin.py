"""A tiny engine for tests of what surrounds it: documents with the same `<v>` join.

It has one window, no lateness, and remembers what section 1.1 of the semantics says it must.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from oracle.lines import as_found

from broker.documents.document import Document
from broker.matching.costs.budget import Spent
from broker.matching.match import Match, MatchDocument
from broker.matching.stepresult import StepResult
from broker.tables.store import RowChange
from xpath_eval.catalog import EvaluationPlan

Documents = Callable[[Iterable[int]], Mapping[int, bytes]]


def is_partner(
    earlier: MatchDocument, later: MatchDocument, watermark_us: int, window_us: int | None
) -> bool:
    """Return whether two documents, by docid, join if their values do."""
    if window_us is None:
        return True
    is_remembered = earlier.time_us >= watermark_us - window_us
    return is_remembered and abs(later.time_us - earlier.time_us) <= window_us


@dataclass
class StandInEngine:
    window_us: int | None = None
    query: str = "same"
    plan: EvaluationPlan = field(default_factory=lambda: EvaluationPlan((), (), frozenset()))
    seen: dict[str, list[MatchDocument]] = field(default_factory=dict)

    def process(self, witnesses: pa.Table, documents: Documents) -> StepResult:
        matches: list[Match] = []
        dead_letters: list[tuple[int, str]] = []
        rows = witnesses.to_pylist()
        found = documents([row["docid"] for row in rows])
        for row in rows:
            if row["error"] is not None:
                dead_letters.append((row["docid"], row["error"]))
                continue
            here = MatchDocument(row["docid"], row["stream"], row["key"], row["end_us"])
            for value in re.findall(rb"<v>(.*?)</v>", found[row["docid"]]):
                for earlier in self.seen.setdefault(value.decode(), []):
                    if is_partner(earlier, here, row["watermark_us"], self.window_us):
                        matches.append(self._match(earlier, here))
                self.seen[value.decode()].append(here)
        return StepResult([*map(as_found, matches)], dead_letters=dead_letters)

    def absorb(
        self, witnesses: pa.Table, documents: Documents, published: Iterable[Document] = ()
    ) -> None:
        self.process(witnesses, documents)

    def lacks(self, change: object) -> bool:
        return True

    def follow(self, change: object) -> bool:
        return not self.seen

    def resume(
        self, spent: Iterable[Spent], rows: Iterable[RowChange] = (), notes: object = ()
    ) -> None:
        """It has no budget."""

    def horizon_us(self, watermark_us: int) -> int:
        return -(1 << 63) if self.window_us is None else watermark_us - self.window_us

    def needed_from(self, watermark_us: int, docid: int) -> dict[str, int]:
        return {"*": self.horizon_us(watermark_us)}

    def figures(self) -> dict[str, int]:
        return {"documents": sum(map(len, self.seen.values()))}

    def first_point(self, missing: object) -> int | None:
        return None

    def _match(self, earlier: MatchDocument, later: MatchDocument) -> Match:
        return Match(
            id=f"{self.query}:{earlier.key}:{later.key}",
            query=self.query,
            start_us=earlier.time_us,
            end_us=later.time_us,
            documents=(earlier, later),
            roots=(0, 0),
            nodes={},
            witnesses=({},),
            output="<match/>",
        )
