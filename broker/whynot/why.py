"""Why these documents do not match a query.

`why_not` asks of the documents what the semantics ask, in their order: which block each can stand
for, whether its tree pattern fits, then operator by operator the times, the value joins and the
residuals.  Where documents could stand in several orders, or a predicate has alternatives, it
tells of the one that came furthest.  It is slow and plain on purpose, and shares with the engine
only the normal form, the patterns, and the reading of single steps; a property test holds it
against the engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import islice, permutations
from typing import Any

from broker.documents.document import Document
from broker.whynot.attempts import Attempts
from broker.whynot.cells import KnownRows, Rules, cell_reason, without_tables
from broker.whynot.decided import as_written, open_form, reason_around
from broker.whynot.given import no_row, of_outcome, without_outcome
from broker.whynot.lossy import lossy_reason, sure_among
from broker.whynot.operators import StreamAt
from broker.whynot.reason import Reason
from broker.whynot.runreasons import reason_of_runs
from broker.whynot.surroundings import Surroundings
from templates.plain import plain_statements
from xscl.query import (
    Query,
)
from xscl.sequence import documents_of
from xscl.substitution import substitute

__all__ = ["why_not"]

ORDERS_MAX = 120
"""Orders of the documents that are tried: all of five documents."""


def why_not(
    query: Query,
    documents: Sequence[Document],
    *,
    lateness_us: int,
    parameters: Mapping[str, Any] | None = None,
    registration_point: int = 0,
    stream_at: StreamAt = lambda end_us: None,
    around: Surroundings | None = None,
    known: KnownRows | Rules | None = None,
) -> Reason:
    """Return whether documents match a query, one for each block, and what that rests on.

    They may be given in any order.  `parameters` are canonical (`xscl.assignment`).  A document's
    `watermark_us` decides about lateness, and `stream_at` may name the stream of the document that
    had that event time; `registration_point` is the query's.  Where something is decided, `around`
    says among which documents, and `known` what
    tables said.  The reason's facts name the document of each block, by its place in
    `documents`.
    """
    if query.parameters and parameters is None:
        names = ", ".join(f"${name}" for name, _ in query.parameters)
        text = f"{query.id} has parameters ({names}): without values it has no matches"
        return Reason("parameters", False, text, "give them a value each")
    plain = substitute(query, parameters or {})
    if plain.tables:
        untold = why_not(
            without_tables(plain),
            documents,
            lateness_us=lateness_us,
            registration_point=registration_point,
            stream_at=stream_at,
            around=around,
        )
        if not untold.holds or not plain.guards_of_matches:
            return untold
        if around is None or known is None:
            return _unknown(plain, untold)
        asked = cell_reason(
            plain,
            documents,
            around.documents,
            known,
            lateness_us=lateness_us,
            registration_point=registration_point,
        )
        return _unknown(plain, untold) if asked is None else _told(plain, untold, asked)
    if plain.has_outcome:
        ask = partial(
            why_not,
            without_outcome(plain),
            lateness_us=lateness_us,
            registration_point=registration_point,
            stream_at=stream_at,
            around=around,
        )
        has_several = plain.has_runs or documents_of(plain.root) > 1
        if plain.rows is None or has_several or len(documents) < 2:
            of_source = ask(documents)
            return of_outcome(plain, of_source) if of_source.holds else of_source
        each = (ask([document]) for document in documents)
        return next((r for r in each if not r.holds), no_row(plain, len(documents)))
    if plain.has_confidence:
        return _of_variants(
            plain,
            documents,
            lateness_us=lateness_us,
            registration_point=registration_point,
            stream_at=stream_at,
            around=around,
            known=known,
        )
    if problem := _wrong_documents(query, documents):
        return problem
    if plain.has_runs or plain.has_chains:
        return reason_of_runs(
            plain,
            documents,
            lateness_us=lateness_us,
            registration_point=registration_point,
            around=around,
        )
    if plain.is_ordered:
        opened = open_form(plain)
        fits: Reason | None = None
        if opened is not None:
            fits = why_not(
                opened,
                documents,
                lateness_us=lateness_us,
                registration_point=registration_point,
                stream_at=stream_at,
            )
            fits = as_written(fits, plain)
            if not fits.holds:
                return fits
        return reason_around(
            plain,
            documents,
            fits,
            around,
            lateness_us=lateness_us,
            registration_point=registration_point,
        )
    best: Reason | None = None
    for statement in plain_statements(plain):
        attempt = Attempts(statement, lateness_us, registration_point, stream_at)
        for order in islice(permutations(range(len(documents))), ORDERS_MAX):
            for reason in attempt.reasons([documents[i] for i in order]):
                if best is None or reason.progress > best.progress:
                    best = replace(reason, facts={**reason.facts, "order": list(order)})
                if reason.holds:
                    return best
    assert best is not None
    return best


def _of_variants(
    query: Query,
    documents: Sequence[Document],
    *,
    lateness_us: int,
    registration_point: int,
    stream_at: StreamAt,
    around: Surroundings | None,
    known: KnownRows | Rules | None,
) -> Reason:
    """Return what is said of a query with LOSS or CONFIDENCE, which is what its variants are."""

    def ask(variant: Query, some: Sequence[Document]) -> Reason:
        return why_not(
            variant,
            some,
            lateness_us=lateness_us,
            registration_point=registration_point,
            stream_at=stream_at,
            around=around,
            known=known,
        )

    def learned() -> Fraction | None:
        if around is None:
            return None
        return sure_among(
            query,
            documents,
            around.documents,
            lateness_us=lateness_us,
            registration_point=registration_point,
        )

    return lossy_reason(query, documents, ask, learned)


def _told(query: Query, fits: Reason, asked: Reason) -> Reason:
    """Return what is known of documents that fit but for what tables said."""
    text = f"{query.id} {'matches' if asked.holds else 'does not match'}"
    if asked.holds and query.has_outcome:
        text = fits.text
    return Reason("query", asked.holds, text, None, dict(fits.facts), (*fits.parts, asked), 1.0)


def _unknown(query: Query, fits: Reason) -> Reason:
    text = "what tables said to these documents is not known here"
    return _told(query, fits, Reason("tables", False, text))


def _wrong_documents(query: Query, documents: Sequence[Document]) -> Reason | None:
    count = documents_of(query.root)
    if query.has_runs and len(documents) < count:
        text = f"{query.id} has {count} units, and {len(documents)} given"
        return Reason("documents", False, text, "name one for each, several for what has a `+`")
    if len(documents) != count and not query.has_runs:
        given = f"{len(documents)} document{'' if len(documents) == 1 else 's'}"
        text = f"{query.id} has {count} block{'' if count == 1 else 's'}, and {given} given"
        return Reason("documents", False, text, f"name {count}, one for each block")
    places = [(d.docid, d.depth, d.match_id) for d in documents]
    if len(set(places)) < len(places):
        text = "one document is given twice, and no two blocks of a match share a document"
        return Reason("documents", False, text)
    return None
