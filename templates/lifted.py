"""Conditions of blocks that compare data with values, as conditions of tuples.

`[price > vat * $x]` compares numbers that a node has, whatever `$x`: the greatest of its prices,
and what `vat` is as a number.  These are values of the node, and the comparison is one of the
operator that reads the block, solved for its data like others (`templates.computed`), or asked of
each tuple.  All operators above are open, so it does not matter where it is asked.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from typing import Any, cast

from templates.comparisons import both
from templates.nodeconditions import with_conditions_of_nodes
from templates.ordered import PlainNode, blocks_of
from templates.valueconditions import Ask, asked_of_values
from xscl.constants import tested_parameter
from xscl.hoisting import disjuncts
from xscl.path import (
    And,
    Axis,
    Comparison,
    Condition,
    Exists,
    Not,
    Opaque,
    Or,
    Path,
    PathValue,
    Step,
    StringTest,
    condition_parameters,
    conjuncts,
    counts_positions,
)
from xscl.query import Block, Disjunct, From, Operator, Query, Variable, operand_variables
from xscl.rewriting import strip_variables

__all__ = ["with_lifted"]


def with_lifted(query: Query) -> Query:
    """Return a plain query that asks of tuples what its blocks compare with parameters within."""
    query = with_conditions_of_nodes(query)
    if not query.parameters:
        return query
    texts = query.text_parameters
    node = cast(PlainNode, query.root)
    blocks, variables, asked = list(query.blocks), list(query.variables), list[_Asked]()
    for number in blocks_of(node):
        block = _Block(number, blocks[number], texts)
        path = block.path(block.block.path)
        if block.asked:
            blocks[number] = replace(block.block, path=path)
            variables += block.named
            asked += [(number, *each) for each in block.asked]
    if not asked:
        return query
    root: Any = _asking(node, asked)
    return replace(query, blocks=tuple(blocks), variables=tuple(variables), root=root)


_Asked = tuple[int, Disjunct, str | None]
"""What is asked of a block, and the variable of a path that it is asked for, if it is for one."""


def _asking(node: PlainNode, asked: Sequence[_Asked]) -> PlainNode:
    """Return a node with what is asked of blocks in the operators that read them.

    What is asked for a variable is asked where that is compared.
    """

    def more(own: Disjunct, *blocks: object) -> Disjunct:
        read = {v for operand in own.operands() for v in operand_variables(operand)}
        for block, condition, variable in asked:
            if block in blocks if variable is None else variable in read:
                own = both(own, condition)
        return own

    match node:
        case int():
            own = more(Disjunct(), node)
            return From(node, where=(own,)) if own != Disjunct() else node
        case From(int() as block, where=where):
            found = tuple(more(each, block) for each in where or (Disjunct(),))
            return replace(node, where=found) if found != (Disjunct(),) else node
        case Operator():
            sides = [
                each if isinstance(each, int) else _asking(cast(PlainNode, each), asked)
                for each in (node.left, node.right)
            ]
            own_of = tuple(more(each, node.left, node.right) for each in node.disjuncts)
            left, right = cast(Any, sides)
            return replace(node, left=left, right=right, disjuncts=own_of)
    return node


class _Block:
    """A block from which conditions are lifted: what is `asked` of its nodes, which are `named`.

    A node is named where the author has not.
    """

    def __init__(self, number: int, block: Block, texts: Set[str]) -> None:
        self.number, self.block = number, block
        self._texts = texts
        self.asked: list[tuple[Disjunct, str | None]] = []
        self.named: list[Variable] = []

    def path(self, path: Path, above: str | None = None, of: str | None = None) -> Path:
        """Return a path without what is lifted.

        It leads from a node that may be named, and is there for a variable `of` a comparison.
        """
        steps: list[Step] = []
        for step in path.steps:
            is_self = step.axis is Axis.SELF and not step.is_deep
            steps.append(found := self._step(step, above if is_self else None, of))
            above = found.variable or (above if is_self else None)
        return Path(tuple(steps))

    def _step(self, step: Step, name: str | None, of: str | None) -> Step:
        """Return a step without what is lifted; its node has a `name` where it is one above."""
        if not step.predicates:
            return step
        kept, lifted = _apart(step, self._texts)
        if lifted and name is None:
            name = step.variable or self._name()
            step = replace(step, variable=name)
        for ask in lifted:
            assert name is not None
            self.asked.append((ask(name), of))
        counting = max((i for i, each in enumerate(kept) if counts_positions(each)), default=-1)
        inside = [self._inside(each, step.variable or name, of) for each in kept[counting + 1 :]]
        return replace(step, predicates=(*kept[: counting + 1], *inside))

    def _inside(self, condition: Condition, above: str | None, of: str | None) -> Condition:
        match condition:
            case Exists(path) if path.steps:
                variable = path.steps[-1].variable
                is_of_comparison = variable is not None and "/" in variable
                return Exists(self.path(path, above, variable if is_of_comparison else of))
            case Comparison(PathValue(path)):
                return replace(condition, left=PathValue(self.path(path, above, of)))
            case StringTest(_, PathValue(path)):
                return replace(condition, value=PathValue(self.path(path, above, of)))
        return condition

    def _name(self) -> str:
        name = f"{self.block.root}#{self.number}.{len(self.named)}"
        self.named.append(Variable(name, self.number, name))
        return name


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
