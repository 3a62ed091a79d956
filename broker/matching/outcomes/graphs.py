"""COMPRESSED: for each time at which matches end, and each key, one graph whose paths they are.

A graph stands where the first match of its key that ends at its time is decided, and has the
matches that are decided there.  What is decided later and ends at that time is in no graph, nor is
what ends more than the lateness behind `W`: whether its time had a graph is not known any more.

`<document>` elements are numbered in the order of their ends, and `<step>` elements lead onward.
Mostly a document is one of them; where the same path of documents would stand for a match with one
beginning and for none with another, it is several.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import groupby
from typing import NamedTuple
from xml.sax.saxutils import quoteattr

from broker.documents.document import render_time
from broker.matching.costs.budget import Tally
from broker.matching.outcomes.matched import Matched
from broker.matching.outcomes.outcome import OutcomePlace, build_outcome, outcome_id
from broker.matching.rendering.leaf import Leaf
from broker.matching.rendering.lines import DOCUMENTS_MAX, spell_documents
from broker.matching.rendering.matches import BuiltMatch
from broker.matching.spelling import spell
from broker.matching.uses import Topic
from templates.rungraphs import PathGraph, union
from xscl.meter import ExhaustedError, Meter, size
from xscl.numerals import spell_double
from xscl.sequence import units_of

__all__ = ["FoundMatches", "GraphSource", "build_graph"]

EXACT_MAX = 1 << 63
"""Below this number a count is exact; from there on it is a double."""


class FoundMatches(NamedTuple):
    """The matches of one key that end at one time and are decided at one document."""

    topic: Topic
    keys: tuple[str, ...]
    matches: Sequence[Matched]


class _MatchPlace(NamedTuple):
    """A place of a match: a document, in a block, with its root.

    `unit` is the place of the block's unit, `branch` which alternative it is, where there are some.
    """

    end_us: int
    position: tuple[int, int, str]
    block: int
    root: int
    unit: int
    branch: int | None
    leaf: Leaf

    @property
    def name(self) -> str:
        """What tells it from any other place."""
        branch = -1 if self.branch is None else self.branch
        where = (self.end_us, *self.position, self.unit, branch, self.root)
        return " ".join(map(str, where))

    @property
    def line(self) -> str:
        """How a match line lists it."""
        named = "" if self.branch is None else f', "branch": {self.branch}'
        return f'{self.leaf.line[:-1]}, "block": {self.unit}{named}}}'


class GraphSource:
    """The times at which matches of each key have been given, of one topic."""

    def __init__(self, topic: Topic, lateness_us: int) -> None:
        self.topic = topic
        self._lateness_us = lateness_us
        self._given: dict[tuple[str, ...], set[int]] = {}

    def take(self, matches: Sequence[Matched], *, is_known: bool) -> Iterator[FoundMatches]:
        """Take decided matches; yield the ones that are given together, unless these are known."""
        in_time = (m for m in matches if m.end_us >= m.watermark_us - self._lateness_us)
        in_order = sorted(in_time, key=lambda match: (match.docid, match.end_us, _keys(match)))
        for (_, end_us, keys), own in groupby(
            in_order, key=lambda match: (match.docid, match.end_us, _keys(match))
        ):
            given = self._given.setdefault(keys, set())
            if end_us not in given:
                given.add(end_us)
                if not is_known:
                    yield FoundMatches(self.topic, keys, list(own))

    def forget(self, before_us: int) -> None:
        """Forget times that no match can end at any more."""
        for keys, given in list(self._given.items()):
            if min(given) < before_us:
                self._given[keys] = {end_us for end_us in given if end_us >= before_us}
                if not self._given[keys]:
                    del self._given[keys]


def _keys(match: Matched) -> tuple[str, ...]:
    assert match.counted is not None
    return match.counted.keys


def build_graph(found: FoundMatches, tally: Tally) -> BuiltMatch | None:
    """Return a graph as it is kept, None where it goes over its query's budget."""
    place = _place(found)
    meter = Meter(tally.left(place.account))
    found_graph = _graph(found)
    graph, count = _in_order(found_graph), found_graph.count()
    try:
        output = _output(graph, count, meter)
    except ExhaustedError:
        tally.pay(place.account, meter.spent, 0)
        return None
    name = outcome_id(place, "graph", found.keys)
    line = _line(place, name, graph.labels, output)
    leaves = list(dict.fromkeys(each.leaf for each in graph.labels))
    return build_outcome(place, name, line, output, leaves, meter.spent, tally)


def _place(found: FoundMatches) -> OutcomePlace:
    first, every = found.matches[0], found.matches
    return OutcomePlace(
        found.topic,
        first.docid,
        max(match.newest for match in every),
        max(match.depth for match in every),
        max(match.watermark_us for match in every),
        min(match.start_us for match in every),
        first.end_us,
    )


def _graph(found: FoundMatches) -> PathGraph[_MatchPlace]:
    """Return the graph of all matches, in which steps lead onward."""
    graphs: list[PathGraph[_MatchPlace]] = []
    units = {
        block: (place, unit.index(block) if len(unit) > 1 else None)
        for place, unit in enumerate(units_of(found.topic.query.root))
        for block in unit
    }
    for match in found.matches:
        assert match.counted is not None
        assert match.counted.graph is not None
        places = [
            _MatchPlace(leaf.end_us, leaf.position, block, root, *units[block], leaf)
            for (block, root), leaf in zip(match.counted.places, match.behind, strict=True)
        ]
        own = match.counted.graph
        labels = tuple(places[label] for label in own.labels)
        graphs.append(PathGraph(labels, own.behind, own.first))
    return graphs[0] if len(graphs) == 1 else union(graphs).minimal()


def _in_order(graph: PathGraph[_MatchPlace]) -> PathGraph[_MatchPlace]:
    """Return a graph with its nodes by the ends of their documents, equal places by what follows.

    Steps may then lead back: of two documents that are joined either may be the earlier one.
    """
    names: dict[int, str] = {}
    for node in reversed(range(len(graph.labels))):
        further = sorted(names[each] for each in graph.behind[node])
        text = "\n".join([graph.labels[node].name, *further])
        names[node] = blake2b(text.encode(), digest_size=16).hexdigest()
    order = sorted(names, key=lambda node: (graph.labels[node][:4], names[node]))
    number = {node: i for i, node in enumerate(order)}
    return PathGraph(
        tuple([graph.labels[node] for node in order]),
        tuple([tuple(sorted(number[each] for each in graph.behind[node])) for node in order]),
        tuple(sorted(number[node] for node in graph.first)),
    )


def _output(graph: PathGraph[_MatchPlace], count: int, meter: Meter) -> str:
    """Return the graph of so many matches as XML."""
    pieces = [f'<graph count="{_spelled(count)}">']
    first = set(graph.first)
    for node, place in enumerate(graph.labels):
        begins = ' first="true"' if node in first else ""
        leaf = place.leaf
        pieces.append(
            f'<document n="{node + 1}" docid="{leaf.docid}" stream={quoteattr(leaf.stream)}'
            f' key={quoteattr(leaf.key)} time="{render_time(leaf.end_us)}"'
            f' block="{place.unit}"{begins}/>'
        )
        meter.spend(size(pieces[-1]))
    for one, other in graph.steps():
        pieces.append(f'<step from="{one + 1}" to="{other + 1}"/>')
        meter.spend(size(pieces[-1]))
    return "".join([*pieces, "</graph>"])


def _spelled(count: int) -> str:
    """Return a count as `xs:integer` or `xs:double` spells it.

    >>> _spelled(12), _spelled(10**20), _spelled(2**70)
    ('12', '1.0E20', '1.1805916207174113E21')
    """
    if count < EXACT_MAX:
        return str(count)
    try:
        return spell_double(float(count))
    except OverflowError:
        return "INF"


def _line(place: OutcomePlace, name: str, listed: Sequence[_MatchPlace], output: str) -> str:
    query, given = place.topic.query, dict(place.topic.parameters)
    start, end = render_time(place.start_us), render_time(place.end_us)
    some = listed[:DOCUMENTS_MAX]
    documents = spell_documents([each.line for each in some], len(listed))
    roots = ", ".join(str(each.root) for each in some)
    parameters = f', "parameters": {spell(given)}' if given else ""
    return (
        f'{{"id": "{name}", "query": {spell(query.id)}, "start": "{start}",'
        f' "end": "{end}", "decided": {place.docid},'
        f' "documents": {documents}, "roots": [{roots}],'
        f' "nodes": {{}}, "witnesses": []{parameters},'
        f' "output": {spell(output)}}}'
    )
