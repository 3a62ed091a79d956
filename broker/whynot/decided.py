"""Why documents do not match where something is decided: what can be said of these documents alone.

What is next and what is absent depends on documents that nobody has named.  The rest can be asked:
whether these follow one another, within the windows, with the values that are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from broker.documents.document import Document
from broker.whynot.reason import Reason
from broker.whynot.surroundings import Surroundings, reason_among
from xscl.query import Absence, AbsenceKind, From, Node, Operator, OperatorKind, Query
from xscl.sequence import Unit, children, nodes_below

__all__ = ["as_written", "open_form", "reason_around"]


def open_form(query: Query) -> Query | None:
    """Return a query with all that follows for what is next, and with nothing absent.

    None where an operator reads tuples that end with a certainty of absence: of these documents
    that time cannot be told.
    """
    inner = (below for node in nodes_below(query.root) for below in _read(node))
    late = (AbsenceKind.AFTER, AbsenceKind.AROUND)
    if any(isinstance(node, Absence) and node.kind in late for node in inner):
        return None
    return replace(query, root=_open(query.root))


def _read(node: Node) -> tuple[Node, ...]:
    """Return the nodes whose times a node looks at, clauses around them left out."""
    found = []
    for child in children(node) if isinstance(node, (Operator, Absence)) else ():
        while isinstance(child, From):
            child = child.node
        found.append(child)
    return tuple(found)


def as_written(reason: Reason, query: Query) -> Reason:
    """Return a reason of the open form of a query, with operators called what the query does."""
    operators = (each for each in nodes_below(query.root) if isinstance(each, Operator))
    return _renamed(reason, {a[1:-1]: b[1:-1] for each in operators for a, b in _names(each)})


def _renamed(reason: Reason, names: Mapping[str, str]) -> Reason:
    name, colon, rest = reason.text.partition(":")
    is_known = reason.kind == "operator" and name in names
    return replace(
        reason,
        text=f"{names[name]}{colon}{rest}" if is_known else reason.text,
        parts=tuple(_renamed(part, names) for part in reason.parts),
    )


def _names(node: Node) -> Iterator[tuple[str, str]]:
    """Yield what a node is called in the open form, and in the query; of a unit each block is."""
    match node:
        case int():
            yield f"block {node}", f"block {node}"
        case From(node=inner) | Absence(operand=inner):
            yield from _names(inner)
        case Unit(alternatives=blocks):
            yield from (each for block in blocks for each in _names(block))
        case Operator(kind=kind, left=left, right=right):
            is_next = kind is OperatorKind.NEXT
            opened = OperatorKind.FOLLOWED_BY if is_next else kind
            for (a, x), (b, y) in product(_names(left), _names(right)):
                yield f"({a} {opened.value} {b})", f"({x} {kind.value} {y})"


def _open(node: Node) -> Node:
    match node:
        case Absence(operand=operand):
            return _open(operand)
        case From(node=inner):
            return replace(node, node=_open(inner))
        case Operator(kind=kind, left=left, right=right):
            is_next = kind is OperatorKind.NEXT
            return replace(
                node,
                kind=OperatorKind.FOLLOWED_BY if is_next else kind,
                left=_open(left),
                right=_open(right),
            )
    return node


def reason_around(
    query: Query,
    documents: Sequence[Document],
    fits: Reason | None,
    around: Surroundings | None,
    *,
    lateness_us: int,
    registration_point: int,
) -> Reason:
    """Return what is said of documents, whose own reason is `fits`, among all that stand around."""
    if around is None:
        return _decision_reason(fits)
    found = reason_among(
        query,
        documents,
        around.documents,
        lateness_us=lateness_us,
        registration_point=registration_point,
        is_cut=around.is_cut,
    )
    return _among(query.id, fits, found)


def _decision_reason(reason: Reason | None) -> Reason:
    """Return what is left to say where documents fit, or where their times cannot be told."""
    hint = "name them by number among all: `--documents FILE`, or ask the running broker"
    if reason is None:
        text = "what follows an absence begins when it is certain, which these documents do not say"
        return Reason("decision", False, text, hint)
    text = (
        "these documents fit; whether they match was decided by documents in between, or by the"
        " clock, and these are not among them"
    )
    return Reason("decision", False, text, hint, dict(reason.facts), (reason,), 1.0)


def _among(query_id: str, fits: Reason | None, found: Reason | None) -> Reason:
    """Return what is known of documents among all others: that they fit, and what was decided."""
    own = fits.parts if fits is not None else ()
    facts = dict(fits.facts) if fits is not None else {}
    if found is None:
        text = "what is decided of these documents leaves them out, whatever stands around them"
        found = Reason("decision", False, text)
    verb = "matches" if found.holds else "does not match"
    return Reason("query", found.holds, f"{query_id} {verb}", None, facts, (*own, found), 1.0)
