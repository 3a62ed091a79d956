"""From a query to plain ones, made of blocks, FOLLOWED BY and JOIN alone.

What is sugar over joins is taken out here, before anything is compiled (semantics, section 13):

    ( a | b )   a statement for each choice of alternatives; a comparison that mentions a variable
                which the choice does not bind is left out
    U+          a `Repeated` node; in conditions its variables are those of elements
    SAME        a variable for each block and key, and value joins of neighbours
    WITHIN      the window of operators that have none, and `dur() <= T` of each operator
    WHERE       further conditions of the operator whose tuples it keeps; where the statement uses
                tables, of its decided tuples
    of a block  conditions of the operator that reads it; `dur()` is that of its document

All of these are open: a further tuple below adds tuples above.  So it does not matter whether a
condition is asked of an operator's tuples or above it, and the matches of the plain statements
together are those of the query.  An operator that chooses is not so: nothing is moved across it.
It becomes an `Ordered` node, which says what is asked of its operands and, apart, of what it gives;
its absent units keep their alternatives, since all of them take away from one decision.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from templates.decision import DecisionKind
from templates.elements import (
    RepeatedUnit,
    operand_with_elements,
    repeated_units,
    with_elements,
)
from templates.optionalpaths import fresh_paths, with_optional
from templates.ordered import AbsentUnit, Kept, Ordered, PlainNode, Repeated
from xscl.comparison import UNBOUND
from xscl.path import Literal, Parameter, Path
from xscl.query import (
    INFINITE_US,
    Absence,
    AbsenceKind,
    Block,
    Call,
    Cell,
    Conditional,
    Disjunct,
    Elements,
    Fold,
    From,
    Key,
    Node,
    Operand,
    Operator,
    OperatorKind,
    PathFrom,
    Query,
    Repetition,
    Residual,
    Row,
    Unit,
    ValueJoin,
    Variable,
    VariableValue,
    Window,
    operand_variables,
)
from xscl.sequence import blocks_below, decides, nodes_below
from xscl.table import Action, DeleteRow, SetCell

__all__ = ["plain_statements"]

_Disjuncts = tuple[Disjunct, ...]


def plain_statements(query: Query) -> tuple[Query, ...]:
    """Return the plain statements whose matches together are those of a query.

    Each has all of the query's blocks; those that stand in its `root` are asked for.  Its variables
    are those of the blocks that are.
    """
    nodes = list(nodes_below(query.root))
    is_plain = not any(
        isinstance(node, (From, Unit, Repetition)) or decides(node) for node in nodes
    )
    if is_plain and not query.tables:
        return (query,)
    absent = [node.absent for node in nodes if isinstance(node, Absence)]
    repeated = [node.unit for node in nodes if isinstance(node, Repetition)]
    apart = {block for unit in absent for block in blocks_below(unit)}
    own = {id(unit) for unit in (*absent, *repeated)}
    units = [node for node in nodes if isinstance(node, Unit) and id(node) not in own]
    statements: list[Query] = []
    for choice in product(*(unit.alternatives for unit in units)):
        left_out = {b for unit in units for b in unit.alternatives}.difference(choice)
        variables = tuple(v for v in query.variables if v.block not in left_out)
        bound = {v.name for v in variables if v.block not in apart}
        plain = _Plain(query, dict(zip(units, choice, strict=True)), bound)
        root = plain.root()
        if root is not None:
            blocks = plain.blocks()
            source: Any = root
            statements.append(
                replace(
                    query,
                    blocks=blocks,
                    root=source,
                    variables=(*variables, *plain.carried()),
                    actions=tuple(plain.actions()),
                )
            )
    return tuple(statements)


class _ImpossibleError(Exception):
    """No alternative of a condition can hold."""


@dataclass(frozen=True, slots=True)
class _Around:
    """What the clauses around a node ask of it."""

    within: Window | Parameter | None = None
    keys: tuple[Key, ...] = ()
    within_us: int = INFINITE_US


@dataclass(frozen=True, slots=True)
class _Part:
    """A node without sugar, its first and last block, and the conditions of a block."""

    node: Operator | Ordered | Repeated | Kept | int
    first: int
    last: int
    conditions: _Disjuncts = (Disjunct(),)


@dataclass
class _Plain:
    """One choice of alternatives; `bound` are the variables that it binds."""

    query: Query
    choice: dict[Unit, int]
    bound: set[str]

    def __post_init__(self) -> None:
        nodes = list(nodes_below(self.query.root))
        decided = [node for node in nodes if decides(node) or isinstance(node, Repetition)]
        self._origins = {id(node): origin for origin, node in enumerate(decided)}
        self._fresh = fresh_paths(self.query)
        self._units = repeated_units(self.query)
        self._unit_of = {block: unit for unit in self._units for block in unit.blocks}
        of_elements = frozenset[str]().union(*(unit.variables for unit in self._units))
        self._of_elements = {v: p for v, p in self._fresh.items() if v in of_elements}
        self.bound |= frozenset().union(*(unit.folds for unit in self._units))
        keys = [key for node in nodes if isinstance(node, From) for key in node.keys]
        self._key_numbers = {key: number for number, key in enumerate(keys)}

    def carried(self) -> Iterator[Variable]:
        """Yield what tuples carry of runs, as variables."""
        for unit in self._units:
            names = (unit.run, *(unit.key(number) for number in self._key_numbers.values()))
            yield from (Variable(name, unit.first, name) for name in names)

    def _key(self, key: Key, block: int) -> str:
        """Return the variable of a key in a block; of a run it is the value that it carries."""
        unit = self._unit_of.get(block)
        return key.variable(block) if unit is None else unit.key(self._key_numbers[key])

    def root(self) -> PlainNode | None:
        """Return the root of the plain statement, None where it can have no match."""
        try:
            if self.query.tables:
                return self._settled()
            part = self._part(self.query.root, _Around())
        except _ImpossibleError:
            return None
        if isinstance(part.node, int) and part.conditions != (Disjunct(),):
            return From(part.node, where=part.conditions)
        return part.node

    def _settled(self) -> PlainNode:
        """Return the root of a statement that uses tables: decided, and WHERE behind that."""
        source = self.query.root
        where: _Disjuncts = (Disjunct(),)
        if isinstance(source, From) and source.where is not None:
            where = self._bound(source.where)
            source = replace(source, where=None)
        around = _Around()
        part = self._part(source, around)
        match part.node:
            case Kept(node, kept):
                return Kept(node, self._all_of(kept, where))
            case Ordered():
                return Kept(part.node, where)
        operands = (self._source(part, around),)
        settled = Ordered(
            len(self._origins),
            DecisionKind.SETTLED,
            operands,
            (Disjunct(),),
            (),
            INFINITE_US,
            INFINITE_US,
        )
        return Kept(settled, where)

    def actions(self) -> Iterator[Action]:
        """Yield the actions whose variables are bound."""
        for action in self.query.actions:
            match action:
                case DeleteRow(row) if self._operand(row) != UNBOUND:
                    yield action
                case SetCell(cell, value):
                    bound = self._operand(value)
                    if self._operand(cell) != UNBOUND and bound != UNBOUND:
                        yield SetCell(cell, bound)

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
            case Repetition():
                return self._repeated(node, None, around)
            case Operator(right=Repetition() as right):
                return self._repeated(right, node, around)
            case Operator(kind=OperatorKind.NEXT) | Absence():
                return self._ordered(node, around)
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
        joins = tuple(self._key_joins(around.keys, left.last, right.first))
        own = Disjunct(joins, _at_most(around.within))
        disjuncts = self._all_of(
            self._bound(operator.disjuncts), left.conditions, right.conditions, (own,)
        )
        window = operator.window
        if window == Window(INFINITE_US) and around.within is not None:
            window = around.within
        sides: list[Any] = [left.node, right.node]
        node = replace(operator, left=sides[0], right=sides[1], disjuncts=disjuncts, window=window)
        return _Part(node, left.first, right.last)

    def _from(self, source: From, around: _Around) -> _Part:
        inside = _Around(
            source.within or around.within,
            (*around.keys, *source.keys),
            min(around.within_us, _length_us(source.within)),
        )
        part = self._part(source.node, inside)
        where = (Disjunct(),) if source.where is None else self._bound(source.where)
        if isinstance(part.node, (Ordered, Repeated)):
            return replace(part, node=Kept(part.node, where)) if source.where is not None else part
        if isinstance(part.node, Kept):
            kept = self._all_of(part.node.where, where)
            return replace(part, node=replace(part.node, where=kept))
        if isinstance(part.node, Operator):
            disjuncts = self._all_of(part.node.disjuncts, where)
            return replace(part, node=replace(part.node, disjuncts=disjuncts))
        block = part.node
        there = tuple(
            Residual(VariableValue(key.variable(block)), "!=", Literal("")) for key in source.keys
        )
        asked = self._all_of(where, (Disjunct(residuals=_at_most(source.within) + there),))
        own = _of_document(self.query.blocks[block].root, asked)
        return replace(part, conditions=self._all_of(part.conditions, own))

    def _key_joins(self, keys: Iterable[Key], left: int, right: int) -> Iterator[ValueJoin]:
        """Yield the conjuncts of SAME that make two blocks have the same keys."""
        for key in keys:
            names = self._key(key, left), self._key(key, right)
            yield ValueJoin(*map(VariableValue, names))

    # -- what is repeated ----------------------------------------------------------------------

    def _repeated(self, node: Repetition, before: Operator | None, around: _Around) -> _Part:
        unit = next(u for u in self._units if u.first == next(blocks_below(node)))
        left = None if before is None else self._part(before.left, around)
        window_us = INFINITE_US if before is None else _length_us(before.window)
        literals = tuple(
            Residual(
                Elements(None, "candidate", VariableValue(key.variable(block))), "=", key.literal
            )
            for key in around.keys
            if key.literal is not None
            for block in unit.blocks
        )
        each = self._all_of(self._of_step(node.disjuncts, unit), (Disjunct(residuals=literals),))
        begin: _Disjuncts = (Disjunct(),)
        if before is not None:
            # Another alternative may not compare a path: then it need not be there.
            paths = self._of_elements if len(unit.blocks) == 1 else self._fresh
            asked = [with_elements(d, self._units, paths, unit) for d in before.disjuncts]
            begin = self._bound(asked)
        repeated = Repeated(
            self._origins[id(node)],
            unit,
            before is not None and before.kind is OperatorKind.NEXT,
            None if left is None else self._source(left, around),
            begin,
            each,
            None if node.condition is None else self._of_step(node.condition, unit),
            tuple((fold.name, *self._fold(fold, unit)) for fold in node.folds),
            tuple(tuple(key.variable(b) for key in around.keys) for b in unit.blocks),
            () if left is None else tuple(self._key(key, left.last) for key in around.keys),
            tuple(self._key(key, unit.first) for key in around.keys),
            INFINITE_US if node.gap is None else _length_us(node.gap),
            window_us,
            around.within_us,
            window_us if window_us < INFINITE_US else _length_us(around.within),
        )
        first = unit.first if left is None else left.first
        return _Part(repeated, first, unit.first)

    def _of_step(self, disjuncts: Iterable[Disjunct], unit: RepeatedUnit) -> _Disjuncts:
        """Return what is asked of each element; no path from a variable need be there."""
        return self._bound(
            [with_elements(each, self._units, self._fresh, unit) for each in disjuncts]
        )

    def _fold(self, fold: Fold, unit: RepeatedUnit) -> tuple[Operand, Operand]:
        sides = (fold.first, fold.following)
        first, following = (
            self._operand(operand_with_elements(each, self._units, self._fresh, unit))
            for each in sides
        )
        return first, following

    # -- what is decided -----------------------------------------------------------------------

    def _ordered(self, node: Operator | Absence, around: _Around) -> _Part:
        origin = self._origins[id(node)]
        absences, first = absences_at(node)
        if not absences or absences[0].kind is AbsenceKind.BETWEEN:
            assert isinstance(first, Operator)
            parts = [self._part(each, around) for each in (first.left, first.right)]
            kind = DecisionKind.NEXT if first.kind is OperatorKind.NEXT else DecisionKind.PAIRS
            joined = Disjunct(tuple(self._key_joins(around.keys, parts[0].last, parts[1].first)))
            disjuncts = self._all_of(self._bound(first.disjuncts), (joined,))
            window_us = _length_us(first.window)
        else:
            parts = [self._part(first, around)]
            kind = _KINDS[absences[0].kind]
            disjuncts = (Disjunct(),)
            window_us = _length_us(absences[0].window)
        if kind is not DecisionKind.BEFORE and window_us >= INFINITE_US:
            window_us = _length_us(around.within)
        ordered = Ordered(
            origin,
            kind,
            tuple(self._source(each, around) for each in parts),
            disjuncts,
            tuple(self._absent(each, parts[0].last, around) for each in absences),
            window_us,
            around.within_us,
        )
        return _Part(ordered, parts[0].first, parts[-1].last)

    def _source(self, part: _Part, around: _Around) -> PlainNode:
        """Return an operand whose conditions are asked before anything is chosen."""
        if not isinstance(part.node, int):
            return part.node
        there = tuple(
            Residual(VariableValue(key.variable(part.node)), "!=", Literal(""))
            for key in around.keys
        )
        conditions = self._all_of(part.conditions, (Disjunct(residuals=there),))
        return part.node if conditions == (Disjunct(),) else From(part.node, where=conditions)

    def _absent(self, absence: Absence, last: int, around: _Around) -> AbsentUnit:
        blocks: list[tuple[int, _Disjuncts]] = []
        for block in blocks_below(absence.absent):
            own = {v.name for v in self.query.variables if v.block == block}
            inside = replace(self, bound=self.bound | own)
            bound = inside._bound(absence.disjuncts)
            asked = tuple(with_optional(each, self._fresh, own) for each in bound)
            joined = Disjunct(tuple(self._key_joins(around.keys, last, block)))
            blocks.append((block, tuple(_merged(each) for each in product(asked, (joined,)))))
        is_own = absence.kind in (AbsenceKind.BEFORE, AbsenceKind.BETWEEN)
        return AbsentUnit(tuple(blocks), _length_us(absence.window) if is_own else INFINITE_US)

    def _all_of(self, *predicates: Sequence[Disjunct]) -> _Disjuncts:
        """Return the disjuncts of a conjunction of predicates.

        Where something is decided, an alternative that can have no match competes all the same.
        """
        found = _all_of(*predicates)
        if not found and self.query.is_plain:
            raise _ImpossibleError
        return found

    # -- what is bound -------------------------------------------------------------------------

    def _bound(self, disjuncts: Iterable[Disjunct]) -> _Disjuncts:
        """Return a predicate without what mentions variables that are not bound."""
        asked = [with_elements(d, self._units, self._of_elements) for d in disjuncts]
        return tuple(found for each in asked if (found := self._conjunction(each)) is not None)

    def _conjunction(self, disjunct: Disjunct) -> Disjunct | None:
        """Return what is left of a conjunction, None where it cannot hold."""
        joins = [
            join
            for join in disjunct.value_joins
            if self.bound.issuperset(operand_variables(join.left) + operand_variables(join.right))
        ]
        similar = [
            join
            for join in disjunct.similarity_joins
            if self.bound.issuperset(operand_variables(join.measured))
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
        return Disjunct(tuple(joins), tuple(residuals), tuple(similar), tuple(tests))

    def _operand(self, operand: Operand) -> Operand:
        """Return an operand of bound variables, `UNBOUND` where it rests on others."""
        match operand:
            case VariableValue(variable) | PathFrom(variable):
                return operand if variable in self.bound else UNBOUND
            case Call(function, arguments):
                inner = tuple(map(self._operand, arguments))
                return UNBOUND if UNBOUND in inner else Call(function, inner)
            case Row(key=key):
                return UNBOUND if self._operand(key) == UNBOUND else operand
            case Cell(row=row):
                return UNBOUND if self._operand(row) == UNBOUND else operand
            case Conditional(condition, then, otherwise):
                then, otherwise = self._operand(then), self._operand(otherwise)
                return Conditional(self._bound(condition), then, otherwise)
        return operand


_KINDS = {
    AbsenceKind.BEFORE: DecisionKind.BEFORE,
    AbsenceKind.AFTER: DecisionKind.AFTER,
    AbsenceKind.AROUND: DecisionKind.AROUND,
}


def absences_at(node: Node) -> tuple[list[Absence], Node]:
    """Return the absences that are decided together at a node, and what stands below them."""
    found: list[Absence] = []
    while isinstance(node, Absence) and (not found or node.kind is found[0].kind):
        if found and node.kind not in (AbsenceKind.BEFORE, AbsenceKind.BETWEEN):
            break
        found.append(node)
        node = node.operand
    return found, node


def _length_us(window: Window | Parameter | None) -> int:
    """Return a length where decisions are: of parameters only the values are decided on."""
    return window.length_us if isinstance(window, Window) else INFINITE_US


def _is_open(operand: Operand) -> bool:
    """Whether it depends on a tuple if an operand has a value."""
    return operand != UNBOUND and not isinstance(operand, VariableValue)


def _all_of(*predicates: Sequence[Disjunct]) -> _Disjuncts:
    """Return the disjuncts of a conjunction of predicates."""
    return tuple(dict.fromkeys(map(_merged, product(*predicates))))


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
