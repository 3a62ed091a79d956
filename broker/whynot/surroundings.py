"""What the documents around some have to do with it that they do not match.

What is next and what is absent depends on documents in between, and on the clock.  So the query is
run over all of them, and again with some of them emptied: time passes with an emptied document,
and nothing is found in it.

    all there           the documents match, or wait for the clock
    all others emptied  they match, unless something else keeps them apart
    the first `n` of the others there: from some `n` on they do not match; that one is the culprit

Which one is the culprit is found by halves.  Where decisions read decisions, a document that takes
away may itself be taken away; then it is *a* document with which they match no more.

Unlike the rest of this room it asks the engine.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from broker.documents.document import CLOCK, LAST_US, Document, parse_time, render_time
from broker.matching.engine import Engine
from broker.matching.queries.registration import RegisteredQuery
from broker.matching.stepresult import StepResult
from broker.whynot.reason import Reason
from xscl.query import Absence, From, Node, Operator, OperatorKind, Query
from xscl.sequence import Strategy, is_chain, nodes_below

__all__ = ["SURROUNDINGS_MAX", "Surroundings", "match_alone", "reason_among"]

SURROUNDINGS_MAX = 20_000
"""Documents around some that are looked at: a run over them takes a second or two."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """All documents from outside from some number on, up to the newest unless `is_cut`."""

    documents: Sequence[Document]
    is_cut: bool = False

    @classmethod
    def of(cls, documents: Sequence[Document], named: Sequence[Document]) -> Surroundings:
        """Return the documents around some, of all: as many before as behind where all are many."""
        if len(documents) <= SURROUNDINGS_MAX or not named:
            return cls(documents)
        first, last = (f(each.docid for each in named) for f in (min, max))
        spare = max(0, SURROUNDINGS_MAX - (last - first)) // 2
        found = [each for each in documents if first - spare <= each.docid <= last + spare]
        return cls(found, is_cut=found[-1] is not documents[-1])


def reason_among(
    query: Query,
    documents: Sequence[Document],
    around: Sequence[Document],
    *,
    lateness_us: int,
    registration_point: int,
    is_cut: bool = False,
) -> Reason | None:
    """Return why documents that fit do not match among others, None where that cannot be said.

    `query` has no parameters.  `around` are all documents from outside from some number on, these
    among them, up to the newest, unless `is_cut`.
    """
    trial = _Trial.of(query, documents, around, lateness_us, registration_point)
    others = trial.others()
    if trial.run(set()) is None:
        return None
    found = trial.run(others)
    if found is None:
        return _taken_away(trial, sorted(others), lateness_us)
    decided = trial.run(others, is_settled=False)
    if decided is not None:
        at = trial.by_docid[decided["decided"]]
        text = f"decided at document {at.docid}, when the newest event time was {_newest(at)}"
        return Reason("decision", True, text, facts={"decided": at.docid})
    grace_us = min(lateness_us if query.grace is None else query.grace, lateness_us)
    needed = render_time(parse_time(found["end"]) + grace_us)
    newest = render_time(max(document.end_us for document in around))
    text = f"not decided: the clock must pass {needed}, it is {newest}"
    if is_cut:
        text = f"not decided by document {around[-1].docid}, the last that was looked at"
    facts = {"must_pass": needed, "clock": newest}
    return Reason("decision", False, text, None, facts, progress=1.0)


def match_alone(
    query: Query,
    documents: Sequence[Document],
    around: Sequence[Document],
    *,
    lateness_us: int,
    registration_point: int,
) -> tuple[bool, bool]:
    """Return whether documents match with all others emptied, and whether that can be said.

    Where the query goes over its budget on them it cannot.
    """
    trial = _Trial.of(query, documents, around, lateness_us, registration_point)
    step = trial.step(set())
    return trial.match_in(step) is not None, not step.pauses


def _newest(document: Document) -> str:
    return render_time(max(document.end_us, document.watermark_us))


def _taken_away(trial: _Trial, others: Sequence[int], lateness_us: int) -> Reason:
    """Return the reason that names the document with which they match no more."""
    low, high = 0, len(others)
    while high - low > 1:
        middle = (low + high) // 2
        if trial.run(set(others[:middle])) is None:
            high = middle
        else:
            low = middle
    culprit = trial.by_docid[others[high - 1]]
    verb, facts = f"cancelled by document {culprit.docid}", {"document": culprit.docid}
    if trial.is_next():
        without = replace(trial.query, root=_without_absence(trial.query.root))
        if without == trial.query or trial.of_query(without).run({culprit.docid}) is None:
            verb = f"document {culprit.docid} came first"
            if trial.is_contiguous:
                verb = f"document {culprit.docid} stands in between"
    name = f"{culprit.stream} {culprit.key}, {render_time(culprit.end_us)}"
    return Reason("decision", False, f"{verb} ({name})", None, facts, progress=1.0)


def _without_absence(node: Node) -> Node:
    match node:
        case Absence(operand=operand):
            return _without_absence(operand)
        case From(node=inner):
            return replace(node, node=_without_absence(inner))
        case Operator(left=left, right=right):
            return replace(node, left=_without_absence(left), right=_without_absence(right))
    return node


@dataclass(frozen=True)
class _Trial:
    """A query on documents, all of which may be emptied but the named ones."""

    query: Query
    named: frozenset[int]
    by_docid: dict[int, Document]
    witnesses: pa.Table
    emptied: pa.Table
    lateness_us: int
    point: int

    @classmethod
    def of(
        cls,
        query: Query,
        named: Sequence[Document],
        around: Sequence[Document],
        lateness_us: int,
        point: int,
    ) -> _Trial:
        """Return the trial of a query, its documents evaluated."""
        documents = sorted({each.docid: each for each in (*around, *named)}.items())
        outside = [document for _, document in documents if not document.depth]
        last = outside[-1]
        newest_us = max(document.end_us for document in outside)
        times = (LAST_US, LAST_US, LAST_US, newest_us)
        outside.append(Document(last.docid + 1, CLOCK, "", *times, b""))
        witnesses = _engine(query, lateness_us, point).evaluate(outside)
        return cls(
            query,
            frozenset(document.docid for document in named),
            {document.docid: document for document in outside},
            witnesses,
            _emptied(witnesses),
            lateness_us,
            point,
        )

    def of_query(self, query: Query) -> _Trial:
        """Return the trial of another query on the same documents."""
        documents = list(self.by_docid.values())[:-1]
        named = [self.by_docid[docid] for docid in self.named]
        return _Trial.of(query, named, documents, self.lateness_us, self.point)

    def others(self) -> set[int]:
        """Return the documents in which the query finds something, but for the named ones."""
        found = self.witnesses.filter(
            pc.greater(pc.list_value_length(self.witnesses.column("nodes")), 0)
        )
        return set(found.column("docid").to_pylist()) - self.named

    def is_next(self) -> bool:
        """Return whether the query asks for what is next."""
        return any(
            is_chain(node) or (isinstance(node, Operator) and node.kind is OperatorKind.NEXT)
            for node in nodes_below(self.query.root)
        )

    @property
    def is_contiguous(self) -> bool:
        """Whether each document of the streams, or of the key, has to be taken."""
        strategies = (Strategy.STRICT, Strategy.PARTITION)
        nodes = nodes_below(self.query.root)
        return any(isinstance(node, From) and node.strategy in strategies for node in nodes)

    def run(self, others: Collection[int], *, is_settled: bool = True) -> dict[str, Any] | None:
        """Return the named documents' match with some others there, None where there is none.

        `is_settled` lets all time pass at the end.
        """
        return self.match_in(self.step(others, is_settled=is_settled))

    def step(self, others: Collection[int], *, is_settled: bool = True) -> StepResult:
        """Return what is found with some others there."""
        there = pa.array([*self.named, *others], pa.int64())
        is_there = pc.is_in(self.witnesses.column("docid"), there)
        rows = pa.concat_tables(
            [self.witnesses.filter(is_there), self.emptied.filter(pc.invert(is_there))]
        ).sort_by("docid")
        if not is_settled:
            rows = rows.slice(0, rows.num_rows - 1)
        engine = _engine(self.query, self.lateness_us, self.point)
        return engine.process(
            rows, lambda docids: {docid: self.by_docid[docid].xml for docid in docids}
        )

    def match_in(self, step: StepResult) -> dict[str, Any] | None:
        """Return the match of the named documents in what is found."""
        for match in step.matches:
            line: dict[str, Any] = json.loads(match.line)
            if {document["docid"] for document in line["documents"]} == self.named:
                return line
        return None


def _emptied(witnesses: pa.Table) -> pa.Table:
    """Return witnesses in which nothing is found; the shapes that they spell out stay."""
    for name in ("nodes", "values"):
        kind = witnesses.schema.field(name)
        nothing = pa.array([[]] * witnesses.num_rows, kind.type)
        witnesses = witnesses.set_column(witnesses.schema.get_field_index(name), kind, nothing)
    return witnesses


def _engine(query: Query, lateness_us: int, point: int) -> Engine:
    return Engine([RegisteredQuery(query, point)], lateness_us=lateness_us)
