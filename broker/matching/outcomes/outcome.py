"""What rows and graphs have in common: an id, a cost, and the document that is published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Literal, NamedTuple

from broker.matching.costs.blocks import Account
from broker.matching.costs.budget import PUBLISHED_COST, Tally
from broker.matching.match import FoundMatch, parameters_key
from broker.matching.publications import published_document
from broker.matching.rendering.leaf import Leaf
from broker.matching.rendering.matches import BuiltMatch
from broker.matching.spelling import spell_for_id
from broker.matching.uses import Topic
from xscl.meter import size

__all__ = ["OutcomePlace", "build_outcome", "outcome_id"]


class OutcomePlace(NamedTuple):
    """Where a row or a graph of a topic stands: as a match does, by the matches that it has."""

    topic: Topic
    docid: int
    newest: int
    depth: int
    watermark_us: int
    start_us: int
    end_us: int

    @property
    def account(self) -> Account:
        """The account in which it counts."""
        return Account(self.docid, self.newest)


def outcome_id(place: OutcomePlace, kind: Literal["row", "graph"], keys: Sequence[str]) -> str:
    """Return the id of what the matches of some keys give: no topic has two with one end."""
    query, given = place.topic.query, dict(place.topic.parameters)
    text = spell_for_id([query.id, query.version, given, kind, list(keys), place.end_us])
    return blake2b(text.encode(), digest_size=16).hexdigest()


def build_outcome(
    place: OutcomePlace,
    name: str,
    line: str,
    output: str,
    leaves: Sequence[Leaf],
    spent: int,
    tally: Tally,
) -> BuiltMatch:
    """Return a row or a graph as it is kept, and charge its query; its output `spent` so much."""
    query = place.topic.query
    extra = 0 if query.publish is None else PUBLISHED_COST * size(output)
    tally.pay(place.account, spent + extra, size(line))
    oldest = min(leaf.docid for leaf in leaves)
    parameters = parameters_key(place.topic.parameters)
    row = FoundMatch(place.docid, query.id, name, parameters, oldest, line)
    if query.publish is None:
        return BuiltMatch(row, None)
    interval = place.start_us, place.end_us
    document = replace(
        published_document(query.publish, name, interval, output, leaves),
        docid=place.docid,
        depth=1 + place.depth,
        watermark_us=place.watermark_us,
        docid_max=place.newest,
    )
    return BuiltMatch(row, document)
