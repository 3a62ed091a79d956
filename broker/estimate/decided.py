"""How often a query matches in which something is decided: it is decided on the sample.

The sample ends with a tick that settles everything, as if nothing more came.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence

from broker.documents.document import CLOCK, LAST_US, Document
from broker.estimate.interval import Interval, heaps
from broker.matching.costs.budget import Budget
from broker.matching.engine import Engine
from broker.matching.queries.registration import RegisteredQuery
from xscl.query import Query

__all__ = ["matches_of"]

_BATCH_DOCUMENTS = 1_000


def matches_of(
    query: Query, documents: Sequence[Document], lateness_us: int, budget: Budget
) -> tuple[Interval | None, str]:
    """Return how many matches a query has in a sample, or why it would be paused.

    They are not known of a query with parameters, nor of one that reads what others publish.
    """
    outside = [document for document in documents if not document.depth]
    if query.parameters or not outside or len(outside) < len(documents):
        return None, ""
    xml = {document.docid: document.xml for document in outside}
    engine = Engine([RegisteredQuery(query)], lateness_us=lateness_us, budget=budget)
    by_newest: Counter[int] = Counter()
    for batch in _batches([*outside, _last(outside)]):
        step = engine.process(engine.evaluate(batch), lambda ids: {i: xml[i] for i in ids})
        for match in step.matches:
            by_newest[max(each["docid"] for each in json.loads(match.line)["documents"])] += 1
        if step.pauses:
            return None, step.pauses[0].reason
    return heaps(by_newest.values()), ""


def _last(documents: Sequence[Document]) -> Document:
    """Return a tick behind some documents that settles everything."""
    newest_us = max(document.end_us for document in documents)
    times = (LAST_US, LAST_US, LAST_US, newest_us)
    return Document(documents[-1].docid + 1, CLOCK, "", *times, b"")


def _batches(documents: Sequence[Document]) -> Iterator[Sequence[Document]]:
    for start in range(0, len(documents), _BATCH_DOCUMENTS):
        yield documents[start : start + _BATCH_DOCUMENTS]
