"""Why documents do not match a query with a repetition, or a chain under MATCH.

Whether they match is asked of the engine, which has only these documents, and then all others too.
What keeps them apart is told by `runs`, of the documents alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from broker.documents.document import Document
from broker.whynot.blockattempts import BlockAttempts
from broker.whynot.decided import reason_around
from broker.whynot.reason import Reason
from broker.whynot.runs import RunAttempts
from broker.whynot.runsteps import stepped
from broker.whynot.surroundings import Surroundings, match_alone
from templates.plain import plain_statements
from xscl.query import Query

__all__ = ["reason_of_runs"]


def reason_of_runs(
    query: Query,
    documents: Sequence[Document],
    *,
    lateness_us: int,
    registration_point: int,
    around: Surroundings | None,
) -> Reason:
    """Return whether documents match a query without parameters, and what that rests on."""
    own = _own_reason(query, documents, lateness_us, registration_point)
    fits = Reason(
        "query",
        own.holds,
        f"{query.id} {'matches' if own.holds else 'does not match'}",
        parts=(own,),
        progress=own.progress,
    )
    if any(document.depth for document in documents):
        return fits
    holds, is_known = match_alone(
        query,
        documents,
        documents if around is None else around.documents,
        lateness_us=lateness_us,
        registration_point=registration_point,
    )
    if is_known and not holds:
        return _apart(query, fits, own)
    if not query.is_ordered:
        text = f"{query.id} matches"
        return replace(fits, holds=True, text=text, progress=1.0) if holds else fits
    return reason_around(
        query,
        documents,
        fits,
        around,
        lateness_us=lateness_us,
        registration_point=registration_point,
    )


def _own_reason(
    query: Query, documents: Sequence[Document], lateness_us: int, registration_point: int
) -> Reason:
    """Return whether each document fits behind those before it."""
    source = stepped(query)
    if source is None:
        text = "runs in parentheses behind an operator are not looked at one by one"
        return Reason("run", True, text)
    statements = plain_statements(query)
    variables = dict.fromkeys(v for each in statements for v in each.variables)
    bound = replace(query, blocks=statements[0].blocks, variables=tuple(variables))
    return RunAttempts(source, BlockAttempts(bound, lateness_us, registration_point)).best(
        documents
    )


def _apart(query: Query, fits: Reason, own: Reason) -> Reason:
    """Return what is said of documents that do not match, whatever stands around them."""
    if not own.holds:
        return fits
    text = (
        "each fits behind the one before; one of them takes another's place or cancels them, or"
        " had been forgotten when the last of them came"
    )
    parts = (own, Reason("decision", False, text, progress=0.9))
    return Reason("query", False, f"{query.id} does not match", None, {}, parts, 0.95)
