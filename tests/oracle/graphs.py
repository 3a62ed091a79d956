"""What COMPRESSED gives of listed matches: for each key and each end one graph (section 18).

A node is a place of a match and what may follow there: the continuations of a beginning that ends
with it (Myhill and Nerode).  So the paths are the matches, and no two nodes are alike.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import product
from typing import Any
from xml.sax.saxutils import quoteattr

from broker.documents.document import render_time
from broker.matching.match import Match, MatchDocument
from oracle.found import Found
from oracle.operators import Rules, position
from xscl.query import Query

__all__ = ["graphs"]

LISTED = 1_000
"""Documents that a graph lists."""

Place = tuple[int, Any, int, int, int]
"""An end, a position, a unit, a branch (-1 where there are none), a root."""

Node = tuple[Place, frozenset[tuple[Place, ...]]]
"""A place, and all that may follow there."""


def graphs(query: Query, matches: Sequence[Any], rules: Rules) -> Iterator[Found]:
    """Yield the graphs of decided matches (`oracle.outcomes.Decided`)."""
    of_keys: dict[tuple[tuple[str, ...], int], list[Any]] = {}
    for match in matches:
        if match.end_us < match.found.watermark_us - rules.lateness_us:
            continue
        for keys in product(*match.same):
            of_keys.setdefault((keys, match.end_us), []).append(match)
    for (keys, end_us), ending in of_keys.items():
        docid = min(match.docid for match in ending)
        yield _graph(query, keys, end_us, [m for m in ending if m.docid == docid], rules)


def _graph(
    query: Query, keys: tuple[str, ...], end_us: int, matches: Sequence[Any], rules: Rules
) -> Found:
    documents: dict[Place, MatchDocument] = {}
    paths: set[tuple[Place, ...]] = set()
    for match in matches:
        shown = match.found.match
        path = []
        for document, listed, root in zip(
            match.documents, shown.documents, shown.roots, strict=True
        ):
            branch = -1 if listed.branch is None else listed.branch
            place = (document.end_us, position(document), listed.block or 0, branch, root)
            documents[place] = listed
            path.append(place)
        paths.add(tuple(path))
    first, behind = _nodes(paths)
    order = sorted(behind, key=lambda node: (node[0], _name(node, behind)))
    listed_documents = [documents[place] for place, _ in order]
    found = Match(
        id=_id(query, rules.parameters, keys, end_us),
        query=query.id,
        start_us=min(match.found.match.start_us for match in matches),
        end_us=end_us,
        documents=tuple(listed_documents[:LISTED]),
        documents_omitted=max(0, len(order) - LISTED),
        roots=tuple(place[4] for place, _ in order[:LISTED]),
        nodes={},
        witnesses=(),
        output=_output(order, listed_documents, first, behind, len(paths)),
        output_error=None,
        parameters=dict(rules.parameters),
        decided=matches[0].docid,
    )
    depth = 1 + max(match.found.depth - 1 for match in matches)
    latest_us = max(match.found.watermark_us for match in matches)
    return Found(found, depth, end_us, latest_us)


def _nodes(paths: set[tuple[Place, ...]]) -> tuple[set[Node], dict[Node, set[Node]]]:
    """Return the nodes with which paths begin, and all nodes with those that come next."""
    first: set[Node] = set()
    behind: dict[Node, set[Node]] = {}
    for path in paths:
        before: Node | None = None
        for length in range(1, len(path) + 1):
            begun = path[:length]
            further = frozenset(each[length:] for each in paths if each[:length] == begun)
            node = (path[length - 1], further)
            behind.setdefault(node, set())
            if before is None:
                first.add(node)
            else:
                behind[before].add(node)
            before = node
    return first, behind


def _name(node: Node, behind: Mapping[Node, set[Node]]) -> str:
    """Return what tells a node from any other of its place."""
    end_us, where, unit, branch, root = node[0]
    own = " ".join(map(str, (end_us, *where, unit, branch, root)))
    text = "\n".join([own, *sorted(_name(each, behind) for each in behind[node])])
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _output(
    order: Sequence[Node],
    documents: Sequence[MatchDocument],
    first: set[Node],
    behind: Mapping[Node, set[Node]],
    count: int,
) -> str:
    pieces = [f'<graph count="{count}">']
    for number, (node, document) in enumerate(zip(order, documents, strict=True), 1):
        begins = ' first="true"' if node in first else ""
        pieces.append(
            f'<document n="{number}" docid="{document.docid}" stream={quoteattr(document.stream)}'
            f' key={quoteattr(document.key)} time="{render_time(document.time_us)}"'
            f' block="{document.block}"{begins}/>'
        )
    for one, node in enumerate(order, 1):
        for other in sorted(order.index(each) + 1 for each in behind[node]):
            pieces.append(f'<step from="{one}" to="{other}"/>')
    return "".join([*pieces, "</graph>"])


def _id(query: Query, parameters: Mapping[str, Any], keys: Sequence[str], end_us: int) -> str:
    named = [query.id, query.version, dict(parameters), "graph", list(keys), end_us]
    text = json.dumps(named, sort_keys=True, separators=(",", ":"))
    return blake2b(text.encode(), digest_size=16).hexdigest()
