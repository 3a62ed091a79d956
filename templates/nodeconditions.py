"""Conditions of paths from variables, `exists(b/entry[author = $x])`, as conditions of nodes.

They say of the node of `b` what `[entry[author = $x]]` says in the block, where there is a place
for data.  In an operator with one conjunction they are asked there; of one of several, and within
`if`, by the values of the node.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Set
from dataclasses import replace
from typing import Any, cast

from templates.comparisons import both
from templates.decision import DecisionKind
from templates.elementconditions import without_conditions_of_elements
from templates.ordered import (
    AbsentInChain,
    Chained,
    Kept,
    Ordered,
    PlainNode,
    Repeated,
    ordered_nodes,
    predicates_of,
)
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

__all__ = ["with_conditions_of_nodes", "with_conditions_of_operands"]

_Conditions = dict[str, tuple[Condition, ...]]


def with_conditions_of_nodes(query: Query) -> Query:
    """Return a plain query whose tests of paths with conditions are conditions of its blocks."""
    node = cast(PlainNode, query.root)
    asked = predicates_of(node)
    has_tests = any(_of_node(test) for each in asked for test in each.tests)
    if not has_tests and not (query.parameters and any(map(_chooses, asked))):  # as mostly
        return query
    added: _Conditions = defaultdict(tuple)
    root = _without(node, added)
    return _with_added(query, root, added)


def with_conditions_of_operands(query: Query) -> Query:
    """Return a plain query whose decisions ask for paths with conditions in their operands.

    What is asked of one operand, or of what is absent, is a condition of it; of an operand that is
    decided, and beside alternatives, it is asked of values.  Elements of runs are held against data
    there, too.
    """
    node = cast(PlainNode, query.root)
    if not query.parameters:
        return query
    added: _Conditions = defaultdict(tuple)
    root = _within_decisions(node, {each.name: each.block for each in query.variables}, added)
    if not any(isinstance(each, (Repeated, Chained)) for each in ordered_nodes(root)):
        root = _asking_for_values(root)
    return _with_added(query, root, added)


def _with_added(query: Query, root: Any, added: _Conditions) -> Query:
    """Return a query of a root, and conditions of nodes in its blocks."""
    blocks = list(query.blocks)
    for each in query.variables:
        if each.name in added:  # one of elements may be bound by several alternatives
            block = blocks[each.block]
            path = attach(block.path, {each.name: added[each.name]})
            blocks[each.block] = replace(block, path=path)
    return replace(query, blocks=tuple(blocks), root=root)


def _within_decisions(
    node: PlainNode, block_of: Mapping[str, int], added: _Conditions
) -> PlainNode:
    """Return a node without tests of paths of one operand, where that is no decision itself."""

    def within(each: PlainNode) -> Any:
        return _within_decisions(each, block_of, added)

    match node:
        case Operator():
            asked = _moved(node.disjuncts, {*_blocks_of_joins(node)}, block_of, added)
            return replace(node, left=within(node.left), right=within(node.right), disjuncts=asked)
        case Kept(Ordered(kind=DecisionKind.SETTLED, operands=(operand,)), where):
            where = _moved(where, {*_blocks_of_joins(operand)}, block_of, added)
            return replace(node, node=within(node.node), where=where)
        case Kept():
            return replace(node, node=within(node.node))
        case Repeated():
            before = None if node.operand is None else within(node.operand)
            each = without_conditions_of_elements(node.each, added)
            away = tuple(_without_conditions(unit, added) for unit in node.absences)
            return replace(node, operand=before, each=each, absences=away)
        case Chained():
            steps = tuple(
                replace(step, each=without_conditions_of_elements(step.each, added))
                for step in node.steps
            )
            away = tuple(_without_conditions(unit, added) for unit in node.absences)
            return replace(node, steps=steps, absences=away)
        case Ordered():
            operands = tuple(map(within, node.operands))
            own = {block for each in node.operands for block in _blocks_of_joins(each)}
            absences = tuple(
                replace(
                    unit,
                    blocks=tuple(
                        (block, _moved(asked, {block}, block_of, added))
                        for block, asked in unit.blocks
                    ),
                )
                for unit in node.absences
            )
            asked = _moved(node.disjuncts, own, block_of, added)
            return replace(node, operands=operands, disjuncts=asked, absences=absences)
    return node


def _without_conditions(unit: AbsentInChain, added: _Conditions) -> AbsentInChain:
    return replace(unit, asked=without_conditions_of_elements(unit.asked, added))


def _blocks_of_joins(node: PlainNode) -> Iterator[int]:
    """Yield the blocks of a node in which nothing is decided."""
    match node:
        case int():
            yield node
        case From(int() as block):
            yield block
        case Operator():
            yield from _blocks_of_joins(node.left)
            yield from _blocks_of_joins(node.right)


def _moved(
    asked: tuple[Disjunct, ...],
    blocks: Set[int],
    block_of: Mapping[str, int],
    added: _Conditions,
) -> tuple[Disjunct, ...]:
    """Return a predicate without tests of paths from some blocks, which are added to nodes."""
    if len(asked) != 1:
        return asked
    [only] = asked
    kept: list[Call] = []
    for test in only.tests:
        of_node = _of_node(test)
        if of_node is None or block_of.get(of_node[0]) not in blocks:
            kept.append(test)
        else:
            added[of_node[0]] += (of_node[1],)
    return (replace(only, tests=tuple(kept)),)


def _asking_for_values(node: PlainNode) -> Any:
    """Return a node without repetitions that asks for values where it tests paths."""
    match node:
        case Operator():
            left, right = map(_asking_for_values, (node.left, node.right))
            return replace(node, left=left, right=right, disjuncts=_all_of_values(node.disjuncts))
        case Kept():
            where = _all_of_values(node.where)
            return replace(node, node=_asking_for_values(node.node), where=where)
        case Ordered():
            absences = tuple(
                replace(unit, blocks=tuple((b, _all_of_values(asked)) for b, asked in unit.blocks))
                for unit in node.absences
            )
            operands = tuple(map(_asking_for_values, node.operands))
            asked = _all_of_values(node.disjuncts)
            return replace(node, operands=operands, disjuncts=asked, absences=absences)
    return node


def _all_of_values(asked: tuple[Disjunct, ...]) -> tuple[Disjunct, ...]:
    return tuple(map(_of_values, asked))


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
        return _all_of_values(asked)
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
