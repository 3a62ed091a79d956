"""From a query to plain ones, made of blocks, FOLLOWED BY and JOIN alone.

What is sugar over joins is taken out here, before anything is compiled (semantics, section 13):

    ( a | b )   a statement for each choice of alternatives; a comparison that mentions a variable
                which the choice does not bind is left out
    SAME        a variable for each block and key, and value joins of neighbours
    WITHIN      the window of operators that have none, and `dur() <= T` of each operator
    WHERE       further conditions of the operator whose tuples it keeps
    of a block  conditions of the operator that reads it; `dur()` is that of its document

All of these are open: a further tuple below adds tuples above.  So it does not matter whether a
condition is asked of an operator's tuples or above it, and the matches of the plain statements
together are those of the query.  An operator that chooses is not so: nothing is moved across it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product

from xscl.comparison import UNBOUND
from xscl.path import Literal, Parameter, Path
from xscl.query import (
    INFINITE_US,
    Block,
    Call,
    Conditional,
    Disjunct,
    From,
    Key,
    Node,
    Operand,
    Operator,
    PathFrom,
    Query,
    Residual,
    Unit,
    ValueJoin,
    VariableValue,
    Window,
    operand_variables,
)
from xscl.sequence import nodes_below

__all__ = ["choices", "plain_statements"]

_Disjuncts = tuple[Disjunct, ...]


def choices(statement: Query) -> list[dict[int, Disjunct]]:
    """Return the alternatives of a plain statement: a disjunct for each operator, by its identity.

    A block alone may have conditions: then it stands in a From, which has its disjunct.
    """
    root = statement.root
    if isinstance(root, From):
        return [{id(root): disjunct} for disjunct in root.where or ()]
    operators = list(statement.operators())
    chosen = product(*(operator.disjuncts for operator in operators))
    return [dict(zip(map(id, operators), each, strict=True)) for each in chosen]


def plain_statements(query: Query) -> tuple[Query, ...]:
    """Return the plain statements whose matches together are those of a query.

    Each has all of the query's blocks; those that stand in its `root` are asked for.  Its variables
    are those of the blocks that are.
    """
    nodes = list(nodes_below(query.root))
    if not any(isinstance(node, (From, Unit)) for node in nodes):
        return (query,)
    units = [node for node in nodes if isinstance(node, Unit)]
    statements: list[Query] = []
    for choice in product(*(unit.alternatives for unit in units)):
        left_out = {b for unit in units for b in unit.alternatives}.difference(choice)
        variables = tuple(v for v in query.variables if v.block not in left_out)
        plain = _Plain(query, dict(zip(units, choice, strict=True)), {v.name for v in variables})
        root = plain.root()
        if root is not None:
            blocks = plain.blocks()
            statements.append(replace(query, blocks=blocks, root=root, variables=variables))
    return tuple(statements)


class _ImpossibleError(Exception):
    """No alternative of a condition can hold."""


@dataclass(frozen=True, slots=True)
class _Around:
    """What the clauses around a node ask of it."""

    within: Window | Parameter | None = None
    keys: tuple[Key, ...] = ()


@dataclass(frozen=True, slots=True)
class _Part:
    """A node without sugar, its first and last block, and the conditions of a block."""

    node: Operator | int
    first: int
    last: int
    conditions: _Disjuncts = (Disjunct(),)


@dataclass
class _Plain:
    """One choice of alternatives; `bound` are the variables that it binds."""

    query: Query
    choice: dict[Unit, int]
    bound: set[str]

    def root(self) -> Node | None:
        """Return the root of the plain statement, None where it can have no match."""
        try:
            part = self._part(self.query.root, _Around())
        except _ImpossibleError:
            return None
        if isinstance(part.node, int) and part.conditions != (Disjunct(),):
            return From(part.node, where=part.conditions)
        return part.node

    def blocks(self) -> tuple[Block, ...]:
        """Return the blocks with the paths of their keys."""
        paths: dict[int, list[tuple[str, Path]]] = {}
        for node in nodes_below(self.query.root):
            for key in node.keys if isinstance(node, From) else ():
                for block, name in key.variables:
                    paths.setdefault(block, []).append((name, key.path))
        return tuple(
            replace(block, keys=tuple(paths[i])) if i in paths else block
            for i, block in enumerate(self.query.blocks)
        )

    def _part(self, node: Node, around: _Around) -> _Part:
        match node:
            case int():
                return self._block(node, around)
            case Unit():
                return self._block(self.choice[node], around)
            case Operator():
                return self._operator(node, around)
            case From():
                return self._from(node, around)
        raise AssertionError(f"not run yet: {node}")

    def _block(self, block: int, around: _Around) -> _Part:
        literals = tuple(
            Residual(VariableValue(key.variable(block)), "=", key.literal)
            for key in around.keys
            if key.literal is not None
        )
        return _Part(block, block, block, (Disjunct(residuals=literals),))

    def _operator(self, operator: Operator, around: _Around) -> _Part:
        left, right = self._part(operator.left, around), self._part(operator.right, around)
        own = Disjunct(
            tuple(
                ValueJoin(
                    VariableValue(key.variable(left.last)), VariableValue(key.variable(right.first))
                )
                for key in around.keys
            ),
            _at_most(around.within),
        )
        disjuncts = _all_of(
            self._bound(operator.disjuncts), left.conditions, right.conditions, (own,)
        )
        window = operator.window
        if window == Window(INFINITE_US) and around.within is not None:
            window = around.within
        node = replace(
            operator, left=left.node, right=right.node, disjuncts=disjuncts, window=window
        )
        return _Part(node, left.first, right.last)

    def _from(self, source: From, around: _Around) -> _Part:
        inside = _Around(source.within or around.within, (*around.keys, *source.keys))
        part = self._part(source.node, inside)
        where = (Disjunct(),) if source.where is None else self._bound(source.where)
        if isinstance(part.node, Operator):
            disjuncts = _all_of(part.node.disjuncts, where)
            return replace(part, node=replace(part.node, disjuncts=disjuncts))
        block = part.node
        there = tuple(
            Residual(VariableValue(key.variable(block)), "!=", Literal("")) for key in source.keys
        )
        asked = _all_of(where, (Disjunct(residuals=_at_most(source.within) + there),))
        own = _of_document(self.query.blocks[block].root, asked)
        return replace(part, conditions=_all_of(part.conditions, own))

    # -- what is bound -------------------------------------------------------------------------

    def _bound(self, disjuncts: Iterable[Disjunct]) -> _Disjuncts:
        """Return a predicate without what mentions variables that are not bound."""
        return tuple(found for each in disjuncts if (found := self._conjunction(each)) is not None)

    def _conjunction(self, disjunct: Disjunct) -> Disjunct | None:
        """Return what is left of a conjunction, None where it cannot hold."""
        joins = [
            join
            for join in disjunct.value_joins
            if self.bound.issuperset(operand_variables(join.left) + operand_variables(join.right))
        ]
        residuals = [
            Residual(left, residual.operator, right)
            for residual in disjunct.residuals
            if (left := self._operand(residual.left)) != UNBOUND
            and (right := self._operand(residual.right)) != UNBOUND
        ]
        tests: list[Call] = []
        for test in disjunct.tests:
            arguments = tuple(map(self._operand, test.arguments))
            if test.function in ("exists", "empty") and not _is_open(arguments[0]):
                if (arguments[0] != UNBOUND) != (test.function == "exists"):
                    return None
            elif UNBOUND not in arguments:
                tests.append(replace(test, arguments=arguments))
        return replace(
            disjunct, value_joins=tuple(joins), residuals=tuple(residuals), tests=tuple(tests)
        )

    def _operand(self, operand: Operand) -> Operand:
        """Return an operand of bound variables, `UNBOUND` where it rests on others."""
        match operand:
            case VariableValue(variable) | PathFrom(variable):
                return operand if variable in self.bound else UNBOUND
            case Call(function, arguments):
                inner = tuple(map(self._operand, arguments))
                return UNBOUND if UNBOUND in inner else Call(function, inner)
            case Conditional(condition, then, otherwise):
                then, otherwise = self._operand(then), self._operand(otherwise)
                return Conditional(self._bound(condition), then, otherwise)
        return operand


def _is_open(operand: Operand) -> bool:
    """Whether it depends on a tuple if an operand has a value."""
    return operand != UNBOUND and not isinstance(operand, VariableValue)


def _all_of(*predicates: Sequence[Disjunct]) -> _Disjuncts:
    """Return the disjuncts of a conjunction of predicates."""
    found = tuple(dict.fromkeys(map(_merged, product(*predicates))))
    if not found:
        raise _ImpossibleError
    return found


def _merged(disjuncts: Sequence[Disjunct]) -> Disjunct:
    return Disjunct(
        tuple(dict.fromkeys(join for each in disjuncts for join in each.value_joins)),
        tuple(dict.fromkeys(residual for each in disjuncts for residual in each.residuals)),
        tuple(dict.fromkeys(join for each in disjuncts for join in each.similarity_joins)),
        tuple(dict.fromkeys(test for each in disjuncts for test in each.tests)),
    )


def _at_most(within: Window | Parameter | None) -> tuple[Residual, ...]:
    """Return what WITHIN asks of a tuple."""
    if within is None or within == Window(INFINITE_US):
        return ()
    length = Literal(float(within.length_us)) if isinstance(within, Window) else within
    return (Residual(Call("dur", ()), "<=", length),)


# -- conditions of a block -----------------------------------------------------------------------


def _of_document(root: str, disjuncts: _Disjuncts) -> _Disjuncts:
    """Return conditions of a block's tuples as conditions of tuples that it is a part of."""
    start, end = (Call(function, (VariableValue(root),)) for function in ("start", "time"))
    times = {"start": start, "end": end, "dur": Call("-", (end, start))}

    def of(operand: Operand) -> Operand:
        match operand:
            case Call(function, ()) if function in times:
                return times[function]
            case Call(function, arguments):
                return Call(function, tuple(map(of, arguments)))
            case Conditional(condition, then, otherwise):
                return Conditional(tuple(map(of_all, condition)), of(then), of(otherwise))
        return operand

    def of_all(disjunct: Disjunct) -> Disjunct:
        return replace(
            disjunct,
            residuals=tuple(
                Residual(of(each.left), each.operator, of(each.right))
                for each in disjunct.residuals
            ),
            tests=tuple(
                replace(test, arguments=tuple(map(of, test.arguments))) for test in disjunct.tests
            ),
        )

    return tuple(map(of_all, disjuncts))
