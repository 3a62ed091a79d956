"""Why documents do not match a statement with LOSS or CONFIDENCE: the factors of a variant."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from broker.documents.document import CLOCK, LAST_US, Document
from broker.matching.engine import Engine
from broker.matching.queries.registration import RegisteredQuery
from broker.whynot.reason import Reason, spell_length
from templates.factor import Factor
from templates.factortext import spell_delay, spell_unit
from templates.variants import Variant, variants
from xscl.delays import LEARNED_LEAST, exact
from xscl.query import Query
from xscl.sequence import documents_of, units_of

__all__ = ["Ask", "lossy_reason", "sure_among"]

Ask = Callable[[Query, Sequence[Document]], Reason]
"""Returns why documents match a query without LOSS, or why not."""


def lossy_reason(
    query: Query, documents: Sequence[Document], ask: Ask, learned: Callable[[], Fraction | None]
) -> Reason:
    """Return whether documents match some variant of a query, and how sure that is.

    `query` has no parameters.  `learned` returns the confidence that the documents had where a
    delay is learned, None where they had too little.
    """
    every = variants(replace(query, confidence=None))
    own = [
        each
        for each in every
        if documents_of(each.query.root) == len(documents) or not query.is_lossy
    ]
    if not own:
        counts = sorted({documents_of(each.query.root) for each in every})
        text = f"{query.id} has {counts[-1]} blocks, of which {counts[-1] - counts[0]} may be"
        hint = f"name {' or '.join(map(str, counts))} documents"
        return Reason("documents", False, f"{text} missing, and {len(documents)} given", hint)
    found = [_of_variant(query, each, documents, ask, learned) for each in own]
    return max(found, key=lambda reason: (reason.holds, reason.progress))


def _of_variant(
    query: Query,
    variant: Variant,
    documents: Sequence[Document],
    ask: Ask,
    learned: Callable[[], Fraction | None],
) -> Reason:
    fits = ask(replace(variant.query, confidence=None), documents)
    which = _name(query, variant)
    if not fits.holds:
        if not query.is_lossy:
            return fits
        text = f"{query.id} does not match: {which}"
        progress = min(0.999, fits.progress)
        return Reason("query", False, text, None, fits.facts, fits.parts or (fits,), progress)
    order = fits.facts.get("order")
    placed = (
        [documents[place] for place in order]
        if order is not None
        else sorted(documents, key=lambda each: each.end_us)
    )
    sure = _sureness(query, variant, placed, learned)
    text = f"{query.id} {'matches' if sure.holds else 'does not match'}"
    if query.is_lossy:
        text += f": {which}"
    return Reason("query", sure.holds, text, None, fits.facts, (*fits.parts, sure), 0.9999)


def _name(query: Query, variant: Variant) -> str:
    if not variant.lost:
        return "the variant that lacks nothing"
    return f"the variant without {' and '.join(spell_unit(query, b) for b in variant.lost)}"


def _sureness(
    query: Query,
    variant: Variant,
    documents: Sequence[Document],
    learned: Callable[[], Fraction | None],
) -> Reason:
    """Return how sure a match is, and whether that is enough."""
    least = exact(query.confidence) if isinstance(query.confidence, float) else Fraction(0)
    times: dict[str, int] = {}
    for unit, document in zip(units_of(variant.query.root), documents, strict=True):
        for block in unit:
            root = variant.query.blocks[block].root
            times |= {f"time({root})": document.end_us, f"start({root})": document.start_us}
    known: Fraction | None = Fraction(1)
    parts = []
    for factor in variant.factors:
        gap_us = factor.gap_us(times)
        share = factor.at(gap_us)
        known = None if known is None or factor.learns else known * share
        parts.append(_factor(query, factor, gap_us, share))
    if query.confidence is not None:
        unsure = {each.match_id: each for each in documents if each.confidence < 1}
        for document in unsure.values():
            known = None if known is None else known * document.confidence
            parts.append(_published(document))
    if known is None:
        known = learned()
        if known is None:
            text = (
                "the confidence depends on the delays learned before: fewer than"
                f" {LEARNED_LEAST} complete matches were known, or what they say leaves too little"
            )
            return Reason("confidence", False, text, parts=tuple(parts))
    holds = known > 0 and known >= least
    asked = f"{float(least):g} is asked" if least else "more than 0 is asked"
    text = f"confidence {float(known):.6g}, {asked}"
    facts = {"confidence": float(known)}
    return Reason("confidence", holds, text, None, facts, tuple(parts))


def _factor(query: Query, factor: Factor, gap_us: int, share: Fraction) -> Reason:
    names = " and ".join(spell_unit(query, block) for block in factor.blocks)
    gap = spell_length(gap_us)
    delays = " and ".join(map(spell_delay, factor.losses))
    if factor.learns:
        text = f"{names} lost within {gap}: {float(share):g} at most, the delay is learned"
    elif factor.is_lost:
        text = f"{names} came and was lost within {gap} ({delays}): {float(share):.6g}"
    else:
        text = f"{names} not seen for {gap} ({delays}): {float(share):.6g} that it did not come"
    return Reason("factor", True, text, None, {"gap_us": gap_us, "factor": float(share)})


def _published(document: Document) -> Reason:
    share = float(document.confidence)
    text = f"{document.stream} {document.key} was published with the confidence {share:.6g}"
    return Reason("factor", True, text, None, {"factor": share})


def sure_among(
    query: Query,
    named: Sequence[Document],
    around: Sequence[Document],
    *,
    lateness_us: int,
    registration_point: int,
) -> Fraction | None:
    """Return the confidence that documents had among all others, None where they did not match."""
    outside = sorted(
        {each.docid: each for each in (*around, *named) if not each.depth}.values(),
        key=lambda each: each.docid,
    )
    newest_us = max(document.end_us for document in outside)
    times = (LAST_US, LAST_US, LAST_US, newest_us)
    tick = Document(outside[-1].docid + 1, CLOCK, "", *times, b"")
    xml = {document.docid: document.xml for document in outside}
    engine = Engine([RegisteredQuery(query, registration_point)], lateness_us=lateness_us)
    published = {each.match_id: each for each in (*around, *named) if each.depth}
    step = engine.process(
        engine.evaluate([*outside, tick]),
        lambda docids: {docid: xml[docid] for docid in docids},
        published.values(),
    )
    docids = {each.docid for each in named}
    for line in (json.loads(match.line) for match in step.matches):
        if {each["docid"] for each in line["documents"]} == docids:
            return exact(line["confidence"])
    return None
