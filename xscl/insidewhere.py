"""WHERE of a chain under ANY, as conditions of the operators between its units.

Under ANY every choice of documents that fits is a match, so it does not matter whether a condition
is asked of an operator's tuples or above it.  What speaks of one unit, or of two that stand next to
each other, is asked where they meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xscl.comparison import Disjunct, Operand, Residual, ValueJoin, operand_variables
from xscl.query import Query
from xscl.sequence import (
    From,
    Node,
    Repetition,
    Strategy,
    blocks_below,
    chain_steps,
    operators_below,
)

__all__ = ["with_where_inside"]

Asked = ValueJoin | Residual


def with_where_inside(query: Query) -> Query:
    """Return a query without WHERE that has the same matches; the very same where there is none."""
    root = query.root
    if not isinstance(root, From) or root.where is None or query.tables:
        return query
    steps, operators = chain_steps(root), list(operators_below(root))
    if root.strategy not in (None, Strategy.ANY) or len(steps) < 2 or len(root.where) > 1:
        return query
    [where] = root.where
    if where.tests or where.similarity_joins:
        return query
    of_block = {block: i for i, step in enumerate(steps) for block in blocks_below(step)}
    step_of = {v.name: of_block[v.block] for v in query.variables if v.block in of_block}
    more: dict[int, list[Asked]] = {}
    asked: list[Asked] = [*where.value_joins, *where.residuals]
    for each in asked:
        place = _place(each, steps, step_of)
        if place is None:
            return query
        more.setdefault(place, []).append(_turned(each, place, step_of))
    node: Node = steps[0]
    for place, operator in enumerate(operators):
        disjuncts = tuple(_with(each, more.get(place, [])) for each in operator.disjuncts)
        node = replace(operator, left=node, disjuncts=disjuncts)
    return replace(query, root=replace(root, node=node, where=None))


def _place(asked: Asked, steps: Sequence[Node], step_of: dict[str, int]) -> int | None:
    """Return the operator that a condition can be asked at, by its number; None for none."""
    own = [{step_of[name] for name in operand_variables(o)} for o in (asked.left, asked.right)]
    read = own[0] | own[1]
    if not read or max(read) - min(read) > 1:
        return None
    if isinstance(asked, ValueJoin) and not (own[0] and own[1] and own[0].isdisjoint(own[1])):
        return None
    last = max(read)
    if isinstance(steps[last], Repetition):
        # Behind its operator it is the first element that is asked.
        is_behind = len(read) == 1 and last < len(steps) - 1
        return last if is_behind else None
    return max(last - 1, 0)


def _turned(asked: Asked, place: int, step_of: dict[str, int]) -> Asked:
    """Return a condition that has what stands before the operator on its left, if it joins."""
    if isinstance(asked, ValueJoin) and place not in _steps(asked.left, step_of):
        return replace(asked, left=asked.right, right=asked.left)
    return asked


def _steps(operand: Operand, step_of: dict[str, int]) -> set[int]:
    return {step_of[name] for name in operand_variables(operand)}


def _with(disjunct: Disjunct, asked: Sequence[Asked]) -> Disjunct:
    """Return a conjunction of which more is asked."""
    return replace(
        disjunct,
        value_joins=(*disjunct.value_joins, *(a for a in asked if isinstance(a, ValueJoin))),
        residuals=(*disjunct.residuals, *(a for a in asked if isinstance(a, Residual))),
    )
