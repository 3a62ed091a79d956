"""Match lines and ids as the documentation says them: a match as one JSON value."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from itertools import zip_longest
from typing import Any

from broker.documents.document import render_time
from broker.matching.match import FoundMatch, Match, parameters_key

__all__ = ["as_found", "match_id", "read_lines", "render"]


def match_id(
    query_id: str,
    version: str,
    parameters: Mapping[str, Any],
    document_keys: Sequence[Sequence[str | int]],
    visible_nodes: Sequence[int],
) -> str:
    """Return the id of a match: `document_keys` are stream, key and perhaps block, branch."""
    named = [query_id, version, dict(parameters), list(document_keys), list(visible_nodes)]
    text = json.dumps(named, sort_keys=True, separators=(",", ":"))
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _sure(match: Match) -> dict[str, Any]:
    missing = [each._asdict() for each in match.missing]
    return {"confidence": match.confidence, "missing": missing}


def render(match: Match) -> str:
    """Return the line of a match (the fields are in `docs/match.md`)."""
    line: dict[str, Any] = {
        "id": match.id,
        "query": match.query,
        "start": render_time(match.start_us),
        "end": render_time(match.end_us),
        **({} if match.decided is None else {"decided": match.decided}),
        **({} if match.confidence is None else _sure(match)),
        "documents": [document.as_data() for document in match.documents],
        **({"documents_omitted": match.documents_omitted} if match.documents_omitted else {}),
        "roots": list(match.roots),
        "nodes": {name: node.as_data() for name, node in match.nodes.items()},
        "witnesses": [
            {
                name: {"block": node.block, "node": node.node, "value": node.value}
                for name, node in witness.items()
            }
            | ({"similar": [each._asdict() for each in similar]} if similar else {})
            for witness, similar in zip_longest(match.witnesses, match.similar, fillvalue=())
        ],
    }
    if match.witnesses_omitted:
        line["witnesses_omitted"] = match.witnesses_omitted
    if match.parameters:
        line["parameters"] = match.parameters
    if match.values:
        line["values"] = match.values
    line["output"] = match.output
    if match.output_error is not None:
        line["output_error"] = match.output_error
    return json.dumps(line, ensure_ascii=False)


def as_found(match: Match) -> FoundMatch:
    """Return a match as the row that is kept of it."""
    oldest = min(document.docid for document in match.documents)
    parameters = parameters_key(match.parameters)
    return FoundMatch(match.position, match.query, match.id, parameters, oldest, render(match))


def read_lines(found: Sequence[FoundMatch]) -> list[Match]:
    """Return what matches say; each is the very row, with the very line, of what it says."""
    matches = [Match.read(each.line) for each in found]
    assert [as_found(match) for match in matches] == list(found)
    return matches
