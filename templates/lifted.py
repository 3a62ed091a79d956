"""Conditions of blocks in which parameters stand within arithmetic, as comparisons of tuples.

`[price > vat * $x]` compares numbers that a node has, whatever `$x`: the greatest of its prices,
and what `vat` is as a number.  These are values of the node (`ValuesFrom`), and the comparison is
one of the operator that reads the block, solved for its data like others (`templates.computed`), or
asked of each tuple.  All operators above are open, so it does not matter where it is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import replace
from functools import partial, reduce
from typing import Any, cast

from templates.comparisons import both
from templates.ordered import PlainNode
from xscl.comparison import XPATH_NUMBER
from xscl.constants import tested_parameter
from xscl.path import (
    And,
    Comparison,
    Condition,
    Exists,
    FunctionValue,
    Literal,
    Not,
    Opaque,
    Or,
    Parameter,
    Path,
    PathValue,
    Position,
    Step,
    StringTest,
    Value,
    XPathNumber,
    binding_paths,
    condition_parameters,
    conjuncts,
    counts_positions,
)
from xscl.prefilters import Values, ValuesKind
from xscl.query import (
    Call,
    Conditional,
    Disjunct,
    From,
    Operand,
    Operator,
    Query,
    Residual,
    ValuesFrom,
    Variable,
)
from xscl.rewriting import strip_variables
from xscl.xpath1numbers import as_number

__all__ = ["is_lifted", "with_lifted"]

Ask = Callable[[str], Disjunct]
"""Gives what is asked of the values of a variable's node."""


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


def is_lifted(condition: Condition, texts: Set[str]) -> bool:
    """Return whether a condition of a block is asked of tuples, where operators are open.

    `texts` are the parameters that stand for strings.
    """
    return _lifted(condition, texts) is not None


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
    """Return the conditions of a step that stay, and what is asked of its node instead of others.

    What stands before a position stays, since the position counts what it leaves.
    """
    own = [*conjuncts(step.predicates)]
    counting = max((i for i, each in enumerate(own) if counts_positions(each)), default=-1)
    lifted = {i: _lifted(each, texts) for i, each in enumerate(own) if i > counting}
    asks = [ask for ask in lifted.values() if ask is not None]
    if not asks:
        return step.predicates, []
    return tuple(each for i, each in enumerate(own) if lifted.get(i) is None), asks


def _lifted(condition: Condition, texts: Set[str]) -> Ask | None:
    """Return a condition as one of tuples; None if it is none, or its data are a box's."""
    if not any(condition_parameters(condition)) or _binds(condition):
        return None
    condition = strip_variables(condition)
    if tested_parameter(condition, texts) is not None:
        return None
    match condition:
        case Opaque(calculated=(left, operator, right)) if not (
            operator == "=" and (_is_of_nodes(left) or _is_of_nodes(right))
        ):
            # Of several numbers the one that passes if any does.
            kinds = ValuesKind.GREATEST, ValuesKind.LEAST
            kinds = kinds if operator[0] == ">" else kinds[::-1]

            def ask(variable: str) -> Disjunct:
                sides = (_side(e, variable, k) for e, k in zip((left, right), kinds, strict=True))
                return _compared(operator, *sides)

            return ask
    return partial(_asked, condition) if _is_asked_of_values(condition) else None


def _binds(condition: Condition) -> bool:
    return any(any(step.variables()) for path in binding_paths(condition) for step in path.steps)


def _is_asked_of_values(condition: Condition) -> bool:
    """Return whether what a condition asks, with its data, is a matter of values without data."""
    match condition:
        case And(conditions) | Or(conditions):
            return all(map(_is_asked_of_values, conditions))
        case Not(inner):
            return _is_asked_of_values(inner)
        case Position():
            return False
        case Comparison():
            return not any(condition_parameters(replace(condition, right=Literal(""))))
        case StringTest():
            return not any(condition_parameters(replace(condition, argument=Literal(""))))
        case Opaque(is_positional=True):
            return False
        case Opaque(compared=compared, calculated=calculated) if compared or calculated:
            return True
    return not any(condition_parameters(condition))


def _asked(condition: Condition, variable: str) -> Disjunct:
    """Return a condition as one of values of a variable's node, each of which there may be many."""
    match condition:
        case And(conditions):
            return reduce(both, [_asked(each, variable) for each in conditions])
        case Or(conditions):
            return _holds(tuple(_asked(each, variable) for each in conditions))
        case Not(inner):
            return _holds((_asked(inner, variable),), is_negated=True)
        case Comparison(left, operator, (Literal() | Parameter()) as right):
            return _compared(operator, _all(left, variable), right)
        case StringTest(function, value, argument, flags):
            test = Call(function, (_all(value, variable), argument, Literal(flags)))
            return Disjunct(tests=(test,))
        case Exists(path):
            return Disjunct(tests=(Call("exists", (_all(PathValue(path), variable),)),))
        case Opaque(calculated=(left, operator, right)):
            sides = (_side(each, variable, ValuesKind.EVEN_NONE) for each in (left, right))
            return _compared(operator, *sides)
        case Opaque(compared=(number, operator, (Literal() | Parameter()) as constant)):
            given = _number_given(constant)
            of_node = _all(XPathNumber(Path(()), number, condition.namespaces), variable)
            if operator == "!=":  # of what is no number it holds
                return _holds((_compared("=", of_node, given),), is_negated=True)
            return _compared(operator, of_node, given)
        case Opaque(expression, namespaces):
            truth = XPathNumber(Path(()), f"number(boolean({expression}))", namespaces)
            return _compared("=", _all(truth, variable), Literal(1.0))
    raise AssertionError(condition)


def _compared(operator: str, left: Operand, right: Operand) -> Disjunct:
    return Disjunct(residuals=(Residual(left, operator, right),))


def _holds(disjuncts: tuple[Disjunct, ...], *, is_negated: bool = False) -> Disjunct:
    """Return that one of some conjunctions holds, or that none does."""
    truth = Conditional(disjuncts, Literal(1.0), Literal(0.0))
    return _compared("=", truth, Literal(0.0 if is_negated else 1.0))


def _all(value: Value, variable: str) -> Operand:
    return ValuesFrom(variable, Values((value,), ValuesKind.EVEN_NONE))


def _number_given(value: Literal | Parameter) -> Operand:
    """Return data as the number that XPath 1.0 reads in them."""
    if isinstance(value, Parameter):
        return Call(XPATH_NUMBER, (value,))
    return Literal(as_number(value.value))


def _is_of_nodes(side: Value) -> bool:
    return isinstance(side, XPathNumber) and bool(side.path.steps)


def _side(value: Value, variable: str, kind: ValuesKind) -> Operand:
    """Return a side of a comparison that is calculated."""
    match value:
        case FunctionValue(function, arguments):
            return Call(function, tuple(_side(each, variable, kind) for each in arguments))
        case Literal() | Parameter():
            return _number_given(value) if isinstance(value, Parameter) else value
    return ValuesFrom(variable, Values((value,), kind))
