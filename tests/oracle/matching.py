"""All matches of all queries: every query over every document, one after the other."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

from support.query_parts import parts

from broker.documents.document import Document
from broker.matching.match import Match, MissingUnit
from oracle.conditions import Facts, applied, compared_in, variables_of
from oracle.contender import Contender, Row, Timeline
from oracle.decided import Decisions
from oracle.described import (
    Witness,
    describe,
    in_order,
    likenesses,
    shown_value,
    visible_nodes,
)
from oracle.found import Found
from oracle.freshpaths import fresh_paths, with_fresh, without_fresh
from oracle.losses import Reading, known, least_of, readings, sureness
from oracle.operators import Rules, Tuple, position
from oracle.outcomes import Decided, behind, given
from oracle.paths import bindings
from oracle.rows import Rows
from oracle.sequences import Bound, Evaluation, conditioned, keys_of
from oracle.transactions import Accept, InForce, Possible, Statement, Sweep, graces, run
from oracle.tree import Node as DocumentNode
from oracle.tree import is_well_formed, parse_tree
from xscl.query import Block, Disjunct, From, Query, Repetition, Unit
from xscl.sequence import nodes_below, units_of

__all__ = ["matches", "matches_and_rows", "matches_of"]


LEARNING = (30, 1_000)
"""How many matches delays are learned from: at least, and at most."""


def matches(
    queries: Sequence[Query],
    documents: Sequence[Document],
    *,
    lateness_us: int,
    assignments: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    registered: Mapping[str, int] | None = None,
    learning: tuple[int, int] = LEARNING,
) -> list[Match]:
    """Return all matches of queries that stay, sorted by (largest docid, query id, match id).

    `assignments` are the canonical parameters of each parameterised query, `registered` the
    registration points (a query without one sees every document).
    """
    in_force = [
        InForce(query, parameters, (registered or {}).get(query.id, 0))
        for query in queries
        for parameters in _distinct((assignments or {}).get(query.id, ()), query)
    ]
    return matches_and_rows(in_force, documents, lateness_us=lateness_us, learning=learning)[0]


def matches_of(
    in_force: Iterable[InForce], documents: Sequence[Document], *, lateness_us: int
) -> list[Match]:
    """Return the matches of queries that come and go, each once, sorted as `matches` does."""
    return matches_and_rows(in_force, documents, lateness_us=lateness_us)[0]


def matches_and_rows(
    in_force: Iterable[InForce],
    documents: Sequence[Document],
    *,
    lateness_us: int,
    learning: tuple[int, int] = LEARNING,
) -> tuple[list[Match], Rows]:
    """Return the same, and the rows that are left of tables."""
    ordered = list(_publishers_first(in_force))
    graces_us = graces([one.query for one in ordered], lateness_us)
    outside = _Streams(documents)
    kept: dict[int, list[Any]] = {}
    possible: dict[tuple[int, Sequence[Document]], list[Possible]] = {}
    certain: dict[tuple[int, Sequence[Document]], list[Found]] = {}

    number_of = {id(one): number for number, one in enumerate(ordered)}
    statements: dict[int, Statement] = {}
    for number, one in enumerate(ordered):
        if one.query.tables:
            before = statements.get(number_of.get(id(one.earlier), -1))
            rules = Rules(one.parameters, lateness_us, *learning)
            statements[number] = Statement(one, rules, before)

    def sweep(accept: Accept) -> Sweep:
        streams, swept = outside.copy(), Sweep()
        for number, one in enumerate(ordered):
            rules = Rules(one.parameters, lateness_us, *learning)
            grace_us = graces_us[one.query.id]
            # What a query finds depends on what is published for it, and else is the same.
            read = number, streams.published({block.stream for block in one.query.blocks})
            if one.query.tables:
                if read not in possible:
                    possible[read] = _possible_matches(one, streams, rules, grace_us)
                swept.possible += possible[read]
                for found in accept(statements[number], possible[read]):
                    streams.publish(one.query, found)
                continue
            if read not in certain:
                before = kept.get(number_of.get(id(one.earlier), -1), [])
                kept[number] = behind(before, one.point)
                certain[read] = _query_matches(one, streams, rules, grace_us, kept[number])
            for each in certain[read]:
                if one.has(each.match) and each.match.id not in swept.found:
                    swept.found[each.match.id] = each.match
                    streams.publish(one.query, each)
        return swept

    rows = Rows(one.query.table for one in ordered if one.query.table is not None)
    return run(sweep, list(statements.values()), rows), rows


def _publishers_first(in_force: Iterable[InForce]) -> Iterator[InForce]:
    """Yield every query after all those whose published streams it reads."""
    waiting = list(in_force)
    while waiting:
        unfinished = {one.query.publish for one in waiting if one.query.publish is not None}
        ready = [
            one
            for one in waiting
            if unfinished.isdisjoint(block.stream for block in one.query.blocks)
        ]
        assert ready, "published streams form a cycle"
        yield from ready
        waiting = [one for one in waiting if one not in ready]


def _distinct(rows: Iterable[Mapping[str, Any]], query: Query) -> list[Mapping[str, Any]]:
    """Return the different assignments of a query; the empty one where it has no parameters."""
    if not query.parameters:
        return [{}]
    distinct: list[Mapping[str, Any]] = []
    for row in rows:
        if row not in distinct:
            distinct.append(row)
    return distinct


class _Streams:
    """The documents of every stream, from outside and published, with their trees."""

    def __init__(self, documents: Iterable[Document]) -> None:
        outside = list(documents)
        self.outside = [(document.docid, document.end_us) for document in outside]
        self._documents = [document for document in outside if is_well_formed(document.xml)]
        self._trees: dict[int, DocumentNode] = {}

    def copy(self) -> _Streams:
        """Return the same streams, to which something may be published."""
        copy = _Streams([])
        copy.outside, copy._documents = self.outside, [*self._documents]
        copy._trees = dict(self._trees)
        return copy

    def published(self, streams: Collection[str]) -> tuple[Document, ...]:
        """Return what has been published to some streams."""
        return tuple(each for each in self._documents if each.depth and each.stream in streams)

    def read(self, stream: str, point: int) -> list[tuple[Document, DocumentNode]]:
        """Return the documents of a stream after a registration point, with their trees."""
        return [
            (document, self._tree(document))
            for document in self._documents
            if document.docid > point
            and (document.depth == 0 if stream == "*" else document.stream == stream)
        ]

    def _tree(self, document: Document) -> DocumentNode:
        if id(document) not in self._trees:
            self._trees[id(document)] = parse_tree(document.xml)
        return self._trees[id(document)]

    def publish(self, query: Query, found: Found) -> None:
        """Add a match's output to the stream that its query publishes, if it does."""
        if query.publish is None:
            return
        match = found.match
        self._documents.append(
            Document(
                docid=match.position,
                stream=query.publish,
                key=match.id,
                start_us=match.start_us,
                end_us=match.end_us,
                arrival_us=found.arrival_us,
                watermark_us=found.watermark_us,
                xml=match.output.encode(),
                depth=1 + found.depth,
                match_id=match.id,
                confidence=_in_bits(found.sure),
            )
        )


def _in_bits(sure: Fraction) -> Fraction:
    """Return a confidence as documents have it: of what needs more, a thousand binary places."""
    if max(sure.numerator, sure.denominator) < 1 << 1_000:
        return sure
    return Fraction(math.floor(sure * (1 << 1_000)), 1 << 1_000)


def _query_matches(
    asked: InForce, streams: _Streams, rules: Rules, grace_us: int, kept: list[Any]
) -> list[Found]:
    """Return the matches of one query under one assignment; see `given` for `kept`."""
    query, point = asked.query, asked.point
    if query.has_outcome:
        return _given(asked, streams, rules, grace_us, kept)
    if query.is_ordered or any(isinstance(each, Repetition) for each in nodes_below(query.root)):
        return _decided_matches(asked, streams, rules, grace_us)
    found: dict[tuple[Any, ...], tuple[Tuple, set[Witness]]] = {}
    for blocks_read, choice in _choices(query):
        bound = {v.name for v in query.variables if v.block in blocks_read}
        keys = {name for key in keys_of(query.root) for _, name in key.variables}
        compared = in_order(query, bound & keys.union(*map(compared_in, choice)))
        kept = {*compared, *keys.union(*map(variables_of, choice)), *query.visible()}
        blocks = [_bound(block, kept, streams, rules, point) for block in query.blocks]
        chosen = dict(zip((id(n) for n, _ in conditioned(query.root)), choice, strict=True))
        similar = {join for each in choice for join in each.similarity_joins}
        reading = Evaluation(query, chosen, blocks, rules, blocks_read)
        for one in reading.tuples(query.root):
            if known(query, one.documents) < least_of(query, rules):
                continue
            key = (one.blocks, tuple(map(position, one.documents)), *visible_nodes(query, one))
            nodes = tuple((v, one.nodes[v]) for v in compared if v in one.nodes)
            witness = nodes, likenesses(query, similar, nodes, rules)
            found.setdefault(key, (one, set()))[1].add(witness)
    return [_found(query, one, witnesses, rules) for one, witnesses in found.values()]


def _found(query: Query, one: Tuple, witnesses: set[Witness], rules: Rules) -> Found:
    newest = max(one.documents, key=position)
    depth = max(document.depth for document in one.documents)
    sure = known(query, one.documents)
    match = describe(query, one, witnesses, rules, sure)
    return Found(match, depth, newest.arrival_us, newest.watermark_us, sure)


def _decided_match(
    query: Query, contender: Contender, witnesses: set[Witness], rules: Rules, sure: Fraction
) -> Found:
    """Return the match of a decided tuple."""
    match = describe(query, _tuple_of(query, contender), witnesses, rules, sure)
    docid, depth, _ = contender.position
    decided = replace(match, decided=docid)
    return Found(decided, depth, contender.end_us, contender.watermark_us, sure)


def _are_sure(query: Query, contenders: Iterable[Contender], rules: Rules) -> Iterator[Contender]:
    """Yield the tuples whose documents are as sure as a query without LOSS asks."""
    least = least_of(query, rules)
    return (each for each in contenders if known(query, each.documents) >= least)


def _as_shown(contenders: Iterable[Contender]) -> list[Contender]:
    """Return tuples in the order in which a match shows one's values of FOLD: by their text."""

    def spelled(one: Contender) -> str:
        values = {name: shown_value(each) for run in one.runs for name, each in run.folds}
        return json.dumps(values, ensure_ascii=False)

    return sorted(contenders, key=spelled)


def _decided_matches(asked: InForce, streams: _Streams, rules: Rules, grace_us: int) -> list[Found]:
    """Return the matches of a query in which something is decided, or repeated."""
    query = asked.query
    if query.is_lossy:
        return _lossy_matches(asked, streams, rules, grace_us)
    read = [streams.read(block.stream, asked.point) for block in query.blocks]
    decisions = Decisions(query, read, rules, Timeline(streams.outside, grace_us))
    found: dict[tuple[Any, ...], tuple[Tuple, Contender, set[Witness]]] = {}
    for contender in _as_shown(_are_sure(query, decisions.contenders(query.root), rules)):
        one = _tuple_of(query, contender)
        key = _key_of(query, one)
        _, _, witnesses = found.setdefault(key, (one, contender, set()))
        for row in contender.rows:
            bound = dict(row.nodes)
            nodes = tuple((v, bound[v]) for v in in_order(query, row.compared))
            witnesses.add((nodes, likenesses(query, row.similar, nodes, rules)))
    if not query.is_ordered:
        return [_found(query, one, witnesses, rules) for one, _, witnesses in found.values()]
    return [
        _decided_match(query, contender, witnesses, rules, known(query, contender.documents))
        for _, contender, witnesses in found.values()
    ]


def _given(
    one: InForce, streams: _Streams, rules: Rules, grace_us: int, kept: list[Any]
) -> list[Found]:
    """Return what a statement with rows or limits gives."""
    query = one.query
    read = [streams.read(block.stream, one.point) for block in query.blocks]
    decisions = Decisions(query, read, rules, Timeline(streams.outside, grace_us))
    by_key: dict[tuple[Any, ...], list[Contender]] = {}
    for contender in _as_shown(_are_sure(query, decisions.all_decided(), rules)):
        by_key.setdefault(_key_of(query, _tuple_of(query, contender)), []).append(contender)
    matches = []
    for contenders in by_key.values():
        tuples = []
        for contender in contenders:
            own = decisions.facts(contender)
            tuples += [(row, replace(own, nodes=dict(row.nodes))) for row in contender.rows]
        sure = known(query, contenders[0].documents)
        matches.append(_decided(query, contenders, tuples, rules, sure))
    return given(query, matches, rules, one.is_at, kept)


def _decided(
    query: Query,
    contenders: Sequence[Contender],
    tuples: Iterable[tuple[Row, Facts]],
    rules: Rules,
    sure: Fraction,
) -> Decided:
    """Return the match of contenders, of which it has some tuples."""
    first, one = contenders[0], _tuple_of(query, contenders[0])
    keys = query.root.keys if isinstance(query.root, From) else ()
    witnesses: set[Witness] = set()
    held = list(tuples)
    for row, _ in held:
        bound = dict(row.nodes)
        nodes = tuple((v, bound[v]) for v in in_order(query, row.compared))
        witnesses.add((nodes, likenesses(query, row.similar, nodes, rules)))
    return Decided(
        _decided_match(query, first, witnesses, rules, sure),
        tuple(facts for _, facts in held),
        one.documents,
        tuple(node.number for _, _, node in visible_nodes(query, one)),
        tuple(tuple(sorted({c.key(key) for c in contenders})) for key in keys),
    )


def _lossy_matches(one: InForce, streams: _Streams, rules: Rules, grace_us: int) -> list[Found]:
    """Return the matches of a query with LOSS that are as sure as it asks."""
    query = one.query
    read = [streams.read(block.stream, one.point) for block in query.blocks]
    clock = Timeline(streams.outside, grace_us)
    found: dict[tuple[Any, ...], tuple[Fraction, Contender, set[Witness]]] = {}
    possible = [
        (reading, contender)
        for reading in readings(query, rules)
        for contender in Decisions(reading.query, read, rules, clock).contenders(reading.query.root)
    ]
    complete = [each for each in _complete(query, possible, rules) if one.was_at(each[0])]
    for reading, contender in possible:
        before = [each for at, _, each in complete if at < contender.position[0]]
        if len(before) < rules.learned_least and any(
            query.blocks[block].loss.delay.kind == "learned"  # type: ignore[union-attr]
            for block in reading.lost
        ):
            continue
        sure = sureness(query, reading.lost, contender, rules, before[-rules.learned_most :])
        if sure and sure >= least_of(query, rules):
            key = (reading.lost, *_key_of(query, _tuple_of(query, contender)))
            _, _, witnesses = found.setdefault(key, (sure, contender, set()))
            for row in contender.rows:
                bound = dict(row.nodes)
                nodes = tuple((v, bound[v]) for v in in_order(query, row.compared))
                witnesses.add((nodes, likenesses(query, row.similar, nodes, rules)))
    matches = []
    for key, (sure, contender, witnesses) in found.items():
        whole = _decided_match(query, contender, witnesses, rules, sure)
        matches.append(replace(whole, match=replace(whole.match, missing=_missing(query, key[0]))))
    return matches


def _complete(
    query: Query, possible: Iterable[tuple[Reading, Contender]], rules: Rules
) -> list[tuple[int, tuple[Any, ...], Contender]]:
    """Return the matches that lack nothing as they are decided, with their positions."""
    found = {}
    for reading, contender in possible:
        if reading.lost:
            continue
        sure = sureness(query, (), contender, rules, ())
        if sure and sure >= least_of(query, rules):
            one = _tuple_of(query, contender)
            documents = tuple(map(position, one.documents))
            nodes = tuple(node.number for _, _, node in visible_nodes(query, one))
            turn = (*contender.position, contender.end_us, contender.start_us, documents, nodes)
            found[_key_of(query, one)] = contender.position[0], turn, contender
    return sorted(found.values(), key=lambda each: each[:2])


def _key_of(query: Query, one: Tuple) -> tuple[Any, ...]:
    """Return what the tuples of one match have in common."""
    documents = tuple(map(position, one.documents))
    return (one.blocks, documents, *visible_nodes(query, one), _ends(one))


def _ends(one: Tuple) -> tuple[int, ...]:
    """Return where the runs of a tuple begin and end, which its documents do not say."""
    return tuple(end for run in one.runs for end in (run.places.start, run.places.stop))


@dataclass(frozen=True)
class _Asking:
    """A contender of a statement that uses tables, and what WHERE asks of it."""

    contender: Contender
    decisions: Decisions
    where: Sequence[Disjunct] | None
    sure: Fraction


def _possible_matches(
    one: InForce, streams: _Streams, rules: Rules, grace_us: int
) -> list[Possible]:
    """Return what would be the matches of a statement that uses tables, if WHERE asked none."""
    query = one.query
    read = [streams.read(block.stream, one.point) for block in query.blocks]
    clock = Timeline(streams.outside, grace_us)
    by_key: dict[tuple[Any, ...], list[_Asking]] = {}
    for reading in readings(query, rules) if query.is_lossy else [Reading(query, ())]:
        decisions = Decisions(reading.query, read, rules, clock)
        found, where = decisions.settled()
        for contender in found:
            sure = known(query, contender.documents)
            if query.is_lossy:
                sure = sureness(query, reading.lost, contender, rules)
            if sure and sure >= least_of(query, rules):
                key = (reading.lost, *_key_of(query, _tuple_of(query, contender)))
                asking = _Asking(contender, decisions, where, sure)
                by_key.setdefault(key, []).append(asking)

    def ask(asking: list[_Asking], lost: tuple[int, ...], rows: Rows) -> Decided | None:
        asked = [(o, o.decisions.matching(o.where, o.contender, rows)) for o in asking]
        own = [one.contender for one, tuples in asked if tuples]
        held = [each for _, tuples in asked for each in tuples]
        if not held:
            return None
        return _lacking(query, lost, _decided(query, own, held, rules, asking[0].sure))

    return [
        Possible(
            (asking[0].contender.position[0], asking[0].contender.end_us),
            partial(ask, asking, lost),
        )
        for (lost, *_), asking in by_key.items()
    ]


def _lacking(query: Query, lost: tuple[int, ...], one: Decided) -> Decided:
    """Return a match that lacks some units."""
    match = replace(one.found.match, missing=_missing(query, lost))
    return replace(one, found=replace(one.found, match=match))


def _missing(query: Query, lost: tuple[int, ...]) -> tuple[MissingUnit, ...]:
    units = list(units_of(query.root))
    return tuple(MissingUnit(units.index((b,)), query.blocks[b].stream) for b in lost)


def _tuple_of(query: Query, contender: Contender) -> Tuple:
    return Tuple(
        contender.documents,
        dict(contender.chosen),
        {
            variable.name: document
            for block, document in zip(contender.blocks, contender.documents, strict=True)
            for variable in query.variables
            if variable.block == block
        },
        contender.start_us,
        contender.end_us,
        contender.position,
        contender.blocks,
        contender.runs,
    )


def _choices(query: Query) -> Iterator[tuple[set[int], list[Disjunct]]]:
    """Yield the blocks and the conjunctions that can be asked together, with what applies of them.

    There is a choice of a block for each unit, and of a disjunct for each predicate.
    """
    units = [part.alternatives for part in parts(query.root) if isinstance(part, Unit)]
    of_units = {block for unit in units for block in unit}
    for branches in product(*units):
        left_out = of_units - set(branches)
        blocks = {block for block in range(len(query.blocks)) if block not in left_out}
        bound = {variable.name for variable in query.variables if variable.block in blocks}
        for choice in product(*(disjuncts for _, disjuncts in conditioned(query.root))):
            known = [applied(each, bound) for each in choice]
            possible = [each for each in known if each is not None]
            if len(possible) == len(known):
                yield blocks, possible


def _bound(block: Block, kept: set[str], streams: _Streams, rules: Rules, point: int) -> Bound:
    """Bind a block's variables on all its documents, and keep those that the query looks at."""
    own = without_fresh(block.path)
    fresh = [each for each in fresh_paths(block.path) if each.variable in kept]
    return [
        (
            document,
            tree,
            {
                frozenset((variable, node) for variable, node in assignment if variable in kept)
                for chosen in bindings(own, tree, rules.parameters)
                for assignment in with_fresh(chosen, fresh, rules.parameters)
            },
        )
        for document, tree in streams.read(block.stream, point)
    ]
