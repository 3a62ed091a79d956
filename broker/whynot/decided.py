"""Why documents do not match where something is decided: what can be said of these documents alone.

What is next and what is absent depends on documents that nobody has named.  The rest can be asked:
whether these follow one another, within the windows, with the values that are compared.
"""

from __future__ import annotations

from dataclasses import replace

from broker.whynot.reason import Reason
from xscl.query import Absence, AbsenceKind, From, Node, Operator, OperatorKind, Query
from xscl.sequence import children, nodes_below

__all__ = ["among", "decision_reason", "open_form"]


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


def decision_reason(reason: Reason | None) -> Reason:
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


def among(query_id: str, fits: Reason | None, found: Reason | None) -> Reason:
    """Return what is known of documents among all others: that they fit, and what was decided."""
    own = fits.parts if fits is not None else ()
    facts = dict(fits.facts) if fits is not None else {}
    if found is None:
        text = "what is decided of these documents leaves them out, whatever stands around them"
        found = Reason("decision", False, text)
    verb = "matches" if found.holds else "does not match"
    return Reason("query", found.holds, f"{query_id} {verb}", None, facts, (*own, found), 1.0)
