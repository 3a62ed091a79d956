"""From a query to plain ones, made of blocks, FOLLOWED BY and JOIN alone.

What is sugar over joins is taken out here, before anything is compiled (semantics, section 13):

    ( a | b )   a statement for each choice of alternatives; a comparison that mentions a variable
                which the choice does not bind is left out
    U+          a `Repeated` node; in conditions its variables are those of elements
    MATCH       a `Chained` node for the whole chain (`templates.chained`)
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

from templates.chained import ChainReading
from templates.comparisons import held_against_data
from templates.decision import DecisionKind
from templates.elements import (
    RepeatedUnit,
    operand_with_elements,
    repeated_units,
    with_elements,
)
from templates.keys import SameKeys, literals_of, present
from templates.optionalpaths import fresh_paths, with_optional
from templates.ordered import AbsentUnit, Chained, Kept, Ordered, PlainNode, Repeated, blocks_of
from templates.outcome import with_outcome
from templates.predicates import (
    BoundVariables,
    Disjuncts,
    all_of,
    at_most,
    merged,
    of_document,
)
from xscl.comparison import UNBOUND
from xscl.counting import is_counted
from xscl.path import Parameter
from xscl.query import (
    INFINITE_US,
    Absence,
    AbsenceKind,
    Disjunct,
    Elements,
    Fold,
    From,
    Key,
    Node,
    Operand,
    Operator,
    OperatorKind,
    Query,
    Repetition,
    Strategy,
    Unit,
    Window,
)
from xscl.sequence import absences_at, blocks_below, decides, is_chain, nodes_below
from xscl.table import Action, DeleteRow, SetCell

__all__ = ["plain_statements"]


def plain_statements(query: Query) -> tuple[Query, ...]:
    """Return the plain statements whose matches together are those of a query.

    Each has all of the query's blocks; blocks that stand in its `root` are asked for, and its
    variables are theirs.
    """
    nodes = list(nodes_below(query.root))
    is_plain = not any(
        isinstance(node, (From, Unit, Repetition)) or decides(node) for node in nodes
    )
    if is_plain and not query.is_settled:
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
        bound = frozenset(v.name for v in variables if v.block not in apart)
        plain = _Plain(query, dict(zip(units, choice, strict=True)), bound)
        root = plain.root()
        if root is not None:
            source: Any = root
            statements.append(
                replace(
                    plain.behind(),
                    blocks=plain.keys.blocks(),
                    root=source,
                    variables=(*variables, *plain.keys.carried()),
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
    chain: From | None = None


@dataclass(frozen=True, slots=True)
class _Part:
    """A node without sugar, its first and last block, and the conditions of a block."""

    node: Operator | Ordered | Repeated | Chained | Kept | int
    first: int
    last: int
    conditions: Disjuncts = (Disjunct(),)


@dataclass
class _Plain:
    """One choice of alternatives; `bound` are the variables that it binds."""

    query: Query
    choice: dict[Unit, int]
    bound: frozenset[str]

    def __post_init__(self) -> None:
        nodes = list(nodes_below(self.query.root))
        decided = [
            node
            for node in nodes
            if decides(node) or isinstance(node, Repetition) or is_chain(node)
        ]
        self._origins = {id(node): origin for origin, node in enumerate(decided)}
        self._fresh = fresh_paths(self.query)
        self._units = repeated_units(self.query)
        of_elements = frozenset[str]().union(*(unit.variables for unit in self._units))
        self._of_elements = {v: p for v, p in self._fresh.items() if v in of_elements}
        carried = self.bound.union(*(unit.folds for unit in self._units))
        self._binding = BoundVariables(carried, self._units, self._of_elements)
        self.keys = SameKeys(self.query, self._units)

    def root(self) -> PlainNode | None:
        """Return the root of the plain statement, None where it can have no match."""
        try:
            if self.query.is_settled:
                return self._settled()
            part = self._part(self.query.root, _Around())
        except _ImpossibleError:
            return None
        if isinstance(part.node, int) and part.conditions != (Disjunct(),):
            return From(part.node, where=part.conditions)
        return part.node

    def _settled(self) -> PlainNode:
        """Return the root of a statement whose tuples are all decided.

        Where it uses tables, WHERE stands behind that.
        """
        source = self.query.root
        where: Disjuncts = (Disjunct(),)
        if self.query.tables and isinstance(source, From) and source.where is not None:
            where = self._binding.predicate(source.where)
            source = replace(source, where=None)
        around = _Around()
        part = self._part(source, around)
        if isinstance(part.node, Repeated) and is_counted(self.query):
            return Kept(part.node, where)
        match part.node:
            case Kept(node, kept) if _is_decided(node):
                return Kept(node, self._all_of(kept, where))
            case Chained() | Ordered() | Repeated() if _is_decided(part.node):
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

    def behind(self) -> Query:
        """Return the query with what rows and limits read, `UNBOUND` where it is not bound here."""

        def read(operand: Operand) -> Operand:
            return self._binding.operand(
                operand_with_elements(operand, self._units, self._of_elements)
            )

        chosen = set(self.choice.values())
        return with_outcome(self.query, read, lambda key: self.keys.first(key, chosen))

    def actions(self) -> Iterator[Action]:
        """Yield the actions whose variables are bound."""
        for action in self.query.actions:
            match action:
                case DeleteRow(row) if self._binding.operand(row) != UNBOUND:
                    yield action
                case SetCell(cell, value):
                    bound = self._binding.operand(value)
                    if self._binding.operand(cell) != UNBOUND and bound != UNBOUND:
                        yield SetCell(cell, bound)

    def _part(self, node: Node, around: _Around) -> _Part:
        is_behind = isinstance(node, Absence) and node.kind is AbsenceKind.AFTER
        if around.chain is not None and not is_behind:
            return self._chained(node, around.chain, around)
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
        literals = tuple(literals_of(around.keys, block))
        return _Part(block, block, block, (Disjunct(residuals=literals),))

    def _operator(self, operator: Operator, around: _Around) -> _Part:
        left, right = self._part(operator.left, around), self._part(operator.right, around)
        joins = tuple(self.keys.joins(around.keys, left.last, right.first))
        own = Disjunct(joins, at_most(around.within))
        disjuncts = self._all_of(
            self._binding.predicate(operator.disjuncts), left.conditions, right.conditions, (own,)
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
            None if source.strategy in (None, Strategy.ANY) else source,
        )
        part = self._part(source.node, inside)
        where = (Disjunct(),) if source.where is None else self._binding.predicate(source.where)
        if isinstance(part.node, int):
            there = present(source.keys, part.node)
            where = self._all_of(where, (Disjunct(residuals=at_most(source.within) + there),))
        elif source.where is None:
            return part
        return self._kept(part, where)

    def _kept(self, part: _Part, where: Disjuncts) -> _Part:
        """Return a part of whose tuples more is asked."""
        match part.node:
            case Ordered() | Repeated() | Chained():
                return replace(part, node=Kept(part.node, where))
            case Kept(node, kept):
                return replace(part, node=Kept(node, self._all_of(kept, where)))
            case Operator(disjuncts=disjuncts):
                asked = self._all_of(disjuncts, where)
                return replace(part, node=replace(part.node, disjuncts=asked))
        own = of_document(self.query.blocks[part.node].root, where)
        return replace(part, conditions=self._all_of(part.conditions, own))

    # -- what is repeated ----------------------------------------------------------------------

    def _repeated(
        self,
        node: Repetition,
        before: Operator | None,
        around: _Around,
        absences: Sequence[Absence] = (),
    ) -> _Part:
        unit = next(u for u in self._units if u.first == next(blocks_below(node)))
        left = None if before is None else self._part(before.left, around)
        window_us = INFINITE_US if before is None else _length_us(before.window)
        literals = tuple(
            replace(each, left=Elements(None, "candidate", each.left))
            for each in literals_of(around.keys, *unit.blocks)
        )
        each = self._all_of(self._of_step(node.disjuncts, unit), (Disjunct(residuals=literals),))
        begin: Disjuncts = (Disjunct(),)
        if before is not None:
            # Another alternative may not compare a path: then it need not be there.
            paths = self._of_elements if len(unit.blocks) == 1 else self._fresh
            asked = [with_elements(d, self._units, paths, unit) for d in before.disjuncts]
            begin = self._binding.predicate(asked)
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
            ()
            if left is None
            else tuple(self.keys.variable(key, left.last) for key in around.keys),
            tuple(self.keys.variable(key, unit.first) for key in around.keys),
            INFINITE_US if node.gap is None else _length_us(node.gap),
            window_us,
            around.within_us,
            window_us if window_us < INFINITE_US else _length_us(around.within),
            tuple(self._chain_reading().absent(1, each, around.keys) for each in absences),
        )
        first = unit.first if left is None else left.first
        return _Part(repeated, first, unit.first)

    def _of_step(self, disjuncts: Iterable[Disjunct], unit: RepeatedUnit) -> Disjuncts:
        """Return what is asked of each element; no path from a variable need be there."""
        return self._binding.predicate(
            [with_elements(each, self._units, self._fresh, unit) for each in disjuncts]
        )

    def _fold(self, fold: Fold, unit: RepeatedUnit) -> tuple[Operand, Operand]:
        sides = (fold.first, fold.following)
        first, following = (
            self._binding.operand(operand_with_elements(each, self._units, self._fresh, unit))
            for each in sides
        )
        return first, following

    def _chain_reading(self) -> ChainReading:
        return ChainReading(
            self.query,
            self.choice,
            self._units,
            self._fresh,
            self._of_elements,
            self._binding.predicate,
            self.keys,
        )

    def _chained(self, node: Node, source: From, around: _Around) -> _Part:
        chained = self._chain_reading().chain(
            self._origins[id(source)],
            node,
            source,
            around.keys,
            around.within_us,
            _length_us(around.within),
        )
        return _Part(chained, chained.steps[0].block, chained.steps[-1].block)

    # -- what is decided -----------------------------------------------------------------------

    def _ordered(self, node: Operator | Absence, around: _Around) -> _Part:
        origin = self._origins[id(node)]
        absences, first = absences_at(node)
        is_between = absences and absences[0].kind is AbsenceKind.BETWEEN
        if is_between and isinstance(first, Operator) and isinstance(first.right, Repetition):
            return self._repeated(first.right, first, around, absences)
        given: Parameter | None = None
        if not absences or absences[0].kind is AbsenceKind.BETWEEN:
            assert isinstance(first, Operator)
            parts = [self._part(each, around) for each in (first.left, first.right)]
            kind = DecisionKind.NEXT if first.kind is OperatorKind.NEXT else DecisionKind.PAIRS
            joined = Disjunct(tuple(self.keys.joins(around.keys, parts[0].last, parts[1].first)))
            disjuncts = self._all_of(self._binding.predicate(first.disjuncts), (joined,))
            parts, disjuncts = self._held_against_data(parts, disjuncts)
            window_us = _length_us(first.window)
            if kind is DecisionKind.NEXT and isinstance(first.window, Parameter):
                given = first.window
        else:
            parts = [self._part(first, around)]
            kind = _KINDS[absences[0].kind]
            disjuncts = (Disjunct(),)
            window_us = _length_us(absences[0].window)
            if isinstance(absences[0].window, Parameter) and kind in _AT_END:
                given = absences[0].window
        if kind is not DecisionKind.BEFORE and window_us >= INFINITE_US:
            window_us = _length_us(around.within)
        ordered = Ordered(
            origin,
            kind,
            tuple(self._source(each, around) for each in parts),
            disjuncts,
            tuple(self._absent(each, parts[0].last, around) for each in absences),
            given or window_us,
            around.within_us,
        )
        return _Part(ordered, parts[0].first, parts[-1].last)

    def _held_against_data(
        self, parts: Sequence[_Part], disjuncts: Disjuncts
    ) -> tuple[list[_Part], Disjuncts]:
        """Move what a predicate holds of one operand against a parameter into that operand.

        Returns the operands, and what is left of the predicate.
        """
        if len(disjuncts) != 1:
            return list(parts), disjuncts
        [rest] = disjuncts
        texts = {name for name, kind in self.query.parameters if kind not in ("number", "duration")}
        found: list[_Part] = []
        for part in parts:
            blocks = set(blocks_of(part.node))
            names = {v.name for v in self.query.variables if v.block in blocks}
            own, rest = held_against_data(rest, names, texts)
            found.append(self._kept(part, (own,)) if own != Disjunct() else part)
        return found, (rest,)

    def _source(self, part: _Part, around: _Around) -> PlainNode:
        """Return an operand whose conditions are asked before anything is chosen."""
        if not isinstance(part.node, int):
            return part.node
        there = Disjunct(residuals=present(around.keys, part.node))
        conditions = self._all_of(part.conditions, (there,))
        return part.node if conditions == (Disjunct(),) else From(part.node, where=conditions)

    def _absent(self, absence: Absence, last: int, around: _Around) -> AbsentUnit:
        blocks: list[tuple[int, Disjuncts]] = []
        for block in blocks_below(absence.absent):
            own = {v.name for v in self.query.variables if v.block == block}
            inside = self._binding.also(own)
            bound = inside.predicate(absence.disjuncts)
            asked = tuple(with_optional(each, self._fresh, own) for each in bound)
            joined = Disjunct(tuple(self.keys.joins(around.keys, last, block)))
            blocks.append((block, tuple(merged(each) for each in product(asked, (joined,)))))
        is_own = absence.kind in (AbsenceKind.BEFORE, AbsenceKind.BETWEEN)
        return AbsentUnit(tuple(blocks), _length_us(absence.window) if is_own else INFINITE_US)

    def _all_of(self, *predicates: Sequence[Disjunct]) -> Disjuncts:
        """Return the disjuncts of a conjunction of predicates.

        Where something is decided, an alternative that can have no match competes all the same.
        """
        found = all_of(*predicates)
        if not found and self.query.is_plain:
            raise _ImpossibleError
        return found


def _is_decided(node: PlainNode) -> bool:
    """Whether tuples of a node are decided as they are found."""
    return isinstance(node, (Chained, Ordered)) or (isinstance(node, Repeated) and node.is_next)


_KINDS = {
    AbsenceKind.BEFORE: DecisionKind.BEFORE,
    AbsenceKind.AFTER: DecisionKind.AFTER,
    AbsenceKind.AROUND: DecisionKind.AROUND,
}


_AT_END = (DecisionKind.AFTER, DecisionKind.AROUND)
"""What is decided when a window is over, which may be data."""


def _length_us(window: Window | Parameter | None) -> int:
    """Return a length where decisions are; a parameter is none that all assignments have."""
    return window.length_us if isinstance(window, Window) else INFINITE_US
