"""Which statements count the runs of a repetition, and do not list them.

Runs are the paths of a graph where what is asked of an element speaks of itself, of the one before
it, and of what stands before the run.  So it is for a repetition that is first or behind FOLLOWED
BY under MATCH ANY, of a statement that asks no more of its runs than how many there are, or for the
graph itself.
"""

from __future__ import annotations

from xscl.comparison import Call, Operand, operand_variables, operands_below
from xscl.query import Query, SelectKind
from xscl.sequence import (
    From,
    Node,
    Operator,
    OperatorKind,
    Repetition,
    Strategy,
    blocks_below,
    nodes_below,
)

__all__ = ["is_counted", "not_drawn", "repetition_of"]

_OF_RUNS = frozenset({"first", "last", "count", "sum", "avg", "min", "max"})
"""Functions of all elements so far."""

_OF_START = frozenset({"start", "dur"})
"""Functions that read where a run begins."""


def is_counted(query: Query) -> bool:
    """Return whether the runs of a statement are counted."""
    if query.kind is SelectKind.COMPRESSED:
        return not_drawn(query) is None
    rows = query.rows
    # What is counted cannot be asked of tables one by one.
    if (
        rows is None
        or query.tables
        or query.kind is not SelectKind.ALL
        or not_drawn(query) is not None
    ):
        return False
    node = repetition_of(query.root)
    assert node is not None
    unit = set(blocks_below(node))
    own = {variable.name for variable in query.variables if variable.block in unit}
    of_elements = [key for key in rows.keys if own.intersection(operand_variables(key))]
    return (
        all(each == Call("count", ()) for each in rows.aggregates)
        and len(of_elements) <= 1
        and not any(set(operand_variables(key)) - own for key in of_elements)
        and not any(_functions(key) & _OF_RUNS for key in rows.keys)
    )


def repetition_of(root: Node) -> Repetition | None:
    """Return the repetition with which a source ends, or that it is."""
    node = root.node if isinstance(root, From) else root
    last = node.right if isinstance(node, Operator) else node
    return last if isinstance(last, Repetition) else None


def not_drawn(query: Query) -> str | None:
    """Return what of a statement stands against its runs being paths of a graph, if anything."""
    root, node = query.root, repetition_of(query.root)
    if node is None:
        return "a source that does not end with its one repetition"
    if isinstance(root, From) and root.strategy not in (None, Strategy.ANY):
        return "MATCH NEXT, PARTITION or STRICT"
    if isinstance(root, From) and root.where is not None:
        return "WHERE"
    inner = root.node if isinstance(root, From) else root
    before = [] if isinstance(inner, Repetition) else list(nodes_below(inner.left))  # type: ignore[union-attr]
    operators = [each for each in (inner, *before) if isinstance(each, Operator)]
    if any(each.kind is OperatorKind.NEXT for each in operators) or node.condition is not None:
        return "NEXT"
    if not all(isinstance(each, (int, Operator)) for each in before):
        return "alternatives, parentheses, absence or a repetition before the `+`"
    if any(len(each.disjuncts) > 1 for each in operators):
        return "OR in the braces of an operator"
    if node.folds:
        return "FOLD"
    asked = set().union(*(_functions(o) for d in node.disjuncts for o in d.operands()))
    if asked & _OF_RUNS:
        return f"`{min(asked & _OF_RUNS)}` of the elements before"
    if asked & _OF_START:
        return f"`{min(asked & _OF_START)}()` of the run"
    if query.is_lossy:
        return "LOSS"
    if query.confidence is not None:
        return "CONFIDENCE"
    if query.limit is not None and query.kind is SelectKind.COMPRESSED:
        return "LIMIT"
    return None


def _functions(operand: Operand) -> set[str]:
    below = (each for each in operands_below(operand) if isinstance(each, Call))
    return {each.function for each in below}
