"""Conditions of paths from variables, `exists(b/entry[author = $x])`, as conditions of nodes.

They say of the node of `b` what `[entry[author = $x]]` says in the block, where there is a place
for data.  In an operator with one conjunction they are asked there; of one of several, and within
`if`, by the values of the node.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any, cast

from templates.comparisons import both
from templates.ordered import PlainNode, predicates_of
from templates.valueconditions import asked_of_node
from xscl.comparison import operands_below
from xscl.path import Condition, Exists, Not, condition_parameters
from xscl.query import (
    Call,
    Conditional,
    Disjunct,
    From,
    Operand,
    Operator,
    PathFrom,
    Query,
    Residual,
)
from xscl.rewriting import attach

__all__ = ["with_conditions_of_nodes"]

_Conditions = dict[str, tuple[Condition, ...]]


def with_conditions_of_nodes(query: Query) -> Query:
    """Return a plain query whose tests of paths with conditions are conditions of its blocks."""
    node = cast(PlainNode, query.root)
    asked = predicates_of(node)
    has_tests = any(_of_node(test) for each in asked for test in each.tests)
    if not has_tests and not (query.parameters and any(map(_chooses, asked))):  # as mostly
        return query
    added: _Conditions = defaultdict(tuple)
    root: Any = _without(node, added)
    block_of = {each.name: each.block for each in query.variables}
    blocks = list(query.blocks)
    for variable, conditions in added.items():
        block = blocks[number := block_of[variable]]
        blocks[number] = replace(block, path=attach(block.path, {variable: conditions}))
    return replace(query, blocks=tuple(blocks), root=root)


def _without(node: PlainNode, added: _Conditions) -> PlainNode:
    """Return a node without its tests of paths; those of an only conjunction are added to nodes."""
    match node:
        case From(int(), where=(_, *_) as asked):
            return replace(node, where=_asked(asked, added))
        case Operator():
            left, right = (
                each if isinstance(each, int) else cast(Any, _without(cast(PlainNode, each), added))
                for each in (node.left, node.right)
            )
            return replace(node, left=left, right=right, disjuncts=_asked(node.disjuncts, added))
    return node


def _asked(asked: tuple[Disjunct, ...], added: _Conditions) -> tuple[Disjunct, ...]:
    if len(asked) > 1:
        return tuple(map(_of_values, asked))
    [only] = asked
    found = [(each, of_node) for each in only.tests if (of_node := _of_node(each)) is not None]
    for _, (variable, condition) in found:
        added[variable] += (condition,)
    tests = [each for each, _ in found]
    only = replace(only, tests=tuple(each for each in only.tests if each not in tests))
    return (_of_values(only),)


def _of_values(disjunct: Disjunct) -> Disjunct:
    """Return a conjunction that asks for values of nodes where it tests paths with parameters."""
    found = disjunct
    if _chooses(disjunct):
        residuals = [
            Residual(_chosen(each.left), each.operator, _chosen(each.right))
            for each in disjunct.residuals
        ]
        found = replace(disjunct, residuals=tuple(residuals))
    for test in disjunct.tests:
        of_node = _of_node(test)
        if of_node is None or not any(condition_parameters(of_node[1])):
            continue  # of what is written out the path itself is a value
        if (own := asked_of_node(*of_node)) is not None:
            found = replace(found, tests=tuple(each for each in found.tests if each != test))
            found = both(found, own)
    return found


def _chooses(disjunct: Disjunct) -> bool:
    """Return whether `if` stands in a comparison."""
    sides = (side for each in disjunct.residuals for side in (each.left, each.right))
    return any(isinstance(each, Conditional) for side in sides for each in operands_below(side))


def _chosen(operand: Operand) -> Operand:
    """Return an operand of which each `if` asks for values of nodes, too."""
    match operand:
        case Call(arguments=arguments):
            return replace(operand, arguments=tuple(map(_chosen, arguments)))
        case Conditional(condition, then, otherwise):
            asked = tuple(map(_of_values, condition))
            return Conditional(asked, _chosen(then), _chosen(otherwise))
    return operand


def _of_node(test: Call) -> tuple[str, Condition] | None:
    """Return a variable and what a test says of its node; None where no path has conditions."""
    match test:
        case Call("exists" | "empty" as function, (PathFrom(variable, path),)):
            if path.has_predicates:
                return variable, Exists(path) if function == "exists" else Not(Exists(path))
    return None
