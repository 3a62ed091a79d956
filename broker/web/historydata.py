"""What the pages of the past show, as values: documents, matches, and what became of them."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

from lxml import etree
from markupsafe import Markup

from broker.api.asking.questions import reason_why_not
from broker.api.backend import Backend
from broker.api.pickup import Pickup
from broker.delivery.deliveries import Delivery
from broker.documents.delays import delays
from broker.documents.document import Document
from broker.documents.head import Segment
from broker.documents.search import Found, search
from broker.documents.stored import stored_document
from broker.documents.wellformed import root_of, text_of
from broker.pipeline.matchlog import CommittedMatch
from broker.registry.file import RegistryError
from broker.registry.queries import QueryState
from broker.web.coloured import coloured_xml
from broker.web.matchaxis import axis_of
from xscl.nodes import AttributeNode, NumberedTree, TextNode

__all__ = [
    "deliveries_of",
    "history",
    "lateness",
    "one_document",
    "one_match",
    "sent_of",
    "title_of",
    "why_not",
]

_MATCHES_MAX = 100
_QUERIES_MAX = 100
_SOURCES_MAX = 200
_SUBSCRIPTIONS_MAX = 100
_DELIVERIES_MAX = 50
_SENT_MAX = 10
_AT_ONE_TIME_US = 60_000_000
_TITLE_MAX = 120
_XML_MAX = 50_000
_FIELDS_MAX = 200
_FIELD_MAX = 500
"""Characters of a text in a document that stand beside another document's."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A document as a list shows it."""

    document: Document
    title: str


def history(backend: Backend, wanted: Mapping[str, str], before: int) -> dict[str, Any]:
    """Return the newest documents that have what is wanted, and where to go on."""
    backend.spool.refresh()
    found: Found = search(
        backend.spool,
        wanted["find"],
        stream=wanted["stream"],
        place=wanted["in"],
        before=before,
    )
    return {
        "documents": [Listed(each, title_of(each.xml)) for each in found.documents],
        "further": found.before,
        "wanted": wanted,
        "queries": _asked_of(backend),
    }


def lateness(backend: Backend) -> dict[str, Any]:
    """Return how late the newest documents came, by feed or stream, the latest first."""
    backend.spool.refresh()
    found, documents = delays(backend.spool, backend.lateness_us)
    return {
        "sources": found[:_SOURCES_MAX],
        "left": max(0, len(found) - _SOURCES_MAX),
        "documents": documents,
        "lateness_us": backend.lateness_us,
    }


def _asked_of(backend: Backend) -> list[str]:
    queries = backend.registry.queries(states=(QueryState.ACTIVE, QueryState.PAUSED))
    return [each.id for each in queries[:_QUERIES_MAX]]


def one_document(backend: Backend, docid: int) -> dict[str, Any]:
    """Return a document and what became of it; raise `RegistryError` where it is not kept."""
    backend.spool.refresh()
    document = stored_document(backend.spool, docid)
    if document is None:
        raise RegistryError(f"no document {docid} is kept")
    matches = backend.outbox.matches.find(document=docid, limit=_MATCHES_MAX)
    segment = backend.spool.segment_of(docid)
    is_evaluated = segment is not None and segment.last <= backend.outbox.through()
    letters = backend.outbox.dead_letters(before=docid + 1, limit=1)
    return {
        "document": document,
        "title": title_of(document.xml),
        "xml": coloured_xml(document.xml[:_XML_MAX]),
        "is_evaluated": is_evaluated,
        "evaluated_us": None if segment is None else _evaluated_us(backend, segment),
        "dead": next((each for each in letters if each.docid == docid), None),
        "matches": matches,
        "subscriptions": {
            query: _subscriptions_of(backend, query)
            for query in {each.query for each in matches[:_SENT_MAX]}
        },
        "queries": _asked_of(backend),
    }


def _evaluated_us(backend: Backend, segment: Segment) -> int | None:
    """Return when a segment was evaluated; None of one that many have been made one of since."""
    first, last = map(backend.outbox.committed_us, (segment.first, segment.last))
    known = first is not None and last is not None and last - first <= _AT_ONE_TIME_US
    return last if known else None


def one_match(backend: Backend, seq: int) -> dict[str, Any]:
    """Return a match: documents with the bound nodes marked, times; `RegistryError` for none."""
    found = backend.outbox.matches.numbered([seq])
    if not found:
        raise RegistryError(f"no match {seq}")
    line = json.loads(found[0].line)
    backend.spool.refresh()
    return {
        "match": found[0],
        "line": line,
        "groups": [
            (is_list, list(some))
            for is_list, some in groupby(_marked(backend, line), key=itemgetter("is_element"))
        ],
        "axis": axis_of(_text_of(backend, found[0]), line, backend.lateness_us),
        "subscriptions": _subscriptions_of(backend, found[0].query),
    }


def sent_of(
    pickup: Pickup, matches: Iterable[CommittedMatch], subscriptions: Mapping[str, list[str]]
) -> dict[int, list[Delivery]]:
    """Return by match the newest deliveries that had it; `subscriptions` are those of queries."""
    return {
        match.seq: deliveries_of(pickup, subscriptions[match.query], match.seq)[:_SENT_MAX]
        for match in islice(matches, _SENT_MAX)
    }


def _subscriptions_of(backend: Backend, query: str) -> list[str]:
    found = backend.registry.subscriptions.find(query=query, limit=_SUBSCRIPTIONS_MAX)
    return [each.id for each in found]


def deliveries_of(pickup: Pickup, names: Iterable[str], seq: int) -> list[Delivery]:
    """Return the deliveries that had a match, newest first."""
    return pickup.deliveries.of_match(list(names), seq, limit=_DELIVERIES_MAX)


def _marked(backend: Backend, line: Mapping[str, Any]) -> list[dict[str, Any]]:
    bound: dict[int, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    named = [*line["nodes"].items()]
    named += [pair for witness in line["witnesses"] for pair in witness.items()]
    for name, node in named:
        if isinstance(node, dict) and node.get("node") is not None:
            bound[node["block"]][node["node"]].add(name.partition("#")[0])
    shown = []
    of_block = Counter(each.get("block") for each in line["documents"])
    for place, each in enumerate(line["documents"]):
        document = stored_document(backend.spool, each["docid"])
        block = each.get("block", place)
        shown.append(
            {
                **each,
                "is_element": of_block[each.get("block")] > 1
                and ("block" in each or not line["roots"]),
                "title": "" if document is None else title_of(document.xml),
                "fields": [] if document is None else _fields(document.xml, bound[block]),
            }
        )
    return shown


def _fields(xml: bytes, bound: Mapping[int, set[str]]) -> list[dict[str, Any]]:
    """Return what a document says, an element or bound attribute each, and the names of it."""
    root = root_of(xml)
    if root is None:
        return []
    return [
        {"name": name, "text": text[:_FIELD_MAX], "variables": sorted(bound.get(number, ()))}
        for number, name, text in islice(_shown_nodes(NumberedTree(root), bound), _FIELDS_MAX)
    ]


def _shown_nodes(tree: NumberedTree, bound: Collection[int]) -> Iterator[tuple[int, str, str]]:
    """Yield elements without children and bound nodes: number, name, text."""
    for number, element in enumerate(tree.elements):
        is_leaf = not len(element)
        if is_leaf or number in bound:
            text = " ".join((element.text or "").split()) if is_leaf else ""
            yield number, etree.QName(element).localname, text
    for number in sorted(each for each in bound if each >= len(tree.elements)):
        node = tree.node(number)
        if isinstance(node, AttributeNode):
            yield number, f"@{node.name}", node.value
        elif isinstance(node, TextNode):
            yield number, "text()", node.value


def _text_of(backend: Backend, match: CommittedMatch) -> str | None:
    """Return the text of a match's query, as it is registered now."""
    try:
        return backend.registry.query(match.query).text
    except RegistryError:
        return None


def why_not(backend: Backend, name: str, documents: str) -> dict[str, Any]:
    """Return what keeps documents from matching a query, as a tree of reasons."""
    reason = reason_why_not(backend, name, documents, None)
    return {"name": name, "documents": documents, "reason": _tree(reason.as_data())}


def _tree(reason: Mapping[str, Any]) -> Markup:
    mark, word = ("ok", "holds") if reason["holds"] else ("no", "fails")
    hint = reason.get("hint")
    told = Markup('<p class="meta">{}</p>').format(hint) if hint else ""
    parts = (Markup("<li>{}</li>").format(_tree(part)) for part in reason.get("parts", ()))
    inner = Markup("").join(parts)
    below = Markup("<ul>{}</ul>").format(inner) if inner else ""
    head = Markup('<span class="badge {}">{}</span> {}').format(mark, word, reason["text"])
    return Markup("{}{}{}").format(head, told, below)


def title_of(xml: bytes) -> str:
    """Return what a document would be called: its title, or the first text in it."""
    root = root_of(xml)
    if root is None:
        return ""
    titles = (each for each in root.iter(etree.Element) if etree.QName(each).localname == "title")
    named = next(titles, root)
    text = " ".join(text_of(named).split())
    return text if len(text) <= _TITLE_MAX else text[: _TITLE_MAX - 1] + "…"
