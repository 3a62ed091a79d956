"""What a match is, as its line says it: section 18."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from broker.matching.match import Likeness, Match, MatchDocument, MatchNode
from oracle.lines import match_id
from oracle.operators import Rules, Tuple
from oracle.output import build_output
from oracle.similarity import likeness
from oracle.tree import Node
from xscl.query import (
    Absence,
    From,
    Operator,
    Query,
    Repetition,
    SelectAll,
    SimilarityJoin,
    operand_variables,
)
from xscl.query import Node as QueryNode
from xscl.sequence import nodes_below, units_of

__all__ = ["Witness", "describe", "in_order", "visible_nodes"]

DOCUMENTS_MAX = 1_000
WITNESSES_MAX = 1_000

Witness = tuple[tuple[tuple[str, Node], ...], str]
"""The compared variables of one tuple in order, each with its node, and what its similarity joins
have found, as JSON."""


def describe(
    query: Query,
    one: Tuple,
    witnesses: set[Witness],
    rules: Rules,
    sure: Fraction = Fraction(1),
) -> Match:
    """Return a match of a query, with its witness tuples, of which it is so sure."""
    ordered = _sort_witnesses(query, witnesses)
    units = list(units_of(query.root))
    block_of = {block: place for place, unit in enumerate(units) for block in unit}
    repeated = any(isinstance(each, Repetition) for each in nodes_below(query.root))
    branches = [_branch(units[block_of[block]], block) for block in one.blocks]
    is_lossy = any(query.blocks[block].loss is not None for block in block_of)
    repeated = repeated or is_lossy
    has_blocks = repeated or set(branches) != {None}
    labels = {variable.name: variable.label for variable in query.variables}
    visible = visible_nodes(query, one)
    shown: dict[str, list[tuple[int, int]]] = {}
    for name, place, node in visible:
        shown.setdefault(name, []).append((place, node.number))
    similar = tuple(
        tuple(Likeness(each["score"], tuple(each["shared"])) for each in json.loads(found))
        for _, found in ordered[:WITNESSES_MAX]
    )
    values = {name: shown_value(values) for run in one.runs for name, values in run.folds}
    output, error = build_output(
        query, one.documents, shown, one.start_us, one.end_us, float(sure), values
    )
    documents = [
        MatchDocument(
            d.docid, d.stream, d.key, d.end_us, block_of[block] if has_blocks else None, branch
        )
        for d, block, branch in zip(one.documents, one.blocks, branches, strict=True)
    ]
    return Match(
        id=match_id(
            query.id,
            query.version,
            rules.parameters,
            [
                [
                    document.stream,
                    document.key,
                    *([document.block] if repeated and document.block is not None else []),
                    *([] if document.branch is None else [document.branch]),
                ]
                for document in documents
            ],
            [node.number for _, _, node in visible],
        ),
        query=query.id,
        start_us=one.start_us,
        end_us=one.end_us,
        documents=tuple(documents[:DOCUMENTS_MAX]),
        documents_omitted=max(0, len(documents) - DOCUMENTS_MAX),
        roots=tuple(
            one.nodes_at(place)[query.blocks[block].root].number
            for place, block in enumerate(one.blocks[:DOCUMENTS_MAX])
        ),
        nodes={
            labels[v]: _node(one, v, shown[v], block_of)
            for v in (() if isinstance(query.select, SelectAll) else query.select.variables)
            if v in shown
        },
        witnesses=tuple(
            {
                labels[v]: MatchNode(block_of[_block(query, one, v)], node.number, node.value)
                for v, node in nodes
            }
            for nodes, _ in ordered[:WITNESSES_MAX]
        ),
        similar=similar if any(similar) else (),
        witnesses_omitted=max(0, len(ordered) - WITNESSES_MAX),
        parameters=dict(rules.parameters),
        values=values,
        output=output,
        output_error=error,
        confidence=float(sure) if query.has_confidence else None,
    )


def _node(
    one: Tuple, name: str, places: list[tuple[int, int]], block_of: Mapping[int, int]
) -> MatchNode:
    """Return how a line shows the nodes of a variable that SELECT mentions."""
    (place, number), *_ = places
    block = block_of[one.blocks[place]]
    for run in one.runs:
        if place in run.places:
            numbers = dict(places)
            return MatchNode(block, nodes=tuple(numbers.get(each) for each in run.places))
    return MatchNode(block, number)


def _block(query: Query, one: Tuple, name: str) -> int:
    """Return the block of a tuple that binds a variable."""
    return next(v.block for v in query.variables if v.name == name and v.block in one.blocks)


def shown_value(values: Sequence[str | float]) -> Any:
    """Return a value of FOLD as a line shows it."""
    numbers = [v if isinstance(v, str) else float(v) for v in values]
    shown = [str(v) if isinstance(v, float) and not math.isfinite(v) else v for v in numbers]
    return shown[0] if len(shown) == 1 else shown


def visible_nodes(query: Query, one: Tuple) -> list[tuple[str, int, Node]]:
    """Return the visible variables of a tuple, each with the place of its document and its node.

    They are the block roots, then what SELECT mentions and the tuple binds.
    """
    roots = [(query.blocks[block].root, place) for place, block in enumerate(one.blocks)]
    select = query.select
    mentioned = () if isinstance(select, SelectAll) else select.variables
    selected = [
        (name, place)
        for name in mentioned
        for place, block in enumerate(one.blocks)
        if any(v.name == name and v.block == block for v in query.variables)
    ]
    return [(v, place, one.nodes_at(place)[v]) for v, place in dict.fromkeys([*roots, *selected])]


def _branch(unit: tuple[int, ...], block: int) -> int | None:
    """Return which alternative of its unit a block is, None where it is the only one."""
    return unit.index(block) if len(unit) > 1 else None


def likenesses(
    query: Query,
    joins: Collection[SimilarityJoin],
    nodes: Sequence[tuple[str, Node]],
    rules: Rules,
) -> str:
    """Return what similarity joins have found in a tuple, in the order of the text, as JSON.

    What is asked of an element of a run has no node in it.
    """
    values = {variable: node.value for variable, node in nodes}
    found = [
        likeness(join, values, rules.parameters)
        for join in dict.fromkeys(_in_text(query.root))
        if join in joins and values.keys() >= {*operand_variables(join.measured)}
    ]
    return json.dumps(found, ensure_ascii=False)


def _in_text(node: QueryNode) -> Iterator[SimilarityJoin]:
    match node:
        case Operator(left=left, right=right, disjuncts=disjuncts):
            yield from _in_text(left)
            yield from (join for each in disjuncts for join in each.similarity_joins)
            yield from _in_text(right)
        case From(node=inner):
            yield from _in_text(inner)
        case Absence(operand=operand):
            yield from _in_text(operand)


def _sort_witnesses(query: Query, witnesses: set[Witness]) -> list[Witness]:
    """Sort by node numbers in block order; -1 where an alternative of an OR has no such node."""
    variables = in_order(query, (variable.name for variable in query.variables))

    def numbers(witness: Witness) -> tuple[list[int], str]:
        nodes = {variable: node.number for variable, node in witness[0]}
        return [nodes.get(variable, -1) for variable in variables], witness[1]

    return sorted(witnesses, key=numbers)


def in_order(query: Query, variables: Iterable[str]) -> list[str]:
    """Sort variables by block, and within a block in the order of the query's text."""
    wanted = set(variables)
    ordered = sorted(query.variables, key=lambda variable: variable.block)
    return [variable.name for variable in ordered if variable.name in wanted]
