"""Conditions of blocks that compare data with values, as conditions of tuples.

`[price > vat * $x]` compares numbers that a node has, whatever `$x`: the greatest of its prices,
and what `vat` is as a number.  These are values of the node, and the comparison is one of the
operator that reads the block, solved for its data like others (`templates.computed`), or asked of
each tuple.  All operators above are open, so it does not matter where it is asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace
from functools import reduce
from typing import Any, cast

from templates.comparisons import both
from templates.ordered import PlainNode
from templates.valueconditions import Ask, asked_of_values
from xscl.constants import tested_parameter
from xscl.hoisting import disjuncts
from xscl.path import (
    And,
    Comparison,
    Condition,
    Not,
    Opaque,
    Or,
    Path,
    Step,
    StringTest,
    condition_parameters,
    conjuncts,
    counts_positions,
)
from xscl.query import Disjunct, From, Operator, Query, Variable
from xscl.rewriting import strip_variables

__all__ = ["with_lifted"]


def with_lifted(query: Query) -> Query:
    """Return a plain query that asks of tuples what its blocks compare with parameters within."""
    if not query.parameters:
        return query
    texts = {name for name, kind in query.parameters if kind not in ("number", "duration")}
    asked: dict[int, Disjunct] = {}
    blocks, variables = list(query.blocks), list(query.variables)
    for number, block in enumerate(query.blocks):
        steps: list[Step] = []
        conditions: list[Disjunct] = []
        for i, step in enumerate(block.path.steps):
            kept, lifted = _apart(step, texts)
            if lifted:
                name = step.variable or f"{block.root}#{i}"
                if step.variable is None:
                    variables.append(Variable(name, number, name))
                step = replace(step, predicates=kept, variable=name)
                conditions += [ask(name) for ask in lifted]
            steps.append(step)
        if conditions:
            blocks[number] = replace(block, path=Path(tuple(steps)))
            asked[number] = reduce(both, conditions)
    if not asked:
        return query
    root: Any = _asking(cast(PlainNode, query.root), asked)
    return replace(query, blocks=tuple(blocks), variables=tuple(variables), root=root)


def _asking(node: PlainNode, asked: Mapping[int, Disjunct]) -> PlainNode:
    """Return a node with what is asked of blocks in the operators that read them."""
    match node:
        case int():
            return From(node, where=(asked[node],)) if node in asked else node
        case From(int() as block, where=where) if block in asked:
            own = where or (Disjunct(),)
            return replace(node, where=tuple(both(each, asked[block]) for each in own))
        case Operator():
            own, sides = node.disjuncts, list[Any]()
            for side in (node.left, node.right):
                if not isinstance(side, int):
                    side = cast(Any, _asking(cast(PlainNode, side), asked))
                elif side in asked:
                    own = tuple(both(each, asked[side]) for each in own)
                sides.append(side)
            return replace(node, left=sides[0], right=sides[1], disjuncts=own)
    return node


def _apart(step: Step, texts: Set[str]) -> tuple[tuple[Condition, ...], list[Ask]]:
    """Return the conditions of a step that stay, and what is asked of its node besides.

    What stands before a position stays, since the position counts what it leaves.  Where a
    condition that boxes have follows from what is asked, that stays: only what passes it is asked.
    """
    own = [*conjuncts(step.predicates)]
    counting = max((i for i, each in enumerate(own) if counts_positions(each)), default=-1)
    kept: list[Condition] = []
    asks: list[Ask] = []
    for i, condition in enumerate(own):
        ask = asked_of_values(condition, texts) if i > counting else None
        if ask is None:
            kept.append(condition)
            continue
        asks.append(ask)
        weaker = _weaker(strip_variables(condition))
        if weaker is not None and tested_parameter(weaker, texts) is not None:
            kept.append(weaker)
    return (tuple(kept), asks) if asks else (step.predicates, [])


def _weaker(condition: Condition) -> Condition | None:
    """Return comparisons and tests of which one holds wherever a condition does, if there are any.

    Of several that all must hold it is the one that likely holds of least.
    """
    match condition:
        case And(conditions):
            found = [each for each in map(_weaker, conditions) if each is not None]
            return max(found, key=_narrowness, default=None)
        case Or(conditions):
            weaker = [_weaker(each) for each in conditions]
            known = [one for each in weaker if each is not None for one in disjuncts(each)]
            return None if None in weaker else Or(tuple(known))
        case Not(And(conditions)):
            return _weaker(Or(tuple(map(Not, conditions))))
        case Not(Or(conditions)):
            return _weaker(And(tuple(map(Not, conditions))))
        case Not(Not(inner)):
            return _weaker(inner)
        case Comparison() | StringTest():
            return condition
        case Opaque(compared=compared) if compared:
            return condition
    return None


def _narrowness(condition: Condition) -> int:
    """Return how little a condition likely holds of: words of parameters differ most."""
    has_parameter = any(condition_parameters(condition))
    match condition:
        case StringTest() | Comparison(operator="="):
            return 4 if has_parameter else 1
        case Or():
            return 3 if has_parameter else 0
    return 2 if has_parameter else 0
