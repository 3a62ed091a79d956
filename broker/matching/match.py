"""A match, and the line in which it is written, delivered and compared."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from broker.documents.document import render_time

__all__ = ["Match", "MatchDocument", "MatchNode", "in_order", "match_id"]


_spell_id = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
_spell_line = json.JSONEncoder(ensure_ascii=False).encode


def match_id(
    query_id: str,
    version: str,
    parameters: Mapping[str, Any],
    document_keys: Sequence[tuple[str, str] | tuple[str, str, int]],
    visible_nodes: Sequence[int],
) -> str:
    """Return the id of a match, 32 hexadecimal digits: equal for the same match, however found.

    `parameters` are canonical values.  `document_keys` are (stream, key) for each block in order,
    and its branch where it is one of several; a key alone is unique in its stream only, and a `*`
    block reads several.  `visible_nodes` are the node numbers of `Query.visible()`.
    """
    named = [query_id, version, dict(parameters), list(document_keys), list(visible_nodes)]
    return blake2b(_spell_id(named).encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class MatchDocument:
    """One document of a match: `time_us` is its event time (the end of its interval).

    In a query with alternatives `block` is its place among the units, and of a unit with several
    `branch` says which one of them it is; both are numbers from 0.
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
    """A node of a match: the place of its document, its number, its value where compared."""

    block: int
    node: int
    value: str | None = None


@dataclass(frozen=True, slots=True)
class Match:
    """One query satisfied by its documents, one for each block, in the order of the blocks.

    `witnesses` holds at most the first 1,000 tuples, `witnesses_omitted` counts the rest.  A tuple
    names its variables in the order of `Query.variables` (block by block, in the order of the
    text); tuples are sorted by the node numbers in this order, where a variable that the tuple
    does not assign (another alternative of an `OR` compares it) counts as -1.
    `parameters` are the canonical values of a parameterised query's assignment.
    `output_error` says why the query's own constructor failed on these documents, else None.
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

    @property
    def position(self) -> int:
        """The largest docid among the documents: what match lines are sorted by first."""
        return max(document.docid for document in self.documents)

    def render(self) -> str:
        """Return the match line, without the line end (the fields are in `docs/match.md`)."""
        line: dict[str, Any] = {
            "id": self.id,
            "query": self.query,
            "start": render_time(self.start_us),
            "end": render_time(self.end_us),
            "documents": [document.as_data() for document in self.documents],
            "roots": list(self.roots),
            "nodes": {
                name: {"block": node.block, "node": node.node} for name, node in self.nodes.items()
            },
            "witnesses": [
                {
                    name: {"block": node.block, "node": node.node, "value": node.value}
                    for name, node in witness.items()
                }
                for witness in self.witnesses
            ],
        }
        if self.witnesses_omitted:
            line["witnesses_omitted"] = self.witnesses_omitted
        if self.parameters:
            line["parameters"] = self.parameters
        line["output"] = self.output
        if self.output_error is not None:
            line["output_error"] = self.output_error
        return _spell_line(line)


def in_order(matches: Iterable[Match]) -> list[Match]:
    """Return matches in the order of (position, query, id)."""
    return sorted(matches, key=lambda match: (match.position, match.query, match.id))
