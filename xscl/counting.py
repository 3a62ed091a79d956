"""Which statements count their runs, or the matches of a chain, and do not list them.

Runs are the paths of a graph where what is asked of an element speaks of itself, of the one before
it, and of what stands before the run.  So it is for a repetition that is first or behind FOLLOWED
BY under MATCH ANY, of a statement that asks no more of its runs than how many there are, or for the
graph itself.

So are the matches of a whole chain, with MATCH ANY written out, whose conditions speak of an
element and of the one before it, in the same step or in the last one.  A source of two units or
more and a repetition behind them is such a chain without the clause, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from xscl.comparison import (
    Call,
    Conditional,
    Disjunct,
    Operand,
    PathFrom,
    VariableValue,
    operand_variables,
    operands_below,
)
from xscl.insidewhere import with_where_inside
from xscl.query import Query, SelectKind
from xscl.sequence import (
    From,
    Node,
    Operator,
    OperatorKind,
    Repetition,
    Strategy,
    blocks_below,
    chain_steps,
    nodes_below,
    operators_below,
)

__all__ = ["counted_form", "counts_chain", "is_counted", "not_drawn"]

_OF_RUNS = frozenset({"first", "last", "count", "sum", "avg", "min", "max"})
"""Functions of all elements so far."""

_OF_START = frozenset({"start", "dur"})
"""Functions that read where a run begins."""

_OF_MORE = _OF_RUNS | _OF_START | {"end", "prev", "if"}
"""Functions that may read more of a chain than the elements that they are given."""


def is_counted(query: Query) -> bool:
    """Return whether the runs of a statement are counted, or the matches of its chain."""
    if query.kind is SelectKind.COMPRESSED:
        return not_drawn(query) is None
    rows = query.rows
    # What is counted cannot be asked of tables one by one.
    if (
        rows is None
        or query.tables
        or query.kind is not SelectKind.ALL
        or not all(each == Call("count", ()) for each in rows.aggregates)
    ):
        return False
    query = with_where_inside(query)
    if _not_runs(query) is None and not _is_longer(query):
        return _are_told_apart(query, rows.keys)
    return _not_chain(query) is None and _are_of_chain(query)


def counts_chain(query: Query) -> bool:
    """Return whether what a statement counts are matches of a whole chain."""
    if not is_counted(query):
        return False
    query = with_where_inside(query)
    return _not_runs(query) is not None or _is_longer(query)


def counted_form(query: Query) -> Query:
    """Return a statement that counts as it is compiled: a chain says that it is one."""
    if not is_counted(query):
        return query
    inside = with_where_inside(query)
    if not counts_chain(query):
        return inside
    root = inside.root if isinstance(inside.root, From) else From(inside.root)
    return replace(inside, root=replace(root, strategy=Strategy.ANY))


def not_drawn(query: Query) -> str | None:
    """Return what of a statement stands against its runs being paths of a graph, if anything."""
    query = with_where_inside(query)
    reason = _not_runs(query)
    if reason is None or not _is_open(query.root):
        return reason
    return _not_chain(query)


# -- runs ------------------------------------------------------------------------------------------


def _are_told_apart(query: Query, keys: tuple[Operand, ...]) -> bool:
    """Return whether runs can be told apart by keys while they are counted."""
    node = _repetition_of(query.root)
    assert node is not None
    unit = set(blocks_below(node))
    own = {variable.name for variable in query.variables if variable.block in unit}
    of_elements = [key for key in keys if own.intersection(operand_variables(key))]
    return (
        len(of_elements) <= 1
        and not any(set(operand_variables(key)) - own for key in of_elements)
        and not any(_functions(key) & _OF_RUNS for key in keys)
    )


def _repetition_of(root: Node) -> Repetition | None:
    """Return the repetition with which a source ends, or that it is."""
    node = root.node if isinstance(root, From) else root
    last = node.right if isinstance(node, Operator) else node
    return last if isinstance(last, Repetition) else None


def _not_runs(query: Query) -> str | None:
    """Return what stands against the runs of the last repetition being paths of a graph."""
    root, node = query.root, _repetition_of(query.root)
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
    return _not_of_statement(query)


def _not_of_statement(query: Query) -> str | None:
    """Return which clause of a statement asks for more of its runs than paths of a graph say."""
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


# -- chains ----------------------------------------------------------------------------------------


def _is_longer(query: Query) -> bool:
    """Return whether a source that ends with its one repetition is counted as a whole chain.

    Then what stands before the repetition is no tuple for each choice of its units.
    """
    is_longer = _is_open(query.root) and len(chain_steps(query.root)) > 2
    return is_longer and _not_chain(query) is None and _are_of_chain(query)


def _are_of_chain(query: Query) -> bool:
    """Return whether matches of a chain can be told apart as the rows of a statement ask."""
    keys = () if query.rows is None else query.rows.keys
    return len(keys) <= 1 and all(_is_of_block(query, key) for key in keys)


def _is_open(root: Node) -> bool:
    """Return whether a source is a chain of two steps or more, with MATCH ANY written out.

    Without the clause it may be one of three or more, of which the last alone is repeated: as
    joins it would list what stands before.
    """
    strategy = root.strategy if isinstance(root, From) else None
    steps = chain_steps(root)
    if strategy is None:
        repeated = [isinstance(each, Repetition) for each in steps]
        return len(steps) > 2 and repeated[-1] and not any(repeated[:-1])
    return strategy is Strategy.ANY and len(steps) > 1


def _not_chain(query: Query) -> str | None:
    """Return what stands against the matches of a chain being paths of a graph."""
    root = query.root
    if not _is_open(root):
        return "a source that is no chain of blocks and repetitions under MATCH ANY"
    if isinstance(root, From) and root.where is not None:
        return "WHERE"
    steps, operators = chain_steps(root), list(operators_below(root))
    repeated = [each for each in steps if isinstance(each, Repetition)]
    if any(each.folds for each in repeated):
        return "FOLD"
    asked = [each.disjuncts for each in operators] + [each.disjuncts for each in repeated]
    if any(each.similarity_joins for disjuncts in asked for each in disjuncts):
        return "a measure of similarity"
    for before, operator, step in zip(steps, operators, steps[1:], strict=False):
        if not all(_speaks_of(query, before, step, each) for each in operator.disjuncts):
            return "a condition of more than an element and the one before it"
    for step in repeated:
        if not all(_is_of_neighbours(query, step, each) for each in step.disjuncts):
            return "a condition of more than an element and the one before it"
    return _not_of_statement(query)


def _variables(query: Query, step: Node) -> set[str]:
    blocks = set(blocks_below(step))
    return {variable.name for variable in query.variables if variable.block in blocks}


def _speaks_of(query: Query, before: Node, step: Node, asked: Disjunct) -> bool:
    """Return whether a condition is of the first element of a step and the one before it alone."""
    last = _variables(query, before)
    own = _variables(query, step)
    if not isinstance(before, Repetition):
        own |= last
    return all(_is_of(each, own, last) for each in asked.operands())


def _is_of(operand: Operand, own: set[str], last: set[str]) -> bool:
    """Return whether an operand reads variables of two elements, of one perhaps as `last(e)`."""
    match operand:
        case Call("last", (of,)):
            return set(operand_variables(of)) <= last and not _functions(of) & _OF_MORE
        case Call("time", (VariableValue(name),)):
            return name in own or name in last
        case Call(function, arguments):
            return function not in _OF_MORE and all(_is_of(each, own, last) for each in arguments)
        case VariableValue(name) | PathFrom(name):
            return name in own
    return not any(operand_variables(operand))


def _is_of_neighbours(query: Query, step: Repetition, asked: Disjunct) -> bool:
    """Return whether a condition of a repetition is of an element and the one before it alone.

    Of a first element, which has none before it, a comparison with `prev(e)` is left out.
    """
    own = _variables(query, step)
    if asked.value_joins or any(_functions(test) & _OF_MORE for test in asked.tests):
        return False
    return all(
        set(operand_variables(each)) <= own
        and not _functions(each) & (_OF_MORE - {"prev"})
        and all(len(call.arguments) == 1 for call in _calls(each, "prev"))
        and not any(isinstance(below, Conditional) for below in operands_below(each))
        for each in asked.operands()
    )


def _calls(operand: Operand, function: str) -> Iterator[Call]:
    below = operands_below(operand)
    return (each for each in below if isinstance(each, Call) and each.function == function)


def _is_of_block(query: Query, key: Operand) -> bool:
    """Return whether a key is a value of one element, not of all of a run."""
    names = set(operand_variables(key))
    blocks = {variable.block for variable in query.variables if variable.name in names}
    return len(blocks) == 1 and not _functions(key) & _OF_MORE
