"""From the nodes of a query to those of a plain one, under one choice of alternatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from templates.chained import ChainReading
from templates.comparisons import held_against_data
from templates.decision import DecisionKind
from templates.elements import (
    repeated_units,
)
from templates.keys import SameKeys, present
from templates.optionalpaths import fresh_paths, with_optional
from templates.ordered import (
    AbsentUnit,
    Chained,
    Kept,
    Ordered,
    PlainNode,
    Repeated,
    blocks_of,
    given_us,
    length_us,
)
from templates.predicates import (
    BoundVariables,
    Disjuncts,
    all_of,
    at_most,
    merged,
    of_document,
    tested_joins,
)
from templates.repeated import OperandBefore, RepetitionReading
from xscl.counting import counts_chain
from xscl.path import Parameter
from xscl.query import (
    INFINITE_US,
    Absence,
    AbsenceKind,
    Disjunct,
    From,
    Key,
    Node,
    Operator,
    OperatorKind,
    Query,
    Repetition,
    Unit,
    Window,
)
from xscl.sequence import absences_at, blocks_below, decides, is_chain, nodes_below

__all__ = ["Around", "ImpossibleError", "PlainNodes", "PlainPart", "decided_nodes"]


def decided_nodes(query: Query) -> list[Node]:
    """Return the nodes of a source at which something is decided, or repeated, in their order."""
    return [
        node
        for node in nodes_below(query.root)
        if decides(node)
        or isinstance(node, Repetition)
        or is_chain(node)
        or (node is query.root and _is_found_whole(query))
    ]


def _is_found_whole(query: Query) -> bool:
    """Return whether the source of a query is a chain under MATCH ANY that is not joined."""
    return query.is_open_chain or counts_chain(query)


class ImpossibleError(Exception):
    """No alternative of a condition can hold."""


@dataclass(frozen=True, slots=True)
class Around:
    """What the clauses around a node ask of it."""

    within: Window | Parameter | None = None
    keys: tuple[Key, ...] = ()
    within_us: int = INFINITE_US
    chain: From | None = None


@dataclass(frozen=True, slots=True)
class PlainPart:
    """A node without sugar, its first and last block, and the conditions of a block."""

    node: Operator | Ordered | Repeated | Chained | Kept | int
    first: int
    last: int
    conditions: Disjuncts = (Disjunct(),)


@dataclass
class PlainNodes:
    """One choice of alternatives; `bound` are the variables that it binds."""

    query: Query
    choice: dict[Unit, int]
    bound: frozenset[str]

    def __post_init__(self) -> None:
        decided = decided_nodes(self.query)
        self.origins = {id(node): origin for origin, node in enumerate(decided)}
        self._fresh = fresh_paths(self.query)
        self.units = repeated_units(self.query)
        of_elements = frozenset[str]().union(*(unit.variables for unit in self.units))
        self.of_elements = {v: p for v, p in self._fresh.items() if v in of_elements}
        carried = self.bound.union(*(unit.folds for unit in self.units))
        self.binding = BoundVariables(carried, self.units, self.of_elements)
        self.keys = SameKeys(self.query, self.units)

    def part(self, node: Node, around: Around) -> PlainPart:
        """Return a node without sugar."""
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

    def _block(self, block: int, around: Around) -> PlainPart:
        literals = tuple(self.keys.literals(around.keys, block))
        return PlainPart(block, block, block, (Disjunct(residuals=literals),))

    def _operator(self, operator: Operator, around: Around) -> PlainPart:
        left, right = self.part(operator.left, around), self.part(operator.right, around)
        joins = tuple(self.keys.joins(around.keys, left.last, right.first))
        own = Disjunct(joins, at_most(around.within))
        disjuncts = self.all_of(
            self.binding.predicate(operator.disjuncts), left.conditions, right.conditions, (own,)
        )
        if self.query.parameters:
            disjuncts = tuple(map(tested_joins, disjuncts))
        window = operator.window
        if window == Window(INFINITE_US) and around.within is not None:
            window = around.within
        sides: list[Any] = [left.node, right.node]
        node = replace(operator, left=sides[0], right=sides[1], disjuncts=disjuncts, window=window)
        return PlainPart(node, left.first, right.last)

    def _from(self, source: From, around: Around) -> PlainPart:
        inside = Around(
            source.within or around.within,
            (*around.keys, *source.keys),
            min(around.within_us, length_us(source.within)),
            source if is_chain(source) or self._is_found_whole(source) else None,
        )
        part = self.part(source.node, inside)
        where = (Disjunct(),) if source.where is None else self.binding.predicate(source.where)
        if isinstance(part.node, int):
            there = present(source.keys, part.node)
            where = self.all_of(where, (Disjunct(residuals=at_most(source.within) + there),))
        elif source.where is None:
            return part
        return self._kept(part, where)

    def _is_found_whole(self, source: From) -> bool:
        return source is self.query.root and _is_found_whole(self.query)

    def _kept(self, part: PlainPart, where: Disjuncts) -> PlainPart:
        """Return a part of whose tuples more is asked."""
        match part.node:
            case Ordered() | Repeated() | Chained():
                return replace(part, node=Kept(part.node, where))
            case Kept(node, kept):
                return replace(part, node=Kept(node, self.all_of(kept, where)))
            case Operator(disjuncts=disjuncts):
                asked = self.all_of(disjuncts, where)
                return replace(part, node=replace(part.node, disjuncts=asked))
        own = of_document(self.query.blocks[part.node].root, where)
        return replace(part, conditions=self.all_of(part.conditions, own))

    # -- what is repeated ----------------------------------------------------------------------

    def _repeated(
        self,
        node: Repetition,
        before: Operator | None,
        around: Around,
        absences: Sequence[Absence] = (),
    ) -> PlainPart:
        reading = RepetitionReading(
            self.units, self._fresh, self.of_elements, self.binding, self.keys
        )
        left = None if before is None else self.part(before.left, around)
        operand = None
        if before is not None and left is not None:
            operand = OperandBefore(
                self.source(left, around),
                left.last,
                before.kind is OperatorKind.NEXT,
                before.disjuncts,
                given_us(before.window),
            )
        repeated = reading.runs(
            self.origins[id(node)],
            node,
            operand,
            around.keys,
            (around.within_us, around.within),
            tuple(self._chain_reading().absent(1, each, around.keys) for each in absences),
        )
        first = repeated.unit.first
        return PlainPart(repeated, first if left is None else left.first, first)

    def _chain_reading(self) -> ChainReading:
        return ChainReading(
            self.query,
            self.choice,
            self.units,
            self._fresh,
            self.of_elements,
            self.binding.predicate,
            self.keys,
        )

    def _chained(self, node: Node, source: From, around: Around) -> PlainPart:
        chained = self._chain_reading().chain(
            self.origins[id(source)],
            node,
            source,
            around.keys,
            around.within_us,
            around.within,
        )
        return PlainPart(chained, chained.steps[0].block, chained.steps[-1].block)

    # -- what is decided -----------------------------------------------------------------------

    def _ordered(self, node: Operator | Absence, around: Around) -> PlainPart:
        origin = self.origins[id(node)]
        absences, first = absences_at(node)
        is_between = absences and absences[0].kind is AbsenceKind.BETWEEN
        if is_between and isinstance(first, Operator) and isinstance(first.right, Repetition):
            return self._repeated(first.right, first, around, absences)
        given: Parameter | None = None
        is_whole = False
        if not absences or absences[0].kind is AbsenceKind.BETWEEN:
            assert isinstance(first, Operator)
            parts = [self.part(each, around) for each in (first.left, first.right)]
            kind = DecisionKind.NEXT if first.kind is OperatorKind.NEXT else DecisionKind.PAIRS
            joined = Disjunct(tuple(self.keys.joins(around.keys, parts[0].last, parts[1].first)))
            disjuncts = self.all_of(self.binding.predicate(first.disjuncts), (joined,))
            parts, disjuncts = self._held_against_data(parts, disjuncts)
            window_us = length_us(first.window)
            window = first.window
            if window == Window(INFINITE_US) and isinstance(around.within, Parameter):
                window, is_whole = around.within, True
            elif isinstance(around.within, Parameter):
                asked = Disjunct(residuals=at_most(around.within))
                disjuncts = self.all_of(disjuncts, (asked,))
            if isinstance(window, Parameter):
                given = window
        else:
            parts = [self.part(first, around)]
            kind = _KINDS[absences[0].kind]
            disjuncts = (Disjunct(),)
            window_us = length_us(absences[0].window)
            if isinstance(absences[0].window, Parameter) and kind in _AT_END:
                given = absences[0].window
        if kind is not DecisionKind.BEFORE and window_us >= INFINITE_US:
            window_us = length_us(around.within)
        ordered = Ordered(
            origin,
            kind,
            tuple(self.source(each, around) for each in parts),
            disjuncts,
            tuple(self._absent(each, parts[0].last, around) for each in absences),
            given or window_us,
            around.within_us,
            is_whole,
        )
        return PlainPart(ordered, parts[0].first, parts[-1].last)

    def _held_against_data(
        self, parts: Sequence[PlainPart], disjuncts: Disjuncts
    ) -> tuple[list[PlainPart], Disjuncts]:
        """Move what a predicate holds of one operand against a parameter into that operand.

        Returns the operands, and what is left of the predicate.
        """
        if len(disjuncts) != 1:
            return list(parts), disjuncts
        [rest] = disjuncts
        texts = self.query.text_parameters
        found: list[PlainPart] = []
        for part in parts:
            blocks = set(blocks_of(part.node))
            names = {v.name for v in self.query.variables if v.block in blocks}
            own, rest = held_against_data(rest, names, texts)
            found.append(self._kept(part, (own,)) if own != Disjunct() else part)
        return found, (rest,)

    def source(self, part: PlainPart, around: Around) -> PlainNode:
        """Return an operand whose conditions are asked before anything is chosen."""
        if not isinstance(part.node, int):
            return part.node
        there = Disjunct(residuals=present(around.keys, part.node))
        conditions = self.all_of(part.conditions, (there,))
        return part.node if conditions == (Disjunct(),) else From(part.node, where=conditions)

    def _absent(self, absence: Absence, last: int, around: Around) -> AbsentUnit:
        blocks: list[tuple[int, Disjuncts]] = []
        for block in blocks_below(absence.absent):
            own = {v.name for v in self.query.variables if v.block == block}
            inside = self.binding.also(own)
            bound = inside.predicate(absence.disjuncts)
            asked = tuple(with_optional(each, self._fresh, own) for each in bound)
            joined = Disjunct(tuple(self.keys.joins(around.keys, last, block)))
            blocks.append((block, tuple(merged(each) for each in product(asked, (joined,)))))
        window_us: int | Parameter = INFINITE_US
        if absence.kind in (AbsenceKind.BEFORE, AbsenceKind.BETWEEN):
            window = absence.window
            window_us = window if isinstance(window, Parameter) else length_us(window)
        return AbsentUnit(tuple(blocks), window_us)

    def all_of(self, *predicates: Sequence[Disjunct]) -> Disjuncts:
        """Return the disjuncts of a conjunction of predicates.

        Where something is decided, an alternative that can have no match competes all the same.
        """
        found = all_of(*predicates)
        if not found and self.query.is_plain:
            raise ImpossibleError
        return found


_KINDS = {
    AbsenceKind.BEFORE: DecisionKind.BEFORE,
    AbsenceKind.AFTER: DecisionKind.AFTER,
    AbsenceKind.AROUND: DecisionKind.AROUND,
}


_AT_END = (DecisionKind.AFTER, DecisionKind.AROUND)
"""What is decided when a window is over, which may be data."""
