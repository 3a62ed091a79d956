"""A match: as the row that is kept of it, and as what its line says.

From the join to the outbox a match is a `FoundMatch`, a row with its line (`lines` spells it).
`Match` is what a line is read into where one is looked at.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from broker.documents.document import parse_time, render_time

__all__ = [
    "FoundMatch",
    "Likeness",
    "Match",
    "MatchDocument",
    "MatchNode",
    "MissingUnit",
    "parameters_key",
]


def parameters_key(parameters: Mapping[str, Any]) -> str:
    """Return the text by which assignments of canonical values are compared.

    Types count: a string, a double and a duration in microseconds (an integer) differ.

    >>> parameters_key({"who": "Ann", "within": 3_600_000_000})
    '{"who":"Ann","within":3600000000}'
    """
    return json.dumps(dict(parameters), sort_keys=True, ensure_ascii=False, separators=(",", ":"))


class FoundMatch(NamedTuple):
    """A match as a row.  Sorted rows are in the order of match lines: (position, query, id).

    `position` is the largest docid among its documents, or the one at which it was decided;
    `oldest` is the smallest of its documents; `parameters` is the `parameters_key` of its
    assignment; `line` has no line end.
    """

    position: int
    query: str
    id: str
    parameters: str
    oldest: int
    line: str


@dataclass(frozen=True, slots=True)
class MatchDocument:
    """One document of a match: `time_us` is its event time (the end of its interval).

    In a query with alternatives or repetitions `block` is its place among the units, and of a unit
    with several `branch` says which one of them it is; both are numbers from 0.
    """

    docid: int
    stream: str
    key: str
    time_us: int
    block: int | None = None
    branch: int | None = None

    def as_data(self) -> dict[str, Any]:
        """Return the document as it stands in a match line."""
        data: dict[str, Any] = {"docid": self.docid, "stream": self.stream, "key": self.key}
        data["time"] = render_time(self.time_us)
        placed = {"block": self.block, "branch": self.branch}
        return data | {name: number for name, number in placed.items() if number is not None}


@dataclass(frozen=True, slots=True)
class MatchNode:
    """A node of a match: the place of its block, its number, its value where compared.

    A variable of a repetition has `nodes` instead, one for each element, None where an element does
    not bind it.
    """

    block: int
    node: int | None = None
    value: str | None = None
    nodes: tuple[int | None, ...] | None = None

    def as_data(self) -> dict[str, Any]:
        """Return a node that SELECT mentions as it stands in a match line."""
        if self.nodes is not None:
            return {"block": self.block, "nodes": list(self.nodes)}
        return {"block": self.block, "node": self.node}

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> MatchNode:
        """Return what a match line says of a node."""
        nodes = data.get("nodes")
        return cls(**{**data, "nodes": None if nodes is None else tuple(nodes)})


class Likeness(NamedTuple):
    """What a similarity join has found: its score, and some of the words that both sets have."""

    score: float
    shared: tuple[str, ...]


class MissingUnit(NamedTuple):
    """A unit of a match of which no document is there: its place among the units, its stream."""

    block: int
    stream: str


@dataclass(frozen=True, slots=True)
class Match:
    """One query satisfied by its documents, in the order of the blocks.

    There is one for each block, of a repetition one for each element; at most the first 1,000 are
    listed, with their roots, and `documents_omitted` counts the rest.

    `witnesses` holds at most the first 1,000 tuples, `witnesses_omitted` counts the rest.  A tuple
    names its variables in the order of `Query.variables` (block by block, in the order of the
    text); tuples are sorted by the node numbers in this order, where a variable that the tuple
    does not assign (another alternative of an `OR` compares it) counts as -1.
    `parameters` are the canonical values of a parameterised query's assignment.
    `output_error` says why the query's own constructor failed on these documents, else None.
    `decided` is the docid at which an ordered query's match was decided, None of another query.
    `values` are those of FOLD by name: a string or a number, or a list where it is several.
    `similar` has for each of the witnesses what its similarity joins found, in the order of the
    text; it is empty where no witness has any.
    `confidence` is that of a query with LOSS, None of another; `missing` are its units that were
    lost.
    """

    id: str
    query: str
    start_us: int
    end_us: int
    documents: tuple[MatchDocument, ...]
    roots: tuple[int, ...]
    nodes: dict[str, MatchNode]
    witnesses: tuple[dict[str, MatchNode], ...]
    output: str
    witnesses_omitted: int = 0
    parameters: dict[str, Any] = field(default_factory=dict)
    output_error: str | None = None
    decided: int | None = None
    documents_omitted: int = 0
    values: dict[str, Any] = field(default_factory=dict)
    similar: tuple[tuple[Likeness, ...], ...] = ()
    confidence: float | None = None
    missing: tuple[MissingUnit, ...] = ()

    @classmethod
    def read(cls, line: str) -> Match:
        """Return what a match line says (the fields are in `docs/match.md`)."""
        fields = json.loads(line)
        start_us, end_us = parse_time(fields.pop("start")), parse_time(fields.pop("end"))
        documents = tuple(
            MatchDocument(time_us=parse_time(each.pop("time")), **each)
            for each in fields.pop("documents")
        )
        witnesses = fields.pop("witnesses")
        similar = tuple(_likenesses(witness) for witness in witnesses)
        return cls(
            start_us=start_us,
            end_us=end_us,
            documents=documents,
            roots=tuple(fields.pop("roots")),
            nodes=_nodes(fields.pop("nodes")),
            witnesses=tuple(map(_nodes, witnesses)),
            similar=similar if any(similar) else (),
            missing=tuple(MissingUnit(**each) for each in fields.pop("missing", ())),
            **fields,
        )

    @property
    def position(self) -> int:
        """Where it was decided, or the largest of its docids: match lines are sorted by it."""
        if self.decided is not None:
            return self.decided
        return max(document.docid for document in self.documents)


def _likenesses(witness: dict[str, Any]) -> tuple[Likeness, ...]:
    """Take what similarity joins have found out of a witness: beside nodes, it is a list."""
    if not isinstance(witness.get("similar"), list):
        return ()
    return tuple(Likeness(each["score"], tuple(each["shared"])) for each in witness.pop("similar"))


def _nodes(fields: Mapping[str, Any]) -> dict[str, MatchNode]:
    return {name: MatchNode.of(node) for name, node in fields.items()}
